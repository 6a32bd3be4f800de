//! `rollback`.

use clap::Args;

use super::answer::{Answer, table, thousands};
use super::context::{Context, quoted};
use super::exit;
use super::publish::conflict;
use crate::error::Result;
use crate::plan::find_plan;
use crate::publish::{RollbackOutcome, RollbackPreview, RollbackRequest, RollbackTarget, rollback};

/// What the log says when nobody says why.
const DEFAULT_REASON: &str = "rolled back";

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("target").required(true))]
pub(super) struct RollbackArguments {
    /// Undo all publishes of this plan
    #[arg(long, value_name = "PLAN", group = "target")]
    of: Option<String>,
    /// Undo everything after this version
    #[arg(long, value_name = "VERSION", group = "target")]
    to: Option<u64>,
    /// The version you saw; without it, this only shows what would happen
    #[arg(long, value_name = "VERSION")]
    expect: Option<u64>,
    /// Go on although files in the root were changed outside reissue, from the kept copies
    #[arg(long)]
    allow_changed_root: bool,
    /// Why, for the log
    #[arg(long, default_value = DEFAULT_REASON)]
    reason: String,
}

pub(super) async fn run(context: &Context, arguments: RollbackArguments) -> Result<Answer> {
    let dataset = context.dataset(None)?;
    let (target, words) = match (&arguments.of, arguments.to) {
        (Some(plan), _) => {
            let plan = find_plan(&dataset, plan).await?;
            let words = format!("--of {}", plan.id.short());
            (RollbackTarget::Plan(plan.id), words)
        }
        (None, to) => {
            let to = to.unwrap_or_default();
            (RollbackTarget::Version(to), format!("--to {to}"))
        }
    };
    let reason = match arguments.reason.as_str() {
        DEFAULT_REASON => String::new(),
        reason => format!(" --reason {}", quoted(reason)),
    };
    let request = RollbackRequest {
        target,
        expect: arguments.expect,
        allow_changed_root: arguments.allow_changed_root,
        actor: context.actor()?,
        reason: arguments.reason,
    };
    let again = |head: u64| {
        format!(
            "reissue rollback {words} --expect {head}{reason} --dataset {}{}",
            quoted(dataset.root().url()),
            context.as_before()
        )
    };
    match rollback(&dataset, &request, &context.env).await? {
        RollbackOutcome::Preview(preview) => {
            let text = format!("nothing was done yet; this would happen:\n{}", shown(&preview));
            Ok(Answer::new(text, &serde_json::json!({ "outcome": "preview", "preview": preview }))?
                .next(again(preview.head)))
        }
        RollbackOutcome::RolledBack { version, preview } => {
            let text = format!(
                "version {}: {} partitions are what they were; nothing was deleted\n{}",
                version.number(),
                preview.partitions.len(),
                shown(&preview)
            );
            let value = serde_json::json!({ "outcome": "rolled-back", "version": version.number(), "preview": preview });
            Answer::new(text, &value)
        }
        RollbackOutcome::Already(version) => {
            let text = format!("it was undone already; version {} stays\n", version.number());
            let value = serde_json::json!({ "outcome": "already-rolled-back", "version": version.number() });
            Answer::new(text, &value)
        }
        RollbackOutcome::Nothing(reason) => {
            let value = serde_json::json!({ "outcome": "nothing", "reason": reason });
            Ok(Answer::new(format!("nothing to undo: {reason}\n"), &value)?.exit(exit::INVALID))
        }
        RollbackOutcome::Conflict(conflicts) => conflict(&conflicts, "rolled back"),
        RollbackOutcome::Moved { expected, head } => {
            let text =
                format!("not rolled back: you saw version {expected}, the newest is {head}\n");
            let value =
                serde_json::json!({ "outcome": "moved", "expected": expected, "head": head });
            Ok(Answer::new(text, &value)?
                .exit(exit::CONFLICT)
                .next(again(head).replace(&format!(" --expect {head}"), "")))
        }
    }
}

fn shown(preview: &RollbackPreview) -> String {
    let versions: Vec<String> = preview.undoes.iter().map(u64::to_string).collect();
    let sum = |rows: &dyn Fn(&crate::publish::RolledBackPartition) -> u64| -> u64 {
        preview.partitions.iter().map(rows).sum()
    };
    let mut text = format!(
        "  undoes version {}; readers see {} rows in {} partitions instead of {}\n",
        versions.join(", "),
        thousands(sum(&|one| one.rows_then.unwrap_or(0))),
        preview.partitions.len(),
        thousands(sum(&|one| one.rows_now))
    );
    text += &table(
        &["partition", "rows now", "rows then"],
        preview.partitions.iter().take(10).map(|one| {
            let then = one.rows_then.map_or("(gone)".to_owned(), thousands);
            vec![one.partition.clone(), thousands(one.rows_now), then]
        }),
    );
    if preview.partitions.len() > 10 {
        text += &format!("  … and {} more\n", preview.partitions.len() - 10);
    }
    text
}
