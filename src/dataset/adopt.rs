//! Taking in files that a dataset's own writers put below its root, where they are.

use std::collections::BTreeMap;

use futures::{StreamExt as _, TryStreamExt as _};

use super::proofread::proofread;
use super::{
    ColumnDef, DataFile, Dataset, Definition, Partition, PartitionColumn, Place, Placement,
    TimeKind,
};
use crate::calendar::{Calendar, Interval};
use crate::error::{Error, ErrorKind, Result};
use crate::parquet_file::read_footer;
use crate::storage::Object;

/// Files looked at at once.
const LOOKS_AT_ONCE: usize = 16;

/// The folder name that Hive writers give to rows without a value.
const HIVE_NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// What was found below a root.
#[derive(Debug)]
pub struct Adoption {
    /// Partitioning and columns, as found.
    pub definition: Definition,
    /// The partitions, in order of time.
    pub partitions: Vec<Partition>,
    /// Objects that are not data, with the reason.
    pub refused: Vec<RefusedObject>,
}

/// An object that was seen and not used.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct RefusedObject {
    /// The path below the root.
    pub path: String,
    /// Why it is not used.
    pub reason: String,
    /// Whether readers that take every Parquet file would read it.
    pub looks_like_data: bool,
}

struct Found {
    interval: Interval,
    file: DataFile,
    columns: Vec<ColumnDef>,
}

impl Dataset {
    /// Looks at every object below the root and says what it would be.
    ///
    /// Reads every file once, for its footer and its hash; writes nothing. Files whose columns are
    /// not `columns` (or else the first file's) are refused.
    ///
    /// # Errors
    /// `Unavailable` when the store does not answer. Unusable objects are refused, not errors.
    pub async fn survey(
        &self,
        column: &str,
        calendar: &Calendar,
        columns: Option<&[ColumnDef]>,
    ) -> Result<Adoption> {
        let listing = self.root().list("").await?;
        let mut refused: Vec<RefusedObject> =
            listing.refused.into_iter().map(|(path, reason)| refuse(&path, reason)).collect();
        let mut places = Vec::new();
        for object in listing.objects {
            match place_of(&object, column, calendar) {
                Ok(interval) => places.push((object, interval)),
                Err(reason) => refused.push(refuse(&object.path, reason)),
            }
        }
        let looks = places
            .into_iter()
            .map(|(object, interval)| self.look_at(object, interval, column, calendar));
        let looked: Vec<Result<Found, RefusedObject>> =
            futures::stream::iter(looks).buffered(LOOKS_AT_ONCE).try_collect().await?;
        let mut found = Vec::new();
        for one in looked {
            match one {
                Ok(file) => found.push(file),
                Err(reason) => refused.push(reason),
            }
        }
        let leftovers = self.leftovers(&refused, column, calendar).await?;
        let definition = definition_of(&mut found, &mut refused, columns, column, calendar)?;
        refused.sort_by(|one, two| one.path.cmp(&two.path));
        Ok(Adoption { definition, partitions: partitions_of(found, leftovers), refused })
    }

    /// Refused objects in partitions' folders that look like data: a version that is made all the
    /// same must know that they lie there, or they would count as somebody's later work.
    async fn leftovers(
        &self,
        refused: &[RefusedObject],
        column: &str,
        calendar: &Calendar,
    ) -> Result<Vec<(Interval, DataFile)>> {
        let mut leftovers = Vec::new();
        for one in refused.iter().filter(|one| one.looks_like_data) {
            let Some(interval) = interval_of(&one.path, column, calendar) else { continue };
            let Some(object) = self.root().find(&one.path).await? else { continue };
            let hash = self.root().store().open(&self.root().absolute(&object))?.hash().await?;
            leftovers.push((interval, DataFile::new(Place::Root, &object, 0, hash)));
        }
        Ok(leftovers)
    }

    async fn look_at(
        &self,
        object: Object,
        interval: Interval,
        column: &str,
        calendar: &Calendar,
    ) -> Result<Result<Found, RefusedObject>> {
        let reader = self.root().store().open(&self.root().absolute(&object))?;
        let footer = match read_footer(&reader).await {
            Ok(footer) => footer,
            Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported) => {
                return Ok(Err(refuse(&object.path, error.message().to_owned())));
            }
            Err(error) => return Err(error),
        };
        if let Some(inside) = footer.columns().iter().find(|one| one.name == column) {
            let inside = std::slice::from_ref(inside);
            let partition = partition_column(inside, column, calendar)?;
            let wrong = proofread(&reader, &footer, column, &partition, &interval, false).await?;
            if let Some(reason) = wrong {
                return Ok(Err(refuse(&object.path, reason)));
            }
        }
        let hash = reader.hash().await?;
        let file = DataFile::new(Place::Root, &object, footer.rows(), hash);
        Ok(Ok(Found { interval, file, columns: footer.columns() }))
    }
}

fn refuse(path: &str, reason: String) -> RefusedObject {
    let name = path.rsplit('/').next().unwrap_or(path);
    let hidden = name.starts_with(['.', '_']);
    RefusedObject { path: path.to_owned(), reason, looks_like_data: is_parquet(name) && !hidden }
}

fn is_parquet(name: &str) -> bool {
    name.ends_with(".parquet")
}

