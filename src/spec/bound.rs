//! Bounds on a number of a partition, a batch or the whole range.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::Severity;
use crate::error::{Error, Result};
use crate::identity::Real;

/// A number that must lie within bounds: absolute ones, or near what something else says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// Which number.
    pub of: Quantity,
    /// Of what.
    #[serde(default)]
    pub per: Per,
    /// It is not less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Real>,
    /// It is not greater.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Real>,
    /// What it must be near to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Reference>,
    /// How near: this share of it more or less; of null rates, this much more or less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Real>,
    /// How many partitions before are its history.
    #[serde(default = "month", skip_serializing_if = "is_month")]
    pub history: usize,
    /// Whether it fails or only warns.
    #[serde(default, skip_serializing_if = "Severity::is_fail")]
    pub severity: Severity,
}

fn month() -> usize {
    28
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_month(partitions: &usize) -> bool {
    *partitions == month()
}

/// A number that is bounded: `rows`, `null-rate COL`, `sum COL`, `mean COL`, `min COL`, `max COL`,
/// `distinct COL`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Quantity {
    /// How many rows.
    Rows,
    /// One of a column's.
    Column(Statistic, String),
}

/// A number of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// The share of nulls.
    NullRate,
    /// The sum.
    Sum,
    /// The mean of the values that are there.
    Mean,
    /// The least number.
    Min,
    /// The greatest number.
    Max,
    /// How many different values, by estimate.
    Distinct,
}

const STATISTICS: [(Statistic, &str); 6] = [
    (Statistic::NullRate, "null-rate"),
    (Statistic::Sum, "sum"),
    (Statistic::Mean, "mean"),
    (Statistic::Min, "min"),
    (Statistic::Max, "max"),
    (Statistic::Distinct, "distinct"),
];

impl Statistic {
    /// Its name.
    pub fn name(self) -> &'static str {
        STATISTICS.into_iter().find(|(one, _)| *one == self).map_or("", |(_, name)| name)
    }
}

impl Quantity {
    /// Its column.
    pub fn column(&self) -> Option<&String> {
        match self {
            Self::Rows => None,
            Self::Column(_, column) => Some(column),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows => f.write_str("rows"),
            Self::Column(statistic, column) => write!(f, "{} {column}", statistic.name()),
        }
    }
}

impl FromStr for Quantity {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if text == "rows" {
            return Ok(Self::Rows);
        }
        let known = text.split_once(' ').and_then(|(name, column)| {
            let found = STATISTICS.into_iter().find(|(_, known)| *known == name)?;
            Some(Self::Column(found.0, column.trim().to_owned()))
        });
        known.filter(|one| one.column().is_some_and(|column| !column.is_empty())).ok_or_else(|| {
            let names: Vec<String> =
                STATISTICS.iter().map(|(_, name)| format!("\"{name} COLUMN\"")).collect();
            format!("{text:?} is no number to bound; write \"rows\", {}", names.join(", "))
        })
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// What a bound is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Per {
    /// Each partition.
    #[default]
    Partition,
    /// Each batch.
    Batch,
    /// The whole range.
    Range,
}

/// What a number is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// Production's number of the same partitions.
    Production,
    /// The rows that the plan expects to read.
    Plan,
    /// The median of production's partitions before.
    History,
}

impl Bound {
    pub(super) fn check(&self) -> Result<()> {
        let name = format!("checks.bound of {:?}", self.of.to_string());
        let wrong = |what: &str, hint: &str| {
            Err(Error::invalid(format!("{name}: {what}")).hint(hint.to_owned()))
        };
        if self.to.is_some() != self.within.is_some() {
            return wrong(
                "to and within belong together",
                "write to = \"production\" and within = 0.05",
            );
        }
        if self.min.is_none() && self.max.is_none() && self.to.is_none() {
            return wrong("nothing is bounded", "write min, max, or to and within");
        }
        if self.within.is_some_and(|within| !(within.0 >= 0.0 && within.0.is_finite())) {
            return wrong("within is no share", "a share is 0 or more: 0.05 is five in a hundred");
        }
        if let (Some(min), Some(max)) = (self.min, self.max)
            && min.0 > max.0
        {
            return wrong(&format!("min {min} is greater than max {max}"), "exchange them");
        }
        if self.to == Some(Reference::Plan) && self.of != Quantity::Rows {
            return wrong(
                "the plan expects rows, and nothing else",
                "bound rows, or compare with production",
            );
        }
        if [self.min, self.max].into_iter().flatten().any(|bound| bound.0.is_nan()) {
            return wrong("a bound is no number", "write a number");
        }
        let is_distinct = matches!(self.of, Quantity::Column(Statistic::Distinct, _));
        if is_distinct && self.to == Some(Reference::History) && self.per != Per::Partition {
            return wrong(
                "partitions' different values cannot be added up",
                "write per = \"partition\", or compare with production",
            );
        }
        if self.history == 0 {
            return wrong("history is no partition", "write history = 28, or leave it out");
        }
        Ok(())
    }
}
