//! Checks that must see each value: rows outside their interval, values outside a domain.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array as _, ArrayRef, AsArray as _, BooleanArray, RecordBatch, Scalar};
use arrow::compute::kernels::cmp::{eq, gt_eq, lt};
use arrow::compute::{and, cast};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use serde::{Deserialize, Serialize};

use crate::calendar::Interval;
use crate::dataset::{PartitionColumn, TimeKind};
use crate::error::{Error, ErrorKind, Result, from_arrow};
use crate::metrics::value_text;

/// Examples kept of a finding.
const EXAMPLES: usize = 5;

/// Rows outside of their partition's interval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutsideMetrics {
    /// How many rows.
    pub rows: u64,
    /// Values of the partition column.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

/// Values outside of a column's domain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DomainMetrics {
    /// How many values.
    pub values: u64,
    /// Which.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

/// Sees the batches of one partition.
#[derive(Debug)]
pub struct ValueMeter {
    column: String,
    start: ScalarValue,
    end: ScalarValue,
    is_name: bool,
    domains: BTreeMap<String, BTreeSet<String>>,
    /// What lies outside the interval.
    pub outside: OutsideMetrics,
    /// What lies outside declared domains, by column.
    pub found: BTreeMap<String, DomainMetrics>,
}

impl ValueMeter {
    /// For a partition and the declared domains.
    ///
    /// # Errors
    /// `Invalid` when a boundary cannot be represented.
    pub fn new(
        column: &PartitionColumn,
        interval: &Interval,
        domains: &BTreeMap<String, Vec<String>>,
    ) -> Result<Self> {
        let domains = domains
            .iter()
            .map(|(name, values)| (name.clone(), values.iter().cloned().collect()))
            .collect();
        Ok(Self {
            column: column.column.clone(),
            start: column.start_value(interval)?,
            end: column.end_value(interval)?,
            is_name: column.time == TimeKind::Name,
            domains,
            outside: OutsideMetrics::default(),
            found: BTreeMap::new(),
        })
    }

    /// Sees the partition column of a batch.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn see_interval(&mut self, batch: &RecordBatch) -> Result<()> {
        let Some(column) = batch.column_by_name(&self.column) else {
            return Err(Error::internal("the partition column is not there"));
        };
        let fail = |error| from_arrow(ErrorKind::Internal, "compare with the interval", error);
        let start = bound(&self.start, column.data_type())?;
        let inside: BooleanArray = if self.is_name {
            // Names of hours do not sort by time where the clock goes back east of Greenwich.
            eq(column, &start).map_err(fail)?
        } else {
            let after = gt_eq(column, &start).map_err(fail)?;
            let before = lt(column, &bound(&self.end, column.data_type())?).map_err(fail)?;
            and(&after, &before).map_err(fail)?
        };
        if inside.true_count() == batch.num_rows() {
            return Ok(());
        }
        for row in 0..batch.num_rows() {
            // A null is in no interval.
            if inside.is_null(row) || !inside.value(row) {
                self.outside.rows += 1;
                let text = value_text(column, row);
                if self.outside.examples.len() < EXAMPLES && !self.outside.examples.contains(&text)
                {
                    self.outside.examples.push(text);
                }
            }
        }
        Ok(())
    }

    /// Sees the columns with a domain.
    ///
    /// # Errors
    /// `Invalid` for a column that is no text.
    pub fn see_domains(&mut self, batch: &RecordBatch) -> Result<()> {
        for (name, domain) in &self.domains {
            let Some(column) = batch.column_by_name(name) else { continue };
            let texts = cast(column, &DataType::Utf8)
                .map_err(|error| from_arrow(ErrorKind::Invalid, "read a column as text", error))?;
            let found = self.found.entry(name.clone()).or_default();
            for text in texts.as_string::<i32>().iter().flatten() {
                if !domain.contains(text) {
                    found.values += 1;
                    let known = found.examples.iter().any(|example| example == text);
                    if found.examples.len() < EXAMPLES && !known {
                        found.examples.push(text.to_owned());
                    }
                }
            }
        }
        Ok(())
    }
}

fn bound(value: &ScalarValue, data_type: &DataType) -> Result<Scalar<ArrayRef>> {
    let array = value
        .to_array()
        .map_err(|error| Error::internal("make a boundary").because(error.to_string()))?;
    let array = cast(&array, data_type)
        .map_err(|error| from_arrow(ErrorKind::Internal, "make a boundary", error))?;
    Ok(Scalar::new(array))
}
