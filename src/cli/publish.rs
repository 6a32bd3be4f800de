//! `publish`.

use clap::Args;

use super::answer::{Answer, thousands};
use super::check::scope_flag;
use super::context::Context;
use super::{exit, show};
use crate::candidate::Scope;
use crate::dataset::{Dataset, Version};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::publish::{ConflictedPartition, Past, PublishOutcome, Published, next_scope, publish};
use crate::spec::Unit;

#[derive(Debug, Args)]
pub(super) struct PublishArguments {
    /// The plan: the beginning of its id
    plan: String,
    /// The batch, which must be the next one; for specs that publish batch by batch
    #[arg(long)]
    batch: Option<usize>,
}

pub(super) async fn run(context: &Context, arguments: PublishArguments) -> Result<Answer> {
    let (dataset, plan) = context.plan(&arguments.plan).await?;
    let actor = context.actor()?;
    let past = Past::of(&plan.id, &dataset.history().await?);
    let scope = scope_of(&plan, &past, arguments.batch)?;
    match publish(&dataset, &plan, scope, &actor, &context.env).await? {
        PublishOutcome::Published(published) => published_answer(&dataset, &plan, &published),
        PublishOutcome::Already(version) => {
            let text =
                format!("already published as version {}; nothing was done\n", version.number());
            let value =
                serde_json::json!({ "outcome": "already-published", "version": version.number() });
            Answer::new(text, &value)
        }
        PublishOutcome::RolledBack { published, undone_by } => {
            let next = format!(
                "{}{}",
                context.command_for("<APPROVER>", "approve", &plan, &dataset),
                scope_flag(scope)
            );
            Ok(rolled_back(published, &undone_by)?.next(next))
        }
        PublishOutcome::NotApproved { have, need } => {
            let text = format!(
                "not published: {have} of {need} approvals of what production and the candidate are now\n"
            );
            let value =
                serde_json::json!({ "outcome": "not-approved", "have": have, "need": need });
            let next = format!(
                "{}{}",
                context.command_for("<APPROVER>", "approve", &plan, &dataset),
                scope_flag(scope)
            );
            Ok(Answer::new(text, &value)?.exit(exit::FAILED).next(next))
        }
        PublishOutcome::NotComputed(reason) => {
            Ok(not_ready(&reason)?.next(context.command("run", &plan, &dataset)))
        }
        PublishOutcome::NotChecked(reason) => {
            let check = context.command("check", &plan, &dataset);
            Ok(not_ready(&reason)?.next(format!("{check}{}", scope_flag(scope))))
        }
        PublishOutcome::NotClear(standing) => {
            let text = format!("not published: {}", show::standing(&standing));
            let value = serde_json::json!({
                "outcome": "checks-failed", "findings": standing.failed,
                "open": standing.open,
            });
            Ok(Answer::new(text, &value)?.exit(exit::FAILED))
        }
        PublishOutcome::Conflict(conflicts) => Ok(conflict(&conflicts, "published")?
            .next(format!("{}{}", context.command("check", &plan, &dataset), scope_flag(scope)))),
        PublishOutcome::OutsideWindow(window) => {
            let text = format!("not published: outside the window {window}\n");
            let value = serde_json::json!({ "outcome": "outside-window", "window": window });
            Ok(Answer::new(text, &value)?.exit(exit::STOPPED))
        }
    }
}

fn not_ready(reason: &str) -> Result<Answer> {
    let value = serde_json::json!({ "outcome": "not-ready", "reason": reason });
    Ok(Answer::new(format!("not published: {reason}\n"), &value)?.exit(exit::FAILED))
}

/// It was published, and somebody undid that.
fn rolled_back(published: u64, undone_by: &Version) -> Result<Answer> {
    let manifest = &undone_by.manifest;
    let text = format!(
        "not published: it was published as version {published}, and version {} undid that\n  by {} at {}: {}\n  its approval is used up; publishing again needs a new one\n",
        undone_by.number(),
        manifest.actor,
        manifest.created_at.to_rfc3339(),
        manifest.cause.reason
    );
    let value = serde_json::json!({
        "outcome": "rolled-back", "published": published, "undone_by": undone_by.number(),
        "actor": manifest.actor, "reason": manifest.cause.reason,
    });
    Ok(Answer::new(text, &value)?.exit(exit::FAILED))
}

fn scope_of(plan: &Plan, past: &Past, batch: Option<usize>) -> Result<Scope> {
    let next = next_scope(plan, past)?;
    match (plan.decides.publish_unit, batch, next) {
        (Unit::Run, None, _) => Ok(Scope::Run),
        (Unit::Run, Some(_), _) => {
            Err(Error::invalid("this plan publishes the whole run at once")
                .hint("leave --batch out"))
        }
        // Published ones are answered with "already".
        (Unit::Batch, Some(number), _) if past.standing(Scope::Batch(number)).is_some() => {
            Ok(Scope::Batch(number))
        }
        (Unit::Batch, Some(number), Some(Scope::Batch(next))) if number != next => {
            Err(Error::invalid(format!("batch {number} cannot be published before batch {next}"))
                .hint("batches are published in order, never past one that is not ready"))
        }
        (Unit::Batch, _, Some(next)) => Ok(next),
        (Unit::Batch, _, None) => Ok(Scope::Batch(plan.batches()?.len())),
    }
}

pub(super) fn conflict(conflicts: &[ConflictedPartition], what: &str) -> Result<Answer> {
    let mut text = format!("not {what}: {} partitions are in conflict\n", conflicts.len());
    for one in conflicts.iter().take(20) {
        text += &format!("  {}: {}\n", one.partition, one.reason);
    }
    let value = serde_json::json!({ "outcome": "conflict", "conflicts": conflicts });
    Ok(Answer::new(text, &value)?.exit(exit::CONFLICT))
}

fn published_answer(dataset: &Dataset, plan: &Plan, published: &Published) -> Result<Answer> {
    let manifest = &published.version.manifest;
    let number = published.version.number();
    let mut text = format!(
        "published as version {number}: {} partitions in one commit; the dataset has {} rows\n",
        published.partitions,
        thousands(manifest.totals.rows)
    );
    if let Some(partial) = &manifest.cause.partial {
        text += &format!(
            "  part of a run: batch {} of {}, {} of {} partitions are in production\n",
            partial.batch, partial.batches, partial.published, partial.planned
        );
    }
    text += &format!("  readers: reissue files, or the view {}\n", published.view);
    if published.superseded_in_root > 0 {
        text += &format!(
            "  readers of the bare folder {} still see the old rows of {} files\n",
            dataset.root(),
            published.superseded_in_root
        );
    }
    for one in &published.committed_since {
        let logic =
            one.logic.as_ref().map(|logic| format!(" by logic {logic}")).unwrap_or_default();
        text += &format!(
            "  {} was committed since, in version {}{logic}; it stays as it is\n",
            one.partition, one.version
        );
    }
    for one in plan.terms.downstream.iter().flatten() {
        text += &format!("  tell {one}\n");
    }
    let value = serde_json::json!({
        "outcome": "published", "version": number, "partitions": published.partitions,
        "partial": manifest.cause.partial, "view": published.view,
        "superseded_files_in_root": published.superseded_in_root,
        "committed_since": published.committed_since,
        "downstream": plan.terms.downstream, "side_effects": plan.terms.side_effects,
    });
    let next = format!(
        "reissue query \"SELECT count(*) FROM {0}\" --dataset {1}",
        dataset.root().name(),
        super::context::quoted(dataset.root().url())
    );
    Ok(Answer::new(text, &value)?.next(next))
}
