//! Checks over a whole candidate: coverage, expected differences, balances, totals.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::bounds::check_bounds;
use super::defaults::check_defaults;
use super::expected::check_expectations;
use super::{Basis, ClaimTallies, Finding};
use crate::compare::{Diff, Equality};
use crate::metrics::Metrics;
use crate::spec::{Checks, Expect};

/// What is known of one partition of the range.
#[derive(Debug)]
pub struct ComparedPartition<'a> {
    /// Its name.
    pub partition: &'a str,
    /// Its batch, counted from 1.
    pub batch: usize,
    /// What the stored bytes say.
    pub metrics: &'a Metrics,
    /// What the writer recorded.
    pub recorded: &'a Metrics,
    /// Production's rows when planned; none: nothing was there.
    pub planned_rows: Option<u64>,
    /// Production's numbers; none: nothing is there.
    pub production: Option<&'a Metrics>,
    /// The difference to production.
    pub diff: &'a Diff,
    /// Each balance's two values, as text, in the order declared.
    pub balances: &'a [(String, String)],
    /// What became of the claims about each difference.
    pub claims: &'a ClaimTallies,
    /// Rows that the plan expects to read; none: it does not say.
    pub estimated_rows: Option<u64>,
    /// Production's partitions before it, the nearest last.
    pub history: &'a [Arc<Metrics>],
}

/// What is known of the range.
#[derive(Debug)]
pub struct RangeFacts<'a> {
    /// Every planned partition's name.
    pub planned: &'a [String],
    /// Those with a result.
    pub partitions: &'a [ComparedPartition<'a>],
    /// Whether this is the whole run, about which the expectations speak.
    pub whole: bool,
    /// The only columns that may differ.
    pub changed_columns: &'a BTreeSet<String>,
    /// When values are equal.
    pub compare: &'a Equality,
}

/// Checks a range.
pub fn check_range(facts: &RangeFacts<'_>, declared: &Checks, expect: &Expect) -> Vec<Finding> {
    let total = total_diff(facts);
    let mut findings = vec![coverage(facts)];
    findings.extend(facts.partitions.iter().map(agreement));
    findings.extend(facts.partitions.iter().map(planned));
    findings.extend(check_expectations(facts, &total, expect));
    findings.extend(check_defaults(facts, declared, expect));
    let mut of_spec = check_bounds(facts, declared);
    of_spec.extend(balances(facts, declared));
    of_spec.extend(null_rate_changes(facts, declared));
    of_spec.extend(sum_changes(facts, declared));
    // What nobody declared is not weakened by any name.
    findings.extend(declared.soften(of_spec));
    findings
}

/// The difference over the range.
fn total_diff(facts: &RangeFacts<'_>) -> Diff {
    let mut total = Diff::default();
    facts.partitions.iter().for_each(|partition| total.merge(partition.diff));
    total
}

fn coverage(facts: &RangeFacts<'_>) -> Finding {
    let present: BTreeSet<&str> = facts.partitions.iter().map(|facts| facts.partition).collect();
    let missing: Vec<&str> =
        facts.planned.iter().map(String::as_str).filter(|name| !present.contains(name)).collect();
    let observed = match missing.as_slice() {
        [] => format!("{} of {}", present.len(), facts.planned.len()),
        [first, ..] => format!("{} missing, first {first}", missing.len()),
    };
    Finding::new("coverage", missing.is_empty(), "a result for every planned partition", observed)
        .on(Basis::Plan)
}

fn agreement(facts: &ComparedPartition<'_>) -> Finding {
    let stored = facts.metrics.plain();
    let holds = &stored == facts.recorded;
    let observed =
        if holds { "the same".to_owned() } else { disagreement(&stored, facts.recorded) };
    Finding::new("writer-agrees", holds, "the stored bytes say what the writer recorded", observed)
        .in_partition(facts.partition)
        .on(Basis::Writer)
}

/// Production has, and lacks, what it had and lacked when planned.
fn planned(facts: &ComparedPartition<'_>) -> Finding {
    let words = |rows: Option<u64>| match rows {
        Some(rows) => format!("{rows} rows"),
        None => "nothing there".to_owned(),
    };
    let now = facts.production.map(|metrics| metrics.rows);
    // More or fewer rows are a matter of the comparison; coming and going is not.
    let holds = facts.planned_rows.is_some() == now.is_some();
    let expected = format!("production as planned: {}", words(facts.planned_rows));
    Finding::new("as-planned", holds, expected, words(now))
        .in_partition(facts.partition)
        .on(Basis::Plan)
}

