//! Differences and findings as people read them.

use std::collections::BTreeMap;

use super::answer::{table, thousands};
use crate::check::{Finding, Verdict, percent};
use crate::compare::{Diff, Example};
use crate::explain::Cluster;
use crate::identity::Real;
use crate::ledger::Standing;

/// Findings that are no pass, and how many there are of each verdict.
pub(super) fn findings(findings: &[Finding]) -> String {
    let count = |verdict: Verdict| findings.iter().filter(|one| one.verdict == verdict).count();
    let mut text = format!(
        "checks: {} passed, {} warnings, {} failed\n",
        count(Verdict::Pass),
        count(Verdict::Warn),
        count(Verdict::Fail)
    );
    const MOST: usize = 20;
    let open = findings.iter().filter(|finding| finding.verdict != Verdict::Pass);
    let all = open.clone().count();
    for finding in open.take(MOST) {
        let word = if finding.verdict == Verdict::Fail { "FAILED" } else { "warning" };
        text += &format!("  {word} {}\n", finding.line());
    }
    if all > MOST {
        text += &format!("  … and {} more\n", all - MOST);
    }
    text
}

/// What stands between a report and an approval.
pub(super) fn standing(standing: &Standing) -> String {
    let mut text = String::new();
    if !standing.failed.is_empty() {
        text += &format!("checks failed\n{}", findings(&standing.failed));
    }
    if !standing.open.is_empty() {
        text += &format!("{} discrepancies are open\n", standing.open.len());
        text += &super::ledger::listed(&standing.open);
    }
    text
}

/// A difference in numbers, columns and example rows.
pub(super) fn diff(diff: &Diff) -> String {
    let of_production =
        |rows: u64| format!("{} ({})", thousands(rows), percent(rows, diff.rows_production));
    let mut text = format!(
        "rows: {} in production, {} in the candidate\n  equal {}, changed {}, only in production {}, only in the candidate {}\n",
        thousands(diff.rows_production),
        thousands(diff.rows_candidate),
        of_production(diff.equal),
        of_production(diff.changed),
        thousands(diff.only_production),
        thousands(diff.only_candidate),
    );
    let tolerated = diff.columns.iter().filter(|(_, column)| column.tolerated > 0);
    for (name, column) in tolerated {
        let largest = column.largest_tolerated.map(|largest| format!(", by {largest} at most"));
        text += &format!(
            "  {name}: {} values are not the same and equal only by its rule{}\n",
            thousands(column.tolerated),
            largest.unwrap_or_default()
        );
    }
    let changed: Vec<_> = diff.columns.iter().filter(|(_, column)| column.changed > 0).collect();
    if !changed.is_empty() {
        let optional =
            |value: Option<Real>| value.map_or("-".to_owned(), |value| value.to_string());
        text += &table(
            &["column", "values changed", "null before", "null after", "net change", "largest"],
            changed.into_iter().map(|(name, column)| {
                vec![
                    name.clone(),
                    thousands(column.changed),
                    thousands(column.null_only_production),
                    thousands(column.null_only_candidate),
                    optional(column.net_change),
                    optional(column.largest_change),
                ]
            }),
        );
    }
    text += &examples(diff.examples.iter().take(8).map(|example| (None, example)));
    text
}

/// Rows side by side, with their partitions where they are told.
pub(super) fn examples<'a>(rows: impl Iterator<Item = (Option<&'a str>, &'a Example)>) -> String {
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let with_partition = rows.iter().any(|(partition, _)| partition.is_some());
    let headings = ["partition", "key", "production", "candidate"];
    let skipped = usize::from(!with_partition);
    let lines = rows.into_iter().map(|(partition, example)| {
        let side = |values: &Option<BTreeMap<String, String>>| {
            values.as_ref().map_or("(no such row)".to_owned(), pairs)
        };
        let cells = [
            partition.unwrap_or_default().to_owned(),
            pairs(&example.key),
            side(&example.production),
            side(&example.candidate),
        ];
        cells.into_iter().skip(skipped).collect()
    });
    format!("examples:\n{}", table(&headings[skipped..], lines))
}

/// The differences by what happened.
pub(super) fn clusters(clusters: &[Cluster]) -> String {
    if clusters.is_empty() {
        return String::new();
    }
    const MOST: usize = 20;
    let optional = |value: Option<Real>| value.map_or("-".to_owned(), |value| value.to_string());
    let rows = clusters.iter().take(MOST).map(|cluster| {
        let where_ = match cluster.partitions {
            1 => cluster.first.clone(),
            many => format!("{many} from {} to {}", cluster.first, cluster.last),
        };
        vec![
            cluster.line(),
            thousands(cluster.values),
            where_,
            optional(cluster.net_change),
            optional(cluster.largest_change),
        ]
    });
    let mut text = "what happened:\n".to_owned();
    text += &table(&["explanation", "values", "partitions", "net change", "largest"], rows);
    if clusters.len() > MOST {
        text += &format!(" … and {} more\n", clusters.len() - MOST);
    }
    text
}

fn pairs(values: &BTreeMap<String, String>) -> String {
    const MOST: usize = 6;
    let mut shown: Vec<String> =
        values.iter().take(MOST).map(|(name, value)| format!("{name}={value}")).collect();
    if values.len() > MOST {
        shown.push("…".to_owned());
    }
    shown.join(" ")
}
