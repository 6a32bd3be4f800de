//! Writing: identical rows in identical order give identical bytes.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};

use crate::error::{Error, ErrorKind, Result, from_arrow};
use crate::storage::{Object, ObjectWriter};

/// Everything about writing that decides bytes, as it enters a recipe.
pub const WRITER_PROPERTIES: &str =
    "parquet 2, zstd 1, groups of 1048576 rows, batches of 32768 rows, chunk statistics, writer 1";

/// Rows are re-cut to this before encoding: page boundaries follow batches.
const BATCH_ROWS: usize = 32_768;

/// One row group is what a reader decodes at once.
const GROUP_ROWS: usize = 1 << 20;

/// Encoded bytes go to the store in pieces of about this size.
const PIECE_BYTES: usize = 4 << 20;

/// Writes one Parquet file to a store.
///
/// Dropping it, or any error, leaves nothing that anything would believe.
#[derive(Debug)]
pub struct FileWriter {
    encoder: ArrowWriter<Vec<u8>>,
    sink: ObjectWriter,
    schema: SchemaRef,
    pending: Vec<RecordBatch>,
    pending_rows: usize,
    rows: u64,
}

/// A finished file.
#[derive(Debug)]
pub struct WrittenFile {
    /// As the store describes it.
    pub object: Object,
    /// How many rows.
    pub rows: u64,
    /// BLAKE3 of its bytes.
    pub hash: String,
}

impl FileWriter {
    /// Starts a file.
    ///
    /// # Errors
    /// `Unsupported` when Parquet cannot hold a column's type.
    pub fn new(schema: SchemaRef, sink: ObjectWriter) -> Result<Self> {
        let properties = WriterProperties::builder()
            .set_created_by("reissue writer 1".to_owned())
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).unwrap_or_default()))
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .build();
        let encoder = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties))
            .map_err(|error| encode_error(ErrorKind::Unsupported, error))?;
        Ok(Self { encoder, sink, schema, pending: Vec::new(), pending_rows: 0, rows: 0 })
    }

    /// Appends rows of the file's columns; texts and binaries may be views.
    ///
    /// # Errors
    /// As the store's, or `Internal`.
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        let mut rest = self.as_declared(batch)?;
        while self.pending_rows + rest.num_rows() >= BATCH_ROWS {
            let taken = BATCH_ROWS - self.pending_rows;
            self.hold(rest.slice(0, taken));
            rest = rest.slice(taken, rest.num_rows() - taken);
            self.encode_pending().await?;
        }
        self.hold(rest);
        Ok(())
    }

    /// Views become what the file's schema declares.
    fn as_declared(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let fail = |error| from_arrow(ErrorKind::Internal, "shape rows to write", error);
        let fields = self.schema.fields().iter().zip(batch.columns());
        let columns = fields
            .map(|(field, column)| cast(column, field.data_type()))
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(fail)?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options).map_err(fail)
    }

    fn hold(&mut self, batch: RecordBatch) {
        if batch.num_rows() > 0 {
            self.pending_rows += batch.num_rows();
            self.pending.push(batch);
        }
    }

    async fn encode_pending(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let batch = concat_batches(&self.schema, &self.pending)
            .map_err(|error| from_arrow(ErrorKind::Internal, "gather rows to write", error))?;
        self.pending.clear();
        self.pending_rows = 0;
        self.encoder.write(&batch).map_err(|error| encode_error(ErrorKind::Internal, error))?;
        self.drain(PIECE_BYTES).await
    }

    async fn drain(&mut self, at_least: usize) -> Result<()> {
        if self.encoder.inner().len() >= at_least {
            let bytes = std::mem::take(self.encoder.inner_mut());
            self.sink.write(&bytes).await?;
        }
        Ok(())
    }

    /// Ends the file and makes it durable.
    ///
    /// # Errors
    /// As [`FileWriter::write`].
    pub async fn finish(mut self) -> Result<WrittenFile> {
        self.encode_pending().await?;
        let finished = self.encoder.finish();
        finished.map_err(|error| encode_error(ErrorKind::Internal, error))?;
        self.drain(1).await?;
        let written = self.sink.finish().await?;
        Ok(WrittenFile { object: written.object, rows: self.rows, hash: written.hash })
    }

    /// Gives up: nothing stays.
    pub async fn abort(self) {
        self.sink.abort().await;
    }
}

fn encode_error(kind: ErrorKind, error: parquet::errors::ParquetError) -> Error {
    Error::new(kind, "encode rows as Parquet").because(error)
}
