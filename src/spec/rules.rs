//! Checks that are SQL: a query that gives the rows which should not be there.
//!
//! Common ones have a shorter spelling (`pattern.COL`, `references.COL`, …), which becomes such a
//! query. A rule is a rule: whoever wrote it, its violating rows are counted and shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::identity::Real;

/// How much a violation matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The check fails.
    #[default]
    Fail,
    /// A person should look.
    Warn,
}

impl Severity {
    pub(super) fn is_fail(&self) -> bool {
        *self == Self::Fail
    }
}

/// A query that gives the violating rows of a partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Violations {
    /// What must hold, in words.
    pub name: String,
    /// One query over `candidate`, `production` and the sources; or a file of one, ending in
    /// `.sql`.
    pub sql: String,
    /// Whether a violation fails.
    #[serde(default, skip_serializing_if = "Severity::is_fail")]
    pub severity: Severity,
}

/// Each value of a column must be one of a source's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// The source.
    pub source: String,
    /// Its column; the same name when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
}

/// Bounds on a number of different values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistinctBounds {
    /// At least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// At most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}

/// Which way values go along the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// No value is less than the one before.
    Ascending,
    /// No value is greater than the one before.
    Descending,
}

/// How far a distribution may have moved from production's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drift {
    /// The population stability index at most: 0.1 is a small move, 0.25 a large one.
    pub max: Real,
}

/// Rules with a short spelling, by column.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// Columns without nulls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_null: Vec<String>,
    /// A regular expression that each text matches somewhere; `^…$` for the whole.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pattern: BTreeMap<String, String>,
    /// A source that has each value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub references: BTreeMap<String, Reference>,
    /// By source, the columns of the candidate by those of the source: each of the source's rows is in
    /// the candidate.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub contains: BTreeMap<String, BTreeMap<String, String>>,
    /// Bounds on the number of different values of a partition.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub distinct: BTreeMap<String, DistinctBounds>,
    /// Values that go one way in the order of the key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ordered: BTreeMap<String, Direction>,
    /// How long before a partition's end its newest value may be: `"2 hours"`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub freshness: BTreeMap<String, String>,
    /// How far a column's distribution may have moved from production's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub drift: BTreeMap<String, Drift>,
    /// Queries that give violating rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violations>,
}

/// Values that drift is told by, at most; rarer ones are together.
const DRIFT_VALUES: usize = 50;

impl Rules {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    /// The columns that they are about.
    pub fn columns(&self) -> impl Iterator<Item = &String> {
        self.not_null
            .iter()
            .chain(self.pattern.keys())
            .chain(self.references.keys())
            .chain(self.contains.values().flat_map(BTreeMap::keys))
            .chain(self.distinct.keys())
            .chain(self.ordered.keys())
            .chain(self.freshness.keys())
            .chain(self.drift.keys())
    }

    /// All of them as queries; `key` are the key's columns.
    ///
    /// # Errors
    /// `Invalid` for a span of time that is none.
    pub fn queries(&self, key: &[String]) -> Result<Vec<Violations>> {
        let keys: Vec<String> = key.iter().map(|name| quoted(name)).collect();
        let keys = keys.join(", ");
        let mut all = Vec::new();
        let mut add = |name: String, sql: String| {
            all.push(Violations { name, sql, severity: Severity::Fail });
        };
        for column in &self.not_null {
            let c = quoted(column);
            add(
                format!("not-null {column}"),
                format!("SELECT {keys} FROM candidate WHERE {c} IS NULL"),
            );
        }
        for (column, pattern) in &self.pattern {
            let (c, pattern) = (quoted(column), pattern.replace('\'', "''"));
            let sql = format!(
                "SELECT {keys}, {c} FROM candidate WHERE {c} IS NOT NULL AND NOT regexp_like({c}, '{pattern}')"
            );
            add(format!("pattern {column}"), sql);
        }
        for (column, reference) in &self.references {
            let c = quoted(column);
            let theirs = quoted(reference.column.as_ref().unwrap_or(column));
            let source = quoted(&reference.source);
            let sql = format!(
                "SELECT DISTINCT a.{c} FROM candidate a LEFT JOIN (SELECT DISTINCT {theirs} AS found FROM {source}) b \
                 ON a.{c} = b.found WHERE a.{c} IS NOT NULL AND b.found IS NULL"
            );
            add(format!("references {column}"), sql);
        }
        for (source, columns) in &self.contains {
            add(format!("contains {source}"), contains_sql(source, columns));
        }
        for (column, bounds) in &self.distinct {
            let c = quoted(column);
            let (min, max) =
                (bounds.min.unwrap_or(0), bounds.max.unwrap_or(i64::MAX.unsigned_abs()));
            let sql = format!(
                "SELECT * FROM (SELECT count(DISTINCT {c}) AS different FROM candidate) WHERE different < {min} OR different > {max}"
            );
            add(format!("distinct {column}"), sql);
        }
        for (column, direction) in &self.ordered {
            let c = quoted(column);
            let wrong = match direction {
                Direction::Ascending => "<",
                Direction::Descending => ">",
            };
            let sql = format!(
                "SELECT * FROM (SELECT {keys}, {c}, lag({c}) OVER (ORDER BY {keys}) AS before FROM candidate) WHERE {c} {wrong} before"
            );
            add(format!("ordered {column}"), sql);
        }
        for (column, age) in &self.freshness {
            let age = interval(column, age)?;
            let c = quoted(column);
            let sql = format!(
                "SELECT * FROM (SELECT max({c}) AS newest FROM candidate) WHERE newest IS NULL OR newest < $end - INTERVAL '{age}'"
            );
            add(format!("freshness {column}"), sql);
        }
        for (column, drift) in &self.drift {
            add(format!("drift {column}"), drift_sql(column, drift.max));
        }
        all.extend(self.violations.iter().cloned());
        Ok(all)
    }
}

