//! Declared bounds on numbers of partitions, batches and the range.

use std::collections::BTreeMap;

use super::range::{ComparedPartition, RangeFacts};
use super::{Basis, Finding};
use crate::metrics::{FloatSum, Metrics};
use crate::spec::{Bound, BoundReference as Reference, Checks, Per, Quantity, Severity, Statistic};

/// Partitions that a bound is about together.
struct Group<'a> {
    partitions: Vec<&'a ComparedPartition<'a>>,
    batch: Option<usize>,
}

/// Holds every declared bound against what it is about.
pub(super) fn check_bounds(facts: &RangeFacts<'_>, declared: &Checks) -> Vec<Finding> {
    let mut findings = Vec::new();
    for bound in &declared.bound {
        for group in groups(facts, bound.per) {
            let place = |finding: Finding| match (bound.per, group.partitions.first()) {
                (Per::Partition, Some(one)) => finding.in_partition(one.partition),
                (Per::Batch, _) => finding.in_batch(group.batch.unwrap_or_default()),
                _ => finding,
            };
            findings.extend(held(bound, &group.partitions).into_iter().map(place));
        }
    }
    findings
}

fn groups<'a>(facts: &RangeFacts<'a>, per: Per) -> Vec<Group<'a>> {
    let all = facts.partitions.iter();
    match per {
        Per::Partition => all.map(|one| Group { partitions: vec![one], batch: None }).collect(),
        Per::Batch => {
            let mut batches: BTreeMap<usize, Vec<&ComparedPartition<'_>>> = BTreeMap::new();
            all.for_each(|one| batches.entry(one.batch).or_default().push(one));
            let each = batches.into_iter();
            each.map(|(batch, partitions)| Group { partitions, batch: Some(batch) }).collect()
        }
        // A part of a run need not show what the whole must.
        Per::Range if !facts.whole => Vec::new(),
        Per::Range => vec![Group { partitions: all.collect(), batch: None }],
    }
}

fn held(bound: &Bound, partitions: &[&ComparedPartition<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let candidate: Vec<&Metrics> = partitions.iter().map(|one| one.metrics).collect();
    let observed = number(&bound.of, &candidate);
    let about = match &bound.of {
        Quantity::Column(Statistic::Distinct, _) => "about ",
        _ => "",
    };
    let told = |value: Option<f64>| {
        value.map_or("no number".to_owned(), |value| format!("{about}{}", text(value)))
    };
    if bound.min.is_some() || bound.max.is_some() {
        // No number is none within bounds, unless there are no rows that could have one.
        let rows: u64 = candidate.iter().map(|metrics| metrics.rows).sum();
        let holds = !is_strange(&bound.of, &candidate)
            && observed.map_or(rows == 0, |value| {
                bound.min.is_none_or(|min| value >= min.0)
                    && bound.max.is_none_or(|max| value <= max.0)
            });
        let limits = match (bound.min, bound.max) {
            (Some(min), Some(max)) => format!("between {min} and {max}"),
            (Some(min), None) => format!("at least {min}"),
            (None, max) => format!("at most {}", max.map_or(String::new(), |max| max.to_string())),
        };
        findings.push(finding(
            bound,
            holds,
            limits.clone(),
            told(observed),
            limits,
            Basis::Declared,
        ));
    }
    if let (Some(to), Some(within)) = (bound.to, bound.within) {
        let (reference, basis, words) = reference(bound, to, partitions);
        // Only what has something to be compared with.
        let compared: Vec<&Metrics> = reference.iter().map(|(one, _)| one.metrics).collect();
        let observed = number(&bound.of, &compared);
        let production: Vec<&Metrics> =
            reference.iter().filter_map(|(one, _)| one.production).collect();
        let expected = if to == Reference::Production {
            number(&bound.of, &production)
        } else {
            together(&bound.of, reference.iter().filter_map(|(_, value)| *value).collect())
        };
        let is_rate = matches!(bound.of, Quantity::Column(Statistic::NullRate, _));
        let (holds, limits) = match (observed, expected) {
            (Some(observed), Some(expected)) => {
                let room = if is_rate { within.0 } else { within.0 * expected.abs() };
                let share = if is_rate { within.to_string() } else { format!("{within} of it") };
                let holds = if within.0 == 0.0 && to == Reference::Production {
                    // No rounding to doubles may hide a difference.
                    is_exactly(&bound.of, &reference)
                } else {
                    (observed - expected).abs() <= room
                };
                (holds, format!("{words} {}, {share} more or less", text(expected)))
            }
            (None, Some(expected)) => (false, format!("{words} {}", text(expected))),
            // Production is there and has no such number: the candidate must have none either.
            (observed, None) if !reference.is_empty() => {
                (observed.is_none(), format!("{words}: no number"))
            }
            (_, None) => (true, format!("{words} none: there is nothing to compare with")),
        };
        let told = told(observed);
        findings.push(finding(bound, holds, limits, told, format!("within {within}"), basis));
    }
    findings
}

fn finding(
    bound: &Bound,
    holds: bool,
    expected: String,
    observed: String,
    limits: String,
    basis: Basis,
) -> Finding {
    let name = match &bound.of {
        Quantity::Rows => "rows",
        Quantity::Column(statistic, _) => statistic.name(),
    };
    let finding = Finding::new(name, holds, expected, observed).bounded(basis, limits);
    let finding = match bound.of.column() {
        Some(column) => finding.of_column(column),
        None => finding,
    };
    if bound.severity == Severity::Warn { finding.warning() } else { finding }
}

/// What each partition's number must be near to, where there is such a thing.
fn reference<'a>(
    bound: &Bound,
    to: Reference,
    partitions: &[&'a ComparedPartition<'a>],
) -> (Vec<(&'a ComparedPartition<'a>, Option<Value>)>, Basis, &'static str) {
    let each = partitions.iter();
    match to {
        Reference::Production => {
            let values = each.filter_map(|one| Some((*one, value(&bound.of, one.production?))));
            (values.collect(), Basis::Production, "production's")
        }
        Reference::Plan => {
            let rows = |rows: u64| Value { sum: rows as f64, of: 1.0 };
            let values = each.filter_map(|one| Some((*one, Some(rows(one.estimated_rows?)))));
            (values.collect(), Basis::Plan, "the plan's")
        }
        Reference::History => {
            let median = |one: &ComparedPartition<'_>| {
                let before = one.history.iter().rev().take(bound.history);
                median(before.filter_map(|metrics| value(&bound.of, metrics)).collect())
            };
            // As much of the whole as the candidate's partition is.
            let weighed =
                |one: &ComparedPartition<'_>, median: Value| match value(&bound.of, one.metrics) {
                    Some(value) if value.of != 1.0 => {
                        Value { sum: median.sum * value.of, of: value.of }
                    }
                    _ => median,
                };
            let values = each
                .filter(|one| !one.history.is_empty())
                .map(|one| (*one, median(one).map(|median| weighed(one, median))));
            (values.collect(), Basis::History, "the median before,")
        }
    }
}

