//! Checks that are SQL: the rows that a query gives should not be there.

use arrow::array::RecordBatch;
use futures::StreamExt as _;

use super::look::Checker;
use super::production_table;
use crate::check::Finding;
use crate::error::{ErrorKind, Result, from_engine};
use crate::metrics::value_text;
use crate::plan::PlannedPartition;
use crate::query::{Parameters, Query, Session, SessionOptions};
use crate::run::Record;
use crate::spec::{Severity, Violations};

/// Violating rows that are shown.
const EXAMPLES: usize = 5;

impl Checker {
    /// Runs every rule over a partition, and reconciles its sample.
    pub(super) async fn violations(
        &self,
        partition: &PlannedPartition,
        record: &Record,
    ) -> Result<Vec<Finding>> {
        let decides = &self.plan.decides;
        let rules = decides.checks.rules.queries(&decides.key)?;
        let sample = decides.checks.sample.as_ref();
        if rules.is_empty() && sample.is_none() {
            return Ok(Vec::new());
        }
        let bytes = usize::try_from(self.plan.terms.limits.memory.as_u64()).unwrap_or(usize::MAX);
        let options = SessionOptions {
            memory: Some(SessionOptions::pool(bytes)),
            spill: Some(self.options.spill.clone()),
            ..SessionOptions::default()
        };
        let session = Session::new(&options)?;
        for (name, source) in &decides.sources {
            let table = self.plan.source_table(&self.stores, source, &partition.interval, true)?;
            session.register(name, table)?;
        }
        let current = self.production.at(partition.interval.start);
        let before = current.map(|current| current.files.as_slice()).unwrap_or_default();
        for (name, files) in [("candidate", record.files.as_slice()), ("production", before)] {
            let files = [(&partition.interval, files)];
            let table = production_table(&self.dataset, &decides.definition, &files).await?;
            session.register(name, table)?;
        }
        let parameters = self.plan.parameters_of(&partition.interval)?;
        let mut findings = Vec::new();
        for rule in &rules {
            let found = violating(&session, rule, &parameters).await;
            let (rows, examples) = found.map_err(|error| error.with("check", &rule.name))?;
            findings.push(finding(rule, &partition.interval.name, rows, &examples));
        }
        if let Some(sample) = sample {
            findings.push(self.sample(&session, sample, partition).await?);
        }
        Ok(findings)
    }
}

/// How many rows a rule's query gives, and some of them.
async fn violating(
    session: &Session,
    rule: &Violations,
    parameters: &Parameters,
) -> Result<(u64, Vec<String>)> {
    let query = Query::parse(&rule.sql, &rule.name)?;
    let mut stream = session.run(&query, parameters, &[]).await?;
    let (mut rows, mut examples) = (0, Vec::new());
    while let Some(batch) = stream.next().await {
        let batch = batch
            .map_err(|error| from_engine(ErrorKind::Failed, "a check's query failed", error))?;
        rows += batch.num_rows() as u64;
        let room = EXAMPLES.saturating_sub(examples.len());
        examples.extend((0..batch.num_rows().min(room)).map(|row| row_text(&batch, row)));
    }
    Ok((rows, examples))
}

pub(super) fn row_text(batch: &RecordBatch, row: usize) -> String {
    let schema = batch.schema();
    let cells = schema.fields().iter().zip(batch.columns());
    let cells = cells.map(|(field, array)| format!("{}={}", field.name(), value_text(array, row)));
    cells.collect::<Vec<_>>().join(" ")
}

fn finding(rule: &Violations, partition: &str, rows: u64, examples: &[String]) -> Finding {
    let observed = match rows {
        0 => "none".to_owned(),
        rows => format!("{rows}, such as {}", examples.join("; ")),
    };
    Finding::of_rule(&rule.name, partition, rows == 0, rule.severity == Severity::Warn, observed)
}
