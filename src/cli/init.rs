//! `init` and `adopt`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};

use super::answer::{Answer, bytes, thousands};
use super::context::{Context, quoted, read_text};
use crate::calendar::{Calendar, Every};
use crate::dataset::{
    ColumnDef, Dataset, Definition, InitOptions, InitOutcome, PartitionColumn, Placement, Policy,
    Probe, RefusedObject, TimeKind, Totals, Version, check_refused,
};
use crate::error::{Error, Result};
use crate::spec::{calendar_of, read_toml};

#[derive(Debug, Args)]
pub(super) struct InitArguments {
    /// The dataset's root: a path or a URL
    url: String,
    /// Adopt the Parquet files that are there, in place
    #[arg(long, conflicts_with = "schema")]
    adopt: bool,
    /// Begin empty, with the columns that this TOML file lists
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// The partition column, the key of the folders
    #[arg(long, value_name = "COLUMN")]
    partition: String,
    /// How long a partition is
    #[arg(long, value_enum, default_value = "day")]
    every: EveryArgument,
    /// The IANA zone whose wall clock decides
    #[arg(long, value_name = "ZONE")]
    timezone: String,
    /// The first day of a week, for weeks
    #[arg(long, value_name = "DAY")]
    week_start: Option<String>,
    /// The owner's rules; else one approval by anybody who did not make the candidate
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Adopt although objects that look like data are refused
    #[arg(long)]
    allow_refused: bool,
    /// Why, for the log
    #[arg(long, default_value = "began")]
    reason: String,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum EveryArgument {
    Hour,
    Day,
    Week,
    Month,
}

#[derive(Debug, Args)]
pub(super) struct AdoptArguments {
    /// The dataset's root
    url: String,
    /// Say that the dataset is one already, and that its writers' changes should be taken in
    #[arg(long, required = true)]
    again: bool,
    /// Take files in although they replace partitions that were published or committed
    #[arg(long)]
    allow_replace_published: bool,
    /// Why, for the log
    #[arg(long, default_value = "changes of the dataset's own writers")]
    reason: String,
}

#[derive(Serialize)]
struct InitAnswer<'a> {
    dataset: String,
    control_prefix: String,
    version: u64,
    dataset_id: &'a str,
    new: bool,
    totals: Totals,
    columns: &'a [ColumnDef],
    store: Option<Probe>,
    refused: &'a [RefusedObject],
    used: Vec<&'a str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemaFile {
    columns: Vec<ColumnDef>,
}

pub(super) async fn init(context: &Context, arguments: InitArguments) -> Result<Answer> {
    let dataset = context.dataset(Some(&arguments.url))?;
    let actor = context.actor()?;
    let every = match arguments.every {
        EveryArgument::Hour => Every::Hour,
        EveryArgument::Day => Every::Day,
        EveryArgument::Week => Every::Week,
        EveryArgument::Month => Every::Month,
    };
    let calendar = calendar_of(every, &arguments.timezone, arguments.week_start.as_deref())?;
    let policy = match &arguments.policy {
        Some(file) => Policy::from_toml(&read_text(file)?, &file.display().to_string())?,
        None => Policy::default(),
    };
    if let Some(version) = dataset.find_head().await? {
        let theirs = &version.manifest.definition.partition;
        if theirs.column != arguments.partition || theirs.calendar != calendar {
            return Err(Error::invalid(format!(
                "it is a dataset already, and partitioned otherwise: {}",
                words_of(theirs)
            ))
            .with("dataset", dataset.root())
            .hint(format!(
                "if nothing was published yet, remove {} and begin again",
                dataset.control()
            )));
        }
        return answer(&dataset, &version, false, None, &[], &[]);
    }
    let (definition, partitions, refused) = match &arguments.schema {
        Some(file) => (empty(&arguments.partition, &calendar, file)?, Vec::new(), Vec::new()),
        None if arguments.adopt => {
            let found = dataset.survey(&arguments.partition, &calendar, None).await?;
            if !arguments.allow_refused {
                check_refused(&found.refused)
                    .map_err(|error| error.hint("or leave them out: --allow-refused"))?;
            }
            (found.definition, found.partitions, found.refused)
        }
        None => {
            return Err(Error::invalid("say what the dataset begins with")
                .hint("--adopt for the files that are there, or --schema FILE for an empty one"));
        }
    };
    let probe = dataset.probe(&context.env).await?;
    let used: Vec<String> =
        partitions.iter().flat_map(|p| &p.files).map(|file| file.path.clone()).collect();
    let policy = policy.owned_by(&actor);
    let options = InitOptions { definition, partitions, policy, actor, reason: arguments.reason };
    match dataset.init(options, &context.env).await? {
        InitOutcome::Made(version) => {
            answer(&dataset, &version, true, Some(probe), &refused, &used)
        }
        InitOutcome::Already(version) => {
            answer(&dataset, &version, false, Some(probe), &refused, &[])
        }
    }
}

