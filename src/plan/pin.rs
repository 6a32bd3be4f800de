//! Pinning: which exact objects a source consists of.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};

use super::{FilePin, SourceInterval, SourcePin};
use crate::calendar::{Calendar, Every, SpanUnit};
use crate::dataset::{ColumnDef, Dataset, PartitionColumn, Placement, RefusedObject, TimeKind};
use crate::error::{Error, Result};
use crate::identity::Digest;
use crate::parquet_file::{Footer, read_footer};
use crate::spec::Source;
use crate::storage::{Object, Root, Store, Stores};

/// Footers read at once.
const FOOTERS_AT_ONCE: usize = 32;

/// A source, pinned, with its files' footers.
#[derive(Debug, Clone)]
pub struct PinnedSource {
    /// The pin.
    pub pin: SourcePin,
    /// Where its objects are.
    pub store: Arc<Store>,
    /// Each file's footer, in the order of the pin's files.
    pub footers: Vec<Arc<Footer>>,
    /// Objects seen and not used.
    pub refused: Vec<RefusedObject>,
}

/// What is known of a file before its footer.
struct Found {
    object: Object,
    path_values: BTreeMap<String, String>,
    hash: Option<String>,
}

/// Pins a source as it is now.
///
/// # Errors
/// `Invalid` when it is not there, is not one table, or does not tell time as declared; `Corrupt`
/// for damaged files.
pub async fn pin_source(
    stores: &Stores,
    folder: &Path,
    name: &str,
    source: &Source,
    calendar: &Calendar,
) -> Result<PinnedSource> {
    let pinned = pin(stores, folder, source, calendar).await;
    pinned.map_err(|error| error.with("source", name))
}

async fn pin(
    stores: &Stores,
    folder: &Path,
    source: &Source,
    calendar: &Calendar,
) -> Result<PinnedSource> {
    let root = stores.root(&source.url, folder)?;
    let mut refused = Vec::new();
    let dataset = Dataset::at(stores, &source.url, folder).ok();
    let head = match &dataset {
        Some(dataset) => dataset.find_head().await?,
        None => None,
    };
    let (found, version) = match (&dataset, head) {
        (Some(dataset), Some(head)) => {
            (files_of_version(dataset, &head).await?, Some(head.number()))
        }
        _ => (files_of_folder(&root, &mut refused).await?, None),
    };
    if found.is_empty() {
        return Err(Error::invalid("the source holds no Parquet file").with("url", &root));
    }
    let store = Arc::clone(root.store());
    let reads = found.iter().map(|file| footer_of(&store, &file.object));
    let footers: Vec<Arc<Footer>> =
        futures::stream::iter(reads).buffered(FOOTERS_AT_ONCE).try_collect().await?;
    let columns = common_columns(&found, &footers)?;
    let interval = interval_of(source, calendar, &found, &columns)?;
    let path_columns = path_columns(&found, &columns, interval.as_ref())?;
    let files = found
        .into_iter()
        .zip(&footers)
        .map(|(file, footer)| FilePin {
            object: file.object,
            rows: footer.rows(),
            read_bytes: 0,
            path_values: file.path_values,
            hash: file.hash,
        })
        .collect::<Vec<_>>();
    let identity: Vec<_> = files.iter().map(|file| &file.object).collect();
    let pin = Digest::of_json(&(&interval, &columns, &path_columns, identity))?;
    let url = root.url().to_owned();
    let pin = SourcePin { url, version, interval, columns, path_columns, files, pin };
    Ok(PinnedSource { pin, store, footers, refused })
}

async fn footer_of(store: &Store, object: &Object) -> Result<Arc<Footer>> {
    let reader = store.open(object)?;
    let footer = read_footer(&reader).await?;
    reader.finish()?;
    Ok(Arc::new(footer))
}

/// The files of a dataset's current version: its manifest is the pin, never a listing.
async fn files_of_version(dataset: &Dataset, head: &crate::dataset::Version) -> Result<Vec<Found>> {
    let column = &head.manifest.definition.partition;
    let partitions = dataset.partitions(head).await?;
    let mut found = Vec::new();
    for partition in partitions.present() {
        for file in &partition.files {
            let mut path_values = BTreeMap::new();
            if column.placement == Placement::Path {
                path_values.insert(column.column.clone(), partition.name.clone());
            }
            let object = dataset.current_object(file).await?;
            found.push(Found { object, path_values, hash: Some(file.hash.clone()) });
        }
    }
    Ok(found)
}

async fn files_of_folder(root: &Root, refused: &mut Vec<RefusedObject>) -> Result<Vec<Found>> {
    if let Some(object) = root.store().find(&root.full("")).await? {
        return Ok(vec![Found { object, path_values: BTreeMap::new(), hash: None }]);
    }
    let listing = root.list("").await?;
    for (path, reason) in listing.refused {
        refused.push(RefusedObject { path, reason, looks_like_data: false });
    }
    let mut found = Vec::new();
    for object in listing.objects {
        let name = object.path.rsplit('/').next().unwrap_or(&object.path);
        if name.starts_with(['.', '_']) || !name.ends_with(".parquet") {
            let reason = "it is not a Parquet file by its name".to_owned();
            refused.push(RefusedObject { path: object.path, reason, looks_like_data: false });
            continue;
        }
        let folders = object.path.split('/').filter_map(|part| part.split_once('='));
        let path_values = folders.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        found.push(Found { object: root.absolute(&object), path_values, hash: None });
    }
    Ok(found)
}

