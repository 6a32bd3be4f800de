//! Paired rows, compared a whole column at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, BooleanArray, Float32Array, Float64Array, RecordBatch,
    make_comparator,
};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{SortOptions, cast, filter, or};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::{ErrorKind, Result, from_arrow};
use crate::identity::Real;
use crate::metrics::FloatSum;

/// How one column's values differ over paired rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnDiff {
    /// How many values differ, in any way.
    pub changed: u64,
    /// Of those, null in production and a value in the candidate.
    pub null_only_production: u64,
    /// Of those, a value in production and null in the candidate.
    pub null_only_candidate: u64,
    /// Numbers on both sides: the sum of candidate minus production, as a double.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_change: Option<Real>,
    /// Numbers on both sides: the largest change by magnitude, with its sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_change: Option<Real>,
}

impl ColumnDiff {
    pub(super) fn merge(&mut self, other: &Self) {
        self.changed += other.changed;
        self.null_only_production += other.null_only_production;
        self.null_only_candidate += other.null_only_candidate;
        self.net_change = match (self.net_change, other.net_change) {
            (Some(one), Some(two)) => Some(Real(one.0 + two.0)),
            (one, two) => one.or(two),
        };
        self.largest_change = match (self.largest_change, other.largest_change) {
            (Some(one), Some(two)) => Some(if two.0.abs() > one.0.abs() { two } else { one }),
            (one, two) => one.or(two),
        };
    }
}

/// Rows of a partition from which its columns are compared side by side.
const PARALLEL_ROWS: usize = 1 << 18;

pub(super) struct Compared {
    pub(super) columns: BTreeMap<String, ColumnDiff>,
    pub(super) changed_rows: Vec<usize>,
}

/// Compares paired rows; both sides have the same number of rows.
pub(super) fn compare_columns(
    left: &RecordBatch,
    right: &RecordBatch,
    key: &[String],
) -> Result<Compared> {
    let schema = right.schema();
    let pairs: Vec<(&str, &ArrayRef, &ArrayRef)> = schema
        .fields()
        .iter()
        .zip(right.columns())
        .filter(|(field, _)| !key.contains(field.name()))
        .filter_map(|(field, candidate)| {
            Some((field.name().as_str(), left.column_by_name(field.name())?, candidate))
        })
        .collect();
    // Below this, handing columns to other cores costs more than comparing them.
    let compared: Vec<Option<(&str, BooleanArray, ColumnDiff)>> =
        if right.num_rows() < PARALLEL_ROWS {
            pairs.iter().map(compare_column).collect::<Result<_>>()?
        } else {
            pairs.par_iter().map(compare_column).collect::<Result<_>>()?
        };
    let mut columns = BTreeMap::new();
    let mut any: Option<BooleanArray> = None;
    for (name, differs, diff) in compared.into_iter().flatten() {
        columns.insert(name.to_owned(), diff);
        any = Some(match any {
            None => differs,
            Some(before) => or(&before, &differs)
                .map_err(|error| from_arrow(ErrorKind::Internal, "combine columns", error))?,
        });
    }
    let changed_rows = any.map(|any| any.values().set_indices().collect()).unwrap_or_default();
    Ok(Compared { columns, changed_rows })
}

/// One column's difference; `None` when there is none.
fn compare_column<'a>(
    (name, production, candidate): &(&'a str, &ArrayRef, &ArrayRef),
) -> Result<Option<(&'a str, BooleanArray, ColumnDiff)>> {
    let differs = differing(production, candidate)
        .map_err(|error| from_arrow(ErrorKind::Unsupported, "compare a column", error))
        .map_err(|error| error.with("column", name))?;
    if differs.true_count() == 0 {
        return Ok(None);
    }
    let diff = column_diff(production, candidate, &differs)?;
    Ok(Some((*name, differs, diff)))
}

/// Where two arrays differ; never null.
fn differing(one: &ArrayRef, two: &ArrayRef) -> Result<BooleanArray, arrow::error::ArrowError> {
    if one.data_type().is_nested() {
        let compare = make_comparator(one, two, SortOptions::default())?;
        let differs = BooleanBuffer::collect_bool(one.len(), |row| compare(row, row).is_ne());
        return Ok(BooleanArray::new(differs, None));
    }
    distinct(&canonical(one), &canonical(two))
}

/// Every NaN becomes the same NaN.
fn canonical(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float64 => {
            let values: Float64Array = array
                .as_primitive::<Float64Type>()
                .unary(|v| if v.is_nan() { f64::NAN } else { v });
            Arc::new(values)
        }
        DataType::Float32 => {
            let values: Float32Array = array
                .as_primitive::<Float32Type>()
                .unary(|v| if v.is_nan() { f32::NAN } else { v });
            Arc::new(values)
        }
        _ => Arc::clone(array),
    }
}

fn column_diff(
    production: &ArrayRef,
    candidate: &ArrayRef,
    differs: &BooleanArray,
) -> Result<ColumnDiff> {
    let fail = |error| from_arrow(ErrorKind::Internal, "measure a change", error);
    let before = filter(production, differs).map_err(fail)?;
    let after = filter(candidate, differs).map_err(fail)?;
    let is_null = |array: &ArrayRef, row| array.logical_nulls().is_some_and(|n| n.is_null(row));
    let mut diff = ColumnDiff { changed: before.len() as u64, ..ColumnDiff::default() };
    for row in 0..before.len() {
        match (is_null(&before, row), is_null(&after, row)) {
            (true, false) => diff.null_only_production += 1,
            (false, true) => diff.null_only_candidate += 1,
            _ => {}
        }
    }
    if before.data_type().is_numeric() {
        let wide = |array: &ArrayRef| cast(array, &DataType::Float64).map_err(fail);
        measure(&wide(&before)?, &wide(&after)?, &mut diff);
    }
    Ok(diff)
}

fn measure(before: &ArrayRef, after: &ArrayRef, diff: &mut ColumnDiff) {
    let pairs =
        before.as_primitive::<Float64Type>().iter().zip(after.as_primitive::<Float64Type>());
    let mut net = FloatSum::default();
    let mut largest: Option<f64> = None;
    for change in pairs.filter_map(|(before, after)| Some(after? - before?)) {
        if change.is_finite() {
            net.add(change);
        }
        if !change.is_nan() && largest.is_none_or(|held| change.abs() > held.abs()) {
            largest = Some(change);
        }
    }
    if largest.is_some() {
        diff.net_change = Some(Real(net.value()));
        diff.largest_change = largest.map(Real);
    }
}
