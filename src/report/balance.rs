//! Balances: one number from the sources, the same from the candidate.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use futures::TryStreamExt as _;

use super::look::Checker;
use super::production_table;
use crate::error::{Error, ErrorKind, Result, from_engine};
use crate::plan::PlannedPartition;
use crate::query::{PinnedTable, Query, Session, SessionOptions};
use crate::run::Record;

impl Checker {
    /// Each balance's two values for a partition.
    pub(super) async fn balances(
        &self,
        partition: &PlannedPartition,
        record: &Record,
    ) -> Result<Vec<(String, String)>> {
        let decides = &self.plan.decides;
        let mut values = Vec::new();
        for balance in &decides.checks.balance {
            let mut sources = BTreeMap::new();
            for (name, source) in &decides.sources {
                let interval = &partition.interval;
                let table = self.plan.source_table(&self.stores, source, interval, true)?;
                sources.insert(name.clone(), table);
            }
            let files = [(&partition.interval, record.files.as_slice())];
            let candidate = production_table(&self.dataset, &decides.definition, &files).await?;
            let candidate = BTreeMap::from([("candidate".to_owned(), candidate)]);
            let one = self.value(&balance.source, &balance.name, sources, partition).await?;
            let two = self.value(&balance.candidate, &balance.name, candidate, partition).await?;
            values.push((one, two));
        }
        Ok(values)
    }

    /// The one value of a query.
    async fn value(
        &self,
        sql: &str,
        name: &str,
        tables: BTreeMap<String, PinnedTable>,
        partition: &PlannedPartition,
    ) -> Result<String> {
        let query = Query::parse(sql, name)?;
        let bytes = usize::try_from(self.plan.terms.limits.memory.as_u64()).unwrap_or(usize::MAX);
        let options = SessionOptions {
            memory: Some(SessionOptions::pool(bytes)),
            ..SessionOptions::default()
        };
        let session = Session::new(&options)?;
        for (table, pinned) in tables {
            session.register(&table, pinned)?;
        }
        let parameters = self.plan.parameters_of(&partition.interval)?;
        let stream = session.run(&query, &parameters, &[]).await?;
        let batches: Vec<RecordBatch> = stream
            .try_collect()
            .await
            .map_err(|error| from_engine(ErrorKind::Failed, "a balance's query failed", error))?;
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let first = batches.iter().find(|batch| batch.num_rows() > 0);
        match (first, rows) {
            (Some(batch), 1) => Ok(crate::metrics::value_text(batch.column(0), 0)),
            _ => Err(Error::invalid(format!("the balance {name:?} gave {rows} rows"))
                .hint("each side must give exactly one: select one aggregate, such as count(*)")),
        }
    }
}
