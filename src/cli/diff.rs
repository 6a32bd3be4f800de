//! `diff`: of a checked run, or of any two tables.

use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr as _;

use bytesize::ByteSize;
use clap::Args;

use super::answer::{Answer, table, thousands, write_err};
use super::check::{checked_difference, partition_rows};
use super::context::Context;
use super::show;
use crate::compare::{Diff, Equality, Rule, Truncation};
use crate::diff::{Aligned, DiffOptions, TablesDiff, align, compare_all, open_side, spill_folder};
use crate::error::{Error, ErrorKind, Result};
use crate::identity::Real;

#[derive(Debug, Args)]
pub(super) struct DiffArguments {
    /// A checked plan, by the beginning of its id; or, with a second side, the side to compare
    /// with: a folder or file of Parquet, a dataset, a version as URL@N, a plan's id
    production: String,
    /// The other side, of the same kinds
    candidate: Option<String>,
    /// One batch of a plan, counted from 1; else the whole run
    #[arg(long, conflicts_with = "candidate")]
    batch: Option<usize>,
    /// One partition
    #[arg(long)]
    partition: Option<String>,
    /// The columns that together tell rows apart, with commas between
    #[arg(long, value_delimiter = ',', requires = "candidate")]
    key: Vec<String>,
    /// Rows have no key: compare the sides as multisets of whole rows
    #[arg(long, conflicts_with = "key", requires = "candidate")]
    keyless: bool,
    /// Numbers of a column may differ by this much: price=0.01
    #[arg(long, value_name = "COLUMN=NUMBER", requires = "candidate", conflicts_with = "keyless")]
    absolute: Vec<String>,
    /// Numbers of a column may differ by this share: price=1e-9
    #[arg(long, value_name = "COLUMN=SHARE", requires = "candidate", conflicts_with = "keyless")]
    relative: Vec<String>,
    /// Times of a column are equal within the same millisecond, second, minute, hour or day
    #[arg(long, value_name = "COLUMN=UNIT", requires = "candidate", conflicts_with = "keyless")]
    truncate: Vec<String>,
    /// Partitions compared at once; else as many as there are cores
    #[arg(long, requires = "candidate")]
    threads: Option<usize>,
    /// Memory for sorting sides that are in no order, over all partitions compared at once
    #[arg(long, default_value = "1GiB", requires = "candidate")]
    memory: String,
}

pub(super) async fn run(context: &Context, arguments: DiffArguments) -> Result<Answer> {
    let Some(candidate) = &arguments.candidate else {
        let partition = arguments.partition.as_deref();
        return checked_difference(context, &arguments.production, arguments.batch, partition)
            .await;
    };
    let dataset = context.dataset(None).ok();
    let open = |text| open_side(&context.stores, text, dataset.as_ref(), Path::new("."));
    let (left, right) = (open(arguments.production.as_str()).await?, open(candidate).await?);
    let key = key_of(&arguments, left.key.or(right.key))?;
    let mut sides = align(left.tables, right.tables);
    if let Some(partition) = &arguments.partition {
        let is_it = |name: &String| {
            name == partition || name.split_once('=').is_some_and(|(_, value)| value == partition)
        };
        let known = known_partitions(&sides);
        sides.production.partitions.retain(|name, _| is_it(name));
        sides.candidate.partitions.retain(|name, _| is_it(name));
        if sides.production.partitions.is_empty() && sides.candidate.partitions.is_empty() {
            return Err(Error::invalid(format!("neither side has a partition {partition}"))
                .hint(format!("the partitions are {known}")));
        }
    }
    let at_once = arguments.threads.unwrap_or_else(cores).max(1);
    let memory = ByteSize::from_str(&arguments.memory).map_err(|_| {
        Error::invalid(format!("--memory {:?} is no size", arguments.memory))
            .hint("write 512MiB or 4GiB")
    })?;
    let spill = spill_folder()?;
    let options = DiffOptions {
        key,
        equality: equality(&arguments)?,
        memory: usize::try_from(memory.as_u64()).unwrap_or(usize::MAX) / (2 * at_once),
        spill: (spill.path().to_owned(), u64::MAX),
    };
    let progress = context.on_terminal();
    let seen = |name: &str| {
        if progress {
            write_err(&format!("\rcompared {name}   "));
        }
    };
    let diff = compare_all(&sides, &options, at_once, &seen).await.map_err(with_way_out)?;
    if progress {
        write_err("\r                                        \r");
    }
    let names = (sides.production.name.as_str(), sides.candidate.name.as_str());
    answer(&diff, names, &options.key)
}

