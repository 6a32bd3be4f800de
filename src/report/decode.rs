//! Decoding stored partitions: the candidate's and production's.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use futures::TryStreamExt as _;

use crate::calendar::Interval;
use crate::dataset::{DataFile, Dataset, Definition};
use crate::diff::pinned_files;
use crate::error::{ErrorKind, Result, from_arrow};
use crate::parquet_file::DECODED_ROWS;
use crate::query::{PinnedFile, PinnedTable};
use crate::storage::Object;

/// A table over a partition's files, with the partition column as readers see it.
///
/// # Errors
/// `Corrupt` when a file is not what the version says.
pub(crate) async fn production_table(
    dataset: &Dataset,
    definition: &Definition,
    partitions: &[(&Interval, &[DataFile])],
) -> Result<PinnedTable> {
    let mut pinned = Vec::new();
    for (interval, files) in partitions {
        pinned.extend(pinned_files(dataset, definition, interval, files).await?);
    }
    Ok(PinnedTable::new(definition.table_schema()?, pinned, None))
}

/// A table over a partition's files, once their bytes are the recorded ones.
///
/// # Errors
/// `Corrupt` when a file is gone or has other bytes.
pub(crate) async fn verified_table(
    dataset: &Dataset,
    schema: &SchemaRef,
    files: &[DataFile],
) -> Result<PinnedTable> {
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
    Ok(PinnedTable::new(Arc::clone(schema), pinned, None))
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
    let table = verified_table(dataset, schema, files).await?;
    let batches: Vec<RecordBatch> =
        table.stream(Arc::clone(schema), DECODED_ROWS).try_collect().await?;
    concat_batches(schema, &batches).map_err(|error| {
        from_arrow(ErrorKind::Exhausted, "a partition is too large to be tried in memory", error)
            .hint("cut the dataset into shorter partitions")
    })
}

/// The object of a file, once its bytes have the recorded hash.
async fn verified(dataset: &Dataset, file: &DataFile) -> Result<Object> {
    let object = dataset.current_object(file).await?;
    let reader = dataset.place(file.place).store().open(&object)?;
    let hash = reader.hash().await?;
    if hash == file.hash { Ok(object) } else { Err(dataset.not_recorded(file, &object)) }
}
