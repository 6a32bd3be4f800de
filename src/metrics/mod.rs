//! Numbers that carry a guarantee, computed from decoded batches, column by column.
//!
//! A [`Meter`] sees every batch of a partition once and gives its [`Metrics`]: counts, nulls,
//! exact sums, bounds by total order, the content digest, and what the key columns are like. The
//! same meter runs while a candidate is written and again over the stored bytes; the two must
//! agree. None of it depends on how rows are cut into batches.

mod bounds;
mod column;
mod digest;
mod float_sum;
mod keys;
mod nulls;
mod parts;
mod profile;
mod row_hash;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde::{Deserialize, Serialize};

use crate::error::Result;

pub use column::ColumnMetrics;
pub use digest::ContentDigest;
pub use float_sum::FloatSum;
pub use keys::KeyMetrics;
pub use profile::{Distinct, Profile, Quantiles};

pub(crate) use bounds::value_text;
pub(crate) use column::decimal_text;
pub(crate) use digest::DIGEST;
pub(crate) use row_hash::RowHasher;
pub(crate) use words::words_of_rows;

use column::ColumnMeter;
use digest::DigestMeter;
use keys::KeyMeter;
use parts::{parts, parts_of};
use profile::ProfileMeter;

/// What is known of a partition's rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// How many rows.
    pub rows: u64,
    /// Each column's numbers; of nested columns also those of their parts, by path: `tags[]`,
    /// `address.city`, `labels.key`.
    pub columns: BTreeMap<String, ColumnMetrics>,
    /// The content digest of all rows.
    pub content: String,
    /// Uniqueness and order of the key.
    pub keys: KeyMetrics,
}

impl Metrics {
    /// Without what was measured on request.
    #[must_use]
    pub fn plain(&self) -> Self {
        let mut plain = self.clone();
        plain.columns.values_mut().for_each(|column| column.profile = None);
        plain
    }
}

/// Sees batches, gives metrics.
#[derive(Debug)]
pub struct Meter {
    rows: u64,
    schema: SchemaRef,
    columns: Vec<ColumnMeter>,
    /// Of nested columns, by the column's place: a meter for each part, with its path.
    parts: Vec<(usize, Vec<(String, ColumnMeter)>)>,
    digest: DigestMeter,
    keys: KeyMeter,
    /// Of columns with a profile, by place.
    profiles: Vec<(usize, ProfileMeter)>,
}

impl Meter {
    /// A meter for batches of a schema.
    ///
    /// # Errors
    /// `Unsupported` for a column type that cannot be measured, `Invalid` for a key that the
    /// schema lacks or that cannot be ordered.
    pub fn new(schema: SchemaRef, key: &[String]) -> Result<Self> {
        let fields = schema.fields();
        let meter = |path: &str, data_type| ColumnMeter::new(path, data_type, false);
        let columns = fields.iter().map(|field| meter(field.name(), field.data_type())).collect();
        let parts = fields.iter().enumerate().map(|(place, field)| {
            let each = parts_of(field.name(), field.data_type()).into_iter();
            let each = each.map(|(path, data_type)| {
                let meter = ColumnMeter::new(&path, &data_type, true);
                (path, meter)
            });
            (place, each.collect::<Vec<_>>())
        });
        let parts = parts.filter(|(_, parts)| !parts.is_empty()).collect();
        Ok(Self {
            rows: 0,
            columns,
            parts,
            digest: DigestMeter::new(&schema)?,
            keys: KeyMeter::new(&schema, key)?,
            profiles: Vec::new(),
            schema,
        })
    }

    /// Measures more of some columns: [`ColumnMetrics::profile`].
    #[must_use]
    pub fn profiling(mut self, columns: &BTreeSet<String>) -> Self {
        let fields = self.schema.fields().iter().enumerate();
        let places = fields.filter(|(_, field)| columns.contains(field.name()));
        self.profiles = places.map(|(place, _)| (place, ProfileMeter::new())).collect();
        self
    }

    /// Sees a batch.
    ///
    /// # Errors
    /// `Invalid` when a sum does not fit into 256 bits, `Unsupported` for a type that cannot be
    /// measured.
    pub fn update(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        for (meter, array) in self.columns.iter_mut().zip(batch.columns()) {
            meter.update(array)?;
        }
        for (place, meters) in &mut self.parts {
            for ((_, meter), values) in meters.iter_mut().zip(parts(batch.column(*place))?) {
                meter.update(&values)?;
            }
        }
        for (place, meter) in &mut self.profiles {
            meter.update(batch.column(*place))?;
        }
        self.digest.update(batch)?;
        self.keys.update(batch)
    }

    /// The metrics so far.
    pub fn metrics(&self) -> Metrics {
        let names = self.schema.fields().iter().map(|field| field.name().clone());
        let profile = |place| self.profiles.iter().find(|(profiled, _)| *profiled == place);
        let columns = self.columns.iter().enumerate().map(|(place, meter)| ColumnMetrics {
            profile: profile(place).map(|(_, meter)| meter.profile()),
            ..meter.metrics()
        });
        let parts = self.parts.iter().flat_map(|(_, parts)| parts);
        let parts = parts.map(|(path, meter)| (path.clone(), meter.metrics()));
        Metrics {
            rows: self.rows,
            columns: names.zip(columns).chain(parts).collect(),
            content: self.digest.digest().to_string(),
            keys: self.keys.metrics(),
        }
    }
}

#[cfg(test)]
mod tests;
