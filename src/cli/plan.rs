//! `plan`.

use std::path::PathBuf;

use clap::Args;

use super::answer::{Answer, bytes, table, thousands};
use super::context::Context;
use crate::calendar::Range;
use crate::error::{Error, Result};
use crate::identity::to_json;
use crate::plan::{DryRun, PlanOptions, build};
use crate::run::store_event;

#[derive(Debug, Args)]
pub(super) struct PlanArguments {
    /// The spec
    spec: PathBuf,
    /// The first partition
    #[arg(long, requires = "last", conflicts_with_all = ["start", "end"])]
    first: Option<String>,
    /// The last partition, included
    #[arg(long, requires = "first")]
    last: Option<String>,
    /// The first partition
    #[arg(long, requires = "end")]
    start: Option<String>,
    /// The first partition that is left out
    #[arg(long, requires = "start")]
    end: Option<String>,
    /// Write the plan to a file instead of the control prefix, for those who may only read
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) async fn run(context: &Context, arguments: PlanArguments) -> Result<Answer> {
    let spec = Context::spec(&arguments.spec)?;
    let actor = context.actor()?;
    let range = match (arguments.first, arguments.last, arguments.start, arguments.end) {
        (Some(first), Some(last), _, _) => Some(Range::Inclusive { first, last }),
        (_, _, Some(start), Some(end)) => Some(Range::HalfOpen { start, end }),
        _ => None,
    };
    let save = arguments.output.is_none();
    let options = PlanOptions { range, actor: actor.clone(), save };
    let planned = build(&context.stores, &spec, options, &context.env).await?;
    let policy = planned.dataset.policy(&planned.base).await?;
    let dry_run = DryRun::of(&planned, &policy)?;
    match &arguments.output {
        None => {
            store_event(&planned.dataset, &planned.plan.id, "planned", &actor, "", &context.env)
                .await?;
        }
        Some(file) => {
            #[expect(
                clippy::disallowed_methods,
                reason = "a file that the user names on this machine"
            )]
            std::fs::write(file, to_json(&planned.plan)?).map_err(|error| {
                Error::invalid("the plan cannot be written")
                    .with("file", file.display())
                    .because(error)
            })?;
        }
    }
    let answer = Answer::new(text(&dry_run), &dry_run)?;
    Ok(if save {
        answer.next(context.command("run", &planned.plan, &planned.dataset))
    } else {
        answer
    })
}

/// The dry run in one screen.
fn text(dry: &DryRun) -> String {
    let mut lines = vec![
        format!(
            "dry run: plan {} ({})",
            dry.plan_id.short(),
            if dry.is_new { "new" } else { "planned before, the same" }
        ),
        format!("  dataset     {} at version {}", dry.dataset, dry.base_version),
        format!("  why         {} (owner {})", dry.change.reason, dry.change.owner),
        format!("  may change  {}", dry.change.columns.join(", ")),
        format!(
            "  range       {} to {}: {} partitions in {} batches of at most {}",
            dry.first,
            dry.last,
            dry.partitions.len(),
            dry.batches.len(),
            dry.maximum_partitions_per_batch
        ),
        format!(
            "  to read     {} rows, {} (by footers, only the columns the query reads)",
            thousands(dry.total_estimated_rows),
            bytes(dry.total_estimated_bytes)
        ),
        format!(
            "  to compute  {} partitions; {} kept from earlier plans",
            dry.to_compute, dry.kept
        ),
    ];
    lines.extend(pin_lines(dry));
    lines.extend(release_lines(dry));
    let mut text = format!("{}\n\n", lines.join("\n"));
    text += &table(
        &["batch", "partitions", "", "rows to read", "bytes to read"],
        shown(&dry.batches).map(|batch| match batch {
            None => vec!["…".to_owned(); 5],
            Some(batch) => vec![
                batch.batch.to_string(),
                batch.partitions.len().to_string(),
                match (batch.partitions.first(), batch.partitions.last()) {
                    (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
                    (Some(only), _) => only.clone(),
                    _ => String::new(),
                },
                thousands(batch.estimated_rows),
                bytes(batch.estimated_bytes),
            ],
        }),
    );
    for note in &dry.notes {
        text += &format!("note: {note}\n");
    }
    text
}

fn pin_lines(dry: &DryRun) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, pin) in &dry.pins {
        lines.push(format!(
            "  pin         {name}: {} files, {} rows, {} at {}{}",
            pin.files,
            thousands(pin.rows),
            bytes(pin.bytes),
            pin.url,
            pin.version.map(|version| format!(" version {version}")).unwrap_or_default()
        ));
    }
    lines
}

/// Logic, target, publish, rollback, and the terms that are set.
fn release_lines(dry: &DryRun) -> Vec<String> {
    let mut lines = Vec::new();
    lines.push(format!(
        "  logic       {} ({})",
        dry.transform.sql_file,
        dry.transform.sql_digest.short()
    ));
    lines.push(format!("  target      {} (production is not touched)", dry.target));
    lines.push(format!(
        "  publish     {}, after {} approvals",
        dry.publish.method, dry.publish.approvals
    ));
    lines.push(format!("  rollback    {}, for {}", dry.rollback.action, dry.rollback.window));
    for (name, value) in [("expires", &dry.change.expires_at), ("window", &dry.change.window)] {
        if let Some(value) = value {
            lines.push(format!("  {name:<11} {value}"));
        }
    }
    for (name, list) in
        [("downstream", &dry.change.downstream), ("sets off", &dry.change.side_effects)]
    {
        if let Some(list) = list {
            lines.push(format!(
                "  {name:<11} {}",
                if list.is_empty() { "nothing".to_owned() } else { list.join(", ") }
            ));
        }
    }
    lines
}

/// At most 12 of them: the first and the last ones, `None` for those in between.
fn shown<T>(all: &[T]) -> impl Iterator<Item = Option<&T>> {
    const MOST: usize = 12;
    let gap = all.len() > MOST;
    let head = if gap { MOST - 3 } else { all.len() };
    let tail = if gap { all.len() - 2 } else { all.len() };
    let first = all.iter().take(head).map(Some);
    first.chain(gap.then_some(None)).chain(all.iter().skip(tail).map(Some))
}