/// A partitioning in words.
fn words_of(partition: &PartitionColumn) -> String {
    let calendar = &partition.calendar;
    let from = calendar.week_start.map(|day| format!(" from {day}")).unwrap_or_default();
    let place = match partition.placement {
        Placement::Path => "only in the path",
        Placement::File => "also in the files",
    };
    format!(
        "every {}{from} of {} ({place}), {}",
        calendar.every, partition.column, calendar.timezone
    )
}

fn empty(column: &str, calendar: &Calendar, file: &Path) -> Result<Definition> {
    let schema: SchemaFile = read_toml(&read_text(file)?, &file.display().to_string())?;
    for one in &schema.columns {
        one.field()
            .map_err(|error| Error::invalid(error.message()).with("file", file.display()))?;
    }
    let inside = schema.columns.iter().find(|candidate| candidate.name == column);
    let (placement, time) = match inside {
        None => (Placement::Path, PartitionColumn::path_time(calendar)),
        Some(inside) => {
            let time = TimeKind::of(inside.field()?.data_type()).ok_or_else(|| {
                Error::invalid(format!("the partition column {column:?} is no kind of time"))
            })?;
            (Placement::File, time)
        }
    };
    let partition =
        PartitionColumn { column: column.into(), placement, time, calendar: calendar.clone() };
    Ok(Definition { partition, columns: schema.columns })
}

fn answer(
    dataset: &Dataset,
    version: &Version,
    new: bool,
    store: Option<Probe>,
    refused: &[RefusedObject],
    used: &[String],
) -> Result<Answer> {
    let manifest = &version.manifest;
    let totals = manifest.totals;
    let mut text = if new {
        format!("{} is a dataset now: version 1\n", dataset.root())
    } else {
        format!("{} is a dataset already: version {}\n", dataset.root(), version.number())
    };
    text += &format!(
        "  partitions: {}\n  {} partitions, {} rows, {}; nothing of it was copied or touched\n  control prefix: {}\n",
        words_of(&manifest.definition.partition),
        thousands(totals.partitions),
        thousands(totals.rows),
        bytes(totals.bytes),
        dataset.control()
    );
    if store.is_some() {
        text += "  the store has what publishing needs: create-only writes, read after write\n";
    }
    for object in refused {
        text += &format!("  not used: {} ({})\n", object.path, object.reason);
    }
    let value = InitAnswer {
        dataset: dataset.root().url().to_owned(),
        control_prefix: dataset.control().url().to_owned(),
        version: version.number(),
        dataset_id: &manifest.dataset,
        new,
        totals,
        columns: &manifest.definition.columns,
        store,
        refused,
        used: used.iter().map(String::as_str).collect(),
    };
    let name = quoted(dataset.root().name());
    let next = format!(
        "write a spec and its SQL (docs/spec.md), then: reissue try {name}.toml --partition <NAME>"
    );
    Ok(Answer::new(text, &value)?.next(next))
}

pub(super) async fn adopt(context: &Context, arguments: AdoptArguments) -> Result<Answer> {
    let dataset = context.dataset(Some(&arguments.url))?;
    let actor = context.actor()?;
    let (version, names, refused) = dataset
        .adopt_again(&actor, &arguments.reason, arguments.allow_replace_published, &context.env)
        .await?;
    let mut text = match names.as_slice() {
        [] => format!("nothing has changed; version {} stays\n", version.number()),
        names => format!(
            "version {}: {} partitions taken in as they are now: {}\n",
            version.number(),
            names.len(),
            names.join(", ")
        ),
    };
    for object in &refused {
        text += &format!("  not used: {} ({})\n", object.path, object.reason);
    }
    let value = serde_json::json!({
        "version": version.number(), "partitions": names, "refused": refused,
    });
    Answer::new(text, &value)
}
