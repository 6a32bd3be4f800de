//! The dry run as a value: what a plan would do, in the words that people and machines read.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Planned, SourcePin};
use crate::error::Result;
use crate::identity::Digest;
use crate::spec::{Limits, Unit};

/// A dry run. It is a plan, not evidence that anything ran.
#[derive(Debug, Clone, Serialize)]
pub struct DryRun {
    /// Always true: nothing has run.
    pub dry_run_only: bool,
    /// The plan's id.
    pub plan_id: Digest,
    /// Whether the plan was not there before.
    pub is_new: bool,
    /// The dataset, resolved, and its version.
    pub dataset: String,
    /// The version that the plan was made against.
    pub base_version: u64,
    /// Why, by whom, and what may change.
    pub change: ChangeSummary,
    /// The first partition.
    pub first: String,
    /// The last partition, included.
    pub last: String,
    /// Each partition.
    pub partitions: Vec<DryRunPartition>,
    /// Each batch.
    pub batches: Vec<DryRunBatch>,
    /// The size of the largest batch.
    pub maximum_partitions_per_batch: usize,
    /// Rows to read of sources with an interval.
    pub total_estimated_rows: u64,
    /// Bytes to read of all sources, only the columns that the query reads.
    pub total_estimated_bytes: u64,
    /// Partitions that an earlier plan's run has computed already.
    pub kept: usize,
    /// Partitions to compute.
    pub to_compute: usize,
    /// How much at once.
    pub limits: Limits,
    /// The inputs.
    pub pins: BTreeMap<String, PinSummary>,
    /// The logic.
    pub transform: TransformSummary,
    /// Where candidates go; production is not touched.
    pub target: String,
    /// How the result becomes production.
    pub publish: PublishSummary,
    /// How it is undone.
    pub rollback: RollbackSummary,
    /// What a person should know before going on.
    pub notes: Vec<String>,
}

/// Why, by whom, and what may change.
#[derive(Debug, Clone, Serialize)]
pub struct ChangeSummary {
    /// Why.
    pub reason: String,
    /// Who answers for it.
    pub owner: String,
    /// The only columns that may differ.
    pub columns: Vec<String>,
    /// Why the range is sufficient.
    pub why_range: Option<String>,
    /// Jobs that read the dataset.
    pub downstream: Option<Vec<String>>,
    /// What else is set off.
    pub side_effects: Option<Vec<String>>,
    /// The deadline.
    pub expires_at: Option<String>,
    /// The maintenance window.
    pub window: Option<String>,
}

/// One partition of a dry run.
#[derive(Debug, Clone, Serialize)]
pub struct DryRunPartition {
    /// Its name.
    pub partition: String,
    /// The first instant inside.
    pub start: String,
    /// The first instant after.
    pub end: String,
    /// Its batch, counted from 1.
    pub batch: usize,
    /// Rows to read.
    pub estimated_rows: u64,
    /// Bytes to read.
    pub estimated_bytes: u64,
    /// Rows in production now; none: nothing is there.
    pub production_rows: Option<u64>,
    /// The recipe.
    pub recipe: Digest,
    /// The plan whose result is taken over.
    pub kept_from: Option<Digest>,
}

/// One batch of a dry run.
#[derive(Debug, Clone, Serialize)]
pub struct DryRunBatch {
    /// Counted from 1.
    pub batch: usize,
    /// Its partitions' names.
    pub partitions: Vec<String>,
    /// Rows to read.
    pub estimated_rows: u64,
    /// Bytes to read.
    pub estimated_bytes: u64,
}

/// One input.
#[derive(Debug, Clone, Serialize)]
pub struct PinSummary {
    /// The resolved URL.
    pub url: String,
    /// The version, when it is a reissue dataset.
    pub version: Option<u64>,
    /// Objects.
    pub files: usize,
    /// Their rows.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The interval column.
    pub interval: Option<String>,
    /// The digest.
    pub pin: Digest,
}

/// The logic.
#[derive(Debug, Clone, Serialize)]
pub struct TransformSummary {
    /// The SQL file.
    pub sql_file: String,
    /// The digest of the canonical SQL.
    pub sql_digest: Digest,
    /// The commit that holds it.
    pub commit: Option<String>,
    /// Whether it was changed since.
    pub changed_since_commit: Option<bool>,
    /// What in it depends on the order of rows.
    pub order_sensitive: Vec<String>,
}

/// How the result becomes production.
#[derive(Debug, Clone, Serialize)]
pub struct PublishSummary {
    /// `run` or `batch`.
    pub unit: Unit,
    /// In words.
    pub method: String,
    /// Approvals needed.
    pub approvals: usize,
}

/// How it is undone.
#[derive(Debug, Clone, Serialize)]
pub struct RollbackSummary {
    /// In words.
    pub action: String,
    /// How long it stays possible.
    pub window: String,
    /// Whether superseded adopted files are kept, so that it is guaranteed.
    pub guaranteed: bool,
}

