//! The dataset owner's rules. A spec can only be stricter.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Cause, Change, CommitOutcome, Dataset, Kind, Version, layout};
use crate::approval::person;
use crate::env::Env;
use crate::error::{Error, ErrorKind, Result};
use crate::identity::{Digest, from_json, to_json};
use crate::storage::Created;

/// The rules of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Who may change these rules; whoever makes the dataset, unless named.
    pub owners: BTreeSet<String>,
    /// How many different people must approve before a publish.
    pub approvals: usize,
    /// Who may approve; empty: anybody who did not make the candidate.
    pub approvers: BTreeSet<String>,
    /// Whether an approval whose identity is only claimed counts.
    pub unsigned_approvals: bool,
    /// Whether a run may be published batch by batch.
    pub publish_by_batch: bool,
    /// Whether superseded adopted files are copied into the control prefix before a publish, so
    /// that a rollback is possible whatever happens to them.
    pub retain_superseded: bool,
    /// A discrepancy of at most this many values blocks no publish.
    #[serde(skip_serializing_if = "is_zero")]
    pub immaterial_values: u64,
    /// What every plan must state.
    pub require: BTreeSet<PolicyField>,
    /// Ceilings of a spec's limits.
    pub limits: Limits,
}

/// A statement that a policy can demand of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyField {
    /// `change.why_range`: why the range is sufficient.
    WhyRange,
    /// `change.downstream`: the jobs that read the dataset.
    Downstream,
    /// `change.side_effects`: what else the change sets off.
    SideEffects,
    /// `change.expires`: when the plan may no longer be published.
    Expires,
    /// `change.window`: when it may be published.
    Window,
    /// The SQL file is committed in a git repository, without changes.
    Commit,
    /// `[expect]`: which differences are expected.
    Expect,
}

/// Ceilings; absent: none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Partitions in one plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u64>,
    /// Partitions in one batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partitions_per_batch: Option<u64>,
    /// Batches at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrent_batches: Option<u64>,
    /// Queries at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_queries: Option<u64>,
}

/// Policies that were stored before there was the rule keep their digests.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            owners: BTreeSet::new(),
            approvals: 1,
            approvers: BTreeSet::new(),
            unsigned_approvals: true,
            publish_by_batch: false,
            retain_superseded: true,
            immaterial_values: 0,
            require: BTreeSet::new(),
            limits: Limits::default(),
        }
    }
}

impl Policy {
    /// Reads a policy file.
    ///
    /// # Errors
    /// `Invalid`, with the line shown.
    pub fn from_toml(text: &str, file: &str) -> Result<Self> {
        let policy: Self = crate::spec::read_toml(text, file)?;
        if policy.approvals == 0 {
            return Err(Error::invalid("approvals = 0 would let makers publish alone")
                .with("file", file)
                .hint("write 1 or more"));
        }
        Ok(policy)
    }

    /// The same, with an owner when none is named.
    #[must_use]
    pub fn owned_by(mut self, actor: &str) -> Self {
        if self.owners.is_empty() {
            self.owners.insert(actor.to_owned());
        }
        self
    }
}

impl Dataset {
    /// The policy in force in a version.
    ///
    /// # Errors
    /// `Corrupt` when it is gone or changed.
    pub async fn policy(&self, version: &Version) -> Result<Policy> {
        let path = layout::policy(&version.manifest.policy);
        let bytes = self.control().read(&path).await?.ok_or_else(|| {
            Error::corrupt("the policy that the current version names is gone")
                .with("object", &path)
        })?;
        let policy = from_json(&bytes, &path)?;
        if Digest::of_json(&policy)? != version.manifest.policy {
            return Err(Error::corrupt("the policy was changed after it was put in force")
                .with("object", &path)
                .hint("restore it from a backup; rules change with reissue policy --set"));
        }
        Ok(policy)
    }

    /// Puts rules in force, as a version of its own.
    ///
    /// # Errors
    /// `Invalid` for somebody who is no owner, `Conflict` when another commit came first.
    pub async fn set_policy(
        &self,
        policy: &Policy,
        actor: &str,
        reason: &str,
        env: &Env,
    ) -> Result<Version> {
        let head = self.head().await?;
        let in_force = self.policy(&head).await?;
        let is_owner = in_force.owners.iter().any(|owner| person(owner) == person(actor));
        if !is_owner {
            let owners: Vec<&str> = in_force.owners.iter().map(String::as_str).collect();
            return Err(Error::invalid(format!("{actor} may not change the owner's rules"))
                .hint(format!("the owners are {}", owners.join(", "))));
        }
        let mut policy = policy.clone();
        if policy.owners.is_empty() {
            policy.owners = in_force.owners;
        }
        let policy = &policy;
        let digest = Digest::of_json(policy)?;
        let (Created::New(_) | Created::Exists) =
            self.control().create(&layout::policy(&digest), to_json(policy)?).await?;
        if head.manifest.policy == digest {
            return Ok(head);
        }
        let change = Change {
            kind: Kind::Policy,
            cause: Cause { reason: reason.to_owned(), base: head.number(), ..Cause::default() },
            partitions: Vec::new(),
            commit_id: Digest::of_json(&("policy", &head.digest, &digest))?,
            actor: actor.to_owned(),
            at: env.now(),
            policy: Some(digest),
        };
        match self.commit(&head, &change, env).await? {
            CommitOutcome::Committed(version) => Ok(version),
            CommitOutcome::Lost(version) => Err(Error::new(
                ErrorKind::Conflict,
                format!("another commit became version {} meanwhile", version.number()),
            )
            .hint("run the same command again")),
            CommitOutcome::Unknown(error) => Err(error),
        }
    }
}
