//! `commit`.

use clap::Args;

use super::answer::Answer;
use super::context::Context;
use super::exit;
use crate::dataset::{LiveCommit, LiveOutcome};
use crate::error::Result;

#[derive(Debug, Args)]
pub(super) struct CommitArguments {
    /// The partition
    #[arg(long)]
    partition: String,
    /// Finished Parquet files of the dataset's columns; they are copied
    #[arg(required = true)]
    files: Vec<String>,
    /// The version whose partition is replaced; needed when there is one
    #[arg(long, value_name = "VERSION")]
    base: Option<u64>,
    /// The name of the logic that made the files
    #[arg(long)]
    logic: Option<String>,
    /// Why, for the log
    #[arg(long, default_value = "live")]
    reason: String,
}

pub(super) async fn commit(context: &Context, arguments: CommitArguments) -> Result<Answer> {
    let dataset = context.dataset(None)?;
    let live = LiveCommit {
        partition: arguments.partition,
        files: arguments.files,
        base: arguments.base,
        logic: arguments.logic,
        actor: context.actor()?,
        reason: arguments.reason,
    };
    match dataset.commit_live(&context.stores, &live, &context.env).await? {
        LiveOutcome::Committed(version) => {
            let text = format!(
                "version {}: partition {} is committed\n",
                version.number(),
                live.partition
            );
            let value = serde_json::json!({ "outcome": "committed", "version": version.number() });
            Answer::new(text, &value)
        }
        LiveOutcome::Already(version) => {
            let text = format!("version {} has exactly these files already\n", version.number());
            let value = serde_json::json!({ "outcome": "already", "version": version.number() });
            Answer::new(text, &value)
        }
        LiveOutcome::Conflict { reason, head } => {
            let text = format!("not committed: {reason}\n");
            let value =
                serde_json::json!({ "outcome": "conflict", "reason": reason, "head": head });
            Ok(Answer::new(text, &value)?.exit(exit::CONFLICT))
        }
    }
}
