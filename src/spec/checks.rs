//! What a spec declares about its candidate and about the difference to production.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::bound::Reference;
use super::{Bound, Quantity, Rules, Sample, Statistic};
use crate::error::{Error, Result};
use crate::identity::Real;

/// Declared checks; those that need no declaration always run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Checks {
    /// Bounds on each partition's number of rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<RowBounds>,
    /// Bounds on the share of nulls, by column.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub null_rate: BTreeMap<String, NullRate>,
    /// Bounds on how a column's sum may differ from production's, over the range.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sum: BTreeMap<String, SumBounds>,
    /// The only values of a text column.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub domain: BTreeMap<String, Vec<String>>,
    /// The least and greatest values of a number column.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub range: BTreeMap<String, Bounds>,
    /// One number from the sources, the same from the candidate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub balance: Vec<Balance>,
    /// Checks that are queries for rows that should not be there.
    #[serde(skip_serializing_if = "Rules::is_empty")]
    pub rules: Rules,
    /// Bounds on numbers of partitions, batches or the range.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bound: Vec<Bound>,
    /// A sample of rows that is reconciled with a source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
    /// Columns of which more is measured: different values, quantiles, the most frequent values.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub profile: BTreeSet<String>,
    /// Declared checks whose failure only warns, by name: `rows`, `domain kind`.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub warn: BTreeSet<String>,
}

/// Bounds on a number of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RowBounds {
    /// At least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// At most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// At most this share of production's rows more or fewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_relative_change: Option<Real>,
}

/// Bounds on a share of nulls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NullRate {
    /// At most, of each partition's rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Real>,
    /// At most this much more or less than production's share, over the range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_change: Option<Real>,
}

/// Bounds on a sum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SumBounds {
    /// At most this share of production's sum more or less.
    pub max_relative_change: Real,
}

/// Bounds on values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bounds {
    /// No value is less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Real>,
    /// No value is greater.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Real>,
}

/// Two queries that must give the same single value for each partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Balance {
    /// What the balance says.
    pub name: String,
    /// Over the sources, each cut to the partition's own interval.
    pub source: String,
    /// Over the table `candidate`.
    pub candidate: String,
}

/// Claims about the difference to production, over the range.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// Rows with other values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_rows: Option<Count>,
    /// Rows only in the candidate; absent: none are expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added_rows: Option<Count>,
    /// Rows only in production; absent: none are expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed_rows: Option<Count>,
    /// By column, what must be true wherever its value changes: SQL over `production.*` and
    /// `candidate.*`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub changed_values: BTreeMap<String, String>,
    /// What must be true of every changed row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_rows_where: Option<String>,
    /// By column of numbers, bounds on the sum of all changes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub net_change: BTreeMap<String, Bounds>,
    /// Partitions in which nothing may differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub identical_partitions: Vec<String>,
}

/// Bounds on a count of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Count {
    /// At least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// At most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// At most this share of production's rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_fraction: Option<Real>,
}

impl Expect {
    /// Whether nothing is claimed.
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    pub(super) fn check(&self) -> Result<()> {
        for (name, count) in [
            ("changed_rows", self.changed_rows),
            ("added_rows", self.added_rows),
            ("removed_rows", self.removed_rows),
        ] {
            let Some(count) = count else { continue };
            ordered(name, count.min.map(|n| n as f64), count.max.map(|n| n as f64))?;
            share(name, count.max_fraction)?;
        }
        for (column, bounds) in &self.net_change {
            let name = format!("net_change.{column}");
            ordered(&name, bounds.min.map(|r| r.0), bounds.max.map(|r| r.0))?;
        }
        Ok(())
    }
}

impl Checks {
    /// The names of the declared checks, with and without their columns.
    fn names(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let mut add = |check: &str, column: &str| {
            names.insert(check.to_owned());
            names.insert(format!("{check} {column}"));
        };
        self.null_rate.keys().for_each(|column| {
            add("null-rate", column);
            add("null-rate-change", column);
        });
        self.sum.keys().for_each(|column| add("sum", column));
        self.domain.keys().for_each(|column| add("domain", column));
        self.range.keys().for_each(|column| add("range", column));
        names.extend(self.rows.map(|_| "rows".to_owned()));
        names.extend(self.balance.iter().map(|balance| format!("balance {:?}", balance.name)));
        names.extend(self.bound.iter().map(|bound| bound.of.to_string()));
        names.extend(self.rules.queries(&[]).into_iter().flatten().map(|rule| rule.name));
        names.extend(self.sample.as_ref().map(|_| "sample".to_owned()));
        names
    }

