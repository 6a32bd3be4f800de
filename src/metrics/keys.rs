//! The key: unique, without nulls, and in order.
//!
//! Rows come sorted by key, so equal keys are neighbours: uniqueness is exact and needs no table.

use arrow::array::{Array as _, RecordBatch};
use arrow::datatypes::Schema;
use arrow::row::{OwnedRow, RowConverter, Rows, SortField};
use serde::{Deserialize, Serialize};

use super::bounds::value_text;
use crate::error::{Error, ErrorKind, Result, from_arrow};

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
    names: Vec<String>,
    columns: Vec<usize>,
    converter: RowConverter,
    previous: Option<OwnedRow>,
    repeats: u64,
    metrics: KeyMetrics,
}

impl KeyMeter {
    pub(super) fn new(schema: &Schema, key: &[String]) -> Result<Self> {
        let columns: Vec<usize> = key
            .iter()
            .map(|name| {
                schema.index_of(name).map_err(|_| {
                    let known: Vec<&str> =
                        schema.fields().iter().map(|field| field.name().as_str()).collect();
                    Error::invalid(format!(
                        "the key column {name:?} is not a column of the dataset"
                    ))
                    .hint(format!("the columns are {}", known.join(", ")))
                })
            })
            .collect::<Result<_>>()?;
        let fields = columns
            .iter()
            .map(|index| SortField::new(schema.field(*index).data_type().clone()))
            .collect();
        let converter = RowConverter::new(fields).map_err(|error| {
            from_arrow(ErrorKind::Invalid, "the key's columns have no order", error)
        })?;
        Ok(Self {
            names: key.to_vec(),
            columns,
            converter,
            previous: None,
            repeats: 0,
            metrics: KeyMetrics::default(),
        })
    }

    pub(super) fn update(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.count_nulls(batch);
        let arrays: Vec<_> =
            self.columns.iter().map(|index| std::sync::Arc::clone(batch.column(*index))).collect();
        let rows = self
            .converter
            .convert_columns(&arrays)
            .map_err(|error| from_arrow(ErrorKind::Internal, "compare keys", error))?;
        self.compare(batch, &rows);
        Ok(())
    }

    fn compare(&mut self, batch: &RecordBatch, rows: &Rows) {
        if let Some(previous) = self.previous.take() {
            self.neighbours(batch, previous.row().cmp(&rows.row(0)), 0);
        }
        for row in 1..rows.num_rows() {
            let order = rows.row(row - 1).cmp(&rows.row(row));
            if order.is_ge() {
                self.neighbours(batch, order, row);
            } else {
                self.repeats = 0;
            }
        }
        self.previous = Some(rows.row(rows.num_rows() - 1).owned());
    }

    /// The row before `row` compared with it.
    fn neighbours(&mut self, batch: &RecordBatch, order: std::cmp::Ordering, row: usize) {
        match order {
            std::cmp::Ordering::Less => self.repeats = 0,
            std::cmp::Ordering::Greater => {
                self.repeats = 0;
                self.metrics.out_of_order += 1;
            }
            std::cmp::Ordering::Equal => {
                self.repeats += 1;
                self.metrics.rows_with_repeated_keys += 1;
                if self.repeats == 1 {
                    self.metrics.repeated_keys += 1;
                    self.metrics.rows_with_repeated_keys += 1;
                    self.example(batch, row);
                }
            }
        }
    }

    fn count_nulls(&mut self, batch: &RecordBatch) {
        let nullable: Vec<_> = self
            .columns
            .iter()
            .filter_map(|index| batch.column(*index).logical_nulls())
            .filter(|nulls| nulls.null_count() > 0)
            .collect();
        if nullable.is_empty() {
            return;
        }
        for row in 0..batch.num_rows() {
            if nullable.iter().any(|nulls| nulls.is_null(row)) {
                self.metrics.rows_with_null_keys += 1;
                self.example(batch, row);
            }
        }
    }

    fn example(&mut self, batch: &RecordBatch, row: usize) {
        if self.metrics.examples.len() < EXAMPLES {
            let values = self.columns.iter().map(|index| value_text(batch.column(*index), row));
            let pairs: Vec<String> = self
                .names
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
