//! Checks that nobody has to declare: what a change rarely means to do to the columns that it names.
//! They warn, and are silent where the spec says something about the same thing.

use super::range::{ComparedPartition, RangeFacts};
use super::{Basis, Finding};
use crate::compare::is_of;
use crate::metrics::{ColumnMetrics, Metrics};
use crate::spec::{Checks, Expect};

/// A sum that is more than this times production's, or less than its inverse, is looked at.
const SUM_FACTOR: f64 = 2.0;

/// What becomes of the columns that the change names.
pub(super) fn check_defaults(
    facts: &RangeFacts<'_>,
    declared: &Checks,
    expect: &Expect,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for column in facts.changed_columns {
        let has_claim = expect.changed_values.contains_key(column);
        let speaks_of_nulls =
            declared.null_rate.contains_key(column) || declared.rules.not_null.contains(column);
        if !(has_claim || speaks_of_nulls) {
            findings.push(became_null(facts, column));
        }
        findings.extend(became_no_number(facts, column));
        findings.push(one_value(facts, column));
        let speaks_of_sums =
            declared.sum.contains_key(column) || expect.net_change.contains_key(column);
        if !(has_claim || speaks_of_sums) {
            findings.extend(sum_moved(facts, column));
        }
    }
    findings.into_iter().map(|finding| finding.warning().on(Basis::Production)).collect()
}

/// Partitions with something to say, and the first of them.
fn where_(found: &[(&str, u64)]) -> String {
    match found {
        [] => "none".to_owned(),
        [(name, _)] => format!("in {name}"),
        [(name, _), ..] => format!("in {} partitions, first {name}", found.len()),
    }
}

fn counted(facts: &RangeFacts<'_>, count: impl Fn(&ComparedPartition<'_>) -> u64) -> (u64, String) {
    let each = facts.partitions.iter().map(|one| (one.partition, count(one)));
    let found: Vec<(&str, u64)> = each.filter(|(_, count)| *count > 0).collect();
    (found.iter().map(|(_, count)| count).sum(), where_(&found))
}

fn became_null(facts: &RangeFacts<'_>, column: &str) -> Finding {
    let (values, places) = counted(facts, |one| {
        let parts = one.diff.columns.iter().filter(|(path, _)| is_of(path, column));
        parts.map(|(_, part)| part.null_only_candidate).sum()
    });
    let observed = if values == 0 { places } else { format!("{values} values, {places}") };
    Finding::new("became-null", values == 0, "no value becomes null", observed).of_column(column)
}

fn of<'a>(metrics: &'a Metrics, column: &str) -> Option<&'a ColumnMetrics> {
    metrics.columns.get(column)
}

/// NaN and infinities where production has fewer.
fn became_no_number(facts: &RangeFacts<'_>, column: &str) -> Option<Finding> {
    let strange = |metrics: &Metrics| {
        let column = of(metrics, column)?;
        Some(column.nans? + column.infinities?)
    };
    facts.partitions.iter().find_map(|one| strange(one.metrics))?;
    let (values, places) = counted(facts, |one| {
        let before = one.production.and_then(strange).unwrap_or(0);
        strange(one.metrics).unwrap_or(0).saturating_sub(before)
    });
    let observed = if values == 0 { places } else { format!("{values} more, {places}") };
    let expected = "no more NaN and infinities than production has";
    Some(Finding::new("became-no-number", values == 0, expected, observed).of_column(column))
}

/// A column of many values that has one now: a join that found nothing, a default everywhere.
fn one_value(facts: &RangeFacts<'_>, column: &str) -> Finding {
    let many = |metrics: &Metrics| {
        of(metrics, column).is_some_and(|column| column.min.is_some() && column.min != column.max)
    };
    let (partitions, places) = counted(facts, |one| {
        let collapsed =
            one.production.is_some_and(many) && one.metrics.rows > 1 && !many(one.metrics);
        u64::from(collapsed)
    });
    let expected = "more than one value where production has more than one";
    let observed = if partitions == 0 { places } else { format!("one value only {places}") };
    Finding::new("one-value", partitions == 0, expected, observed).of_column(column)
}

fn sum_moved(facts: &RangeFacts<'_>, column: &str) -> Option<Finding> {
    let sum = |metrics: &Metrics| of(metrics, column)?.sum.as_ref()?.parse::<f64>().ok();
    facts.partitions.iter().find_map(|one| sum(one.metrics))?;
    let mut most: Option<(f64, f64)> = None;
    let (partitions, places) = counted(facts, |one| {
        let Some((before, after)) = one.production.and_then(sum).zip(sum(one.metrics)) else {
            return 0;
        };
        u64::from(before != 0.0 && !(1.0 / SUM_FACTOR..=SUM_FACTOR).contains(&(after / before)))
    });
    for one in facts.partitions {
        let sums = one.production.and_then(sum).zip(sum(one.metrics));
        if let Some((before, after)) = sums.filter(|(before, _)| *before != 0.0) {
            let size = |(before, after): (f64, f64)| (after / before).abs().ln().abs();
            if most.is_none_or(|held| size((before, after)) > size(held)) {
                most = Some((before, after));
            }
        }
    }
    let observed = match most {
        Some((before, after)) if partitions > 0 => {
            format!("more {places}; at most from {before} to {after}")
        }
        _ => "none moved farther".to_owned(),
    };
    let expected = format!("a sum within {SUM_FACTOR} times production's, up or down");
    Some(Finding::new("sum-moved", partitions == 0, expected, observed).of_column(column))
}
