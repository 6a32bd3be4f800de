//! Publishing and rolling back: what changes production, through the one commit of
//! [`Dataset::commit`].
//!
//! A publish is conditional on content: each partition must hold what the report was made against,
//! whoever committed what in between. An approval is consumed by the version that cites it.

mod conflicts;
mod past;
mod rollback;

use std::collections::BTreeMap;

use crate::approval::{Bound, Rules, consumed, load_approvals, makers, people};
use crate::candidate::{Candidate, Scope, freeze};
use crate::dataset::{
    Cause, Change, CommitOutcome, Dataset, Kind, Partial, Partition, Partitions, Place, Policy,
    Version, duckdb_view, layout,
};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::identity::Digest;
use crate::ledger::{Standing, ledger_of};
use crate::plan::Plan;
use crate::report::{Report, current_report};
use crate::run::{RunState, check_dataset, check_expiry};
use crate::spec::Unit;
use crate::storage::Created;

pub use conflicts::ConflictedPartition;
pub use past::{Past, PublishedVersion};
pub use rollback::{
    RollbackOutcome, RollbackPreview, RollbackRequest, RollbackTarget, RolledBackPartition,
    rollback,
};

/// What became of a publish.
#[derive(Debug)]
#[must_use]
pub enum PublishOutcome {
    /// The candidate is production now.
    Published(Box<Published>),
    /// It was before; nothing was done.
    Already(Version),
    /// It was, and was rolled back; publishing again needs a new approval.
    RolledBack {
        /// The version that published it.
        published: u64,
        /// The version that undid it.
        undone_by: Version,
    },
    /// Not enough different people have approved the current report.
    NotApproved {
        /// How many have.
        have: usize,
        /// How many the policy asks for.
        need: usize,
    },
    /// The run has not produced everything of the scope.
    NotComputed(String),
    /// There is no report about the candidate and production as it is now.
    NotChecked(String),
    /// Checks failed, or discrepancies are open.
    NotClear(Box<Standing>),
    /// Production is not what was compared; nothing was published.
    Conflict(Vec<ConflictedPartition>),
    /// Outside the declared window.
    OutsideWindow(String),
}

/// A publish that happened.
#[derive(Debug)]
pub struct Published {
    /// The version.
    pub version: Version,
    /// Partitions published.
    pub partitions: usize,
    /// The ready view definition.
    pub view: String,
    /// Adopted files that readers of the bare folder still see.
    pub superseded_in_root: usize,
    /// Partitions that live pipelines committed since the comparison, and which this publish leaves
    /// as they are.
    pub committed_since: Vec<CommittedSince>,
}

/// A partition that a live pipeline committed while a candidate was made.
#[derive(Debug, Clone, serde::Serialize)]
pub struct CommittedSince {
    /// The partition.
    pub partition: String,
    /// The version.
    pub version: u64,
    /// The logic that its maker named: perhaps the old one.
    pub logic: Option<String>,
}

/// The next scope of a plan that is not in production: for whole runs the run, else the first
/// batch that is not published.
///
/// # Errors
/// `Invalid` when a batch alone is over a limit.
pub fn next_scope(plan: &Plan, past: &Past) -> Result<Option<Scope>> {
    if plan.decides.publish_unit == Unit::Run {
        return Ok(Some(Scope::Run));
    }
    let batches = plan.batches()?.len();
    Ok((1..=batches).map(Scope::Batch).find(|scope| past.standing(*scope).is_none()))
}

/// Publishes a scope of a plan's run.
///
/// # Guarantees
/// Atomic: all partitions of the scope become visible in one commit, or none. Idempotent: trying
/// again after any interruption or lost reply publishes at most once.
///
/// # Errors
/// `Unavailable` when the outcome is not known; trying again is safe.
pub async fn publish(
    dataset: &Dataset,
    plan: &Plan,
    scope: Scope,
    actor: &str,
    env: &Env,
) -> Result<PublishOutcome> {
    loop {
        let history = dataset.history().await?;
        let Some(head) = history.last().cloned() else {
            return Err(
                Error::invalid("this is no reissue dataset").with("dataset", dataset.root())
            );
        };
        let past = Past::of(&plan.id, &history);
        if let Some(version) = past.standing(scope) {
            let version = version.clone();
            make_view(dataset, &version).await?;
            return Ok(PublishOutcome::Already(version));
        }
        let prepared = match prepare(dataset, plan, scope, (&head, &history, &past), env).await? {
            Ok(prepared) => prepared,
            Err(outcome) => return Ok(explain(outcome, &past, scope)),
        };
        let change = change_of(&prepared, plan, scope, &past, &head, actor, env)?;
        match dataset.commit(&head, &change, env).await? {
            CommitOutcome::Committed(version) => {
                let outcome = finish(dataset, version, prepared.partitions).await;
                env.reach("published");
                return outcome;
            }
            // Another commit took the number. Whether it is a conflict is a matter of content:
            // look again from the start.
            CommitOutcome::Lost(_) => {}
            CommitOutcome::Unknown(error) => return Err(error),
        }
    }
}