/// Every file must have the same columns: a renamed or narrowed one is a decision for a person,
/// not NULLs.
fn common_columns(found: &[Found], footers: &[Arc<Footer>]) -> Result<Vec<ColumnDef>> {
    let (Some(first), Some(example)) = (footers.first(), found.first()) else {
        return Ok(Vec::new());
    };
    let mut columns = first.columns();
    for (file, footer) in found.iter().zip(footers) {
        let here = footer.columns();
        if let Some(what) = crate::dataset::difference(&columns, &here) {
            return Err(Error::invalid(format!("the source's files are not one table: {what}"))
                .with("file", &file.object.path)
                .with("compared with", &example.object.path)
                .hint("write the file with the same columns, or declare two sources"));
        }
        for column in &mut columns {
            let nullable = here.iter().any(|other| other.name == column.name && other.nullable);
            column.nullable |= nullable;
        }
    }
    Ok(columns)
}

fn interval_of(
    source: &Source,
    calendar: &Calendar,
    found: &[Found],
    columns: &[ColumnDef],
) -> Result<Option<SourceInterval>> {
    let Some(column) = &source.interval else { return Ok(None) };
    let inside = columns.iter().find(|candidate| &candidate.name == column);
    let in_path = found.iter().all(|file| file.path_values.contains_key(column));
    let mut folders = None;
    let time = match (inside, in_path) {
        (_, true) => {
            check_span(source)?;
            let cut = folders_of(column, found, calendar)?;
            let time = PartitionColumn::path_time(&cut);
            folders = Some(cut);
            time
        }
        (Some(inside), false) => TimeKind::of(inside.field()?.data_type())
            .filter(|time| time != &TimeKind::Name)
            .ok_or_else(|| {
                Error::invalid(format!(
                    "the interval column {column:?} is {}, which is no kind of time",
                    inside.data_type
                ))
            })?,
        (None, false) => {
            let known: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            return Err(Error::invalid(format!(
                "the interval column {column:?} is neither in the files nor in every path"
            ))
            .hint(format!("the files' columns are {}", known.join(", "))));
        }
    };
    let is_wall = matches!(time, TimeKind::Wall { .. });
    if is_wall && source.timezone.is_none() {
        return Err(Error::invalid(format!(
            "the interval column {column:?} is a wall-clock reading, and nothing says of which zone"
        ))
        .hint("declare it: timezone = \"America/New_York\" (or \"UTC\") in this source"));
    }
    Ok(Some(SourceInterval {
        column: column.clone(),
        in_path,
        folders,
        time,
        timezone: source.timezone.clone().filter(|_| is_wall),
        lookback: source.lookback,
        lookahead: source.lookahead,
    }))
}

/// How the folders cut time: by the form of their names, which must be one, and no coarser than
/// the dataset's partitions.
fn folders_of(column: &str, found: &[Found], calendar: &Calendar) -> Result<Calendar> {
    let values: Vec<(&str, &Found)> = found
        .iter()
        .map(|file| (file.path_values.get(column).map(String::as_str).unwrap_or_default(), file))
        .collect();
    let cut = |every| Calendar { every, timezone: calendar.timezone, week_start: None };
    let days = cut(Every::Day);
    let candidates = [days.clone(), cut(Every::Month), cut(Every::Hour)];
    let fits = |one: &&Calendar| values.iter().all(|(value, _)| one.named(value).is_ok());
    let Some(folders) = candidates.iter().find(fits) else {
        let odd = values.iter().find(|(value, _)| days.named(value).is_err());
        let (value, path) =
            odd.map_or(("", ""), |(value, file)| (*value, file.object.path.as_str()));
        return Err(Error::invalid(format!("the folder {column}={value} names no time"))
            .with("file", path)
            .hint("name folders by dates (2013-01-31), months (2013-01) or hours (2013-01-31T05Z), all alike"));
    };
    let rank = |every| match every {
        Every::Hour => 0,
        Every::Day => 1,
        Every::Week => 2,
        Every::Month => 3,
    };
    if rank(folders.every) > rank(calendar.every) {
        return Err(Error::invalid(format!(
            "the source's folders are {}s, the dataset's partitions are {}s: a folder cannot be cut",
            folders.every, calendar.every
        ))
        .hint("name a time column inside the files as its interval"));
    }
    Ok(folders.clone())
}

/// Folders are as fine as partitions: hours of a day cannot be told apart in them.
fn check_span(source: &Source) -> Result<()> {
    let by_hour = [source.lookback, source.lookahead]
        .iter()
        .any(|span| span.unit == SpanUnit::Hour && span.amount > 0);
    if by_hour {
        return Err(Error::invalid("the interval is only in the path, so it has no hours")
            .hint("write the lookback in days, or name a time column inside the files"));
    }
    Ok(())
}

fn path_columns(
    found: &[Found],
    columns: &[ColumnDef],
    interval: Option<&SourceInterval>,
) -> Result<Vec<ColumnDef>> {
    let Some(first) = found.first() else { return Ok(Vec::new()) };
    for file in found {
        if !file.path_values.keys().eq(first.path_values.keys()) {
            return Err(Error::invalid("the source's files lie in folders of different keys")
                .with("file", &file.object.path)
                .with("compared with", &first.object.path));
        }
    }
    let only_in_path =
        first.path_values.keys().filter(|name| !columns.iter().any(|column| column.name == **name));
    let defs = only_in_path.map(|name| {
        let time = interval.filter(|interval| interval.in_path && &interval.column == name);
        let data_type = time.map_or(arrow::datatypes::DataType::Utf8, |i| i.time.data_type());
        ColumnDef { name: name.clone(), data_type: data_type.to_string(), nullable: false }
    });
    Ok(defs.collect())
}
