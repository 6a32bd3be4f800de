//! One side of a comparison as a stream in order.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};

use super::DiffOptions;
use crate::error::{ErrorKind, Result, from_arrow, from_engine};
use crate::key::{KeyEncoder, MOST_SORTED_ROWS, sort_rows};
use crate::metrics::RowHasher;
use crate::parquet_file::{DECODED_ROWS, viewed};
use crate::query::{PinnedTable, Session, SessionOptions};

/// The engine's sort keeps 10 MiB aside for merging, and cannot begin with less.
const LEAST_POOL_BYTES: usize = 32 << 20;

/// The columns that a side without a key is sorted by: a hash of each whole row, in two halves.
pub const ROW_HASH: [&str; 2] = ["\u{1}row hash, high", "\u{1}row hash, low"];

/// One side: its files' rows, with their hashes where there is no key.
#[derive(Debug, Clone)]
pub struct Rows {
    table: PinnedTable,
    columns: SchemaRef,
    schema: SchemaRef,
    hashed: bool,
}

impl Rows {
    /// The rows of a table; `keyed`: whether they have a key.
    pub fn new(table: PinnedTable, keyed: bool) -> Self {
        let columns = viewed(table.schema_ref());
        let schema = if keyed { Arc::clone(&columns) } else { hashed(&columns) };
        Self { table, columns, schema, hashed: !keyed }
    }

    /// The columns; texts and binaries are views.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows as they come.
    ///
    /// # Errors
    /// Each batch may fail, as reading does.
    pub fn raw(&self, batch_rows: usize) -> BoxStream<'static, Result<RecordBatch>> {
        let batches = self.table.stream(Arc::clone(&self.columns), batch_rows);
        if !self.hashed {
            return batches;
        }
        let schema = Arc::clone(&self.schema);
        match RowHasher::new(&self.columns) {
            Ok(mut hasher) => {
                batches.map(move |batch| with_hashes(&batch?, &schema, &mut hasher)).boxed()
            }
            Err(error) => futures::stream::iter([Err(error)]).boxed(),
        }
    }

    /// The rows, sorted first when they must be.
    ///
    /// # Errors
    /// As reading does; `Exhausted` when they fit neither into memory nor onto the disk allowed.
    pub(super) async fn stream(
        &self,
        options: &DiffOptions,
        sort: bool,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        if !sort {
            return Ok(self.raw(DECODED_ROWS));
        }
        let mut held = Vec::new();
        let (mut bytes, mut rows) = (0, 0);
        let mut batches = self.raw(DECODED_ROWS);
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            bytes += batch.get_array_memory_size();
            rows += batch.num_rows();
            held.push(batch);
            if bytes > options.memory || rows > MOST_SORTED_ROWS {
                drop(held);
                return self.sorted_by_engine(options).await;
            }
        }
        let encoder = KeyEncoder::new(&self.schema, &options.order())?;
        let sorted = sort_rows(held, &encoder, DECODED_ROWS)?;
        Ok(futures::stream::iter(sorted).boxed())
    }

    async fn sorted_by_engine(
        &self,
        options: &DiffOptions,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let session = Session::new(&SessionOptions {
            memory: Some(SessionOptions::pool(options.memory.max(LEAST_POOL_BYTES))),
            spill: Some(options.spill.clone()),
            ..SessionOptions::default()
        })?;
        let stream = session.sort(Arc::new(self.clone()), &options.order()).await?;
        let failed = |error| from_engine(ErrorKind::Failed, "sort rows by key", error);
        Ok(stream.map_err(failed).boxed())
    }
}

/// The columns, and the hashes.
fn hashed(schema: &SchemaRef) -> SchemaRef {
    let mut fields: Vec<Arc<Field>> = schema.fields().iter().cloned().collect();
    fields.extend(ROW_HASH.map(|name| Arc::new(Field::new(name, DataType::UInt64, false))));
    Arc::new(Schema::new(fields))
}

fn with_hashes(
    batch: &RecordBatch,
    schema: &SchemaRef,
    hasher: &mut RowHasher,
) -> Result<RecordBatch> {
    let (mut high, mut low) =
        (Vec::with_capacity(batch.num_rows()), Vec::with_capacity(batch.num_rows()));
    hasher.hash(batch, |hash| {
        high.push(u64::try_from(hash >> 64).unwrap_or_default());
        low.push(u64::try_from(hash & u128::from(u64::MAX)).unwrap_or_default());
    })?;
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    columns.push(Arc::new(UInt64Array::from(high)));
    columns.push(Arc::new(UInt64Array::from(low)));
    RecordBatch::try_new(Arc::clone(schema), columns)
        .map_err(|error| from_arrow(ErrorKind::Internal, "hash rows", error))
}

/// The rows as the engine's own stream, to be sorted by it.
impl PartitionStream for Rows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batches = self
            .raw(context.session_config().batch_size())
            .map_err(|error| DataFusionError::External(Box::new(error)));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}