/// The first names of partitions that there are.
fn known_partitions(sides: &Aligned) -> String {
    let tables = [&sides.production, &sides.candidate];
    let names: BTreeSet<&str> =
        tables.iter().flat_map(|side| side.partitions.keys().map(String::as_str)).collect();
    let told: Vec<&str> = names.iter().copied().take(10).collect();
    match (told.as_slice(), names.len()) {
        ([""], _) => "none: the files lie in no folders like month=2013-01".to_owned(),
        (_, ..=10) => told.join(", "),
        (_, all) => format!("{} and {} more", told.join(", "), all - 10),
    }
}

/// What can be done here about too little memory.
fn with_way_out(error: Error) -> Error {
    if error.kind() == ErrorKind::Exhausted {
        return error.only_hint(
            "give it more with --memory 8GiB, or compare fewer partitions at once with --threads 1",
        );
    }
    error
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn key_of(arguments: &DiffArguments, known: Option<Vec<String>>) -> Result<Vec<String>> {
    if arguments.keyless {
        return Ok(Vec::new());
    }
    if !arguments.key.is_empty() {
        return Ok(arguments.key.clone());
    }
    known.ok_or_else(|| {
        Error::invalid("by which columns rows belong together is not known")
            .hint("say --key id,line for the columns that tell rows apart, or --keyless")
    })
}

fn equality(arguments: &DiffArguments) -> Result<Equality> {
    let mut rules = Equality::default();
    let number = |text: &str, whole: &str| {
        text.parse::<f64>().map(Real).map_err(|_| {
            Error::invalid(format!("{whole:?} does not end in a number")).hint("write price=0.01")
        })
    };
    for given in &arguments.absolute {
        let (column, value) = split(given)?;
        rules.0.entry(column).or_default().absolute = Some(number(&value, given)?);
    }
    for given in &arguments.relative {
        let (column, value) = split(given)?;
        rules.0.entry(column).or_default().relative = Some(number(&value, given)?);
    }
    for given in &arguments.truncate {
        let (column, unit) = split(given)?;
        let truncate: Truncation = serde_json::from_value(unit.clone().into()).map_err(|_| {
            Error::invalid(format!("times are not truncated to a {unit:?}"))
                .hint("the units are millisecond, second, minute, hour, day")
        })?;
        rules.0.insert(column, Rule { truncate: Some(truncate), ..Rule::default() });
    }
    Ok(rules)
}

fn split(given: &str) -> Result<(String, String)> {
    let parts =
        given.rsplit_once('=').filter(|(column, value)| !column.is_empty() && !value.is_empty());
    parts.map(|(column, value)| (column.to_owned(), value.to_owned())).ok_or_else(|| {
        Error::invalid(format!("{given:?} is no rule"))
            .hint("write COLUMN=VALUE, such as price=0.01")
    })
}

fn answer(diff: &TablesDiff, (left, right): (&str, &str), key: &[String]) -> Result<Answer> {
    let by = match key {
        [] => "as multisets of rows".to_owned(),
        key => format!("by {}", key.join(", ")),
    };
    let mut text = format!(
        "production: {left}\ncandidate:  {right}\n{} partitions compared {by}, {} known to be equal unread\n",
        thousands((diff.partitions.len() - diff.skipped) as u64),
        thousands(diff.skipped as u64),
    );
    if let Some(layout) = &diff.layout {
        text += &format!("note: {layout}\n");
    }
    if !diff.schema.is_empty() {
        let side =
            |of: &Option<String>| of.clone().unwrap_or_else(|| "(no such column)".to_owned());
        text += "columns that are not the same:\n";
        text += &table(
            &["column", "production", "candidate", "values"],
            diff.schema.iter().map(|one| {
                let told = if one.compared { "compared" } else { "not compared" };
                vec![
                    one.column.clone(),
                    side(&one.production),
                    side(&one.candidate),
                    told.to_owned(),
                ]
            }),
        );
    }
    // Of rows without a key, each is its own.
    let repeated_keys = if key.is_empty() { 0 } else { diff.total.repeated_keys };
    text += &show::diff(&Diff { repeated_keys, ..diff.total.clone() });
    if diff.total.is_empty() && !diff.is_equal() {
        text += "the rows are equal in the columns that were compared; the sides are not equal\n";
    }
    text += &show::clusters(&diff.clusters);
    text += &partition_rows(&diff.partitions);
    let value = serde_json::json!({
        "production": left, "candidate": right, "key": key, "is_equal": diff.is_equal(),
        "schema": diff.schema, "layout": diff.layout, "total": diff.total, "clusters": diff.clusters, "partitions": diff.partitions, "skipped": diff.skipped,
    });
    Answer::new(text, &value)
}
