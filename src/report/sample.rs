//! A sample of a candidate's rows, reconciled with a source.

use std::collections::BTreeSet;

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use futures::StreamExt as _;

use super::look::Checker;
use super::violations::row_text;
use crate::check::Finding;
use crate::error::{ErrorKind, Result, from_engine};
use crate::plan::PlannedPartition;
use crate::query::{Query, Session};
use crate::spec::Sample;

/// Rows that are shown.
const EXAMPLES: usize = 5;

/// What became of the chosen rows.
#[derive(Debug, Default)]
struct Reconciled {
    rows: u64,
    lost: u64,
    wrong: u64,
    examples: Vec<String>,
    seen: BTreeSet<String>,
    wrong_keys: BTreeSet<String>,
}

impl Checker {
    /// Reconciles a sample of a partition.
    pub(super) async fn sample(
        &self,
        session: &Session,
        sample: &Sample,
        partition: &PlannedPartition,
    ) -> Result<Finding> {
        let query = Query::parse(&sample.query(&self.plan.decides.key), "checks.sample")?;
        let parameters = self.plan.parameters_of(&partition.interval)?;
        let mut stream = session.run(&query, &parameters, &[]).await?;
        let mut found = Reconciled::default();
        while let Some(batch) = stream.next().await {
            found.see(&batch.map_err(|error| {
                from_engine(ErrorKind::Failed, "the sample's query failed", error)
                    .with("check", "checks.sample")
            })?);
        }
        Ok(found.finding(sample, &partition.interval.name))
    }
}

impl Reconciled {
    fn see(&mut self, batch: &RecordBatch) {
        let keys = batch.num_columns().saturating_sub(2);
        let (is_found, is_right) =
            (batch.column(keys).as_boolean(), batch.column(keys + 1).as_boolean());
        let key: Vec<usize> = (0..keys).collect();
        let Ok(key) = batch.project(&key) else { return };
        for row in 0..batch.num_rows() {
            let key = row_text(&key, row);
            // A source may have several rows of a key: each must be as expected.
            let is_new = self.seen.insert(key.clone());
            self.rows += u64::from(is_new);
            if self.wrong_keys.contains(&key) {
                continue;
            }
            let is_right = is_right.is_valid(row) && is_right.value(row);
            let what = match (is_found.value(row), is_right) {
                (true, true) => continue,
                (false, _) => {
                    self.lost += 1;
                    "is not in the source"
                }
                (true, false) => {
                    self.wrong += 1;
                    "is not as expected"
                }
            };
            if self.examples.len() < EXAMPLES {
                self.examples.push(format!("{key} {what}"));
            }
            self.wrong_keys.insert(key);
        }
    }

    fn finding(&self, sample: &Sample, partition: &str) -> Finding {
        let observed = match self.lost + self.wrong {
            0 => format!("true of all {} rows", self.rows),
            _ => format!(
                "of {} rows {} not in the source and {} not as expected, such as {}",
                self.rows,
                self.lost,
                self.wrong,
                self.examples.join("; ")
            ),
        };
        let holds = self.lost + self.wrong == 0;
        Finding::of_sample(partition, holds, &sample.expect, &sample.source, observed)
    }
}
