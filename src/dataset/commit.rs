//! **The only place that creates version manifests.**
//!
//! ```text
//! read head N ── build segments, store them ── store the intent ── create versions/N+1.json
//!                                                                   │ written → committed
//!                                                                   │ exists, doubtful → read N+1
//!                                                                   │    ours      → committed
//!                                                                   │    another's → lost
//!                                                                   │    nothing   → unknown
//! ```
//! Readers see version N or N+1 in full: everything N+1 names is durable before it is created.
//! Nothing is deleted on any path.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::manifest::{Cause, Changed, FORMAT, Kind, Manifest, SegmentRef, Totals};
use super::{Dataset, Definition, Partition, Partitions, State, Version, layout, segment};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::identity::{Digest, to_json};
use crate::storage::{CommitAnswer, Created};

/// What a commit changes and says.
#[derive(Debug, Clone)]
pub struct Change {
    /// What kind of commit it is.
    pub kind: Kind,
    /// Why.
    pub cause: Cause,
    /// The partitions that change, as they will be.
    pub partitions: Vec<Partition>,
    /// The identity of the commit: the same when the same commit is tried again.
    pub commit_id: Digest,
    /// Who commits.
    pub actor: String,
    /// When.
    pub at: DateTime<Utc>,
    /// Replaces the policy in force.
    pub policy: Option<Digest>,
}

/// What became of a commit.
#[derive(Debug)]
#[must_use]
pub enum CommitOutcome {
    /// The version exists and is this commit.
    Committed(Version),
    /// Somebody else's commit took the number; nothing of ours is visible.
    Lost(Version),
    /// Nobody knows yet: it may be visible now, later or never. Trying again is safe.
    Unknown(Error),
}

#[derive(Serialize)]
struct Intent<'a> {
    format: u32,
    commit_id: &'a Digest,
    version: u64,
    kind: Kind,
    cause: &'a Cause,
    actor: &'a str,
    at: DateTime<Utc>,
    change_set: &'a Digest,
}

impl Dataset {
    /// Makes the version after `base`, in which the changed partitions take the place of those
    /// that begin at the same instants.
    ///
    /// # Guarantees
    /// Atomic, durable, and at most once: a second commit of the same number is `Lost`.
    ///
    /// # Errors
    /// When something before the decisive write failed; then nothing is visible.
    pub async fn commit(
        &self,
        base: &Version,
        change: &Change,
        env: &Env,
    ) -> Result<CommitOutcome> {
        let before = self.partitions(base).await?;
        let after = stamped(before.clone(), change, base.number() + 1);
        let lineage = Lineage {
            dataset: base.manifest.dataset.clone(),
            number: base.number() + 1,
            parent: Some(base.digest.clone()),
            policy: change.policy.clone().unwrap_or_else(|| base.manifest.policy.clone()),
            definition: base.manifest.definition.clone(),
        };
        let manifest = manifest_of(lineage, change, &before, &after)?;
        self.create_version(manifest, &after, &base.manifest.segments, change, env).await
    }

    /// Makes version 1.
    ///
    /// # Errors
    /// As [`Dataset::commit`].
    pub(super) async fn commit_first(
        &self,
        dataset: String,
        definition: Definition,
        policy: Digest,
        change: &Change,
        env: &Env,
    ) -> Result<CommitOutcome> {
        let before = Partitions::default();
        let after = stamped(before.clone(), change, 1);
        let lineage = Lineage { dataset, number: 1, parent: None, policy, definition };
        let manifest = manifest_of(lineage, change, &before, &after)?;
        self.create_version(manifest, &after, &[], change, env).await
    }

