//! The version manifest: the small object that says what production is.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::Definition;
use crate::error::{Error, ErrorKind, Result};
use crate::identity::{Digest, from_json};

/// The format this program writes.
pub(super) const FORMAT: u32 = 1;

/// One version of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The format of this object.
    pub format: u32,
    /// The dataset's id, made once, kept when the dataset moves.
    pub dataset: String,
    /// 1 for the first version, then without gaps.
    pub number: u64,
    /// The digest of the previous manifest's bytes; none for the first.
    pub parent: Option<Digest>,
    /// The identity of the commit: the same commit tried twice has the same one.
    pub commit_id: Digest,
    /// What the commit did.
    pub kind: Kind,
    /// Why and by what.
    pub cause: Cause,
    /// Who committed.
    pub actor: String,
    /// When, by the committing host's clock.
    pub created_at: DateTime<Utc>,
    /// The digest of the policy in force.
    pub policy: Digest,
    /// Partitioning and columns.
    pub definition: Definition,
    /// The dataset's size.
    pub totals: Totals,
    /// How many partitions the commit changed.
    pub changed: Changed,
    /// Digest over (partition, identity before, identity after) of all changed partitions.
    pub change_set: Digest,
    /// Where the partitions are described, in order of time.
    pub segments: Vec<SegmentRef>,
}

/// What a commit did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Made the dataset, or took in what its writers put there.
    Adopt,
    /// A live pipeline's own partitions.
    Commit,
    /// A run's candidate became production.
    Publish,
    /// Partitions became what they were.
    Rollback,
    /// The owner's rules changed.
    Policy,
}

impl Kind {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Adopt => "adopt",
            Self::Commit => "commit",
            Self::Publish => "publish",
            Self::Rollback => "rollback",
            Self::Policy => "policy",
        }
    }
}

/// Why a version exists; what does not apply is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// In a person's words.
    pub reason: String,
    /// The version this was made and compared against.
    pub base: u64,
    /// The plan whose run was published or undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Digest>,
    /// The frozen candidate that became production.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Digest>,
    /// The report that was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Digest>,
    /// What the report said: `passed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// The approvals consumed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Digest>,
    /// Present when the version holds only part of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Partial>,
    /// The versions a rollback undid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undoes: Vec<u64>,
    /// The logic a live commit named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logic: Option<String>,
    /// Guards lifted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<String>,
}

/// How much of a run a version holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partial {
    /// The batch published, counted from 1.
    pub batch: usize,
    /// How many batches the run has.
    pub batches: usize,
    /// Partitions of the run that are in production now.
    pub published: usize,
    /// Partitions of the run.
    pub planned: usize,
}

/// The size of a dataset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Partitions that are there.
    pub partitions: u64,
    /// Their rows.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// How many partitions a commit changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changed {
    /// New ones.
    pub added: u64,
    /// Those with other content.
    pub replaced: u64,
    /// Those taken away.
    pub removed: u64,
}

/// A segment of partitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentRef {
    /// SHA-256 of the segment's bytes, which is its name.
    pub digest: Digest,
    /// The first partition's start.
    pub start: DateTime<Utc>,
    /// The last partition's end.
    pub end: DateTime<Utc>,
    /// How many partitions it describes.
    pub partitions: u64,
}

/// Reads a manifest.
///
/// # Errors
/// `Unsupported` for a newer format, `Corrupt` for anything that is no manifest.
pub(super) fn read(bytes: &[u8], path: &str) -> Result<Manifest> {
    let value: serde_json::Value = from_json(bytes, path)?;
    match value.get("format").and_then(serde_json::Value::as_u64) {
        Some(format) if format == u64::from(FORMAT) => from_json(bytes, path),
        Some(format) if format > u64::from(FORMAT) => Err(Error::new(
            ErrorKind::Unsupported,
            format!("this dataset uses format {format}, this program knows {FORMAT}"),
        )
        .with("object", path)
        .hint("use the program that wrote it, or a newer one")),
        _ => Err(Error::corrupt("a version manifest without a format").with("object", path)),
    }
}
