//! What the rows of a cluster have in common: a column with one value in all of them, and with
//! others elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray as _, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::DataType;

use crate::error::{ErrorKind, Result, from_arrow};
use crate::metrics::value_text;
use crate::text_views;

/// How likely a column's values name a segment of rows, the least the most; none: they never do.
pub(super) fn rank(data_type: &DataType) -> Option<u8> {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Boolean => Some(0),
        DataType::Date32 => Some(1),
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32 => Some(2),
        DataType::Int64 => Some(3),
        _ => None,
    }
}

/// Rows that are looked at before all.
const FEW: usize = 64;

/// Whether all values of a column are the same as the first.
fn is_one_value(array: &dyn Array) -> bool {
    // Most columns tell within a few rows that they have more.
    if array.len() > 2 * FEW && !is_one_value(array.slice(0, FEW).as_ref()) {
        return false;
    }
    if let Some(views) = array.as_string_view_opt().and_then(text_views::short) {
        return views.iter().all(|view| *view == views[0]);
    }
    let rest = array.len().saturating_sub(1);
    rest == 0 || array.slice(0, rest) == array.slice(1, rest)
}

/// The columns that have more than one value somewhere.
#[derive(Debug, Clone, Default)]
pub(super) struct Varied {
    first: BTreeMap<String, String>,
    columns: BTreeSet<String>,
}

impl Varied {
    /// Sees rows of the columns that may name segments.
    pub(super) fn see(&mut self, rows: &RecordBatch) -> Result<()> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        for (field, array) in rows.schema().fields().iter().zip(rows.columns()) {
            if self.columns.contains(field.name()) {
                continue;
            }
            let here = value_text(array, 0);
            let before = self.first.entry(field.name().clone()).or_insert_with(|| here.clone());
            if *before != here || !is_one_value(array) {
                self.columns.insert(field.name().clone());
            }
        }
        Ok(())
    }

    pub(super) fn contains(&self, column: &str) -> bool {
        self.columns.contains(column)
    }
}

/// The columns that have had one value in all rows of a cluster so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Common {
    begun: bool,
    values: BTreeMap<String, String>,
}

impl Common {
    pub(super) fn see(&mut self, rows: &RecordBatch, places: &[u32]) -> Result<()> {
        if places.is_empty() || (self.begun && self.values.is_empty()) {
            return Ok(());
        }
        let places = UInt32Array::from(places.to_vec());
        let mut kept = BTreeMap::new();
        for (field, array) in rows.schema().fields().iter().zip(rows.columns()) {
            if self.begun && !self.values.contains_key(field.name()) {
                continue;
            }
            let at = |places: &UInt32Array| {
                take(array, places, None)
                    .map_err(|error| from_arrow(ErrorKind::Internal, "look for segments", error))
            };
            let few = at(&places.slice(0, FEW.min(places.len())))?;
            if !is_one_value(&few) {
                continue;
            }
            let value = value_text(&few, 0);
            let goes_on = !self.begun || self.values.get(field.name()) == Some(&value);
            if goes_on && (is_one_value(array) || is_one_value(&at(&places)?)) {
                kept.insert(field.name().clone(), value);
            }
        }
        self.begun = true;
        self.values = kept;
        Ok(())
    }

    /// What is common to the cluster and not to all rows.
    pub(super) fn told(&self, column: Option<&str>, varied: &Varied) -> BTreeMap<String, String> {
        let told = self
            .values
            .iter()
            .filter(|(name, _)| varied.contains(name) && Some(name.as_str()) != column);
        told.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}
