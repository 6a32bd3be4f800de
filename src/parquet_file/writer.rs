//! Writing: identical rows in identical order give identical bytes.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, SchemaRef};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ArrowWriter, add_encoded_arrow_schema_to_metadata};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;

use super::viewed;
use crate::error::{Error, ErrorKind, Result, from_arrow};
use crate::storage::{Object, ObjectWriter};

/// Everything about writing that decides bytes, as it enters a recipe.
pub const WRITER_PROPERTIES: &str =
    "parquet 2, zstd 1, groups of 1048576 rows, batches of 32768 rows, chunk statistics, writer 3";

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
    /// None until the first rows tell how they are best encoded.
    encoder: Option<ArrowWriter<Vec<u8>>>,
    sink: ObjectWriter,
    /// What a reader of the file is told.
    schema: SchemaRef,
    /// The same with texts and binaries as views: nothing copies them before they are encoded.
    views: SchemaRef,
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
        // Whether Parquet can hold the columns is known before any row.
        let views = viewed(&schema);
        encoder(&schema, &RecordBatch::new_empty(Arc::clone(&views)))?;
        let (pending, pending_rows, rows) = (Vec::new(), 0, 0);
        Ok(Self { encoder: None, sink, schema, views, pending, pending_rows, rows })
    }

    /// Appends rows of the file's columns; texts and binaries may be views.
    ///
    /// # Errors
    /// As the store's, or `Internal`.
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        let mut rest = self.as_views(batch)?;
        while self.pending_rows + rest.num_rows() >= BATCH_ROWS {
            let taken = BATCH_ROWS - self.pending_rows;
            self.hold(rest.slice(0, taken));
            rest = rest.slice(taken, rest.num_rows() - taken);
            self.encode_pending().await?;
        }
        self.hold(rest);
        Ok(())
    }

    fn as_views(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let fail = |error| from_arrow(ErrorKind::Internal, "shape rows to write", error);
        let fields = self.views.fields().iter().zip(batch.columns());
        let columns = fields
            .map(|(field, column)| cast(column, field.data_type()))
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(fail)?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.views), columns, &options).map_err(fail)
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
        let batch = concat_batches(&self.views, &self.pending)
            .map_err(|error| from_arrow(ErrorKind::Internal, "gather rows to write", error))?;
        self.pending.clear();
        self.pending_rows = 0;
        self.encode(&batch)?;
        self.drain(PIECE_BYTES).await
    }

    fn encode(&mut self, batch: &RecordBatch) -> Result<()> {
        let writer = match &mut self.encoder {
            Some(writer) => writer,
            none => none.insert(encoder(&self.schema, batch)?),
        };
        writer.write(batch).map_err(|error| encode_error(ErrorKind::Internal, error))
    }

    async fn drain(&mut self, at_least: usize) -> Result<()> {
        if let Some(encoder) = &mut self.encoder
            && encoder.inner().len() >= at_least
        {
            let bytes = std::mem::take(encoder.inner_mut());
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
        if self.encoder.is_none() {
            self.encode(&RecordBatch::new_empty(Arc::clone(&self.views)))?;
        }
        if let Some(encoder) = &mut self.encoder {
            encoder.finish().map_err(|error| encode_error(ErrorKind::Internal, error))?;
        }
        self.drain(1).await?;
        let written = self.sink.finish().await?;
        Ok(WrittenFile { object: written.object, rows: self.rows, hash: written.hash })
    }

    /// Gives up: nothing stays.
    pub async fn abort(self) {
        self.sink.abort().await;
    }
}

/// A writer whose encodings suit the first rows. They depend on nothing but these, so identical rows
/// still give identical bytes.
fn encoder(schema: &SchemaRef, first: &RecordBatch) -> Result<ArrowWriter<Vec<u8>>> {
    let mut properties = WriterProperties::builder()
        .set_created_by("reissue writer 3".to_owned())
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).unwrap_or_default()))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for (field, column) in schema.fields().iter().zip(first.columns()) {
        if has_many_values(column) {
            // A dictionary would fill up and be given up. Without one, Parquet 2 writes whole numbers
            // as packed differences: half the bytes of a sorted key, at a fraction of the time.
            let path = ColumnPath::from(vec![field.name().clone()]);
            properties = properties.set_column_dictionary_enabled(path, false);
        }
    }
    let mut properties = properties.build();
    // The types that are declared, not those that the rows come in.
    add_encoded_arrow_schema_to_metadata(schema, &mut properties);
    let options =
        ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    ArrowWriter::try_new_with_options(Vec::new(), first.schema(), options)
        .map_err(|error| encode_error(ErrorKind::Unsupported, error))
}

/// Rows from which it is worth to look at their values.
const LOOK_ROWS: usize = 1_024;

/// Whether more than a quarter of a column's numbers or times are different ones.
fn has_many_values(column: &ArrayRef) -> bool {
    let rows = column.len();
    let width = match column.data_type() {
        DataType::Boolean | DataType::Float16 => None,
        data_type => data_type.primitive_width(),
    };
    let Some(width) = width.filter(|_| rows >= LOOK_ROWS) else { return false };
    let data = column.to_data();
    let Some(values) = data.buffers().first() else { return false };
    let bytes = values.as_slice().get(data.offset() * width..(data.offset() + rows) * width);
    let mut different = HashSet::with_capacity(rows / 4);
    // What lies below a null is anything, and must decide nothing.
    let values = bytes.unwrap_or_default().chunks_exact(width).enumerate();
    values.filter(|(row, _)| column.is_valid(*row)).any(|(_, value)| {
        different.insert(value);
        different.len() > rows / 4
    })
}

fn encode_error(kind: ErrorKind, error: parquet::errors::ParquetError) -> Error {
    Error::new(kind, "encode rows as Parquet").because(error)
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;
    use arrow::buffer::{NullBuffer, ScalarBuffer};
    use arrow::datatypes::{Field, Schema};

    use super::*;

    /// The bytes of a column of which a fifth is there; the garbage lies below its nulls.
    fn bytes(garbage: impl Fn(i64) -> i64) -> Vec<u8> {
        let is_there = |row: &i64| row % 5 == 0;
        let values = (0..20_000).map(|row| if is_there(&row) { row % 50 } else { garbage(row) });
        let nulls = NullBuffer::from_iter((0..20_000).map(|row| is_there(&row)));
        let array = Int64Array::new(ScalarBuffer::from_iter(values), Some(nulls));
        let schema = Arc::new(Schema::new(vec![Field::new("value", DataType::Int64, true)]));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(array)]).unwrap();
        let mut writer = encoder(&schema, &batch).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        writer.inner().clone()
    }

    #[test]
    fn what_lies_below_nulls_decides_no_byte() {
        assert_eq!(bytes(|_| 0), bytes(|row| row * 7_919));
    }
}
