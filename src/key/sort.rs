//! Rows into key order, in memory.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use rayon::prelude::*;

use super::gather::Gather;
use super::{KeyEncoder, Keys, Values};
use crate::error::{ErrorKind, Result, from_arrow};

/// Rows from which sorting is worth other cores.
const PARALLEL_ROWS: usize = 1 << 18;

/// Sorts the rows of batches by key; equal keys keep their order.
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
    let order = order_of(&keys);
    let cuts = order.len().div_ceil(batch_rows.max(1));
    let schema = batches.first().map(RecordBatch::schema);
    let columns = schema.as_ref().map_or(0, |schema| schema.fields().len());
    let gathers: Vec<Gather> = (0..columns)
        .map(|at| Gather::new(batches.iter().map(|batch| Arc::clone(batch.column(at))).collect()))
        .collect();
    Ok((0..cuts).map(move |cut| {
        let places = &order[cut * batch_rows..((cut + 1) * batch_rows).min(order.len())];
        let columns = gathers.iter().map(|gather| gather.at(places)).collect::<Result<_>>()?;
        let schema = schema.clone().unwrap_or_else(|| Arc::new(Schema::empty()));
        RecordBatch::try_new(schema, columns)
            .map_err(|error| from_arrow(ErrorKind::Internal, "put rows into key order", error))
    }))
}

/// Each row's batch and place in it, in key order.
fn order_of(keys: &[Keys]) -> Vec<(usize, usize)> {
    let places = keys
        .iter()
        .enumerate()
        .flat_map(|(batch, keys)| (0..keys.len()).map(move |row| (batch, row)));
    let packed: Option<Vec<&[u128]>> = keys
        .iter()
        .map(|keys| match &keys.values {
            Values::Packed(values) => Some(values.as_slice()),
            Values::Bytes(_) => None,
        })
        .collect();
    if let Some(packed) = packed {
        let mut rows: Vec<(u128, (usize, usize))> =
            places.map(|(batch, row)| (packed[batch][row], (batch, row))).collect();
        if rows.len() < PARALLEL_ROWS {
            rows.sort_unstable();
        } else {
            rows.par_sort_unstable();
        }
        return rows.into_iter().map(|(_, place)| place).collect();
    }
    let mut rows: Vec<(usize, usize)> = places.collect();
    let by_key = |one: &(usize, usize), two: &(usize, usize)| {
        keys[one.0].compare(one.1, &keys[two.0], two.1)
    };
    if rows.len() < PARALLEL_ROWS {
        rows.sort_by(by_key);
    } else {
        rows.par_sort_by(by_key);
    }
    rows
}
