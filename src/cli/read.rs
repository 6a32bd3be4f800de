//! `log`, `files` and `query`.

use arrow::json::WriterBuilder;
use arrow::json::writer::LineDelimited;
use arrow::util::display::FormatOptions;
use arrow::util::pretty::pretty_format_batches_with_options;
use clap::Args;
use futures::TryStreamExt as _;

use super::answer::{Answer, table, thousands};
use super::context::Context;
use super::exit;
use crate::calendar::Interval;
use crate::dataset::{Dataset, Kind, Manifest, Partition, Version};
use crate::error::{Error, ErrorKind, Result, from_arrow, from_engine};
use crate::query::{Parameters, Query, Session, SessionOptions};
use crate::report::production_table;

#[derive(Debug, Args)]
pub(super) struct LogArguments {
    /// The dataset's root; else --dataset
    url: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct FilesArguments {
    /// The dataset's root; else --dataset
    url: Option<String>,
    /// A version; else the current one
    #[arg(long)]
    version: Option<u64>,
    /// Only these partitions
    #[arg(long)]
    partition: Vec<String>,
    /// Look whether each object is still what the version says
    #[arg(long)]
    check: bool,
}

#[derive(Debug, Args)]
pub(super) struct QueryArguments {
    /// One SELECT; the dataset is the table of its folder's name
    #[arg(allow_hyphen_values = true)]
    sql: String,
    /// A version; else the current one
    #[arg(long)]
    version: Option<u64>,
}

pub(super) async fn log(context: &Context, arguments: LogArguments) -> Result<Answer> {
    let dataset = context.dataset(arguments.url.as_deref())?;
    let history = dataset.history().await?;
    if history.is_empty() {
        dataset.head().await?;
    }
    let rows = history.iter().rev().map(|version| {
        let manifest = &version.manifest;
        vec![
            version.number().to_string(),
            manifest.kind.name().to_owned(),
            manifest.created_at.format("%Y-%m-%d %H:%M:%S").to_string(),
            manifest.actor.clone(),
            thousands(manifest.totals.rows),
            what(manifest),
        ]
    });
    let text = table(&["version", "kind", "at (UTC)", "who", "rows", "what"], rows);
    let manifests: Vec<&Manifest> = history.iter().map(|version| &version.manifest).collect();
    Answer::new(
        text,
        &serde_json::json!({ "dataset": dataset.root().url(), "versions": manifests }),
    )
}

fn what(manifest: &Manifest) -> String {
    let changed = manifest.changed;
    let mut words = Vec::new();
    for (count, word) in
        [(changed.added, "added"), (changed.replaced, "replaced"), (changed.removed, "removed")]
    {
        if count > 0 {
            words.push(format!("{count} {word}"));
        }
    }
    let mut text = words.join(", ");
    let cause = &manifest.cause;
    if let Some(plan) = &cause.plan {
        let verb = if manifest.kind == Kind::Rollback { "undoes plan" } else { "plan" };
        text += &format!("; {verb} {}", plan.short());
    }
    if let Some(partial) = &cause.partial {
        text += &format!("; part of a run: {} of {}", partial.published, partial.planned);
    }
    if let Some(logic) = &cause.logic {
        text += &format!("; logic {logic}");
    }
    if !cause.overrides.is_empty() {
        text += &format!("; with {}", cause.overrides.join(", "));
    }
    if !cause.reason.is_empty() {
        text += &format!("; {}", cause.reason);
    }
    text
}

/// Memory of a query from the command line; beyond it, operators spill or say so.
const QUERY_BYTES: usize = 2 << 30;

async fn version_of(dataset: &Dataset, number: Option<u64>) -> Result<Version> {
    match number {
        Some(number) => dataset.version(number).await,
        None => dataset.head().await,
    }
}

pub(super) async fn files(context: &Context, arguments: FilesArguments) -> Result<Answer> {
    let dataset = context.dataset(arguments.url.as_deref())?;
    let version = version_of(&dataset, arguments.version).await?;
    let partitions = dataset.partitions(&version).await?;
    let chosen: Vec<&Partition> = partitions
        .present()
        .filter(|one| arguments.partition.is_empty() || arguments.partition.contains(&one.name))
        .collect();
    if arguments.check {
        return checked(&dataset, &version, &chosen).await;
    }
    let mut text = String::new();
    let mut files = Vec::new();
    for partition in chosen {
        for file in &partition.files {
            let path = dataset.public_path(file);
            text += &format!("{path}\n");
            files.push(serde_json::json!({
                "partition": partition.name, "path": path, "size": file.size, "rows": file.rows,
                "blake3": file.hash, "place": file.place, "changed_in": partition.changed_in,
            }));
        }
    }
    let partial = &version.manifest.cause.partial;
    let value = serde_json::json!({
        "dataset": dataset.root().url(), "version": version.number(), "partial": partial, "files": files,
    });
    Answer::new(text, &value)
}

async fn checked(dataset: &Dataset, version: &Version, chosen: &[&Partition]) -> Result<Answer> {
    let report = dataset.foreign_changes(chosen.iter().copied()).await?;
    let mut text = format!(
        "{} objects of version {} looked at: {} changed outside reissue\n",
        report.looked_at,
        version.number(),
        report.changes.len()
    );
    for change in &report.changes {
        text += &format!("  {}: {} {}\n", change.partition, change.path, change.what);
    }
    let answer =
        Answer::new(text, &serde_json::json!({ "version": version.number(), "check": report }))?;
    Ok(if report.changes.is_empty() {
        answer
    } else {
        answer
            .exit(exit::CONFLICT)
            .next(format!("reissue adopt --again {}", super::context::quoted(dataset.root().url())))
    })
}

pub(super) async fn query(context: &Context, arguments: QueryArguments) -> Result<Answer> {
    let dataset = context.dataset(None)?;
    let version = version_of(&dataset, arguments.version).await?;
    let partitions = dataset.partitions(&version).await?;
    let definition = &version.manifest.definition;
    let calendar = &definition.partition.calendar;
    let intervals: Vec<(Interval, &Partition)> = partitions
        .present()
        .map(|partition| Ok((calendar.named(&partition.name)?, partition)))
        .collect::<Result<_>>()?;
    let files: Vec<_> = intervals
        .iter()
        .map(|(interval, partition)| (interval, partition.files.as_slice()))
        .collect();
    let table = production_table(&dataset, definition, &files).await?;
    let name = dataset.root().name().to_lowercase();
    let query = Query::parse(&arguments.sql, "the command line")?;
    let options = SessionOptions {
        memory: Some(SessionOptions::pool(QUERY_BYTES)),
        ..SessionOptions::default()
    };
    let session = Session::new(&options)?;
    session.register(&name, table)?;
    let stream = session
        .run(&query, &Parameters::none(), &[])
        .await
        .map_err(|error| error.hint(format!("the dataset is the table {name}")))?;
    let fail = |error| from_engine(ErrorKind::Invalid, "the query failed", error);
    let batches: Vec<_> = stream.try_collect().await.map_err(fail)?;
    let show = |error| from_arrow(ErrorKind::Internal, "show rows", error);
    let options = FormatOptions::default().with_null("null");
    let shown = pretty_format_batches_with_options(&batches, &options).map_err(show)?;
    let text = format!(
        "{shown}
"
    );
    let mut lines = Vec::new();
    let mut writer =
        WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(&mut lines);
    for batch in &batches {
        writer.write(batch).map_err(show)?;
    }
    writer.finish().map_err(show)?;
    let rows: Vec<serde_json::Value> = serde_json::Deserializer::from_slice(&lines)
        .into_iter()
        .collect::<Result<_, _>>()
        .map_err(|error| Error::internal("write rows as JSON").because(error))?;
    let value = serde_json::json!({ "version": version.number(), "rows": rows });
    Answer::new(text, &value)
}
