//! What is kept of rows while they wait to be explained: their keys, to show some of them, and the
//! columns that may tell what they have in common.

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, RecordBatch, RecordBatchOptions, UInt32Array,
};
use arrow::compute::{concat_batches, take, take_record_batch};
use arrow::datatypes::{DataType, Schema};

use super::segment::rank;
use crate::error::{ErrorKind, Result, from_arrow};

/// Columns looked at for what rows have in common.
const SEGMENTS: usize = 16;

/// Which columns of a table's rows are kept.
#[derive(Debug, Clone, Default)]
pub(super) struct Projection {
    key: Vec<usize>,
    segments: Vec<usize>,
}

impl Projection {
    /// The key, and the columns most likely to name segments.
    pub(super) fn of(schema: &Schema, key: &[String]) -> Self {
        let key = key.iter().filter_map(|name| schema.index_of(name).ok()).collect();
        let each = schema.fields().iter().enumerate();
        let mut ranked: Vec<(u8, usize)> =
            each.filter_map(|(at, field)| Some((rank(field.data_type())?, at))).collect();
        ranked.sort_unstable();
        ranked.truncate(SEGMENTS);
        let mut segments: Vec<usize> = ranked.into_iter().map(|(_, at)| at).collect();
        segments.sort_unstable();
        Self { key, segments }
    }

    /// The columns that may name segments.
    pub(super) fn segments(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        project(rows, &self.segments)
    }

    /// What is kept of pairs.
    pub(super) fn rows(&self, production: &RecordBatch, candidate: &RecordBatch) -> Result<Rows> {
        Ok(Rows { keys: project(candidate, &self.key)?, segments: self.segments(production)? })
    }
}

fn project(rows: &RecordBatch, columns: &[usize]) -> Result<RecordBatch> {
    rows.project(columns)
        .map_err(|error| from_arrow(ErrorKind::Internal, "keep columns of rows", error))
}

/// What is kept of some rows.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    /// The candidate's key columns.
    pub(super) keys: RecordBatch,
    /// Production's columns that may name segments.
    pub(super) segments: RecordBatch,
}

impl Rows {
    /// Copies of some of the rows, which hold nothing of the others.
    pub(super) fn at(&self, places: &UInt32Array) -> Result<Self> {
        Ok(Self {
            keys: compacted(&taken(&self.keys, places)?)?,
            segments: compacted(&taken(&self.segments, places)?)?,
        })
    }

    pub(super) fn together<'a>(parts: impl Iterator<Item = &'a Self> + Clone) -> Result<Self> {
        let fail = |error| from_arrow(ErrorKind::Internal, "gather rows to explain", error);
        let all = |side: fn(&Self) -> &RecordBatch| {
            let schema = parts.clone().next().map(|first| side(first).schema());
            let schema = schema.unwrap_or_else(|| Schema::empty().into());
            if schema.fields().is_empty() {
                let rows = parts.clone().map(|part| side(part).num_rows()).sum();
                return without_columns(rows);
            }
            concat_batches(&schema, parts.clone().map(side)).map_err(fail)
        };
        Ok(Self { keys: all(|part| &part.keys)?, segments: all(|part| &part.segments)? })
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.keys.get_array_memory_size() + self.segments.get_array_memory_size()
    }
}

/// Some rows of a batch, which may have no columns at all: then there are only so many.
fn taken(rows: &RecordBatch, places: &UInt32Array) -> Result<RecordBatch> {
    if rows.num_columns() == 0 {
        return without_columns(places.len());
    }
    take_record_batch(rows, places)
        .map_err(|error| from_arrow(ErrorKind::Internal, "keep rows to explain", error))
}

fn without_columns(rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Schema::empty().into(), Vec::new(), &options)
        .map_err(|error| from_arrow(ErrorKind::Internal, "keep rows to explain", error))
}

fn compacted(rows: &RecordBatch) -> Result<RecordBatch> {
    let columns = rows.columns().iter().map(compact).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(rows.schema(), columns, &options)
        .map_err(|error| from_arrow(ErrorKind::Internal, "keep rows to explain", error))
}

/// Some values of a column, copied; views let go of what they do not show.
pub(super) fn values_at(array: &ArrayRef, places: &UInt32Array) -> Result<ArrayRef> {
    let taken = take(array, places, None)
        .map_err(|error| from_arrow(ErrorKind::Internal, "keep values to explain", error))?;
    Ok(compact(&taken))
}

fn compact(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => std::sync::Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => std::sync::Arc::new(array.as_binary_view().gc()),
        _ => ArrayRef::clone(array),
    }
}
