//! `approve`.

use clap::Args;

use super::answer::Answer;
use super::check::{scope_flag, scope_of};
use super::context::Context;
use super::{exit, show};
use crate::approval::{ApproveOutcome, approve};
use crate::error::Result;

#[derive(Debug, Args)]
pub(super) struct ApproveArguments {
    /// The plan: the beginning of its id
    plan: String,
    /// One batch, counted from 1; else the whole run
    #[arg(long)]
    batch: Option<usize>,
    /// Why, in your own words
    #[arg(long, default_value = "")]
    comment: String,
}

pub(super) async fn run(context: &Context, arguments: ApproveArguments) -> Result<Answer> {
    let (dataset, plan) = context.plan(&arguments.plan).await?;
    let scope = scope_of(arguments.batch);
    let actor = context.actor()?;
    let outcome = approve(&dataset, &plan, scope, &actor, &arguments.comment, &context.env).await?;
    match outcome {
        ApproveOutcome::Approved { approval, digest, report, have, need } => {
            let mut text = format!(
                "{actor} approves {scope} of {} (unsigned: the identity is only claimed)\n  candidate {}\n  report    {}, compared with version {}\n",
                plan.id.short(),
                approval.candidate,
                approval.report.short(),
                report.base_version
            );
            text += &show::findings(&report.findings);
            text += &show::diff(&crate::compare::Diff { examples: Vec::new(), ..report.total });
            for (word, list) in
                [("tell", &plan.terms.downstream), ("sets off", &plan.terms.side_effects)]
            {
                for one in list.iter().flatten() {
                    text += &format!("  {word} {one}\n");
                }
            }
            text += &format!("{have} of {need} approvals\n");
            let value = serde_json::json!({
                "approval": digest, "approved": approval, "have": have, "need": need,
            });
            let answer = Answer::new(text, &value)?;
            Ok(if have >= need {
                answer.next(format!(
                    "{}{}",
                    context.command("publish", &plan, &dataset),
                    scope_flag(scope)
                ))
            } else {
                answer
            })
        }
        ApproveOutcome::NotClear(standing) => {
            let text = format!("not approved: {}", show::standing(&standing));
            let value = serde_json::json!({
                "approved": false, "reason": "checks failed", "findings": standing.failed,
                "open": standing.open,
            });
            Ok(Answer::new(text, &value)?.exit(exit::FAILED))
        }
        ApproveOutcome::NotAllowed(reason) => {
            let value = serde_json::json!({ "approved": false, "reason": reason });
            Ok(Answer::new(format!("not approved: {reason}\n"), &value)?.exit(exit::FAILED))
        }
    }
}