impl DryRun {
    /// From a plan.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn of(planned: &Planned, policy: &crate::dataset::Policy) -> Result<Self> {
        let plan = &planned.plan;
        let partitions = partitions_of(planned);
        let batches: Vec<DryRunBatch> = planned
            .batches
            .iter()
            .enumerate()
            .map(|(number, batch)| DryRunBatch {
                batch: number + 1,
                partitions: batch.iter().map(|at| partitions[*at].partition.clone()).collect(),
                estimated_rows: batch.iter().map(|at| partitions[*at].estimated_rows).sum(),
                estimated_bytes: batch.iter().map(|at| partitions[*at].estimated_bytes).sum(),
            })
            .collect();
        let end = |place: Option<&DryRunPartition>| {
            place.map(|partition| partition.partition.clone()).unwrap_or_default()
        };
        Ok(Self {
            dry_run_only: true,
            plan_id: plan.id.clone(),
            is_new: planned.is_new,
            dataset: plan.dataset_url.clone(),
            base_version: planned.base.number(),
            change: change_of(plan),
            first: end(partitions.first()),
            last: end(partitions.last()),
            maximum_partitions_per_batch: batches
                .iter()
                .map(|b| b.partitions.len())
                .max()
                .unwrap_or(0),
            total_estimated_rows: plan.estimates.iter().map(|estimate| estimate.rows).sum(),
            total_estimated_bytes: plan.estimates.iter().map(|estimate| estimate.bytes).sum(),
            kept: planned.kept.len(),
            to_compute: partitions.len() - planned.kept.len(),
            limits: plan.terms.limits,
            pins: plan.decides.sources.iter().map(|(n, s)| (n.clone(), pin_of(s))).collect(),
            transform: TransformSummary {
                sql_file: plan.provenance.sql_file.clone(),
                sql_digest: Digest::of_bytes(plan.decides.canonical_sql.as_bytes()),
                commit: plan.provenance.commit.clone(),
                changed_since_commit: plan.provenance.changed_since_commit,
                order_sensitive: plan.decides.order_sensitive.clone(),
            },
            target: planned.dataset.control().public("data"),
            publish: PublishSummary {
                unit: plan.decides.publish_unit,
                method: match plan.decides.publish_unit {
                    Unit::Run => {
                        "all partitions in one atomic commit of the version manifest".into()
                    }
                    Unit::Batch => "batch by batch, in order, one atomic commit each".into(),
                },
                approvals: policy.approvals,
            },
            rollback: RollbackSummary {
                action: format!(
                    "one atomic commit that restores the partitions as version {} has them; nothing is deleted",
                    planned.base.number()
                ),
                window: plan.terms.rollback_window.to_string(),
                guaranteed: policy.retain_superseded,
            },
            notes: notes_of(planned, policy),
            partitions,
            batches,
        })
    }
}

fn partitions_of(planned: &Planned) -> Vec<DryRunPartition> {
    let plan = &planned.plan;
    let mut batch_of = vec![0; plan.decides.partitions.len()];
    for (number, batch) in planned.batches.iter().enumerate() {
        for at in batch {
            batch_of[*at] = number + 1;
        }
    }
    let all = plan.decides.partitions.iter().zip(&plan.estimates).zip(batch_of);
    all.map(|((partition, estimate), batch)| DryRunPartition {
        partition: partition.interval.name.clone(),
        start: partition.interval.start.to_rfc3339(),
        end: partition.interval.end.to_rfc3339(),
        batch,
        estimated_rows: estimate.rows,
        estimated_bytes: estimate.bytes,
        production_rows: partition.base.as_ref().map(|base| base.rows),
        recipe: partition.recipe.clone(),
        kept_from: planned.kept.get(&partition.interval.name).map(|kept| kept.plan.clone()),
    })
    .collect()
}

fn change_of(plan: &super::Plan) -> ChangeSummary {
    let terms = &plan.terms;
    ChangeSummary {
        reason: terms.reason.clone(),
        owner: terms.owner.clone(),
        columns: plan.decides.changed_columns.iter().cloned().collect(),
        why_range: terms.why_range.clone(),
        downstream: terms.downstream.clone(),
        side_effects: terms.side_effects.clone(),
        expires_at: terms.expires_at.map(|at| at.to_rfc3339()),
        window: terms.window.map(|window| window.to_string()),
    }
}

fn pin_of(source: &SourcePin) -> PinSummary {
    PinSummary {
        url: source.url.clone(),
        version: source.version,
        files: source.files.len(),
        rows: source.files.iter().map(|file| file.rows).sum(),
        bytes: source.files.iter().map(|file| file.object.size).sum(),
        interval: source.interval.as_ref().map(|by| by.column.clone()),
        pin: source.pin.clone(),
    }
}

fn notes_of(planned: &Planned, policy: &crate::dataset::Policy) -> Vec<String> {
    let plan = &planned.plan;
    let mut notes = Vec::new();
    for construct in &plan.decides.order_sensitive {
        notes.push(format!("depends on the order of rows, so it runs on one thread with a fixed batch size: {construct}"));
    }
    for (source, rows) in &planned.timeless {
        notes.push(format!(
            "source {source} has {rows} rows without a time: no partition sees them"
        ));
    }
    for sum in &planned.wrapping {
        notes.push(format!("wraps around silently if it exceeds its type; cast to a wider decimal if it could: {sum}"));
    }
    let new = plan.decides.partitions.iter().filter(|partition| partition.base.is_none()).count();
    if new > 0 {
        notes.push(format!("{new} partitions are not in production yet"));
    }
    match plan.provenance.changed_since_commit {
        None => notes.push(
            "the SQL is in no git repository: its revision is known only by its digest".into(),
        ),
        Some(true) => notes.push("the SQL has changes that its commit does not hold".into()),
        Some(false) => {}
    }
    let reads_nothing = plan.estimates.iter().filter(|estimate| estimate.rows == 0).count();
    if reads_nothing > 0 && plan.decides.sources.values().any(|source| source.interval.is_some()) {
        notes.push(format!("{reads_nothing} partitions have no source rows at all"));
    }
    for (source, refused) in &planned.refused {
        notes.push(format!(
            "source {source} has an object that is not used: {} ({})",
            refused.path, refused.reason
        ));
    }
    if !policy.retain_superseded {
        notes.push(
            "rollback is not guaranteed: the policy does not keep superseded adopted files".into(),
        );
    }
    notes
}