fn disagreement(stored: &Metrics, recorded: &Metrics) -> String {
    let version = |metrics: &Metrics| metrics.content.split(':').next().map(str::to_owned);
    if version(stored) != version(recorded) {
        return format!(
            "content {} stored, {} recorded: another release wrote this candidate; plan and run \
             again",
            stored.content, recorded.content
        );
    }
    if stored.rows != recorded.rows {
        return format!("{} rows stored, {} recorded", stored.rows, recorded.rows);
    }
    let column =
        stored.columns.iter().find(|(name, metrics)| recorded.columns.get(*name) != Some(metrics));
    match column {
        Some((name, metrics)) => {
            format!("column {name}: stored {metrics:?}, recorded {:?}", recorded.columns.get(name))
        }
        None => format!("content {} stored, {} recorded", stored.content, recorded.content),
    }
}

fn balances(facts: &RangeFacts<'_>, declared: &Checks) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, balance) in declared.balance.iter().enumerate() {
        for partition in facts.partitions {
            let Some((source, candidate)) = partition.balances.get(number) else { continue };
            let name = format!("balance {:?}", balance.name);
            let finding = Finding::new(
                &name,
                source == candidate,
                format!("{source}, as the sources give"),
                candidate,
            );
            findings.push(finding.in_partition(partition.partition).on(Basis::Sources));
        }
    }
    findings
}

fn null_rate_changes(facts: &RangeFacts<'_>, declared: &Checks) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, bound) in &declared.null_rate {
        let Some(most) = bound.max_change else { continue };
        let (mut before, mut rows_before, mut after, mut rows_after) = (0, 0, 0, 0);
        for partition in facts.partitions {
            let Some(production) = partition.production else { continue };
            let nulls =
                |metrics: &Metrics| metrics.columns.get(name).map_or(0, |column| column.nulls);
            (before, rows_before) = (before + nulls(production), rows_before + production.rows);
            (after, rows_after) =
                (after + nulls(partition.metrics), rows_after + partition.metrics.rows);
        }
        let share =
            |nulls: u64, rows: u64| if rows == 0 { 0.0 } else { nulls as f64 / rows as f64 };
        let change = (share(after, rows_after) - share(before, rows_before)).abs();
        let expected = format!(
            "a share of nulls at most {most} away from production's {before} of {rows_before}"
        );
        let finding = Finding::new(
            "null-rate-change",
            change <= most.0,
            expected,
            format!("{after} of {rows_after}"),
        );
        findings.push(finding.of_column(name).bounded(Basis::Production, most.to_string()));
    }
    findings
}

fn sum_changes(facts: &RangeFacts<'_>, declared: &Checks) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, bound) in &declared.sum {
        let mut sides = (Vec::new(), Vec::new());
        for partition in facts.partitions {
            let Some(production) = partition.production else { continue };
            let sum =
                |metrics: &Metrics| metrics.columns.get(name).and_then(|column| column.sum.clone());
            sides.0.extend(sum(production));
            sides.1.extend(sum(partition.metrics));
        }
        let (before, after) = (sum_of(&sides.0), sum_of(&sides.1));
        let holds = if bound.max_relative_change.0 == 0.0 {
            // Exactly equal sums of each partition: no rounding can hide a difference.
            sides.0 == sides.1
        } else {
            (after - before).abs() <= bound.max_relative_change.0 * before.abs()
        };
        let expected =
            format!("{before}, at most {} of it more or less", bound.max_relative_change);
        let finding = Finding::new("sum", holds, expected, after.to_string()).of_column(name);
        findings.push(finding.bounded(Basis::Production, bound.max_relative_change.to_string()));
    }
    findings
}

fn sum_of(texts: &[String]) -> f64 {
    let mut sum = crate::metrics::FloatSum::default();
    texts.iter().filter_map(|text| text.parse().ok()).for_each(|value| sum.add(value));
    sum.value()
}