    async fn create_version(
        &self,
        mut manifest: Manifest,
        after: &Partitions,
        old: &[SegmentRef],
        change: &Change,
        env: &Env,
    ) -> Result<CommitOutcome> {
        let rows: Vec<Partition> = after.all().cloned().collect();
        for encoded in segment::encode_all(&rows, old)? {
            if old.contains(&encoded.reference) {
                manifest.segments.push(encoded.reference);
                continue;
            }
            // Named by content: one that exists is this one.
            let path = layout::segment(&encoded.reference.digest);
            let (Created::New(_) | Created::Exists) =
                self.control().create(&path, encoded.bytes).await?;
            manifest.segments.push(encoded.reference);
        }
        let intent = Intent {
            format: FORMAT,
            commit_id: &manifest.commit_id,
            version: manifest.number,
            kind: manifest.kind,
            cause: &manifest.cause,
            actor: &change.actor,
            at: change.at,
            change_set: &manifest.change_set,
        };
        // ORDER: the intent precedes the commit, so that whoever finds the one can look for the
        // other.
        let path = layout::intent(&manifest.commit_id);
        let (Created::New(_) | Created::Exists) =
            self.control().create(&path, to_json(&intent)?).await?;
        env.reach("intent");
        let outcome = self.decide(manifest).await?;
        env.reach("commit");
        Ok(outcome)
    }

    async fn decide(&self, manifest: Manifest) -> Result<CommitOutcome> {
        let bytes = to_json(&manifest)?;
        let digest = Digest::of_bytes(&bytes);
        let number = manifest.number;
        let doubt = match self.control().commit(&layout::version(number), bytes).await? {
            CommitAnswer::Written => {
                return Ok(CommitOutcome::Committed(Version { manifest, digest }));
            }
            CommitAnswer::Exists => None,
            CommitAnswer::Doubtful(error) => Some(error),
        };
        match (self.find_version(number).await, doubt) {
            (Ok(Some(found)), _) if found.manifest.commit_id == manifest.commit_id => {
                Ok(CommitOutcome::Committed(found))
            }
            (Ok(Some(found)), _) => Ok(CommitOutcome::Lost(found)),
            (Ok(None), Some(error)) | (Err(error), _) => Ok(CommitOutcome::Unknown(unknown(error))),
            (Ok(None), None) => Ok(CommitOutcome::Unknown(unknown(Error::unavailable(
                "the store says both that the version exists and that it does not",
            )))),
        }
    }
}

/// Whatever the error was: what the caller needs to know is that nobody knows yet.
fn unknown(error: Error) -> Error {
    Error::unavailable("the outcome of the commit is not known")
        .because(error)
        .hint("run the same command again; it is safe")
}

/// The partitions after a change, the changed ones marked with the version that changed them.
fn stamped(before: Partitions, change: &Change, number: u64) -> Partitions {
    before.with(change.partitions.iter().cloned().map(|mut partition| {
        partition.changed_in = number;
        partition
    }))
}

/// Where a new version stands.
struct Lineage {
    dataset: String,
    number: u64,
    parent: Option<Digest>,
    policy: Digest,
    definition: Definition,
}

/// The manifest of a change, without its segments.
fn manifest_of(
    lineage: Lineage,
    change: &Change,
    before: &Partitions,
    after: &Partitions,
) -> Result<Manifest> {
    let (changed, change_set) = change_set(before, &change.partitions)?;
    let mut totals = Totals::default();
    for partition in after.present() {
        totals.partitions += 1;
        totals.rows += partition.rows;
        totals.bytes += partition.bytes;
    }
    Ok(Manifest {
        format: FORMAT,
        dataset: lineage.dataset,
        number: lineage.number,
        parent: lineage.parent,
        commit_id: change.commit_id.clone(),
        kind: change.kind,
        cause: change.cause.clone(),
        actor: change.actor.clone(),
        created_at: change.at,
        policy: lineage.policy,
        definition: lineage.definition,
        totals,
        changed,
        change_set,
        segments: Vec::new(),
    })
}

fn change_set(before: &Partitions, changed: &[Partition]) -> Result<(Changed, Digest)> {
    let mut counts = Changed::default();
    let mut rows = Vec::new();
    for partition in changed {
        let old = before.at(partition.start);
        match (old, partition.state) {
            (_, State::Removed) => counts.removed += 1,
            (None, _) => counts.added += 1,
            (Some(_), _) => counts.replaced += 1,
        }
        let old = old.map(Partition::identity).transpose()?;
        let new = match partition.state {
            State::Removed => None,
            State::Present | State::Empty => Some(partition.identity()?),
        };
        rows.push((partition.name.as_str(), old, new));
    }
    rows.sort();
    Ok((counts, Digest::of_json(&rows)?))
}
