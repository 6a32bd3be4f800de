//! One partition of a version, and the set of them.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::calendar::Interval;
use crate::error::Result;
use crate::identity::Digest;
use crate::storage::Object;

/// What a partition is in one version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partition {
    /// The name.
    pub name: String,
    /// The first instant inside.
    pub start: DateTime<Utc>,
    /// The first instant after.
    pub end: DateTime<Utc>,
    /// Whether it is there.
    pub state: State,
    /// How many rows.
    pub rows: u64,
    /// How many bytes in all files.
    pub bytes: u64,
    /// The content digest of its rows, when they have been decoded once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Its files, sorted by path.
    pub files: Vec<DataFile>,
    /// Files that its writers left in the root's folder of this partition, and that it replaces:
    /// what lies there besides `files`, when nobody else wrote since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub superseded: Vec<DataFile>,
    /// The recipe that made it, when we did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<Digest>,
    /// The name of the logic that made it, when its maker said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logic: Option<String>,
    /// The version that last changed it.
    pub changed_in: u64,
}

/// Whether a partition is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It has rows.
    Present,
    /// It was computed, and has no rows and no files.
    Empty,
    /// It was there in an earlier version.
    Removed,
}

/// Which folder a path is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The dataset's root: a file that its own writers put there.
    Root,
    /// The control prefix: a file of ours.
    Control,
}

/// One Parquet file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataFile {
    /// Which folder the path is relative to.
    pub place: Place,
    /// The path.
    pub path: String,
    /// The size in bytes.
    pub size: u64,
    /// How many rows.
    pub rows: u64,
    /// BLAKE3 of its bytes.
    pub hash: String,
    /// The store's tag, when it was last seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub e_tag: Option<String>,
    /// The store's version, when it was last seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When the store wrote it.
    pub modified_at: DateTime<Utc>,
}

impl DataFile {
    /// From an object of a place.
    pub fn new(place: Place, object: &Object, rows: u64, hash: String) -> Self {
        Self {
            place,
            path: object.path.clone(),
            size: object.size,
            rows,
            hash,
            e_tag: object.e_tag.clone(),
            version: object.version.clone(),
            modified_at: object.modified_at,
        }
    }

    /// As the store described it; the path is relative to the place.
    pub fn object(&self) -> Object {
        Object {
            path: self.path.clone(),
            size: self.size,
            e_tag: self.e_tag.clone(),
            version: self.version.clone(),
            modified_at: self.modified_at,
        }
    }
}

impl Partition {
    /// A partition of an interval from its files.
    pub fn of(interval: &Interval, mut files: Vec<DataFile>, changed_in: u64) -> Self {
        files.sort_by(|one, two| (one.place, &one.path).cmp(&(two.place, &two.path)));
        let rows = files.iter().map(|file| file.rows).sum();
        Self {
            name: interval.name.clone(),
            start: interval.start,
            end: interval.end,
            state: if files.is_empty() { State::Empty } else { State::Present },
            rows,
            bytes: files.iter().map(|file| file.size).sum(),
            content: None,
            files,
            superseded: Vec::new(),
            recipe: None,
            logic: None,
            changed_in,
        }
    }

    /// The files expected in the root's folder of this partition.
    pub fn root_files(&self) -> impl Iterator<Item = &DataFile> {
        self.files.iter().chain(&self.superseded).filter(|file| file.place == Place::Root)
    }

    /// The identity of its content: a digest over its name and its files' paths, sizes and hashes.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn identity(&self) -> Result<Digest> {
        identity_of(&self.name, &self.files)
    }
}

/// The identity of a partition with these files.
///
/// # Errors
/// `Internal` only.
pub(crate) fn identity_of(name: &str, files: &[DataFile]) -> Result<Digest> {
    let mut rows: Vec<_> =
        files.iter().map(|file| (file.place, &file.path, file.size, &file.hash)).collect();
    rows.sort_by(|one, two| (one.0, one.1).cmp(&(two.0, two.1)));
    Digest::of_json(&(name, rows))
}

/// The partitions of a version, by time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Partitions(BTreeMap<DateTime<Utc>, Partition>);

impl Partitions {
    /// From any order.
    pub fn new(partitions: impl IntoIterator<Item = Partition>) -> Self {
        Self(partitions.into_iter().map(|partition| (partition.start, partition)).collect())
    }

    /// The partition that begins with this interval, unless it was removed.
    pub fn at(&self, start: DateTime<Utc>) -> Option<&Partition> {
        self.0.get(&start).filter(|partition| partition.state != State::Removed)
    }

    /// The partition of this name, removed or not.
    pub fn named(&self, name: &str) -> Option<&Partition> {
        self.0.values().find(|partition| partition.name == name)
    }

    /// All that are there, in order of time.
    pub fn present(&self) -> impl Iterator<Item = &Partition> {
        self.0.values().filter(|partition| partition.state != State::Removed)
    }

    /// All rows, removed ones too, in order of time.
    pub fn all(&self) -> impl Iterator<Item = &Partition> {
        self.0.values()
    }

    /// Puts partitions in place of those that begin at the same instants.
    #[must_use]
    pub fn with(mut self, changed: impl IntoIterator<Item = Partition>) -> Self {
        self.0.extend(changed.into_iter().map(|partition| (partition.start, partition)));
        self
    }
}
