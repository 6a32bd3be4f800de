//! A few rows side by side.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use serde::{Deserialize, Serialize};

use super::{Changed, Origin};
use crate::metrics::value_text;

/// Example rows kept of each kind.
pub(super) const EXAMPLES: usize = 5;

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

impl Example {
    /// In one line: `id=7: price 1.00 → 1.10`.
    pub fn line(&self) -> String {
        let pairs = |values: &BTreeMap<String, String>| {
            let each = values.iter().map(|(name, value)| format!("{name}={value}"));
            each.collect::<Vec<_>>().join(" ")
        };
        let key = pairs(&self.key);
        match (&self.production, &self.candidate) {
            (Some(before), Some(after)) => {
                let changes = before.iter().map(|(name, value)| {
                    format!("{name} {value} → {}", after.get(name).map_or("", String::as_str))
                });
                format!("{key}: {}", changes.collect::<Vec<_>>().join(", "))
            }
            (Some(_), None) => format!("{key}: only in production"),
            (None, _) => format!("{key}: only in the candidate"),
        }
    }
}

/// The first rows of each kind.
#[derive(Debug, Default)]
pub(super) struct Examples {
    changed: Vec<Example>,
    only_production: Vec<Example>,
    only_candidate: Vec<Example>,
}

impl Examples {
    pub(super) fn changed(&mut self, changed: &Changed, key: &[String]) {
        let room = EXAMPLES.saturating_sub(self.changed.len());
        for row in changed.any.values().set_indices().take(room) {
            self.changed.push(example(changed, row, key));
        }
    }

    pub(super) fn only(&mut self, origin: Origin, rows: Option<&RecordBatch>, key: &[String]) {
        let Some(rows) = rows else { return };
        let kept = match origin {
            Origin::Production => &mut self.only_production,
            Origin::Candidate => &mut self.only_candidate,
        };
        let room = EXAMPLES.saturating_sub(kept.len());
        for row in 0..rows.num_rows().min(room) {
            kept.push(lone(origin, rows, row, key));
        }
    }

    pub(super) fn into_rows(self) -> Vec<Example> {
        [self.changed, self.only_production, self.only_candidate].concat()
    }
}

/// One of the paired rows, with the columns that differ in it.
pub(crate) fn example(changed: &Changed, row: usize, key: &[String]) -> Example {
    let differing = || changed.columns.iter().filter(|column| column.differs.value(row));
    let before = differing().map(|column| (column.name.clone(), value_text(&column.before, row)));
    let after = differing().map(|column| (column.name.clone(), value_text(&column.after, row)));
    Example {
        key: values(&changed.candidate, row, |name| key.contains(name)),
        production: Some(before.collect()),
        candidate: Some(after.collect()),
    }
}

/// A row that one side alone has.
pub(crate) fn lone(origin: Origin, rows: &RecordBatch, row: usize, key: &[String]) -> Example {
    let others = Some(values(rows, row, |name| !key.contains(name)));
    let key = values(rows, row, |name| key.contains(name));
    match origin {
        Origin::Production => Example { key, production: others, candidate: None },
        Origin::Candidate => Example { key, production: None, candidate: others },
    }
}

fn values(
    batch: &RecordBatch,
    row: usize,
    wanted: impl Fn(&String) -> bool,
) -> BTreeMap<String, String> {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    columns
        .filter(|(field, _)| wanted(field.name()))
        .map(|(field, array)| (field.name().clone(), value_text(array, row)))
        .collect()
}
