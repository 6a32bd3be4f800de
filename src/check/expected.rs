//! What a spec expects of the difference to production.

use std::collections::BTreeMap;

use super::range::RangeFacts;
use super::{Basis, ClaimTallies, Finding, percent};
use crate::compare::{ColumnDiff, Diff, is_of};
use crate::identity::Real;
use crate::spec::{Count, Expect};

/// Holds a candidate's difference against the expectations.
pub(super) fn check_expectations(
    facts: &RangeFacts<'_>,
    total: &Diff,
    expect: &Expect,
) -> Vec<Finding> {
    let mut findings = expected_rows(facts, expect);
    findings.extend(changed_columns(facts));
    findings.extend(tolerated(facts, total));
    let new = facts.partitions.iter().filter(|partition| partition.production.is_none());
    let new_rows = new.map(|partition| partition.diff.only_candidate).sum();
    findings.extend(row_claims(total, new_rows, expect, facts.whole));
    findings.push(difference(total, expect, facts.whole));
    findings.extend(value_claims(facts));
    findings.extend(net_changes(total, expect, facts.whole));
    findings.extend(identical(facts, expect));
    findings.into_iter().map(|finding| finding.on(Basis::Production)).collect()
}

/// Rows per partition and per batch against what production has, give or take what is allowed.
fn expected_rows(facts: &RangeFacts<'_>, expect: &Expect) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut batches: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for partition in facts.partitions {
        let Some(production) = partition.production else { continue };
        let (before, after) = (production.rows, partition.metrics.rows);
        findings.push(rows_finding(before, after, expect).in_partition(partition.partition));
        let sums = batches.entry(partition.batch).or_default();
        (sums.0, sums.1) = (sums.0 + before, sums.1 + after);
    }
    for (batch, (before, after)) in batches {
        findings.push(rows_finding(before, after, expect).in_batch(batch));
    }
    findings
}

fn rows_finding(before: u64, after: u64, expect: &Expect) -> Finding {
    let may_grow = expect.added_rows.is_some_and(|count| count.max != Some(0));
    let may_shrink = expect.removed_rows.is_some_and(|count| count.max != Some(0));
    let holds = (after <= before || may_grow) && (after >= before || may_shrink);
    let words = match (may_grow, may_shrink) {
        (false, false) => format!("{before}, as production has"),
        (true, false) => format!("{before} or more"),
        (false, true) => format!("{before} or fewer"),
        (true, true) => "any number, rows may come and go".to_owned(),
    };
    Finding::new("expected-rows", holds, words, after.to_string())
}

/// Only the columns that the change names may differ.
fn changed_columns(facts: &RangeFacts<'_>) -> Vec<Finding> {
    let mut unexpected: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for partition in facts.partitions {
        for (name, column) in &partition.diff.columns {
            let is_named = facts.changed_columns.iter().any(|named| is_of(name, named));
            if column.changed > 0 && !is_named {
                let held = unexpected.entry(name).or_insert((0, partition.partition));
                held.0 += column.changed;
            }
        }
    }
    let names: Vec<&str> = facts.changed_columns.iter().map(String::as_str).collect();
    let expected = format!("changes only in {}", names.join(", "));
    if unexpected.is_empty() {
        return vec![Finding::new("changed-columns", true, expected, "no other column differs")];
    }
    let each = unexpected.into_iter().map(|(name, (values, first))| {
        let observed = format!("{values} values differ, first in {first}");
        Finding::new("changed-columns", false, expected.clone(), observed).of_column(name)
    });
    each.collect()
}

/// What is equal only because a rule says so is told, and of a column that may not change a person
/// should look at it.
fn tolerated(facts: &RangeFacts<'_>, total: &Diff) -> Vec<Finding> {
    let each = facts.compare.0.iter().map(|(name, rule)| {
        let none = ColumnDiff::default();
        let found = total.columns.get(name).unwrap_or(&none);
        let observed = match (found.tolerated, found.largest_tolerated) {
            (0, _) => "no value is equal only by this rule".to_owned(),
            (values, None) => format!("{values} values are not the same"),
            (values, Some(largest)) => {
                format!("{values} values are not the same, the largest difference is {largest}")
            }
        };
        let is_named = facts.changed_columns.iter().any(|named| is_of(name, named));
        let holds = found.tolerated == 0 || is_named;
        let expected = format!("values equal within {rule}");
        Finding::new("tolerated", holds, expected, observed).of_column(name).warning()
    });
    each.collect()
}

