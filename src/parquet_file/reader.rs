//! Decoding: batches from the pages of one pinned file.

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::async_reader::{AsyncFileReader, ParquetRecordBatchStreamBuilder};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use super::Footer;
use crate::error::{Error, Result};
use crate::storage::ObjectReader;

/// What to decode of a file.
#[derive(Debug, Clone)]
pub struct Scan {
    /// Top-level columns by their place in the file; all when absent.
    pub columns: Option<Vec<usize>>,
    /// Row groups by number; all when absent.
    pub row_groups: Option<Vec<usize>>,
    /// Rows of a batch at most.
    pub batch_rows: usize,
    /// Whether texts and binaries come as views, which costs no copy of a dictionary's values.
    pub views: bool,
}

/// Rows of a batch, where nothing asks for fewer: four times the engine's own 8,192 take about a tenth
/// less time, and a batch of few columns still fits into a core's cache.
pub const DECODED_ROWS: usize = 32_768;

/// A schema whose texts and binaries are views.
pub fn viewed(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let data_type = match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
            DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
            other => other.clone(),
        };
        field.as_ref().clone().with_data_type(data_type)
    });
    Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
}

/// Decodes a file.
///
/// # Schema
/// The file's columns in the file's order (those asked for), with the types of
/// [`Footer::schema`], or views. Batches are never empty and hold at most `batch_rows` rows.
///
/// # Errors
/// Each batch may fail: `Corrupt` for pages that cannot be decoded, `Stale` when the object is no
/// longer the pinned one; the last check comes after the last batch.
pub fn scan(
    reader: ObjectReader,
    footer: &Footer,
    scan: Scan,
) -> Result<(SchemaRef, BoxStream<'static, Result<RecordBatch>>)> {
    let path = reader.object().path.clone();
    let read_error = move |error: ParquetError| decode_error(&path, error);
    let arrow = if scan.views {
        let options = ArrowReaderOptions::new().with_schema(viewed(footer.schema()));
        ArrowReaderMetadata::try_new(Arc::clone(footer.metadata()), options).map_err(&read_error)?
    } else {
        footer.arrow.clone()
    };
    let mut builder =
        ParquetRecordBatchStreamBuilder::new_with_metadata(PinnedFile(reader.clone()), arrow)
            .with_batch_size(scan.batch_rows);
    if let Some(columns) = &scan.columns {
        let mask = ProjectionMask::roots(builder.parquet_schema(), columns.iter().copied());
        builder = builder.with_projection(mask);
    }
    if let Some(groups) = scan.row_groups {
        builder = builder.with_row_groups(groups);
    }
    let stream = builder.build().map_err(&read_error)?;
    let schema = Arc::clone(stream.schema());
    let batches = stream.map_err(read_error);
    // ORDER: the identity is looked at again once everything has been read.
    let end = futures::stream::once(async move { reader.finish() });
    let end = end.filter_map(|checked| async move { checked.err().map(Err) });
    Ok((schema, batches.chain(end).boxed()))
}

fn decode_error(path: &str, error: ParquetError) -> Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<Error>() {
            Ok(ours) => *ours,
            Err(other) => {
                Error::corrupt("cannot decode the file").with("file", path).because(other)
            }
        },
        ParquetError::ArrowError(text) => {
            Error::corrupt("cannot decode the file").with("file", path).because(text)
        }
        other => Error::corrupt("cannot decode the file")
            .with("file", path)
            .because(other)
            .hint("its pages are damaged; write the file again at its source"),
    }
}

/// Reads pages through the pinned object.
struct PinnedFile(ObjectReader);

impl AsyncFileReader for PinnedFile {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        async move { self.0.read(range).await.map_err(external) }.boxed()
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, Result<Vec<Bytes>, ParquetError>> {
        async move {
            let reads = ranges.into_iter().map(|range| self.0.read(range));
            futures::stream::iter(reads).buffered(8).try_collect().await.map_err(external)
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>, ParquetError>> {
        async move {
            let footer = super::read_footer(&self.0).await.map_err(external)?;
            Ok(Arc::clone(footer.metadata()))
        }
        .boxed()
    }
}

fn external(error: Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}
