//! Differences and findings as people read them.

use std::collections::BTreeMap;

use super::answer::{table, thousands};
use crate::check::{Finding, Verdict, percent};
use crate::compare::{Diff, Example};
use crate::explain::Cluster;
use crate::identity::Real;
use crate::ledger::Standing;
use crate::metrics::{Metrics, Profile};

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

/// What was measured of columns on request, over all partitions: the candidate's and production's.
pub(super) fn profiles(partitions: &[(&Metrics, Option<&Metrics>)]) -> String {
    let mut columns: BTreeMap<&String, [Option<Profile>; 2]> = BTreeMap::new();
    for (candidate, production) in partitions {
        for (side, metrics) in [Some(*candidate), *production].into_iter().enumerate() {
            for (name, column) in metrics.iter().flat_map(|metrics| &metrics.columns) {
                let Some(profile) = &column.profile else { continue };
                match &mut columns.entry(name).or_default()[side] {
                    Some(held) => held.merge(profile),
                    none => *none = Some(profile.clone()),
                }
            }
        }
    }
    if columns.is_empty() {
        return String::new();
    }
    let rows = columns.iter().flat_map(|(name, sides)| {
        let sides = sides.iter().zip(["candidate", "production"]);
        sides.filter_map(|(profile, side)| Some(profile_row(name, side, profile.as_ref()?)))
    });
    let headings = ["column", "side", "different", "5 %", "median", "95 %", "most frequent"];
    format!("profile\n{}", table(&headings, rows))
}

fn profile_row(name: &str, side: &str, profile: &Profile) -> Vec<String> {
    const MOST: usize = 3;
    let quantile = |share| {
        let value = profile.quantiles.as_ref().and_then(|quantiles| quantiles.quantile(share));
        value.map_or("-".to_owned(), |value| format!("{value:.3}"))
    };
    let top = profile.top.as_ref().map_or("too many".to_owned(), |top| {
        let each =
            top.iter().take(MOST).map(|(value, count)| format!("{value} ({})", thousands(*count)));
        each.collect::<Vec<_>>().join(", ")
    });
    vec![
        name.to_owned(),
        side.to_owned(),
        format!("about {}", Real(profile.distinct.estimate())),
        quantile(0.05),
        quantile(0.5),
        quantile(0.95),
        top,
    ]
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
    if diff.repeated_keys > 0 {
        text += &format!(
            "  {} keys occur more than once on a side: their rows pair as whole rows only\n",
            thousands(diff.repeated_keys)
        );
    }
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
