//! A sample of a candidate's rows that is reconciled with a source, row by row.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::rules::quoted;
use crate::error::{Error, Result};

/// Which rows are reconciled with what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// The source.
    pub source: String,
    /// The source's columns that tell which of its rows a candidate's row comes from, by the
    /// candidate's column: `id = "order_id"`.
    pub key: BTreeMap<String, String>,
    /// What must be true of both: SQL over `candidate.*` and `source.*`.
    pub expect: String,
    /// How many rows of each stratum of each partition.
    #[serde(default = "hundred")]
    pub rows: u32,
    /// The columns by whose values rows are in strata; none: each partition is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// Which rows are chosen: another number, other rows.
    #[serde(default)]
    pub seed: u32,
}

fn hundred() -> u32 {
    100
}

impl Sample {
    pub(super) fn check(&self) -> Result<()> {
        if self.key.is_empty() {
            return Err(Error::invalid("checks.sample.key names no column").hint(
                "write key = { id = \"order_id\" }: the candidate's column and the source's",
            ));
        }
        if self.rows == 0 || self.expect.trim().is_empty() {
            return Err(Error::invalid("checks.sample asks for no row, or expects nothing")
                .hint("write rows = 100 and expect = \"candidate.amount = source.amount\""));
        }
        Ok(())
    }

    /// The query for the chosen rows: the candidate's key, whether a source's row was found, and
    /// whether what is expected of both is true; null is not.
    ///
    /// Which rows are chosen follows from a hash of the seed and the rows' keys (`key`: the dataset's), so it is the same
    /// whatever the order of rows.
    pub fn query(&self, key: &[String]) -> String {
        let ours = |name: &String| format!("candidate.{}", quoted(name));
        let keys: Vec<String> = self.key.keys().map(ours).collect();
        // The rows' own key too, or rows of one source row would be chosen by their order.
        let ranked: BTreeSet<&String> = self.key.keys().chain(key).collect();
        let texts: Vec<String> = ranked
            .into_iter()
            .map(|name| format!("coalesce(arrow_cast({}, 'Utf8'), '')", quoted(name)))
            .collect();
        let strata: Vec<String> = self.by.iter().map(|name| quoted(name)).collect();
        let partition = if strata.is_empty() {
            String::new()
        } else {
            format!("PARTITION BY {}", strata.join(", "))
        };
        let joined: Vec<String> = self
            .key
            .iter()
            .map(|(name, theirs)| format!("{} = source.{}", ours(name), quoted(theirs)))
            .collect();
        let found = self.key.values().next().map_or(String::new(), |theirs| quoted(theirs));
        format!(
            "SELECT {keys}, source.{found} IS NOT NULL AS is_found, ({expect}\n) AS is_right \
             FROM (SELECT * FROM (SELECT *, row_number() OVER ({partition} ORDER BY {RANK}(concat_ws('|', '{seed}', {texts}))) \
             AS {PLACE} FROM candidate) WHERE {PLACE} <= {rows}) candidate LEFT JOIN {source} source ON {joined}",
            keys = keys.join(", "),
            expect = self.expect,
            seed = self.seed,
            texts = texts.join(", "),
            rows = self.rows,
            source = quoted(&self.source),
            joined = joined.join(" AND "),
        )
    }
}

/// The function that puts rows in an order that means nothing.
pub(crate) const RANK: &str = "reissue_sample_rank";

/// The column with a row's place in that order.
const PLACE: &str = "\"\u{1}place\"";
