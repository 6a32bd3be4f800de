//! Production's partitions before a partition: what its numbers used to be.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt as _;

use super::look::Checker;
use super::stored::{find_metrics, store_metrics};
use crate::dataset::Partition;
use crate::error::Result;
use crate::metrics::{KeyMetrics, Meter, Metrics};
use crate::parquet_file::{DECODED_ROWS, viewed};
use crate::plan::PlannedPartition;

impl Checker {
    /// The metrics of so many of production's partitions before each planned one, the nearest last.
    /// What nobody has measured yet is measured now, and kept.
    pub(super) async fn history(
        &self,
        partitions: usize,
    ) -> Result<BTreeMap<String, Vec<Arc<Metrics>>>> {
        let mut histories = BTreeMap::new();
        if partitions == 0 {
            return Ok(histories);
        }
        let production: Vec<&Partition> = self.production.present().collect();
        let mut known: BTreeMap<&str, Arc<Metrics>> = BTreeMap::new();
        for planned in &self.plan.decides.partitions {
            let end = production.partition_point(|one| one.start < planned.interval.start);
            let before = &production[end.saturating_sub(partitions)..end];
            let mut history = Vec::new();
            for partition in before {
                let metrics = match known.get(partition.name.as_str()) {
                    Some(metrics) => Arc::clone(metrics),
                    None => Arc::new(self.metrics_of(partition).await?),
                };
                known.insert(&partition.name, Arc::clone(&metrics));
                history.push(metrics);
            }
            histories.insert(name(planned), history);
        }
        Ok(histories)
    }

    async fn metrics_of(&self, partition: &Partition) -> Result<Metrics> {
        let identity = partition.identity()?;
        let profiled = self.plan.decides.checks.profiled();
        if let Some(metrics) = find_metrics(&self.dataset, &identity, &profiled).await? {
            return Ok(metrics);
        }
        let rows = self.rows(&partition.files).await?;
        let mut meter =
            Meter::new(viewed(&self.schema), &self.plan.decides.key)?.profiling(&profiled);
        let mut batches = rows.raw(DECODED_ROWS);
        while let Some(batch) = batches.next().await {
            meter.update(&batch?)?;
        }
        let metrics = Metrics { keys: KeyMetrics::default(), ..meter.metrics() };
        store_metrics(&self.dataset, &identity, &profiled, &metrics).await?;
        Ok(metrics)
    }
}

fn name(planned: &PlannedPartition) -> String {
    planned.interval.name.clone()
}