    /// The columns of which more is measured.
    pub fn profiled(&self) -> BTreeSet<String> {
        let of_bounds = self.bound.iter().filter_map(|bound| match &bound.of {
            Quantity::Column(Statistic::Distinct, column) => Some(column.clone()),
            _ => None,
        });
        self.profile.iter().cloned().chain(of_bounds).collect()
    }

    /// How many partitions before a partition its bounds are about.
    pub fn history(&self) -> usize {
        let of_history = self.bound.iter().filter(|bound| bound.to == Some(Reference::History));
        of_history.map(|bound| bound.history).max().unwrap_or(0)
    }

    pub(super) fn check(&self) -> Result<()> {
        if let Some(rows) = self.rows {
            ordered("rows", rows.min.map(|n| n as f64), rows.max.map(|n| n as f64))?;
            relative_change("rows", rows.max_relative_change)?;
        }
        for (column, sum) in &self.sum {
            relative_change(&format!("sum.{column}"), Some(sum.max_relative_change))?;
        }
        for (column, rate) in &self.null_rate {
            share(&format!("null_rate.{column}"), rate.max)?;
            share(&format!("null_rate.{column}"), rate.max_change)?;
        }
        for (column, bounds) in &self.range {
            ordered(&format!("range.{column}"), bounds.min.map(|r| r.0), bounds.max.map(|r| r.0))?;
        }
        self.bound.iter().try_for_each(Bound::check)?;
        if let Some(sample) = &self.sample {
            sample.check()?;
        }
        if let Some(rule) = self.rules.violations.iter().find(|rule| is_built_in(&rule.name)) {
            return Err(Error::invalid(format!(
                "a check of one's own cannot be called {:?}, as one that always runs",
                rule.name
            ))
            .hint("say in words what must hold"));
        }
        let declared = self.names();
        if let Some(unknown) = self.warn.iter().find(|name| !declared.contains(*name)) {
            let declared: Vec<&str> = declared.iter().map(String::as_str).collect();
            return Err(Error::invalid(format!(
                "warn names {unknown:?}, which is no declared check"
            ))
            .hint(match declared.as_slice() {
                [] => "declare a check first; what always runs cannot be weakened".to_owned(),
                names => format!("the declared checks are {}", names.join(", ")),
            }));
        }
        for (column, values) in &self.domain {
            if values.is_empty() {
                return Err(Error::invalid(format!("domain.{column} allows no value at all")));
            }
        }
        Ok(())
    }
}

/// Whether a check that nobody declares, or a claim, has this name.
fn is_built_in(name: &str) -> bool {
    const NAMES: [&str; 24] = [
        "interval",
        "not-empty",
        "unique-key",
        "key-not-null",
        "key-order",
        "coverage",
        "writer-agrees",
        "as-planned",
        "expected-rows",
        "changed-columns",
        "tolerated",
        "added-rows",
        "removed-rows",
        "changed-rows",
        "any-difference",
        "changed-values",
        "changed-rows-where",
        "net-change",
        "identical",
        "became-null",
        "became-no-number",
        "one-value",
        "sum-moved",
        "sample",
    ];
    NAMES.contains(&name)
}

fn ordered(name: &str, min: Option<f64>, max: Option<f64>) -> Result<()> {
    match (min, max) {
        (Some(min), Some(max)) if min > max => {
            Err(Error::invalid(format!("{name}: min {min} is greater than max {max}"))
                .hint("nothing could be within; exchange the two"))
        }
        _ if min.or(max).is_some_and(f64::is_nan) || max.is_some_and(f64::is_nan) => {
            Err(Error::invalid(format!("{name}: a bound is no number")).hint("write a number"))
        }
        _ => Ok(()),
    }
}

fn relative_change(name: &str, value: Option<Real>) -> Result<()> {
    match value {
        Some(value) if value.0.is_nan() || value.0 < 0.0 => Err(Error::invalid(format!(
            "{name}: max_relative_change = {value} is no share of a change"
        ))
        .hint("0 allows none, 0.05 five in a hundred, either way")),
        _ => Ok(()),
    }
}

fn share(name: &str, value: Option<Real>) -> Result<()> {
    match value {
        Some(value) if !(0.0..=1.0).contains(&value.0) => {
            Err(Error::invalid(format!("{name}: {value} is no share"))
                .hint("a share is between 0 and 1: 0.05 is five in a hundred"))
        }
        _ => Ok(()),
    }
}
