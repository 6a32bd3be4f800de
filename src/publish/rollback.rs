//! Rolling back: a new version in which some partitions are what they were. Nothing is deleted.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::conflicts::{ConflictedPartition, conflicts_of};
use super::past::Past;
use crate::dataset::{
    Cause, Change, CommitOutcome, DataFile, Dataset, Kind, Partition, Partitions, Place, State,
    Version,
};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::identity::Digest;

/// What to undo.
#[derive(Debug, Clone)]
pub enum RollbackTarget {
    /// All publishes of a plan that stand.
    Plan(Digest),
    /// Everything after a version.
    Version(u64),
}

/// A rollback as asked for.
#[derive(Debug, Clone)]
pub struct RollbackRequest {
    /// What to undo.
    pub target: RollbackTarget,
    /// The version that the caller saw; without it nothing is done but a preview.
    pub expect: Option<u64>,
    /// Go on although the root's files were changed outside reissue, from the kept copies.
    pub allow_changed_root: bool,
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: String,
}

/// What readers would see.
#[derive(Debug, Clone, Serialize)]
pub struct RollbackPreview {
    /// The current version.
    pub head: u64,
    /// The versions undone.
    pub undoes: Vec<u64>,
    /// Each partition.
    pub partitions: Vec<RolledBackPartition>,
}

/// One partition of a rollback.
#[derive(Debug, Clone, Serialize)]
pub struct RolledBackPartition {
    /// Its name.
    pub partition: String,
    /// Rows that readers see now.
    pub rows_now: u64,
    /// Rows that they will see; none: the partition goes away.
    pub rows_then: Option<u64>,
}

/// What became of a rollback.
#[derive(Debug)]
#[must_use]
pub enum RollbackOutcome {
    /// Nothing was done: this is what would be.
    Preview(RollbackPreview),
    /// The partitions are what they were.
    RolledBack {
        /// The new version.
        version: Version,
        /// What was done.
        preview: RollbackPreview,
    },
    /// It was undone before; nothing was done.
    Already(Version),
    /// There is nothing to undo.
    Nothing(String),
    /// Production is not what was expected.
    Conflict(Vec<ConflictedPartition>),
    /// The current version is not the one the caller saw.
    Moved {
        /// The one they saw.
        expected: u64,
        /// The current one.
        head: u64,
    },
}

/// Rolls back, or previews it.
///
/// # Guarantees
/// Atomic and conditional on the version that the caller saw. Twice is once.
///
/// # Errors
/// `Corrupt` when a file to be restored is gone and was not kept; `Unavailable` when the outcome is
/// not known.
pub async fn rollback(
    dataset: &Dataset,
    request: &RollbackRequest,
    env: &Env,
) -> Result<RollbackOutcome> {
    let history = dataset.history().await?;
    let Some(head) = history.last() else {
        return Err(Error::invalid("this is no reissue dataset").with("dataset", dataset.root()));
    };
    if let Some(done) = done_before(head, request) {
        return Ok(RollbackOutcome::Already(done));
    }
    let undone = match undone_versions(&history, &request.target) {
        Ok(undone) => undone,
        Err(outcome) => return Ok(*outcome),
    };
    let restored = match restored(dataset, &history, &undone).await? {
        Ok(restored) => restored,
        Err(conflicts) => return Ok(RollbackOutcome::Conflict(conflicts)),
    };
    let now = dataset.partitions(head).await?;
    let preview = preview_of(head.number(), &undone, &restored, &now);
    let mut partitions = Vec::new();
    for partition in restored.iter().cloned() {
        partitions.push(with_intact_files(dataset, partition).await?);
    }
    match request.expect {
        None => return Ok(RollbackOutcome::Preview(preview)),
        Some(expected) if expected != head.number() => {
            return Ok(RollbackOutcome::Moved { expected, head: head.number() });
        }
        Some(_) => {}
    }
    let touched: Vec<Partition> =
        restored.iter().filter_map(|partition| now.at(partition.start).cloned()).collect();
    let mut overrides = Vec::new();
    let foreign = conflicts_of(dataset, &touched).await?;
    if !foreign.is_empty() {
        if !request.allow_changed_root {
            return Ok(RollbackOutcome::Conflict(foreign));
        }
        overrides.push("allow-changed-root".to_owned());
    }
    let change = Change {
        kind: Kind::Rollback,
        cause: Cause {
            reason: request.reason.clone(),
            base: head.number(),
            plan: match &request.target {
                RollbackTarget::Plan(plan) => Some(plan.clone()),
                RollbackTarget::Version(_) => None,
            },
            undoes: undone.clone(),
            overrides,
            ..Cause::default()
        },
        partitions,
        commit_id: Digest::of_json(&("rollback", &head.manifest.dataset, &head.digest, &undone))?,
        actor: request.actor.clone(),
        at: env.now(),
        policy: None,
    };
    match dataset.commit(head, &change, env).await? {
        CommitOutcome::Committed(version) => Ok(RollbackOutcome::RolledBack { version, preview }),
        CommitOutcome::Lost(version) => {
            Ok(RollbackOutcome::Moved { expected: head.number(), head: version.number() })
        }
        CommitOutcome::Unknown(error) => Err(error),
    }
}