fn row_claims(total: &Diff, new_rows: u64, expect: &Expect, whole: bool) -> Vec<Finding> {
    let none = Count { max: Some(0), ..Count::default() };
    let mut findings = Vec::new();
    // Rows of partitions that production does not have are what the plan says.
    let added = total.only_candidate - new_rows;
    let claims = [
        ("added-rows", Some(expect.added_rows.unwrap_or(none)), added),
        ("removed-rows", Some(expect.removed_rows.unwrap_or(none)), total.only_production),
        ("changed-rows", expect.changed_rows, total.changed),
    ];
    for (name, claim, rows) in claims {
        let Some(claim) = claim else { continue };
        let share = percent(rows, total.rows_production);
        let observed = format!("{rows} rows ({share} of production)");
        // Claims are about the whole run: a part of it need not show what the whole must, and a
        // day may change more than its share. What is too much already is too much for the whole.
        if let Some(min) = claim.min.filter(|_| whole) {
            findings.push(Finding::new(
                name,
                rows >= min,
                format!("at least {min}"),
                observed.clone(),
            ));
        }
        if let Some(max) = claim.max {
            findings.push(Finding::new(
                name,
                rows <= max,
                format!("at most {max}"),
                observed.clone(),
            ));
        }
        if let Some(fraction) = claim.max_fraction.filter(|_| whole) {
            let holds = rows as f64 <= fraction.0 * total.rows_production as f64;
            let expected = format!("at most {fraction} of production's rows");
            findings.push(Finding::new(name, holds, expected, observed));
        }
    }
    findings
}

/// A candidate equal to production is suspicious: the fix may have done nothing.
fn difference(total: &Diff, expect: &Expect, whole: bool) -> Finding {
    let observed = format!(
        "{} changed, {} only in the candidate, {} only in production",
        total.changed, total.only_candidate, total.only_production
    );
    let finding = Finding::new(
        "any-difference",
        !total.is_empty(),
        "some difference to production",
        observed,
    );
    let claims_some = expect.changed_rows.is_some_and(|count| count.min.is_some_and(|min| min > 0));
    if claims_some && whole { finding } else { finding.warning() }
}

/// What must be true of each changed value or row.
fn value_claims(facts: &RangeFacts<'_>) -> Vec<Finding> {
    let mut totals = ClaimTallies::new();
    for partition in facts.partitions {
        for (name, tally) in partition.claims {
            let total = totals.entry(name.clone()).or_default();
            total.sql.clone_from(&tally.sql);
            total.all += tally.all;
            total.refuted += tally.refuted;
            let told = tally.examples.iter().map(|one| format!("{one} in {}", partition.partition));
            let room = CLAIM_EXAMPLES.saturating_sub(total.examples.len());
            total.examples.extend(told.take(room));
        }
    }
    let each = totals.into_iter().map(|(column, total)| {
        let what = if column.is_empty() { "rows" } else { "values" };
        let expected = format!("of every changed one: {}", total.sql);
        let observed = match total.refuted {
            0 => format!("true of all {} {what} that changed", total.all),
            refuted => format!(
                "not true of {refuted} of {} {what} that changed, such as {}",
                total.all,
                total.examples.join("; ")
            ),
        };
        let name = if column.is_empty() { "changed-rows-where" } else { "changed-values" };
        let finding = Finding::new(name, total.refuted == 0, expected, observed);
        if column.is_empty() { finding } else { finding.of_column(&column) }
    });
    each.collect()
}

/// Examples told of a refuted claim.
const CLAIM_EXAMPLES: usize = 3;

/// The sum of all changes of a column, over the whole run.
fn net_changes(total: &Diff, expect: &Expect, whole: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (column, bounds) in expect.net_change.iter().filter(|_| whole) {
        let none = ColumnDiff::default();
        let found = total.columns.get(column).unwrap_or(&none);
        let net = found.net_change.map_or(0.0, |net| net.0);
        // A null or NaN that comes or goes changes the sum by nobody knows how much.
        let unmeasured = found.changed - found.measured;
        let holds = unmeasured == 0
            && bounds.min.is_none_or(|min| net >= min.0)
            && bounds.max.is_none_or(|max| net <= max.0);
        let observed = match unmeasured {
            0 => net.to_string(),
            some => format!("{net}, and {some} changed values that are no number on one side"),
        };
        let side = |bound: Option<Real>, none: &str| {
            bound.map_or(none.to_owned(), |bound| bound.to_string())
        };
        let expected = format!(
            "all changes together between {} and {}",
            side(bounds.min, "anything"),
            side(bounds.max, "anything")
        );
        let finding = Finding::new("net-change", holds, expected, observed);
        findings.push(finding.of_column(column));
    }
    findings
}

/// Partitions in which nothing may differ.
fn identical(facts: &RangeFacts<'_>, expect: &Expect) -> Vec<Finding> {
    let named = |name: &str| expect.identical_partitions.iter().any(|one| one == name);
    let each = facts.partitions.iter().filter(|one| named(one.partition)).map(|one| {
        let diff = one.diff;
        let observed = format!(
            "{} changed, {} only in the candidate, {} only in production",
            diff.changed, diff.only_candidate, diff.only_production
        );
        Finding::new("identical", diff.is_empty(), "no difference", observed)
            .in_partition(one.partition)
    });
    each.collect()
}