/// Whether each partition's number is production's, digit by digit.
fn is_exactly(of: &Quantity, partitions: &[(&ComparedPartition<'_>, Option<Value>)]) -> bool {
    partitions.iter().all(|(one, _)| {
        let Some(production) = one.production else { return false };
        let exact = |metrics: &Metrics| match of {
            Quantity::Rows => Some(metrics.rows.to_string()),
            Quantity::Column(statistic, name) => {
                let column = metrics.columns.get(name)?;
                match statistic {
                    Statistic::Sum => column.sum.clone(),
                    Statistic::Min => column.min.clone(),
                    Statistic::Max => column.max.clone(),
                    _ => value(of, metrics).map(|value| text(value.sum / value.of)),
                }
            }
        };
        exact(one.metrics) == exact(production)
    })
}

/// Whether a least or greatest value leaves out NaN, which lies within no bounds.
fn is_strange(of: &Quantity, metrics: &[&Metrics]) -> bool {
    let Quantity::Column(Statistic::Min | Statistic::Max, name) = of else { return false };
    let nans = |one: &&Metrics| one.columns.get(name).and_then(|column| column.nans);
    metrics.iter().filter_map(nans).any(|nans| nans > 0)
}

/// A number as a sum and what it is divided by, so that several go together.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Value {
    sum: f64,
    of: f64,
}

fn value(of: &Quantity, metrics: &Metrics) -> Option<Value> {
    let whole = |sum| Some(Value { sum, of: 1.0 });
    let Quantity::Column(statistic, name) = of else { return whole(metrics.rows as f64) };
    let column = metrics.columns.get(name)?;
    let parsed = |text: &Option<String>| text.as_ref()?.parse::<f64>().ok();
    match statistic {
        Statistic::NullRate => (metrics.rows > 0)
            .then_some(Value { sum: column.nulls as f64, of: metrics.rows as f64 }),
        Statistic::Sum => whole(parsed(&column.sum)?),
        Statistic::Mean => {
            let strange = column.nans.unwrap_or(0) + column.infinities.unwrap_or(0);
            let there = metrics.rows - column.nulls - strange;
            let sum = parsed(&column.sum)?;
            (there > 0).then_some(Value { sum, of: there as f64 })
        }
        Statistic::Min => whole(parsed(&column.min)?),
        Statistic::Max => whole(parsed(&column.max)?),
        Statistic::Distinct => whole(column.profile.as_ref()?.distinct.estimate()),
    }
}

fn number(of: &Quantity, metrics: &[&Metrics]) -> Option<f64> {
    if let Quantity::Column(Statistic::Distinct, name) = of {
        let sketch =
            |one: &&Metrics| Some(one.columns.get(name)?.profile.as_ref()?.distinct.clone());
        let mut sketches = metrics.iter().filter_map(sketch);
        let mut all = sketches.next()?;
        sketches.for_each(|one| all.merge(&one));
        return Some(all.estimate());
    }
    together(of, metrics.iter().filter_map(|one| value(of, one)).collect())
}

/// Several partitions' numbers as one.
fn together(of: &Quantity, values: Vec<Value>) -> Option<f64> {
    let singles = || values.iter().map(|value| value.sum / value.of);
    if values.is_empty() {
        return None;
    }
    match of {
        Quantity::Column(Statistic::Min, _) => singles().reduce(f64::min),
        Quantity::Column(Statistic::Max | Statistic::Distinct, _) => singles().reduce(f64::max),
        Quantity::Column(Statistic::NullRate | Statistic::Mean, _) => Some(
            total(values.iter().map(|value| value.sum))
                / total(values.iter().map(|value| value.of)),
        ),
        Quantity::Rows | Quantity::Column(Statistic::Sum, _) => Some(total(singles())),
    }
}

fn total(values: impl Iterator<Item = f64>) -> f64 {
    let mut sum = FloatSum::default();
    values.for_each(|value| sum.add(value));
    sum.value()
}

/// The middle one, or the middle of the two middle ones.
fn median(mut values: Vec<Value>) -> Option<Value> {
    values.sort_by(|one, two| (one.sum / one.of).total_cmp(&(two.sum / two.of)));
    let middle = |at: usize| values.get(at).map(|value| value.sum / value.of);
    let (one, two) = (middle(values.len().saturating_sub(1) / 2)?, middle(values.len() / 2)?);
    Some(Value { sum: f64::midpoint(one, two), of: 1.0 })
}

fn text(value: f64) -> String {
    crate::identity::Real(value).to_string()
}
