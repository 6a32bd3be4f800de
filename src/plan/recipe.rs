//! Recipes: everything that decides one partition's rows and bytes, as a digest; and what of a
//! source one partition's query sees.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use chrono::{DateTime, NaiveDateTime, Utc};
use chrono_tz::Tz;
use datafusion::common::ScalarValue;

use super::{SourceInterval, SourcePin};
use crate::calendar::{Calendar, Edge, Interval, Span, ZONE_RULES};
use crate::dataset::{ColumnDef, Dataset, Definition, layout};
use crate::error::{Error, Result};
use crate::identity::{Digest, from_json};
use crate::metrics::DIGEST;
use crate::parquet_file::{Footer, WRITER_PROPERTIES};
use crate::query::{
    ENGINE, FIXED_BATCH_ROWS, FIXED_MEMORY_BYTES, PinnedFile, PinnedTable, RowWindow,
};
use crate::run::Record;
use crate::storage::{Object, Store};

/// What a recipe is made of.
pub(super) struct Ingredients<'a> {
    pub(super) canonical_sql: &'a str,
    pub(super) order_sensitive: bool,
    pub(super) parameters: &'a BTreeMap<String, String>,
    pub(super) definition: &'a Definition,
    pub(super) key: &'a [String],
    pub(super) sources: &'a BTreeMap<String, SourcePin>,
    pub(super) reads: &'a BTreeMap<String, Vec<usize>>,
    pub(super) interval: &'a Interval,
}

/// What of this program decides results: versions of the engine, the writer's properties, the zone
/// rules and the content digest.
pub(crate) fn rules() -> String {
    format!("{ENGINE}; writer {WRITER_PROPERTIES}; zones {ZONE_RULES}; content {DIGEST}")
}

/// The digest of a partition's ingredients.
pub(super) fn recipe(of: &Ingredients<'_>) -> Result<Digest> {
    let mut inputs = BTreeMap::new();
    for (name, files) in of.reads {
        let Some(source) = of.sources.get(name) else { continue };
        let objects: Vec<_> = files.iter().filter_map(|number| source.files.get(*number)).collect();
        let identities: Vec<_> = objects.iter().map(|file| identity_of(&file.object)).collect();
        inputs.insert(name, (&source.interval, &source.columns, &source.path_columns, identities));
    }
    // Only where an answer may follow the order of rows do batch size and memory decide anything.
    let fixed = of.order_sensitive.then_some((FIXED_BATCH_ROWS, FIXED_MEMORY_BYTES));
    let engine = (rules(), fixed);
    let output = (&of.definition.columns, &of.definition.partition, of.key);
    let interval = (&of.interval.name, of.interval.start, of.interval.end);
    Digest::of_json(&(
        "recipe 1",
        of.canonical_sql,
        of.parameters,
        inputs,
        output,
        interval,
        engine,
    ))
}

/// What of an object a recipe holds: without a tag or a version, the time tells objects apart.
fn identity_of(object: &Object) -> (&str, u64, Option<&str>, Option<&str>, Option<DateTime<Utc>>) {
    let known = object.e_tag.is_some() || object.version.is_some();
    let time = (!known).then_some(object.modified_at);
    (&object.path, object.size, object.e_tag.as_deref(), object.version.as_deref(), time)
}

/// The window of a source that a partition's query sees, as instants and wall-clock readings.
fn edges(
    calendar: &Calendar,
    interval: &Interval,
    lookback: Span,
    lookahead: Span,
) -> (Edge, Edge) {
    (calendar.before(interval, lookback), calendar.after(interval, lookahead))
}

/// Which files of a source a partition reads, by number.
pub(super) fn files_read(
    source: &SourcePin,
    calendar: &Calendar,
    interval: &Interval,
) -> Result<Vec<usize>> {
    let Some(by) = source.interval.as_ref().filter(|by| by.in_path) else {
        return Ok((0..source.files.len()).collect());
    };
    let (from, to) = edges(calendar, interval, by.lookback, by.lookahead);
    let mut files = Vec::new();
    for (number, file) in source.files.iter().enumerate() {
        let value = file.path_values.get(&by.column).map(String::as_str).unwrap_or_default();
        let at = by.folders.as_ref().unwrap_or(calendar).named(value)?;
        if from.instant <= at.start && at.start < to.instant {
            files.push(number);
        }
    }
    Ok(files)
}