/// The head, when it is what this very request made: trying again is once.
fn done_before(head: &Version, request: &RollbackRequest) -> Option<Version> {
    let (RollbackTarget::Version(to), Some(expected)) = (&request.target, request.expect) else {
        return None;
    };
    let manifest = &head.manifest;
    let undoes = &manifest.cause.undoes;
    let is_it = manifest.kind == Kind::Rollback
        && undoes.first().is_some_and(|first| *first > *to)
        && manifest.cause.base == expected
        && manifest.cause.plan.is_none();
    (is_it && manifest.number == expected + 1).then(|| head.clone())
}

/// The versions to undo, oldest first.
fn undone_versions(
    history: &[Version],
    target: &RollbackTarget,
) -> Result<Vec<u64>, Box<RollbackOutcome>> {
    match target {
        RollbackTarget::Plan(plan) => {
            let past = Past::of(plan, history);
            let standing: Vec<u64> =
                past.standing_versions().map(|one| one.version.number()).collect();
            let undone = past.all().iter().rev().find_map(|one| one.undone_by.clone());
            match (standing.is_empty(), undone) {
                (false, _) => Ok(standing),
                (true, Some(version)) => Err(Box::new(RollbackOutcome::Already(version))),
                (true, None) => Err(Box::new(RollbackOutcome::Nothing(
                    "the plan was never published".to_owned(),
                ))),
            }
        }
        RollbackTarget::Version(number) => {
            let head = history.len() as u64;
            if *number == 0 || *number > head {
                return Err(Box::new(RollbackOutcome::Nothing(format!(
                    "there is no version {number}"
                ))));
            }
            // Rules stay in force: a rollback is about data.
            let undone: Vec<u64> = (number + 1..=head)
                .filter(|number| {
                    let at = usize::try_from(*number - 1).ok().and_then(|at| history.get(at));
                    at.is_some_and(|version| version.manifest.kind != Kind::Policy)
                })
                .collect();
            match (undone.is_empty(), history.last()) {
                (true, Some(version)) => Err(Box::new(RollbackOutcome::Already(version.clone()))),
                _ => Ok(undone),
            }
        }
    }
}

/// The partitions as they were before the undone versions; or those that somebody else has changed
/// since, which a rollback would lose.
async fn restored(
    dataset: &Dataset,
    history: &[Version],
    undone: &[u64],
) -> Result<Result<Vec<Partition>, Vec<ConflictedPartition>>> {
    let mut before: BTreeMap<DateTime<Utc>, Partition> = BTreeMap::new();
    let mut after: BTreeMap<DateTime<Utc>, Partition> = BTreeMap::new();
    let at =
        |number: u64| usize::try_from(number).ok().and_then(|n| history.get(n.checked_sub(1)?));
    for number in undone {
        let Some(version) = at(*number) else { continue };
        let new = dataset.partitions(version).await?;
        let old = match at(number - 1) {
            Some(previous) => dataset.partitions(previous).await?,
            None => Partitions::default(),
        };
        for partition in new.all().filter(|partition| partition.changed_in == *number) {
            let was = old.at(partition.start).cloned();
            let was = was.unwrap_or_else(|| removed(partition));
            before.entry(partition.start).or_insert(was);
            after.insert(partition.start, partition.clone());
        }
    }
    let Some(head) = history.last() else { return Ok(Ok(Vec::new())) };
    let now = dataset.partitions(head).await?;
    let mut conflicts = Vec::new();
    for (start, left) in &after {
        let current = now.at(*start).map(Partition::identity).transpose()?;
        let expected = if left.state == State::Removed { None } else { Some(left.identity()?) };
        if current != expected {
            let by =
                now.named(&left.name).map(|partition| partition.changed_in).unwrap_or_default();
            conflicts.push(ConflictedPartition {
                partition: left.name.clone(),
                reason: format!("version {by} changed it since; rolling back would lose that"),
            });
        }
    }
    Ok(if conflicts.is_empty() { Ok(before.into_values().collect()) } else { Err(conflicts) })
}

fn removed(partition: &Partition) -> Partition {
    Partition {
        state: State::Removed,
        rows: 0,
        bytes: 0,
        content: None,
        files: Vec::new(),
        recipe: None,
        logic: None,
        ..partition.clone()
    }
}

fn preview_of(
    head: u64,
    undone: &[u64],
    restored: &[Partition],
    now: &Partitions,
) -> RollbackPreview {
    let partitions = restored.iter().map(|partition| RolledBackPartition {
        partition: partition.name.clone(),
        rows_now: now.at(partition.start).map_or(0, |partition| partition.rows),
        rows_then: (partition.state != State::Removed).then_some(partition.rows),
    });
    RollbackPreview { head, undoes: undone.to_vec(), partitions: partitions.collect() }
}

/// A partition whose files are there: in place, or as kept copies.
async fn with_intact_files(dataset: &Dataset, mut partition: Partition) -> Result<Partition> {
    let mut files = Vec::new();
    for file in &partition.files {
        if dataset.is_intact(file).await? {
            files.push(file.clone());
        } else {
            files.push(kept_copy(dataset, file).await?);
        }
    }
    partition.files = files;
    Ok(partition)
}

async fn kept_copy(dataset: &Dataset, file: &DataFile) -> Result<DataFile> {
    let kept = if file.place == Place::Root { dataset.find_retained(file).await? } else { None };
    kept.ok_or_else(|| {
        Error::corrupt("a file that would be restored is gone or changed, and no copy was kept")
            .with("file", dataset.public_path(file))
            .hint("restore the file from a backup; then run the same command again")
    })
}
