//! The key: unique, without nulls, and in order.
//!
//! Rows come sorted by key, so equal keys are neighbours: uniqueness is exact and needs no table.

use std::cmp::Ordering;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use serde::{Deserialize, Serialize};

use super::bounds::value_text;
use crate::error::Result;
use crate::key::{Key, KeyEncoder, Keys};

/// Examples kept of a finding.
const EXAMPLES: usize = 5;

/// What a partition's key columns are like.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyMetrics {
    /// How many different keys occur more than once.
    pub repeated_keys: u64,
    /// How many rows have such a key.
    pub rows_with_repeated_keys: u64,
    /// How many rows have a null in their key.
    pub rows_with_null_keys: u64,
    /// How many rows come before a row of a lesser key.
    pub out_of_order: u64,
    /// Examples of repeated keys, then of null keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

/// Sees batches in key order.
#[derive(Debug)]
pub(super) struct KeyMeter {
    encoder: KeyEncoder,
    previous: Option<Key>,
    /// Whether the row before the next batch's first has the same key as the one before it.
    repeats: bool,
    metrics: KeyMetrics,
}

impl KeyMeter {
    pub(super) fn new(schema: &Schema, key: &[String]) -> Result<Self> {
        Ok(Self {
            encoder: KeyEncoder::new(schema, key)?,
            previous: None,
            repeats: false,
            metrics: KeyMetrics::default(),
        })
    }

    pub(super) fn update(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 || self.encoder.names().is_empty() {
            return Ok(());
        }
        let keys = self.encoder.encode(batch)?;
        self.count_nulls(batch, &keys);
        let mut steps: Vec<(usize, Ordering)> = Vec::new();
        if let Some(previous) = &self.previous {
            let order = keys.compare_to(0, previous).reverse();
            if order != Ordering::Less {
                steps.push((0, order));
            }
        }
        keys.neighbours(|row, order| steps.push((row, order)));
        self.see(batch, &steps);
        let last = keys.len() - 1;
        self.repeats = steps.last().is_some_and(|step| *step == (last, Ordering::Equal));
        self.previous = Some(keys.one(last));
        Ok(())
    }

    /// The rows that are not greater than the row before them.
    fn see(&mut self, batch: &RecordBatch, steps: &[(usize, Ordering)]) {
        let mut before: Option<usize> = None;
        for (row, order) in steps {
            if *order == Ordering::Greater {
                self.metrics.out_of_order += 1;
                continue;
            }
            let goes_on = match (before, *row) {
                (_, 0) => self.repeats,
                (Some(before), row) => before + 1 == row,
                (None, _) => false,
            };
            self.metrics.rows_with_repeated_keys += if goes_on { 1 } else { 2 };
            if !goes_on {
                self.metrics.repeated_keys += 1;
                self.example(batch, *row);
            }
            before = Some(*row);
        }
    }

    fn count_nulls(&mut self, batch: &RecordBatch, keys: &Keys) {
        let Some(nulls) = keys.nulls() else { return };
        self.metrics.rows_with_null_keys += nulls.null_count() as u64;
        for row in (0..keys.len()).filter(|row| nulls.is_null(*row)).take(EXAMPLES) {
            self.example(batch, row);
        }
    }

    fn example(&mut self, batch: &RecordBatch, row: usize) {
        if self.metrics.examples.len() < EXAMPLES {
            let arrays = self.encoder.arrays(batch);
            let values = arrays.iter().map(|array| value_text(array, row));
            let pairs: Vec<String> = self
                .encoder
                .names()
                .iter()
                .zip(values)
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            self.metrics.examples.push(pairs.join(" "));
        }
    }

    pub(super) fn metrics(&self) -> KeyMetrics {
        self.metrics.clone()
    }
}
