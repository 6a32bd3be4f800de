//! Clusters: differences with one explanation, counted.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::RecordBatch;
use serde::{Deserialize, Serialize};

use super::pattern::Pattern;
use super::segment::{Common, Varied};
use crate::compare::{Example, Origin, lone_example};
use crate::error::Result;
use crate::identity::Real;
use crate::metrics::{FloatSum, RowHasher};

/// Examples kept of a cluster in one partition, and over all.
const EXAMPLES_HERE: usize = 2;
const EXAMPLES: usize = 6;

/// What rows have in common that is told in a line.
const SEGMENTS_TOLD: usize = 3;

/// Differences with one explanation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// The column; none: whole rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// What happened to its values.
    pub pattern: Pattern,
    /// How many values, or rows.
    pub values: u64,
    /// How many partitions.
    pub partitions: u64,
    /// The first of them.
    pub first: String,
    /// The last of them.
    pub last: String,
    /// Columns that have one value in all its rows, and others elsewhere.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub segment: BTreeMap<String, String>,
    /// Of numbers: the sum of all changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_change: Option<Real>,
    /// Of numbers: the largest change by magnitude.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_change: Option<Real>,
    /// Of differences that are in no ledger's words alone: the sum of its rows' hashes, with key and
    /// values, as hexadecimal digits. Equal: the same rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<String>,
    /// The names of all its partitions, where it must be known again.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub partition_names: BTreeSet<String>,
    /// Rows side by side, from all over the partitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<ClusterExample>,
}

/// One row of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterExample {
    /// Its partition.
    pub partition: String,
    /// The row.
    pub row: Example,
}

impl Cluster {
    /// In one line, without its size: `delay_minutes × 1.1 where carrier = UA`.
    pub fn line(&self) -> String {
        let mut text = match &self.column {
            Some(column) => format!("{column}: {}", self.pattern),
            None => self.pattern.to_string(),
        };
        if !self.segment.is_empty() {
            let each = self.segment.iter().take(SEGMENTS_TOLD);
            let parts: Vec<String> =
                each.map(|(column, value)| format!("{column} = {value}")).collect();
            text += &format!(" where {}", parts.join(" and "));
            if self.segment.len() > SEGMENTS_TOLD {
                text += " and more";
            }
        }
        text
    }

    fn key(&self) -> (Option<String>, Pattern) {
        (self.column.clone(), self.pattern.clone())
    }
}

/// What is counted of a cluster in one partition.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) values: u64,
    net: FloatSum,
    largest: Option<f64>,
    common: Common,
    examples: Vec<Example>,
    largest_example: Option<Example>,
    rows: Option<u128>,
}

impl Tally {
    /// Adds changed values, with the columns of their rows that may name segments. `changes`: of
    /// numbers, each with its place among them; the examples are of the same rows.
    pub(super) fn add(
        &mut self,
        segments: &RecordBatch,
        places: &[u32],
        changes: &[(usize, f64)],
        example: impl Fn(usize) -> Example,
    ) -> Result<()> {
        self.values += places.len() as u64;
        self.common.see(segments, places)?;
        let mut largest_here = None;
        self.net.add_all(&changes.iter().map(|(_, change)| *change).collect::<Vec<_>>());
        for (place, change) in changes {
            if self.largest.is_none_or(|held| change.abs() > held.abs()) {
                self.largest = Some(*change);
                largest_here = Some(*place);
            }
        }
        if let Some(place) = largest_here {
            self.largest_example = Some(example(place));
        }
        let room = EXAMPLES_HERE.saturating_sub(self.examples.len());
        self.examples.extend((0..places.len().min(room)).map(example));
        Ok(())
    }

    /// Adds the rows' hashes, by which they are known again.
    pub(super) fn identify(&mut self, rows: &RecordBatch) -> Result<()> {
        let mut hasher = RowHasher::new(rows.schema_ref())?;
        let mut sum = self.rows.unwrap_or_default();
        hasher.hash(rows, |hash| sum = sum.wrapping_add(hash))?;
        self.rows = Some(sum);
        Ok(())
    }

