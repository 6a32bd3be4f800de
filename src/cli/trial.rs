//! `try`.

use std::path::PathBuf;

use arrow::util::display::FormatOptions;
use arrow::util::pretty::pretty_format_batches_with_options;
use clap::Args;

use super::answer::{Answer, thousands};
use super::context::Context;
use super::{exit, show};
use crate::check::{Verdict, verdict};
use crate::error::{ErrorKind, Result, from_arrow};
use crate::trial::try_partition;

#[derive(Debug, Args)]
pub(super) struct TryArguments {
    /// The spec
    spec: PathBuf,
    /// The partition
    #[arg(long)]
    partition: String,
    /// How many rows to show
    #[arg(long, default_value_t = 5)]
    rows: usize,
}

pub(super) async fn run(context: &Context, arguments: TryArguments) -> Result<Answer> {
    let spec = Context::spec(&arguments.spec)?;
    let trial = try_partition(&context.stores, &spec, &arguments.partition).await?;
    let shown = trial.rows.slice(0, arguments.rows.min(trial.rows.num_rows()));
    let options = FormatOptions::default().with_null("null");
    let rows = pretty_format_batches_with_options(&[shown], &options)
        .map_err(|error| from_arrow(ErrorKind::Internal, "show rows", error))?;
    let mut text = format!(
        "try {}: {} rows; nothing was written\n{rows}\n",
        trial.partition,
        thousands(trial.metrics.rows)
    );
    match &trial.diff {
        Some(diff) => text += &show::diff(diff),
        None => text += "production has nothing there\n",
    }
    text += &show::findings(&trial.findings);
    for construct in &trial.order_sensitive {
        text += &format!("note: depends on the order of rows: {construct}\n");
    }
    for sum in &trial.wrapping {
        text += &format!("note: wraps around silently if it exceeds its type: {sum}\n");
    }
    let failed = verdict(&trial.findings) == Verdict::Fail;
    let value = serde_json::json!({
        "partition": trial.partition,
        "metrics": trial.metrics,
        "diff": trial.diff,
        "findings": trial.findings,
        "order_sensitive": trial.order_sensitive,
        "wrapping": trial.wrapping,
        "written": false,
    });
    let answer = Answer::new(text, &value)?;
    Ok(if failed {
        answer.exit(exit::FAILED)
    } else {
        answer.next(format!(
            "reissue plan {}{}",
            super::context::quoted(&arguments.spec.display().to_string()),
            context.as_before()
        ))
    })
}
