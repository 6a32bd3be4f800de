//! Rows into key order, in memory.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::datatypes::Schema;
use rayon::prelude::*;

use super::gather::Gather;
use super::short::Short;
use super::{KeyEncoder, Keys, Values};
use crate::error::{Error, ErrorKind, Result, from_arrow};

/// Rows from which sorting is worth other cores.
const PARALLEL_ROWS: usize = 1 << 18;

/// Rows that are sorted at once, at most: each place is a number of 32 bits.
pub const MOST_SORTED_ROWS: usize = u32::MAX as usize;

/// Sorts the rows of batches by key, [`MOST_SORTED_ROWS`] at most; equal keys keep their order.
///
/// # Schema
/// As the batches'; each batch given back has `batch_rows` rows at most.
///
/// # Errors
/// `Internal` only.
pub fn sort_rows(
    batches: Vec<RecordBatch>,
    encoder: &KeyEncoder,
    batch_rows: usize,
) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
    let keys: Vec<Keys> =
        batches.iter().map(|batch| encoder.encode(batch)).collect::<Result<_>>()?;
    let rows: usize = keys.iter().map(Keys::len).sum();
    if rows > MOST_SORTED_ROWS {
        return Err(Error::internal(format!("{rows} rows cannot be sorted at once")));
    }
    let order = UInt32Array::from(order_of(&keys));
    drop(keys);
    let schema = batches.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
    let gathers: Vec<Gather> = columns_of(batches, schema.fields().len())
        .into_iter()
        .map(Gather::new)
        .collect::<Result<_>>()?;
    let batch_rows = batch_rows.max(1);
    Ok((0..order.len().div_ceil(batch_rows)).map(move |cut| {
        let start = cut * batch_rows;
        let places = order.slice(start, batch_rows.min(order.len() - start));
        let columns = gathers.iter().map(|gather| gather.at(&places)).collect::<Result<_>>()?;
        RecordBatch::try_new(Arc::clone(&schema), columns)
            .map_err(|error| from_arrow(ErrorKind::Internal, "put rows into key order", error))
    }))
}

/// The batches by column, so that each column's parts can go once they are put together.
fn columns_of(batches: Vec<RecordBatch>, columns: usize) -> Vec<Vec<ArrayRef>> {
    let mut parts: Vec<Vec<ArrayRef>> = vec![Vec::with_capacity(batches.len()); columns];
    for batch in batches {
        for (parts, array) in parts.iter_mut().zip(batch.columns()) {
            parts.push(Arc::clone(array));
        }
    }
    parts
}

/// Each row's place over all batches, in key order.
fn order_of(keys: &[Keys]) -> Vec<u32> {
    let packed: Option<Vec<&[u128]>> = keys
        .iter()
        .map(|keys| match &keys.values {
            Values::Packed(values) => Some(values.as_slice()),
            Values::Bytes(_) => None,
        })
        .collect();
    let Some(packed) = packed else { return order_of_bytes(keys) };
    let rows = packed.iter().map(|values| values.len()).sum();
    if let Some(short) = Short::of(&packed, rows) {
        return short.order(&packed);
    }
    let keys = packed.iter().copied().flatten().copied();
    let mut keys: Vec<(u128, u32)> = keys.zip(0..).collect();
    if rows < PARALLEL_ROWS {
        keys.sort_unstable();
    } else {
        keys.par_sort_unstable();
    }
    keys.into_iter().map(|(_, place)| place).collect()
}

fn order_of_bytes(keys: &[Keys]) -> Vec<u32> {
    let places = keys
        .iter()
        .enumerate()
        .flat_map(|(batch, keys)| (0..keys.len()).map(move |row| (batch, row)));
    let mut rows: Vec<((usize, usize), u32)> = places.zip(0..).collect();
    let by_key = |((one, row), _): &((usize, usize), u32),
                  ((two, other), _): &((usize, usize), u32)| {
        keys[*one].compare(*row, &keys[*two], *other)
    };
    if rows.len() < PARALLEL_ROWS {
        rows.sort_by(by_key);
    } else {
        rows.par_sort_by(by_key);
    }
    rows.into_iter().map(|(_, place)| place).collect()
}