/// After a rollback, a missing approval means more than "not approved".
fn explain(outcome: PublishOutcome, past: &Past, scope: Scope) -> PublishOutcome {
    match (outcome, past.undone(scope)) {
        (PublishOutcome::NotApproved { .. }, Some((published, undone_by))) => {
            PublishOutcome::RolledBack { published, undone_by: undone_by.clone() }
        }
        (outcome, _) => outcome,
    }
}

/// Everything a commit needs.
struct Prepared {
    candidate: Digest,
    report: Report,
    report_digest: Digest,
    approvals: Vec<Digest>,
    partitions: Vec<Partition>,
}

/// Looks at everything that a publish depends on; any reason against it is an outcome.
async fn prepare(
    dataset: &Dataset,
    plan: &Plan,
    scope: Scope,
    (head, history, past): (&Version, &[Version], &Past),
    env: &Env,
) -> Result<Result<Prepared, PublishOutcome>> {
    check_dataset(plan, head)?;
    check_expiry(plan, env)?;
    if let Some(window) = plan.terms.window.filter(|window| !window.contains(env.now())) {
        return Ok(Err(PublishOutcome::OutsideWindow(window.to_string())));
    }
    let policy = dataset.policy(head).await?;
    check_scope(plan, scope, past, &policy)?;
    let state = RunState::load(dataset, plan).await?;
    let (candidate, digest) = freeze(dataset, plan, scope, &state).await?;
    let wanted = crate::candidate::partitions_of(plan, scope)?;
    if let Some(missing) = wanted.iter().find(|name| !candidate.partitions.contains_key(*name)) {
        let done = candidate.partitions.len();
        return Ok(Err(PublishOutcome::NotComputed(format!(
            "{done} of {} partitions of {scope} are computed; the first without a result is {missing}",
            wanted.len()
        ))));
    }
    let production = dataset.partitions(head).await?;
    let Some((report, report_digest)) = current_report(dataset, plan, &digest, &production).await?
    else {
        return not_current(dataset, plan, scope, &digest, &production).await.map(Err);
    };
    let standing = Standing::of(&report, &ledger_of(dataset, plan, &report, &policy).await?);
    if !standing.is_clear() {
        return Ok(Err(PublishOutcome::NotClear(Box::new(standing))));
    }
    let approvals = load_approvals(dataset, plan).await?;
    let undone_in = past.undone(scope).map_or(0, |(_, by)| by.number());
    let makers = makers(dataset, plan, &state).await?;
    let bound = Bound {
        dataset: head.manifest.dataset.clone(),
        plan: plan.id.clone(),
        scope,
        candidate: digest.clone(),
    };
    let rules =
        Rules { bound, policy: &policy, makers: &makers, consumed: consumed(history), undone_in };
    let counting = rules.usable(&approvals, &report_digest);
    let have = people(&counting).len();
    if have < rules.needed() {
        return Ok(Err(PublishOutcome::NotApproved { have, need: rules.needed() }));
    }
    let approvals = counting.into_iter().map(|(digest, _)| digest.clone()).collect();
    let partitions = new_partitions(plan, &candidate, &report, &production)?;
    let foreign = conflicts::changed_outside(dataset, plan, &partitions, &production).await?;
    if !foreign.is_empty() {
        return Ok(Err(PublishOutcome::Conflict(foreign)));
    }
    check_files(dataset, &partitions).await?;
    if policy.retain_superseded {
        for file in partitions.iter().flat_map(|partition| &partition.superseded) {
            dataset.retain(file).await?;
        }
    }
    Ok(Ok(Prepared { candidate: digest, report, report_digest, approvals, partitions }))
}

/// The scope must be the plan's own unit, allowed by the owner, and the next in order.
fn check_scope(plan: &Plan, scope: Scope, past: &Past, policy: &Policy) -> Result<()> {
    match (scope, plan.decides.publish_unit) {
        (Scope::Run, Unit::Run) => Ok(()),
        (Scope::Run, Unit::Batch) | (Scope::Batch(_), Unit::Run) => {
            Err(Error::invalid(format!("the plan does not publish {scope}")))
        }
        (Scope::Batch(_), Unit::Batch) if !policy.publish_by_batch => {
            Err(Error::invalid("the dataset's policy does not allow publishing batch by batch"))
        }
        (Scope::Batch(number), Unit::Batch) => {
            match (1..number).find(|earlier| past.standing(Scope::Batch(*earlier)).is_none()) {
                None => Ok(()),
                Some(earlier) => Err(Error::invalid(format!(
                    "batch {number} cannot be published before batch {earlier}"
                ))
                .hint("batches are published in order, never past one that is not ready")),
            }
        }
    }
}

