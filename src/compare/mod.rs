//! How a candidate's rows differ from production's, by key. Pure: values in, differences out.
//!
//! Both sides are put into key order and walked together once. Rows with the same key are compared
//! column by column, whole columns at a time. Two values are equal when they are both null or have
//! the same canonical bytes: every NaN is the same, and −0.0 is not 0.0.
//!
//! A key that occurs more than once on either side pairs nothing: its rows are compared as
//! multisets of whole rows, and what does not cancel is only on its side.

mod columns;
mod walk;

use std::collections::BTreeMap;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use serde::{Deserialize, Serialize};

use crate::error::{ErrorKind, Result, from_arrow};
use crate::metrics::value_text;

use columns::compare_columns;
use walk::{Walk, walk};

pub use columns::ColumnDiff;

/// Example rows kept of each kind.
const EXAMPLES: usize = 5;

/// How one partition differs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Diff {
    /// Rows in production.
    pub rows_production: u64,
    /// Rows in the candidate.
    pub rows_candidate: u64,
    /// Rows with the same key and the same values.
    pub equal: u64,
    /// Rows with the same key and some other value.
    pub changed: u64,
    /// Rows whose key production alone has.
    pub only_production: u64,
    /// Rows whose key the candidate alone has.
    pub only_candidate: u64,
    /// Keys that occur more than once on a side.
    pub repeated_keys: u64,
    /// Columns with other values, and how many; columns that are equal are left out.
    pub columns: BTreeMap<String, ColumnDiff>,
    /// Rows side by side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Example>,
}

/// One row that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// The key's columns and values.
    pub key: BTreeMap<String, String>,
    /// Production's values of the columns that differ; absent when it has no such row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub production: Option<BTreeMap<String, String>>,
    /// The candidate's values of the same columns; absent when it has no such row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<BTreeMap<String, String>>,
}

impl Diff {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.changed == 0 && self.only_production == 0 && self.only_candidate == 0
    }

    /// The difference when both sides have the same rows.
    pub fn none(rows: u64) -> Self {
        Self { rows_production: rows, rows_candidate: rows, equal: rows, ..Self::default() }
    }

    /// Adds another partition's difference.
    pub fn merge(&mut self, other: &Self) {
        self.rows_production += other.rows_production;
        self.rows_candidate += other.rows_candidate;
        self.equal += other.equal;
        self.changed += other.changed;
        self.only_production += other.only_production;
        self.only_candidate += other.only_candidate;
        self.repeated_keys += other.repeated_keys;
        for (name, column) in &other.columns {
            self.columns.entry(name.clone()).or_default().merge(column);
        }
        let room = EXAMPLES.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.iter().take(room).cloned());
    }
}

/// Compares two sides of the same columns.
///
/// # Errors
/// `Invalid` when the key's columns have no order, `Unsupported` for columns that cannot be
/// compared.
pub fn compare(production: &RecordBatch, candidate: &RecordBatch, key: &[String]) -> Result<Diff> {
    let walk = walk(production, candidate, key)?;
    let mut diff = Diff {
        rows_production: production.num_rows() as u64,
        rows_candidate: candidate.num_rows() as u64,
        only_production: walk.only_production.len() as u64,
        only_candidate: walk.only_candidate.len() as u64,
        equal: walk.cancelled,
        repeated_keys: walk.repeated_keys,
        ..Diff::default()
    };
    let left = taken(production, &walk.paired_production)?;
    let right = taken(candidate, &walk.paired_candidate)?;
    let compared = compare_columns(&left, &right, key)?;
    diff.changed = compared.changed_rows.len() as u64;
    diff.equal += left.num_rows() as u64 - diff.changed;
    diff.columns = compared.columns;
    let changed = &compared.changed_rows;
    diff.examples = examples(production, candidate, &walk, (&left, &right, changed), key);
    Ok(diff)
}

/// Rows of a batch by number.
fn taken(batch: &RecordBatch, rows: &[u32]) -> Result<RecordBatch> {
    let rows = &UInt32Array::from(rows.to_vec());
    let fail = |error| from_arrow(ErrorKind::Internal, "take rows to compare", error);
    let columns = batch
        .columns()
        .iter()
        .map(|column| take(column, rows, None))
        .collect::<Result<Vec<_>, _>>()
        .map_err(fail)?;
    let options = arrow::array::RecordBatchOptions::new()
        .with_row_count(Some(arrow::array::Array::len(rows)));
    RecordBatch::try_new_with_options(batch.schema(), columns, &options).map_err(fail)
}

fn examples(
    production: &RecordBatch,
    candidate: &RecordBatch,
    walk: &Walk,
    (left, right, changed): (&RecordBatch, &RecordBatch, &[usize]),
    key: &[String],
) -> Vec<Example> {
    let values_columns: Vec<String> = names(&left.schema(), |name| !key.contains(name));
    let mut examples = Vec::new();
    for row in changed.iter().take(EXAMPLES) {
        let (before, after) =
            (values(left, *row, &values_columns), values(right, *row, &values_columns));
        let differs = |name: &String| before.get(name) != after.get(name);
        let only = |all: &BTreeMap<String, String>| {
            all.iter()
                .filter(|(name, _)| differs(name))
                .map(|(n, v)| (n.clone(), v.clone()))
                .collect()
        };
        examples.push(Example {
            key: values(left, *row, key),
            production: Some(only(&before)),
            candidate: Some(only(&after)),
        });
    }
    for row in walk.only_production.iter().take(EXAMPLES) {
        examples.push(Example {
            key: values(production, *row, key),
            production: Some(values(production, *row, &values_columns)),
            candidate: None,
        });
    }
    for row in walk.only_candidate.iter().take(EXAMPLES) {
        examples.push(Example {
            key: values(candidate, *row, key),
            production: None,
            candidate: Some(values(candidate, *row, &values_columns)),
        });
    }
    examples
}

fn names(schema: &SchemaRef, wanted: impl Fn(&String) -> bool) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).filter(|name| wanted(name)).collect()
}

fn values(batch: &RecordBatch, row: usize, columns: &[String]) -> BTreeMap<String, String> {
    columns
        .iter()
        .filter_map(|name| {
            let array = batch.column_by_name(name)?;
            Some((name.clone(), value_text(array, row)))
        })
        .collect()
}

#[cfg(test)]
mod tests;