/// Refuses to go on without objects that other readers would read.
///
/// # Errors
/// `Invalid`, with the objects and why each is refused.
pub(crate) fn check_refused(refused: &[RefusedObject]) -> Result<()> {
    let data: Vec<&RefusedObject> =
        refused.iter().filter(|object| object.looks_like_data).collect();
    let Some(first) = data.first() else { return Ok(()) };
    let mut error = Error::invalid(format!(
        "{} objects look like data but cannot be adopted; other readers would read them",
        data.len()
    ))
    .with("first", format!("{}: {}", first.path, first.reason));
    for object in data.iter().skip(1).take(9) {
        error = error.with("also", format!("{}: {}", object.path, object.reason));
    }
    Err(error.hint("mend or move them"))
}

/// The interval of an object's folder, or why it is not a data file of this dataset.
fn place_of(object: &Object, column: &str, calendar: &Calendar) -> Result<Interval, String> {
    let Some((folder, name)) = object.path.rsplit_once('/') else {
        return Err(format!("it lies outside the {column}=… folders"));
    };
    if name.starts_with(['.', '_']) || !is_parquet(name) {
        return Err("it is not a Parquet file by its name".to_owned());
    }
    let Some(value) = folder.strip_prefix(column).and_then(|rest| rest.strip_prefix('=')) else {
        return Err(format!("it lies outside the {column}=… folders"));
    };
    if value.contains('/') {
        return Err(format!("it lies deeper than its {column}=… folder"));
    }
    if value == HIVE_NULL || value.is_empty() {
        return Err(format!("its folder is for rows without a {column}, which no interval holds"));
    }
    if object.size == 0 {
        return Err("it is empty (0 bytes), so it is no Parquet file".to_owned());
    }
    calendar.named(value).map_err(|error| {
        let hints: Vec<String> =
            std::iter::once(error.to_string()).chain(error.hints().iter().cloned()).collect();
        hints.join("; ")
    })
}

/// The definition: the known columns count, or else the first file's; files with others are refused
/// by name.
fn definition_of(
    found: &mut Vec<Found>,
    refused: &mut Vec<RefusedObject>,
    known: Option<&[ColumnDef]>,
    column: &str,
    calendar: &Calendar,
) -> Result<Definition> {
    let (mut columns, example) = match (known, found.first()) {
        (Some(known), _) => (known.to_vec(), "the dataset".to_owned()),
        (None, Some(first)) => (first.columns.clone(), first.file.path.clone()),
        (None, None) => {
            let what = format!("no usable Parquet file lies in a {column}=… folder");
            let mut error = Error::invalid(what);
            for object in refused.iter().take(5) {
                error = error.with("not used", format!("{}: {}", object.path, object.reason));
            }
            return Err(error
                .hint("check the path and --partition; or make an empty dataset with --schema"));
        }
    };
    found.retain(|file| match difference(&columns, &file.columns) {
        None => true,
        Some(what) => {
            let reason = format!("{what} (compared with {example})");
            refused.push(refuse(&file.file.path, reason));
            false
        }
    });
    // A column that may be null in one file may be null.
    for file in found.iter() {
        for column in &mut columns {
            let here = file.columns.iter().find(|other| other.name == column.name);
            column.nullable |= here.is_some_and(|other| other.nullable);
        }
    }
    let partition = partition_column(&columns, column, calendar)?;
    Ok(Definition { partition, columns })
}

fn partition_column(
    columns: &[ColumnDef],
    column: &str,
    calendar: &Calendar,
) -> Result<PartitionColumn> {
    let inside = columns.iter().find(|candidate| candidate.name == column);
    let (placement, time) = match inside {
        None => (Placement::Path, PartitionColumn::path_time(calendar)),
        Some(inside) => {
            let time = TimeKind::of(inside.field()?.data_type()).ok_or_else(|| {
                Error::invalid(format!(
                    "the partition column {column:?} is of type {}, which is no kind of time",
                    inside.data_type
                ))
            })?;
            (Placement::File, time)
        }
    };
    Ok(PartitionColumn { column: column.to_owned(), placement, time, calendar: calendar.clone() })
}

/// How a file's columns differ from the dataset's, in words.
pub(crate) fn difference(dataset: &[ColumnDef], file: &[ColumnDef]) -> Option<String> {
    for wanted in dataset {
        match file.iter().find(|column| column.name == wanted.name) {
            None => return Some(format!("it lacks the column {:?}", wanted.name)),
            Some(column) if column.data_type != wanted.data_type => {
                return Some(format!(
                    "its column {:?} is {}, not {}",
                    column.name, column.data_type, wanted.data_type
                ));
            }
            Some(_) => {}
        }
    }
    let extra = file.iter().find(|column| !dataset.iter().any(|d| d.name == column.name));
    extra.map(|column| format!("it has a further column {:?}", column.name))
}

/// The interval whose folder a path lies in.
fn interval_of(path: &str, column: &str, calendar: &Calendar) -> Option<Interval> {
    let (folder, _) = path.rsplit_once('/')?;
    calendar.named(folder.strip_prefix(column)?.strip_prefix('=')?).ok()
}

fn partitions_of(found: Vec<Found>, leftovers: Vec<(Interval, DataFile)>) -> Vec<Partition> {
    let mut intervals: BTreeMap<_, (Interval, Vec<DataFile>)> = BTreeMap::new();
    for one in found {
        let start = one.interval.start;
        intervals.entry(start).or_insert_with(|| (one.interval, Vec::new())).1.push(one.file);
    }
    let mut partitions: BTreeMap<_, Partition> = intervals
        .into_iter()
        .map(|(start, (interval, files))| (start, Partition::of(&interval, files, 0)))
        .collect();
    for (interval, file) in leftovers {
        if let Some(partition) = partitions.get_mut(&interval.start) {
            partition.superseded.push(file);
        }
    }
    partitions.into_values().collect()
}
