//! How a candidate's rows differ from production's, by key. Pure: values in, differences out.
//!
//! Both sides come in key order and are walked together once, a batch of each at a time. Where a
//! stretch of keys agrees, whole slices of columns are compared; only where they don't is anything
//! done row by row. When values are equal is said in [`Equality`].
//!
//! A key that occurs more than once on a side, or has a null, pairs nothing by itself: its rows are
//! compared as multisets of whole rows, and what does not cancel is only on its side.

mod columns;
mod comparer;
mod equality;
mod examples;
mod leaves;
mod numbers;
mod side;
mod walk;

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::key::{KeyEncoder, sort_rows};

pub use columns::{ChangeSize, ColumnDiff};
pub use comparer::{Changed, ChangedColumn, Comparer, Piece, Step};
pub use equality::{Equality, Rule, Truncation};
pub use examples::Example;
pub(crate) use examples::{example as paired_example, lone as lone_example};
pub(crate) use leaves::is_of;
pub(crate) use numbers::{Numbers, double, unit};

use examples::EXAMPLES;

/// A side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// What is there now.
    Production,
    /// What would take its place.
    Candidate,
}

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
    /// Production's rows with a null in their key.
    #[serde(default)]
    pub null_keys_production: u64,
    /// The candidate's rows with a null in their key.
    #[serde(default)]
    pub null_keys_candidate: u64,
    /// Columns with other values, and how many; columns that are the same in every value are left
    /// out. A struct's
    /// fields are columns of their own, by path.
    pub columns: BTreeMap<String, ColumnDiff>,
    /// Rows side by side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Example>,
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
        self.null_keys_production += other.null_keys_production;
        self.null_keys_candidate += other.null_keys_candidate;
        for (name, column) in &other.columns {
            self.columns.entry(name.clone()).or_default().merge(column);
        }
        let room = EXAMPLES.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.iter().take(room).cloned());
    }
}

/// The paths of a schema's columns and of the fields of its structs.
///
/// # Errors
/// `Invalid` when columns cannot be told apart by path.
pub(crate) fn paths(
    schema: &arrow::datatypes::Schema,
) -> Result<std::collections::BTreeSet<String>> {
    leaves::Leaves::paths(schema)
}

/// Rows of a batch that is compared at once.
const BATCH_ROWS: usize = 32_768;

/// Compares two sides of the same columns that are in memory, in any order.
///
/// # Errors
/// `Invalid` when the key's columns have no order or a rule does not fit, `Unsupported` for columns
/// that cannot be compared.
pub fn compare(
    production: &RecordBatch,
    candidate: &RecordBatch,
    key: &[String],
    equality: &Equality,
) -> Result<Diff> {
    let encoder = KeyEncoder::new(&candidate.schema(), key)?;
    let left = sort_rows(vec![production.clone()], &encoder, BATCH_ROWS)?;
    let right = sort_rows(vec![candidate.clone()], &encoder, BATCH_ROWS)?;
    Comparer::new(&candidate.schema(), key, equality)?.run(left, right, |_| {})
}

#[cfg(test)]
mod tests;
