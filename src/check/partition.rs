//! Checks of one partition alone.

use std::collections::BTreeMap;

use super::{Basis, DomainMetrics, Finding, OutsideMetrics};
use crate::metrics::Metrics;
use crate::spec::Checks;

/// What is known of one partition.
#[derive(Debug)]
pub struct PartitionFacts<'a> {
    /// Its name.
    pub name: &'a str,
    /// The candidate's numbers.
    pub metrics: &'a Metrics,
    /// Rows outside the interval.
    pub outside: &'a OutsideMetrics,
    /// Values outside declared domains.
    pub domains: &'a BTreeMap<String, DomainMetrics>,
    /// Production's rows; none: nothing is there.
    pub production_rows: Option<u64>,
}

/// Checks one partition.
pub fn check_partition(facts: &PartitionFacts<'_>, declared: &Checks) -> Vec<Finding> {
    let mut findings = vec![coverage(facts), not_empty(facts)];
    findings.extend(keys(facts));
    let mut of_spec = rows(facts, declared);
    of_spec.extend(null_rates(facts, declared));
    of_spec.extend(ranges(facts, declared));
    of_spec.extend(domains(facts));
    findings.extend(declared.soften(of_spec));
    findings.into_iter().map(|finding| finding.in_partition(facts.name)).collect()
}

fn coverage(facts: &PartitionFacts<'_>) -> Finding {
    let observed = match facts.outside.rows {
        0 => "none".to_owned(),
        rows => format!("{rows} rows, such as {}", facts.outside.examples.join(", ")),
    };
    Finding::new(
        "interval",
        facts.outside.rows == 0,
        "no row outside the partition's interval",
        observed,
    )
}

fn not_empty(facts: &PartitionFacts<'_>) -> Finding {
    let rows = facts.metrics.rows;
    match facts.production_rows {
        Some(before) if before > 0 => Finding::new(
            "not-empty",
            rows > 0,
            format!("rows, as production has {before}"),
            format!("{rows} rows"),
        ),
        _ => Finding::new(
            "not-empty",
            true,
            "nothing: production has no rows there",
            format!("{rows} rows"),
        ),
    }
}

fn keys(facts: &PartitionFacts<'_>) -> Vec<Finding> {
    let keys = &facts.metrics.keys;
    let examples = match keys.examples.is_empty() {
        true => String::new(),
        false => format!(", such as {}", keys.examples.join("; ")),
    };
    let repeated = match keys.repeated_keys {
        0 => "none".to_owned(),
        repeated => {
            format!("{repeated} repeated keys in {} rows{examples}", keys.rows_with_repeated_keys)
        }
    };
    let nulls = match keys.rows_with_null_keys {
        0 => "none".to_owned(),
        rows => format!("{rows} rows{examples}"),
    };
    vec![
        Finding::new("unique-key", keys.repeated_keys == 0, "no repeated key", repeated),
        Finding::new(
            "key-not-null",
            keys.rows_with_null_keys == 0,
            "no null in a key column",
            nulls,
        ),
        Finding::new(
            "key-order",
            keys.out_of_order == 0,
            "rows in key order",
            format!("{} out of order", keys.out_of_order),
        ),
    ]
}

fn rows(facts: &PartitionFacts<'_>, declared: &Checks) -> Vec<Finding> {
    let Some(bounds) = declared.rows else { return Vec::new() };
    let rows = facts.metrics.rows;
    let mut findings = Vec::new();
    if let Some(min) = bounds.min {
        findings.push(
            Finding::new("rows", rows >= min, format!("at least {min}"), rows.to_string())
                .bounded(Basis::Declared, format!("at least {min}")),
        );
    }
    if let Some(max) = bounds.max {
        findings.push(
            Finding::new("rows", rows <= max, format!("at most {max}"), rows.to_string())
                .bounded(Basis::Declared, format!("at most {max}")),
        );
    }
    if let (Some(share), Some(before)) = (bounds.max_relative_change, facts.production_rows) {
        let change = rows.abs_diff(before) as f64;
        let holds = change <= share.0 * before as f64;
        let expected = format!("{before} in production, at most {share} of it more or fewer");
        let finding = Finding::new("rows", holds, expected, rows.to_string());
        findings.push(finding.bounded(Basis::Production, share.to_string()));
    }
    findings
}

fn null_rates(facts: &PartitionFacts<'_>, declared: &Checks) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, bound) in &declared.null_rate {
        let (Some(max), Some(column)) = (bound.max, facts.metrics.columns.get(name)) else {
            continue;
        };
        let holds = column.nulls as f64 <= max.0 * facts.metrics.rows as f64;
        let observed = format!("{} of {} rows", column.nulls, facts.metrics.rows);
        let finding = Finding::new("null-rate", holds, format!("at most {max} null"), observed);
        findings.push(finding.of_column(name).bounded(Basis::Declared, max.to_string()));
    }
    findings
}

fn ranges(facts: &PartitionFacts<'_>, declared: &Checks) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, bounds) in &declared.range {
        let Some(column) = facts.metrics.columns.get(name) else { continue };
        let value = |text: &Option<String>| text.as_ref().and_then(|text| text.parse::<f64>().ok());
        let nans = column.nans.unwrap_or(0);
        let sides = [
            (bounds.min, value(&column.min), "at least"),
            (bounds.max, value(&column.max), "at most"),
        ];
        for (bound, seen, words) in sides {
            let Some(bound) = bound else { continue };
            let inside = seen.is_none_or(|seen| {
                if words == "at least" { seen >= bound.0 } else { seen <= bound.0 }
            });
            let observed = match (seen, nans) {
                (_, nans) if nans > 0 => format!("{nans} values that are no number"),
                (Some(seen), _) => seen.to_string(),
                (None, _) => "no value".to_owned(),
            };
            let finding =
                Finding::new("range", inside && nans == 0, format!("{words} {bound}"), observed);
            let bound = format!("{words} {bound}");
            findings.push(finding.of_column(name).bounded(Basis::Declared, bound));
        }
    }
    findings
}

fn domains(facts: &PartitionFacts<'_>) -> Vec<Finding> {
    let each = facts.domains.iter().map(|(name, found)| {
        let observed = match found.values {
            0 => "none".to_owned(),
            values => format!("{values} values, such as {}", found.examples.join(", ")),
        };
        Finding::new("domain", found.values == 0, "no value outside the declared ones", observed)
            .of_column(name)
            .on(Basis::Declared)
    });
    each.collect()
}