    /// Adds rows that one side alone has.
    pub(super) fn add_alone(
        &mut self,
        origin: Origin,
        rows: &RecordBatch,
        segments: &RecordBatch,
        key: &[String],
    ) -> Result<()> {
        let places: Vec<u32> = (0..u32::try_from(rows.num_rows()).unwrap_or(u32::MAX)).collect();
        let example = |row| lone_example(origin, rows, row, key);
        self.add(segments, &places, &[], example)
    }

    pub(super) fn cluster(
        self,
        column: Option<&str>,
        pattern: Pattern,
        (partition, is_named): (&str, bool),
        varied: &Varied,
    ) -> Cluster {
        let mut examples = self.examples;
        examples.extend(self.largest_example.filter(|one| !examples.contains(one)));
        Cluster {
            column: column.map(str::to_owned),
            pattern,
            values: self.values,
            partitions: 1,
            first: partition.to_owned(),
            last: partition.to_owned(),
            segment: self.common.told(column, varied),
            net_change: self.largest.map(|_| Real(self.net.value())),
            largest_change: self.largest.map(Real),
            rows: self.rows.map(|sum| format!("{sum:032x}")),
            partition_names: is_named.then(|| partition.to_owned()).into_iter().collect(),
            examples: examples
                .into_iter()
                .map(|row| ClusterExample { partition: partition.to_owned(), row })
                .collect(),
        }
    }
}

/// Clusters of several partitions, the same ones together, the largest first.
pub(super) fn merge_clusters(clusters: Vec<Cluster>) -> Vec<Cluster> {
    let mut merged: BTreeMap<(Option<String>, Pattern), Vec<Cluster>> = BTreeMap::new();
    for cluster in clusters {
        merged.entry(cluster.key()).or_default().push(cluster);
    }
    let mut all: Vec<Cluster> = merged.into_values().filter_map(merge).collect();
    all.sort_by(|one, two| two.values.cmp(&one.values).then_with(|| one.key().cmp(&two.key())));
    all
}

fn merge(mut parts: Vec<Cluster>) -> Option<Cluster> {
    parts.sort_by(|one, two| one.first.cmp(&two.first));
    let names: BTreeSet<&String> = parts.iter().map(|part| &part.first).collect();
    let partitions = names.len() as u64;
    let mut parts = parts.into_iter();
    let mut whole = parts.next()?;
    whole.partitions = partitions;
    let mut examples = vec![std::mem::take(&mut whole.examples)];
    let mut net = FloatSum::default();
    net.add(whole.net_change.map_or(0.0, |change| change.0));
    for part in parts {
        whole.values += part.values;
        whole.last = part.last;
        whole.segment.retain(|column, value| part.segment.get(column) == Some(value));
        net.add(part.net_change.map_or(0.0, |change| change.0));
        whole.net_change = whole.net_change.or(part.net_change);
        whole.largest_change = match (whole.largest_change, part.largest_change) {
            (Some(one), Some(two)) => Some(if two.0.abs() > one.0.abs() { two } else { one }),
            (one, two) => one.or(two),
        };
        whole.partition_names.extend(part.partition_names);
        whole.rows = sum_of(whole.rows.as_deref(), part.rows.as_deref());
        examples.push(part.examples);
    }
    whole.net_change = whole.net_change.map(|_| Real(net.value()));
    whole.examples = spread(&examples);
    Some(whole)
}

/// The hashes of two sets of rows together.
fn sum_of(one: Option<&str>, two: Option<&str>) -> Option<String> {
    let number = |text: &str| u128::from_str_radix(text, 16).ok();
    let sum = number(one?)?.wrapping_add(number(two?)?);
    Some(format!("{sum:032x}"))
}

/// Some examples of each stretch of partitions.
fn spread(examples: &[Vec<ClusterExample>]) -> Vec<ClusterExample> {
    let step = examples.len().div_ceil(EXAMPLES).max(1);
    let each = (EXAMPLES / examples.len().clamp(1, EXAMPLES)).max(1);
    let chosen = examples.iter().step_by(step).flat_map(|here| here.iter().take(each));
    chosen.take(EXAMPLES).cloned().collect()
}
