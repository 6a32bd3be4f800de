//! The Parquet files of any folder, by the Hive folders that they are in.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::ScalarValue;
use futures::{StreamExt as _, TryStreamExt as _};

use super::common::common_type;
use super::hive::hive;
use super::tables::{TablePartition, Tables};
use crate::error::{Error, ErrorKind, Result, from_engine};
use crate::parquet_file::{Footer, read_footer};
use crate::query::PinnedFile;
use crate::storage::{Object, Root, Stores};

/// Footers read at once.
const AT_ONCE: usize = 16;

/// One file, before it is known what all the others have.
struct Found {
    /// Its path below what was opened.
    path: String,
    object: Object,
    footer: Arc<Footer>,
    partition: String,
    values: BTreeMap<String, Option<String>>,
}

/// A column over all files.
struct Column {
    name: String,
    data_type: DataType,
    /// The first file that has it, for a message.
    seen_in: String,
    files: usize,
}

/// Opens a folder, or one file, for comparison. The files of one Hive folder (`month=2013-01`) are
/// one partition; values that only the folders' names have are columns of text.
///
/// A column has the type that holds the values of all files, and is null in files without it.
///
/// # Errors
/// `Invalid` when there is no Parquet file or a column has types that have nothing in common,
/// `Corrupt` for a damaged file.
pub async fn open_folder(stores: &Stores, url: &str, base: &Path) -> Result<Tables> {
    let root = stores.root(url, base)?;
    let found = find(&root, url).await?;
    let columns = columns_of(&found).map_err(|error| error.with("folder", url))?;
    let path_columns = path_columns(&found, url)?;
    let fields: Vec<Field> = columns
        .iter()
        .map(|column| Field::new(&column.name, column.data_type.clone(), true))
        .chain(
            path_columns
                .iter()
                .filter(|name| !columns.iter().any(|column| &column.name == *name))
                .map(|name| Field::new(name, DataType::Utf8, true)),
        )
        .collect();
    let lacking = columns
        .iter()
        .filter(|column| column.files < found.len() && !path_columns.contains(&column.name))
        .map(|column| (column.name.clone(), found.len() - column.files))
        .collect();
    let mut partitions: BTreeMap<String, TablePartition> = BTreeMap::new();
    for file in found {
        let path_values = constants(&file, &columns)?;
        let pinned = PinnedFile {
            object: file.object,
            store: Arc::clone(root.store()),
            footer: Some(file.footer),
            path_values,
        };
        partitions.entry(file.partition).or_default().files.push(pinned);
    }
    let in_files = |name: &String| columns.iter().any(|column| &column.name == name);
    let path_columns = path_columns.into_iter().filter(|name| !in_files(name)).collect();
    let schema = Arc::new(Schema::new(fields));
    Ok(Tables { name: url.to_owned(), schema, path_columns, lacking, partitions })
}

/// All Parquet files below a root, or the root itself when it is one, with their footers.
async fn find(root: &Root, url: &str) -> Result<Vec<Found>> {
    let objects = parquet_objects(root, url).await?;
    if objects.is_empty() {
        return Err(Error::invalid("there is no Parquet file").with("folder", url).hint(
            "give a folder with .parquet files, a file, a dataset's version as URL@NUMBER, or a plan's id",
        ));
    }
    let read = |(path, object): (String, Object)| async move {
        let footer = read_footer(&root.store().open(&object)?).await?;
        let (partition, values) = hive(&path);
        Ok(Found { path, object, footer: Arc::new(footer), partition, values })
    };
    futures::stream::iter(objects).map(read).buffered(AT_ONCE).try_collect().await
}

/// The objects, each with its path below the root; one that is the root itself has an empty path.
async fn parquet_objects(root: &Root, url: &str) -> Result<Vec<(String, Object)>> {
    if url.ends_with(".parquet")
        && let Some(object) = root.store().find(&root.full("")).await?
    {
        return Ok(vec![(String::new(), object)]);
    }
    let listing = root.list("").await?;
    let hidden = |part: &str| part.starts_with('_') || part.starts_with('.');
    let wanted =
        |object: &Object| object.path.ends_with(".parquet") && !object.path.split('/').any(hidden);
    let objects = listing.objects.into_iter().filter(wanted);
    Ok(objects.map(|object| (object.path.clone(), root.absolute(&object))).collect())
}

/// The columns of all files, those of the first file first.
fn columns_of(found: &[Found]) -> Result<Vec<Column>> {
    let mut columns: Vec<Column> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for file in found {
        let mut here = BTreeSet::new();
        for field in file.footer.schema().fields() {
            if !here.insert(field.name()) {
                return Err(Error::invalid(format!("two columns are called {:?}", field.name()))
                    .with("file", &file.path)
                    .hint("write the file again with names that tell its columns apart"));
            }
            let data_type = field.data_type();
            let place = places.get(field.name()).copied();
            let Some(known) = place.and_then(|place| columns.get_mut(place)) else {
                places.insert(field.name().clone(), columns.len());
                columns.push(Column {
                    name: field.name().clone(),
                    data_type: data_type.clone(),
                    seen_in: file.path.clone(),
                    files: 1,
                });
                continue;
            };
            known.files += 1;
            let Some(common) = common_type(&known.data_type, data_type) else {
                return Err(Error::invalid(format!(
                    "the files are not one table: no type holds column {:?} of all of them",
                    known.name
                ))
                .with("file", &known.seen_in)
                .with("its type", &known.data_type)
                .with("other file", &file.path)
                .with("its other type", data_type)
                .hint("write the column with one type, or compare the files one by one"));
            };
            known.data_type = common;
        }
    }
    Ok(columns)
}

fn path_columns(found: &[Found], url: &str) -> Result<BTreeSet<String>> {
    let first = found.first();
    let names: BTreeSet<String> =
        first.iter().flat_map(|file| file.values.keys().cloned()).collect();
    match found.iter().find(|file| !file.values.keys().eq(names.iter())) {
        None => Ok(names),
        Some(odd) => Err(Error::invalid("the folder's files lie at different Hive depths")
            .with("folder", url)
            .with("file", &odd.path)
            .with("other file", first.map_or("", |file| &file.path))
            .hint("compare the parts one by one")),
    }
}

/// What a file does not have inside: its path's values, and nulls.
fn constants(file: &Found, columns: &[Column]) -> Result<BTreeMap<String, ScalarValue>> {
    let inside: BTreeSet<&String> =
        file.footer.schema().fields().iter().map(|field| field.name()).collect();
    let mut constants = BTreeMap::new();
    for (name, value) in &file.values {
        if !inside.contains(name) {
            constants.insert(name.clone(), ScalarValue::Utf8(value.clone()));
        }
    }
    for column in columns {
        if !inside.contains(&column.name) && !constants.contains_key(&column.name) {
            let null = ScalarValue::try_new_null(&column.data_type).map_err(|error| {
                from_engine(ErrorKind::Unsupported, "a file lacks a column of this type", error)
                    .with("column", &column.name)
                    .with("file", &file.path)
            })?;
            constants.insert(column.name.clone(), null);
        }
    }
    Ok(constants)
}