/// The rows of an in-file interval column that a partition's query sees.
pub(super) fn row_window(
    by: &SourceInterval,
    calendar: &Calendar,
    interval: &Interval,
    (lookback, lookahead): (Span, Span),
) -> Result<Option<RowWindow>> {
    if by.in_path {
        return Ok(None);
    }
    let (from, to) = edges(calendar, interval, lookback, lookahead);
    let value = |edge: Edge| -> Result<ScalarValue> {
        let wall = match &by.timezone {
            Some(zone) => wall_in(zone, edge.instant)?,
            None => edge.wall,
        };
        by.time.value(&interval.name, edge.instant, wall)
    };
    Ok(Some(RowWindow { column: by.column.clone(), start: value(from)?, end: value(to)? }))
}

fn wall_in(zone: &str, at: DateTime<Utc>) -> Result<NaiveDateTime> {
    let zone: Tz =
        zone.parse().map_err(|_| Error::invalid(format!("{zone:?} is no IANA time zone")))?;
    Ok(at.with_timezone(&zone).naive_local())
}

/// A source as one partition's query sees it; in checks, exactly the partition's own interval.
///
/// # Errors
/// `Invalid` when a boundary cannot be represented.
pub fn source_table(
    source: &SourcePin,
    store: &Arc<Store>,
    calendar: &Calendar,
    interval: &Interval,
    footers: Option<&[Arc<Footer>]>,
    own_interval_only: bool,
) -> Result<PinnedTable> {
    let mut cut = source.clone();
    if let Some(by) = cut.interval.as_mut().filter(|_| own_interval_only) {
        (by.lookback, by.lookahead) = (Span::NONE, Span::NONE);
    }
    let window = match &cut.interval {
        Some(by) => row_window(by, calendar, interval, (by.lookback, by.lookahead))?,
        None => None,
    };
    let mut files = Vec::new();
    for number in files_read(&cut, calendar, interval)? {
        let Some(file) = source.files.get(number) else { continue };
        let mut path_values = BTreeMap::new();
        for column in &source.path_columns {
            let text = file.path_values.get(&column.name).map(String::as_str).unwrap_or_default();
            path_values.insert(column.name.clone(), path_value(column, text, &cut, calendar)?);
        }
        files.push(PinnedFile {
            object: file.object.clone(),
            store: Arc::clone(store),
            footer: footers.and_then(|footers| footers.get(number)).cloned(),
            path_values,
        });
    }
    Ok(PinnedTable::new(table_schema(source)?, files, window))
}

fn path_value(
    column: &ColumnDef,
    text: &str,
    source: &SourcePin,
    calendar: &Calendar,
) -> Result<ScalarValue> {
    match source.interval.as_ref().filter(|by| by.in_path && by.column == column.name) {
        Some(by) => {
            let at = by.folders.as_ref().unwrap_or(calendar).named(text)?;
            by.time.value(&at.name, at.start, at.local_start)
        }
        None => Ok(ScalarValue::Utf8(Some(text.to_owned()))),
    }
}

/// The columns that SQL sees of a source.
pub(super) fn table_schema(source: &SourcePin) -> Result<SchemaRef> {
    let columns = source.columns.iter().chain(&source.path_columns);
    let fields: Vec<Field> = columns.map(ColumnDef::field).collect::<Result<_>>()?;
    Ok(Arc::new(Schema::new(fields)))
}

/// A result of an earlier plan that a new one takes over.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The plan whose run made it.
    pub plan: Digest,
    /// The record.
    pub record: Record,
}

/// Results of equal recipes that other plans' runs left, whole and intact.
pub(super) async fn find_kept(
    dataset: &Dataset,
    own: &Digest,
    wanted: &BTreeSet<Digest>,
) -> Result<BTreeMap<Digest, Kept>> {
    let mut kept = BTreeMap::new();
    for object in dataset.control().list(layout::RUNS).await?.objects {
        let Some((plan, recipe)) = layout::record_parts(&object.path) else { continue };
        if &plan == own || !wanted.contains(&recipe) || kept.contains_key(&recipe) {
            continue;
        }
        let Some(bytes) = dataset.control().read(&object.path).await? else { continue };
        let record: Record = from_json(&bytes, &object.path)?;
        let mut intact = record.recipe == recipe;
        for file in &record.files {
            intact = intact && dataset.is_intact(file).await?;
        }
        if intact {
            kept.insert(recipe, Kept { plan, record });
        }
    }
    Ok(kept)
}
