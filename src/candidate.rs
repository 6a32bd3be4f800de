//! Candidates: the frozen list of what a run produced, known by its content.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::dataset::{DataFile, Dataset, layout};
use crate::error::{Error, Result};
use crate::identity::{Digest, to_json};
use crate::plan::Plan;
use crate::run::RunState;
use crate::spec::Unit;
use crate::storage::Created;

/// Which part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// All partitions.
    Run,
    /// One batch, counted from 1.
    Batch(usize),
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Run => f.write_str("the whole run"),
            Self::Batch(number) => write!(f, "batch {number}"),
        }
    }
}

/// A frozen candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// The plan.
    pub plan: Digest,
    /// Which part of its run.
    pub scope: Scope,
    /// Each partition's recipe and files, by name.
    pub partitions: BTreeMap<String, CandidatePartition>,
}

/// One partition of a candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidatePartition {
    /// The recipe.
    pub recipe: Digest,
    /// Its files; none: it has no rows.
    pub files: Vec<DataFile>,
}

impl Candidate {
    /// The digest that approvals and versions bind: over the sorted list of partition, path, size
    /// and file hash.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn digest(&self) -> Result<Digest> {
        let mut rows = Vec::new();
        for (name, partition) in &self.partitions {
            let files = partition.files.iter();
            let files: Vec<_> = files.map(|file| (&file.path, file.size, &file.hash)).collect();
            rows.push((name, &partition.recipe, files));
        }
        Digest::of_json(&("candidate 1", &self.plan, self.scope, rows))
    }
}

/// The names of a scope's partitions.
///
/// # Errors
/// `Invalid` for a batch that the plan does not have.
pub fn partitions_of(plan: &Plan, scope: Scope) -> Result<Vec<String>> {
    let name = |number: &usize| {
        plan.decides.partitions.get(*number).map(|partition| partition.interval.name.clone())
    };
    match (scope, plan.decides.publish_unit) {
        (Scope::Run, Unit::Batch) => {
            return Err(Error::invalid("this plan publishes batch by batch")
                .hint("say which batch: --batch 1"));
        }
        (Scope::Batch(_), Unit::Run) => {
            return Err(Error::invalid("this plan publishes the whole run at once")
                .hint("leave --batch out"));
        }
        (Scope::Run, Unit::Run) | (Scope::Batch(_), Unit::Batch) => {}
    }
    match scope {
        Scope::Run => Ok((0..plan.decides.partitions.len()).filter_map(|n| name(&n)).collect()),
        Scope::Batch(number) => {
            let batches = plan.batches()?;
            let batch = number.checked_sub(1).and_then(|at| batches.get(at)).ok_or_else(|| {
                Error::invalid(format!("the plan has batches 1 to {}, not {number}", batches.len()))
            })?;
            Ok(batch.iter().filter_map(name).collect())
        }
    }
}

/// Freezes what a run produced for a scope; partitions without a record are left out.
///
/// # Errors
/// As the store's.
pub async fn freeze(
    dataset: &Dataset,
    plan: &Plan,
    scope: Scope,
    state: &RunState,
) -> Result<(Candidate, Digest)> {
    let names = partitions_of(plan, scope)?;
    let records = names.iter().filter_map(|name| state.records.get(name));
    let partitions = records.map(|record| {
        let partition =
            CandidatePartition { recipe: record.recipe.clone(), files: record.files.clone() };
        (record.partition.clone(), partition)
    });
    let candidate = Candidate { plan: plan.id.clone(), scope, partitions: partitions.collect() };
    let digest = candidate.digest()?;
    let path = layout::run_object(&plan.id, "candidates", &digest);
    let (Created::New(_) | Created::Exists) =
        dataset.control().create(&path, to_json(&candidate)?).await?;
    Ok((candidate, digest))
}
