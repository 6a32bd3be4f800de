//! Records: the one result of a partition in a run, and the traces of attempts.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::check::{DomainMetrics, Finding, OutsideMetrics};
use crate::dataset::{DataFile, Dataset, layout};
use crate::error::Result;
use crate::identity::{Digest, from_json, to_json};
use crate::metrics::Metrics;
use crate::plan::Plan;
use crate::storage::Created;

/// What a partition's computation gave. Created once, after its files are durable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The partition's name.
    pub partition: String,
    /// The recipe it was made by.
    pub recipe: Digest,
    /// The attempt that made it.
    pub attempt: String,
    /// The plan whose run made it, when this one took it over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_from: Option<Digest>,
    /// Its files; none: it has no rows.
    pub files: Vec<DataFile>,
    /// The writer's own numbers.
    pub metrics: Metrics,
    /// When the attempt began.
    pub started_at: DateTime<Utc>,
    /// When its files were durable.
    pub finished_at: DateTime<Utc>,
}

/// A claim: an attempt has begun.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// The partition's name.
    pub partition: String,
    /// The recipe.
    pub recipe: Digest,
    /// Who runs.
    pub actor: String,
    /// When.
    pub at: DateTime<Utc>,
}

/// The evidence of an attempt that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailedAttempt {
    /// The partition's name.
    pub partition: String,
    /// The recipe.
    pub recipe: Digest,
    /// The attempt.
    pub attempt: String,
    /// What went wrong, in a sentence.
    pub error: String,
    /// The kind of error.
    pub kind: String,
    /// The causes underneath.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// What can be done about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// Checks that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// The numbers of the rows seen so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// Rows outside the partition's interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<OutsideMetrics>,
    /// Values outside declared domains.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub domains: BTreeMap<String, DomainMetrics>,
    /// Files written, which nothing refers to but this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<DataFile>,
    /// When the attempt began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: DateTime<Utc>,
}

/// The records and failed attempts of a run, as stored.
#[derive(Debug, Clone, Default)]
pub struct RunState {
    /// Finished partitions, by name.
    pub records: BTreeMap<String, Record>,
    /// The newest failed attempt of each partition that has no record.
    pub failed: BTreeMap<String, FailedAttempt>,
    /// How many attempts were begun, by partition.
    pub attempts: BTreeMap<String, usize>,
    /// How many records each partition has: more than one when files of an earlier one were lost.
    pub record_counts: BTreeMap<String, usize>,
}

impl RunState {
    /// Reads what a plan's run has done so far.
    ///
    /// # Errors
    /// `Corrupt` for records that cannot be read.
    pub async fn load(dataset: &Dataset, plan: &Plan) -> Result<Self> {
        let mut state = Self::default();
        let control = dataset.control();
        for object in control.list(&layout::run_folder(&plan.id, "records")).await?.objects {
            if let Some(bytes) = control.read(&object.path).await? {
                let record: Record = from_json(&bytes, &object.path)?;
                *state.record_counts.entry(record.partition.clone()).or_default() += 1;
                // Paths sort by number, so the newest record stays.
                state.records.insert(record.partition.clone(), record);
            }
        }
        for object in control.list(&layout::run_folder(&plan.id, "attempts")).await?.objects {
            let partition = object.path.rsplit('/').nth(1).unwrap_or_default().to_owned();
            if object.path.ends_with(".started.json") {
                *state.attempts.entry(partition).or_default() += 1;
            } else if let Some(bytes) = control.read(&object.path).await? {
                let failed: FailedAttempt = from_json(&bytes, &object.path)?;
                state.note_failed(failed);
            }
        }
        let done = std::mem::take(&mut state.failed);
        state.failed =
            done.into_iter().filter(|(name, _)| !state.records.contains_key(name)).collect();
        Ok(state)
    }

    /// Leaves out records whose files are gone or changed: those partitions are computed again.
    ///
    /// # Errors
    /// As the store's.
    pub async fn without_lost(mut self, dataset: &Dataset) -> Result<Self> {
        let mut lost = Vec::new();
        for (name, record) in &self.records {
            for file in &record.files {
                if !dataset.is_intact(file).await? {
                    tracing::warn!(partition = %name, file = %file.path, "a recorded file is lost");
                    lost.push(name.clone());
                    break;
                }
            }
        }
        for name in lost {
            self.records.remove(&name);
        }
        Ok(self)
    }

    fn note_failed(&mut self, failed: FailedAttempt) {
        let newest = self.failed.get(&failed.partition);
        if newest.is_none_or(|held| held.ended_at < failed.ended_at) {
            self.failed.insert(failed.partition.clone(), failed);
        }
    }
}

/// Stores a record unless another process has done so; gives the one that counts.
pub(super) async fn store_record(
    dataset: &Dataset,
    plan: &Plan,
    record: Record,
    number: usize,
) -> Result<Record> {
    let path = layout::record(&plan.id, &record.partition, &record.recipe, number);
    match dataset.control().create(&path, to_json(&record)?).await? {
        Created::New(_) => Ok(record),
        Created::Exists => {
            let bytes = dataset.control().read(&path).await?.unwrap_or_default();
            from_json(&bytes, &path)
        }
    }
}

/// Stores one step of an attempt.
pub(super) async fn store_step<T: Serialize + Sync>(
    dataset: &Dataset,
    plan: &Plan,
    (partition, attempt, step): (&str, &str, &str),
    value: &T,
) -> Result<()> {
    let path = layout::attempt(&plan.id, partition, attempt, step);
    let (Created::New(_) | Created::Exists) =
        dataset.control().create(&path, to_json(value)?).await?;
    Ok(())
}
