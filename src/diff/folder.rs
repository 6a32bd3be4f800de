//! The Parquet files of any folder, by the Hive folders that they are in.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::ScalarValue;

use super::tables::{TablePartition, Tables};
use crate::error::{Error, Result};
use crate::parquet_file::read_footer;
use crate::query::PinnedFile;
use crate::storage::{Object, Root, Stores};

/// Opens a folder, or one file, for comparison. The files of one Hive folder (`month=2013-01`) are
/// one partition; the values in the folders' names are columns of text.
///
/// # Errors
/// `Invalid` when there is no Parquet file, `Corrupt` for a damaged one.
pub async fn open_folder(stores: &Stores, url: &str, base: &Path) -> Result<Tables> {
    let root = stores.root(url, base)?;
    let objects = parquet_objects(&root, url).await?;
    let mut partitions: BTreeMap<String, TablePartition> = BTreeMap::new();
    let mut schema: Option<SchemaRef> = None;
    let mut path_columns: Vec<String> = Vec::new();
    for object in objects {
        let (name, values) = hive(&object.path);
        let absolute = if object.path.is_empty() { object.clone() } else { root.absolute(&object) };
        if schema.is_none() {
            let reader = root.store().open(&absolute)?;
            schema = Some(Arc::clone(read_footer(&reader).await?.schema()));
            path_columns = values.keys().cloned().collect();
        }
        if !values.keys().eq(path_columns.iter()) {
            return Err(Error::invalid("the folder's files lie at different Hive depths")
                .with("folder", url)
                .with("file", &object.path)
                .hint("compare the parts one by one"));
        }
        let file = PinnedFile {
            object: absolute,
            store: Arc::clone(root.store()),
            footer: None,
            path_values: values
                .into_iter()
                .map(|(column, value)| (column, ScalarValue::Utf8(Some(value))))
                .collect(),
        };
        partitions.entry(name).or_default().files.push(file);
    }
    let schema = schema.ok_or_else(|| {
        Error::invalid("there is no Parquet file").with("folder", url).hint(
            "give a folder with .parquet files, a dataset's version as URL@NUMBER, or a plan's id",
        )
    })?;
    Ok(Tables { name: url.to_owned(), schema: with_path(&schema, &path_columns), partitions })
}

/// All Parquet objects below a root, relative to it; or the root itself when it is a file.
async fn parquet_objects(root: &Root, url: &str) -> Result<Vec<Object>> {
    if url.ends_with(".parquet")
        && let Some(object) = root.store().find(&root.full("")).await?
    {
        return Ok(vec![object]);
    }
    let listing = root.list("").await?;
    let hidden = |part: &str| part.starts_with('_') || part.starts_with('.');
    let wanted =
        |object: &Object| object.path.ends_with(".parquet") && !object.path.split('/').any(hidden);
    Ok(listing.objects.into_iter().filter(wanted).collect())
}

/// The Hive part of a path, and its values.
fn hive(path: &str) -> (String, BTreeMap<String, String>) {
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    let parts: Vec<&str> = folders.split('/').filter(|part| part.contains('=')).collect();
    let values = parts.iter().filter_map(|part| part.split_once('='));
    let values = values.map(|(column, value)| (column.to_owned(), value.to_owned())).collect();
    (parts.join("/"), values)
}

/// Columns of the files may lack values in other files of the same folder.
fn with_path(schema: &SchemaRef, path_columns: &[String]) -> SchemaRef {
    let mut fields: Vec<Field> =
        schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    fields.retain(|field| !path_columns.contains(field.name()));
    fields.extend(path_columns.iter().map(|name| Field::new(name, DataType::Utf8, false)));
    Arc::new(Schema::new(fields))
}