/// The rows of a source whose key the candidate does not have.
fn contains_sql(source: &str, columns: &BTreeMap<String, String>) -> String {
    let theirs: Vec<String> = columns.values().map(|name| format!("s.{}", quoted(name))).collect();
    let pairs =
        columns.iter().map(|(ours, theirs)| format!("c.{} = s.{}", quoted(ours), quoted(theirs)));
    format!(
        "SELECT {theirs} FROM {source} s LEFT ANTI JOIN candidate c ON {pairs}",
        theirs = theirs.join(", "),
        source = quoted(source),
        pairs = pairs.collect::<Vec<_>>().join(" AND "),
    )
}

/// The population stability index over a column's most frequent values in production, the others
/// together: `Σ (c − p) · ln(c / p)`, with shares of at least one in ten thousand.
fn drift_sql(column: &str, max: Real) -> String {
    let c = quoted(column);
    let counts = |table: &str| format!("SELECT {c} AS v, count(*) AS n FROM {table} GROUP BY {c}");
    let least = "0.0001";
    format!(
        "WITH p AS ({production}), c AS ({candidate}), \
         frequent AS (SELECT v, n FROM p ORDER BY n DESC, v LIMIT {DRIFT_VALUES}), \
         kept AS (SELECT v FROM frequent), \
         pb AS (SELECT CASE WHEN k.v IS NOT NULL OR p.v IS NULL THEN 1 ELSE 0 END AS known, CASE WHEN k.v IS NOT NULL THEN p.v END AS v, sum(p.n) AS n \
                FROM p LEFT JOIN kept k ON p.v = k.v GROUP BY 1, 2), \
         cb AS (SELECT CASE WHEN k.v IS NOT NULL OR c.v IS NULL THEN 1 ELSE 0 END AS known, CASE WHEN k.v IS NOT NULL THEN c.v END AS v, sum(c.n) AS n \
                FROM c LEFT JOIN kept k ON c.v = k.v GROUP BY 1, 2), \
         total AS (SELECT (SELECT sum(n) FROM p) AS pn, (SELECT sum(n) FROM c) AS cn), \
         share AS (SELECT greatest(coalesce(pb.n, 0) / CAST(t.pn AS DOUBLE), {least}) AS ps, greatest(coalesce(cb.n, 0) / CAST(t.cn AS DOUBLE), {least}) AS cs \
                   FROM pb FULL JOIN cb ON pb.known = cb.known AND pb.v IS NOT DISTINCT FROM cb.v CROSS JOIN total t WHERE t.pn > 0 AND t.cn > 0) \
         SELECT * FROM (SELECT sum((cs - ps) * ln(cs / ps)) AS stability_index FROM share) WHERE stability_index > {max}",
        production = counts("production"),
        candidate = counts("candidate"),
    )
}

/// A column's name in SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A span as SQL writes it: nothing but a number and a unit.
fn interval(column: &str, text: &str) -> Result<String> {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [number, unit] = parts.as_slice() else { return Err(no_span(column, text)) };
    let known = ["minute", "hour", "day", "week", "month"];
    let unit = unit.strip_suffix('s').unwrap_or(unit);
    if number.parse::<u32>().is_err() || !known.contains(&unit) {
        return Err(no_span(column, text));
    }
    Ok(format!("{number} {unit}"))
}

fn no_span(column: &str, text: &str) -> Error {
    Error::invalid(format!("checks.freshness.{column}: {text:?} is no span of time"))
        .hint("write \"2 hours\", \"1 day\"")
}