/// There is no report about production as it is: because something moved, or none was made.
async fn not_current(
    dataset: &Dataset,
    plan: &Plan,
    scope: Scope,
    candidate: &Digest,
    production: &Partitions,
) -> Result<PublishOutcome> {
    let moved = conflicts::moved(dataset, plan, candidate, production).await?;
    if moved.is_empty() {
        return Ok(PublishOutcome::NotChecked(format!("{scope} has not been checked")));
    }
    Ok(PublishOutcome::Conflict(moved))
}

/// The partitions as the new version has them.
fn new_partitions(
    plan: &Plan,
    candidate: &Candidate,
    report: &Report,
    production: &Partitions,
) -> Result<Vec<Partition>> {
    let mut partitions = Vec::new();
    for (name, made) in &candidate.partitions {
        let (Some((_, planned)), Some(checked)) =
            (plan.partition(name), report.partitions.get(name))
        else {
            return Err(Error::internal("the report lacks a partition of its candidate"));
        };
        let mut partition = Partition::of(&planned.interval, made.files.clone(), 0);
        partition.content = Some(checked.metrics.content.clone());
        partition.recipe = Some(made.recipe.clone());
        if let Some(before) = production.at(planned.interval.start) {
            partition.superseded = before.root_files().cloned().collect();
        }
        partitions.push(partition);
    }
    Ok(partitions)
}

/// Each file that is about to become production is what was checked.
async fn check_files(dataset: &Dataset, partitions: &[Partition]) -> Result<()> {
    for file in partitions.iter().flat_map(|partition| &partition.files) {
        if !dataset.is_intact(file).await? {
            return Err(Error::corrupt(
                "a candidate's file is gone or has other bytes than were checked",
            )
            .with("file", dataset.public_path(file))
            .hint("somebody changed the control prefix; plan and run again"));
        }
    }
    Ok(())
}

fn change_of(
    prepared: &Prepared,
    plan: &Plan,
    scope: Scope,
    past: &Past,
    head: &Version,
    actor: &str,
    env: &Env,
) -> Result<Change> {
    let base: BTreeMap<&String, Option<&Digest>> = prepared
        .report
        .partitions
        .iter()
        .map(|(name, partition)| (name, partition.base.as_ref().map(|base| &base.identity)))
        .collect();
    // The same publish tried again is the same commit, whatever happened in between.
    let commit_id = Digest::of_json(&(
        "publish",
        &head.manifest.dataset,
        &plan.id,
        scope,
        &prepared.approvals,
        base,
    ))?;
    let planned = plan.decides.partitions.len();
    let partial = match scope {
        Scope::Run => None,
        Scope::Batch(batch) => Some(Partial {
            batch,
            batches: plan.batches()?.len(),
            published: past.standing_partitions() + prepared.partitions.len(),
            planned,
        }),
    };
    let cause = Cause {
        reason: plan.terms.reason.clone(),
        base: prepared.report.base_version,
        plan: Some(plan.id.clone()),
        candidate: Some(prepared.candidate.clone()),
        report: Some(prepared.report_digest.clone()),
        verdict: Some(if prepared.report.verdict == crate::check::Verdict::Warn {
            "passed with warnings".into()
        } else {
            "passed".into()
        }),
        approvals: prepared.approvals.clone(),
        partial,
        ..Cause::default()
    };
    Ok(Change {
        kind: Kind::Publish,
        cause,
        partitions: prepared.partitions.clone(),
        commit_id,
        actor: actor.to_owned(),
        at: env.now(),
        policy: None,
    })
}

/// Stores the ready view definition of a version; gives its path.
async fn make_view(dataset: &Dataset, version: &Version) -> Result<String> {
    let all = dataset.partitions(version).await?;
    let path = layout::view(version.number());
    let sql = duckdb_view(dataset, version, &all);
    let (Created::New(_) | Created::Exists) = dataset.control().create(&path, sql).await?;
    Ok(dataset.control().public(&path))
}

/// What follows from the commit, and can be made again from it.
async fn finish(
    dataset: &Dataset,
    version: Version,
    partitions: Vec<Partition>,
) -> Result<PublishOutcome> {
    let view = match make_view(dataset, &version).await {
        Ok(view) => view,
        // The publish has happened: nothing after it may hide that.
        Err(error) => format!("not made yet ({error}); publish again to make it"),
    };
    let base = version.manifest.cause.base;
    let all = dataset.partitions(&version).await?;
    let committed_since = all
        .present()
        .filter(|one| one.changed_in > base && one.changed_in < version.number())
        .map(|one| CommittedSince {
            partition: one.name.clone(),
            version: one.changed_in,
            logic: one.logic.clone(),
        })
        .collect();
    let superseded = partitions.iter().flat_map(|partition| &partition.superseded);
    Ok(PublishOutcome::Published(Box::new(Published {
        view,
        committed_since,
        partitions: partitions.len(),
        superseded_in_root: superseded.filter(|file| file.place == Place::Root).count(),
        version,
    })))
}
