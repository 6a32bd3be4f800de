//! Decoding stored partitions: the candidate's and production's.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use futures::TryStreamExt as _;

use crate::calendar::Interval;
use crate::dataset::{DataFile, Dataset, Definition, Placement};
use crate::error::{Error, ErrorKind, Result, from_arrow};
use crate::identity::file_hash;
use crate::query::{PinnedFile, PinnedTable};

/// Rows of a decoded batch.
const BATCH_ROWS: usize = 32_768;

/// A table over a partition's files, with the partition column as readers see it.
///
/// # Errors
/// `Invalid` when the partition's value cannot be represented.
pub(crate) fn production_table(
    dataset: &Dataset,
    definition: &Definition,
    partitions: &[(&Interval, &[DataFile])],
) -> Result<PinnedTable> {
    let mut pinned = Vec::new();
    for (interval, files) in partitions {
        let mut path_values: BTreeMap<String, ScalarValue> = BTreeMap::new();
        if definition.partition.placement == Placement::Path {
            let value = definition.partition.start_value(interval)?;
            path_values.insert(definition.partition.column.clone(), value);
        }
        for file in *files {
            pinned.push(PinnedFile {
                object: dataset.object_of(file),
                store: Arc::clone(dataset.place(file.place).store()),
                footer: None,
                path_values: path_values.clone(),
            });
        }
    }
    Ok(PinnedTable::new(definition.table_schema()?, pinned, None))
}

/// Decodes all rows of a partition, after checking that its files' bytes are the recorded ones.
///
/// # Errors
/// `Corrupt` when a file is gone, has other bytes, or cannot be decoded.
pub(crate) async fn decode_partition(
    dataset: &Dataset,
    schema: &SchemaRef,
    files: &[DataFile],
) -> Result<RecordBatch> {
    let mut pinned = Vec::new();
    for file in files {
        let object = verified(dataset, file).await?;
        pinned.push(PinnedFile {
            object,
            store: Arc::clone(dataset.place(file.place).store()),
            footer: None,
            path_values: BTreeMap::new(),
        });
    }
    let table = PinnedTable::new(Arc::clone(schema), pinned, None);
    let batches: Vec<RecordBatch> =
        table.stream(Arc::clone(schema), BATCH_ROWS).try_collect().await?;
    concat_batches(schema, &batches)
        .map_err(|error| from_arrow(ErrorKind::Internal, "gather a partition", error))
}

/// The object of a file, once its bytes have the recorded hash.
async fn verified(dataset: &Dataset, file: &DataFile) -> Result<crate::storage::Object> {
    let path = dataset.public_path(file);
    let root = dataset.place(file.place);
    let found = root
        .find(&file.path)
        .await?
        .ok_or_else(|| Error::corrupt("a file that is recorded is gone").with("file", &path))?;
    let object = root.absolute(&found);
    let reader = root.store().open(&object)?;
    let hash = file_hash(&reader.read_all().await?);
    reader.finish()?;
    if found.size != file.size || hash != file.hash {
        return Err(Error::corrupt("a file has other bytes than were recorded")
            .with("file", path)
            .with("recorded", format!("{} bytes, {}", file.size, short(&file.hash)))
            .with("found", format!("{} bytes, {}", found.size, short(&hash))));
    }
    Ok(object)
}

fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}
