//! Everything that touches a store of objects: local disk, S3, Azure, Google, memory.
//!
//! Owns bytes, paths and their identity; knows nothing of datasets. Every write is create-only:
//! a path is written at most once, so a lost reply can be settled by reading, and nothing here
//! deletes an object. A store has two clients: one for data, which retries, and one for commits,
//! which never does, because a retried create can report its own success as "exists".
//!
//! | property | local disk | object stores |
//! |---|---|---|
//! | create-only | `link(2)` of a finished, synced file | `PutMode::Create` (`If-None-Match: *`) |
//! | durable when acknowledged | file and folders are fsynced | the store's promise |
//! | identity of an object | inode, mtime, ctime (ns), size | e-tag and version, with the size |
//! | read of a pinned object | one open file, checked before and after | every request carries `If-Match` |

mod commit;
mod counters;
mod local;
mod open;
mod reader;
mod remote;
mod root;
mod writer;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use object_store::ObjectStore;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

pub use commit::CommitAnswer;
pub use counters::{Counters, Counts};
pub use open::{Environment, Stores};
pub use reader::ObjectReader;
pub use root::Root;
pub use writer::ObjectWriter;

/// One object as a store describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// The path from the store's root, without a leading slash.
    pub path: String,
    /// The size in bytes.
    pub size: u64,
    /// The store's tag for these exact bytes, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub e_tag: Option<String>,
    /// The store's version of the object, where it keeps versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When the store last wrote it, by the store's clock.
    pub modified_at: DateTime<Utc>,
}

impl Object {
    /// Whether `other` is, as far as the store can tell, the same object.
    ///
    /// The version decides where both have one: listings of some stores leave it out.
    pub fn is_same_as(&self, other: &Self) -> bool {
        let versions_agree = match (&self.version, &other.version) {
            (Some(one), Some(two)) => one == two,
            _ => true,
        };
        let tags_agree = match (&self.e_tag, &other.e_tag) {
            (Some(one), Some(two)) => unquoted(one) == unquoted(two),
            _ => self.modified_at == other.modified_at,
        };
        self.path == other.path && self.size == other.size && versions_agree && tags_agree
    }
}

/// Azure's listings give e-tags without the quotes that its other answers have.
fn unquoted(tag: &str) -> &str {
    tag.trim_matches('"')
}

/// What a listing found.
#[derive(Debug, Default)]
pub struct Listing {
    /// Every object, sorted by path.
    pub objects: Vec<Object>,
    /// Entries that cannot be an object of ours, with the reason.
    pub refused: Vec<(String, String)>,
}

/// The answer to a create-only write.
#[derive(Debug)]
#[must_use]
pub enum Created {
    /// The bytes are stored, durably.
    New(Object),
    /// The path had an object already; nothing was written.
    Exists,
}

/// One store of objects: the same operations everywhere.
pub struct Store {
    backend: Backend,
    counters: Arc<Counters>,
}

// A client's own description may show more of its configuration than a log should.
impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_local() { "Store(local)" } else { "Store(remote)" })
    }
}

enum Backend {
    Local,
    Remote { data: Arc<dyn ObjectStore>, commit: Arc<dyn ObjectStore> },
}

impl Store {
    /// What was asked of the store so far.
    pub fn counters(&self) -> Counts {
        self.counters.read()
    }

    /// Lists every object below a folder; an absent folder is an empty one.
    ///
    /// # Errors
    /// `Unavailable` when the store does not answer, `Invalid` when it refuses.
    pub async fn list(&self, folder: &str) -> Result<Listing> {
        self.counters.list();
        let mut listing = match &self.backend {
            Backend::Local => local::list(folder)?,
            Backend::Remote { data, .. } => remote::list(data.as_ref(), folder).await?,
        };
        listing.objects.sort_by(|one, two| one.path.cmp(&two.path));
        Ok(listing)
    }

    /// Looks at one object; `None` when it does not exist.
    ///
    /// # Errors
    /// `Unavailable` when the store does not answer, `Invalid` when it refuses.
    pub async fn find(&self, path: &str) -> Result<Option<Object>> {
        self.counters.head();
        match &self.backend {
            Backend::Local => local::find(path),
            Backend::Remote { data, .. } => remote::find(data.as_ref(), path).await,
        }
    }

    /// Reads one whole object; `None` when it does not exist. For small objects.
    ///
    /// # Errors
    /// `Unavailable` when the store does not answer, `Invalid` when it refuses.
    pub async fn read(&self, path: &str) -> Result<Option<Bytes>> {
        self.counters.get();
        let bytes = match &self.backend {
            Backend::Local => local::read(path)?,
            Backend::Remote { data, .. } => remote::read(data.as_ref(), path).await?,
        };
        if let Some(bytes) = &bytes {
            self.counters.bytes_read(bytes.len());
        }
        Ok(bytes)
    }

    /// Stores bytes under a path that must not exist.
    ///
    /// # Guarantees
    /// Atomic and create-only. When it answers, the bytes are durable.
    ///
    /// # Errors
    /// `Unavailable` when the outcome is not known, `Exhausted` when the disk is full.
    pub async fn create(&self, path: &str, bytes: Bytes) -> Result<Created> {
        self.counters.put(bytes.len());
        match &self.backend {
            Backend::Local => local::create(path, &bytes),
            Backend::Remote { data, .. } => remote::create(data.as_ref(), path, bytes).await,
        }
    }

    /// Starts writing a large object under a path that must not exist.
    ///
    /// # Errors
    /// As [`Store::create`].
    pub async fn writer(&self, path: &str) -> Result<ObjectWriter> {
        let counters = Arc::clone(&self.counters);
        match &self.backend {
            Backend::Local => ObjectWriter::local(path, counters),
            Backend::Remote { data, .. } => ObjectWriter::remote(data, path, counters).await,
        }
    }

    /// Opens a pinned object: every byte read through it is the pinned object's.
    ///
    /// # Errors
    /// `Stale` when the object is gone or no longer the pinned one.
    pub fn open(&self, pinned: &Object) -> Result<ObjectReader> {
        let counters = Arc::clone(&self.counters);
        match &self.backend {
            Backend::Local => ObjectReader::local(pinned, counters),
            Backend::Remote { data, .. } => {
                Ok(ObjectReader::remote(Arc::clone(data), pinned, counters))
            }
        }
    }

    /// Removes unfinished local files of processes that are gone. Objects are never touched.
    ///
    /// # Errors
    /// `Unavailable` when the folder cannot be read.
    pub fn sweep_unfinished(&self, folder: &str) -> Result<usize> {
        match &self.backend {
            Backend::Local => local::sweep(folder),
            Backend::Remote { .. } => Ok(0),
        }
    }

    /// Whether paths are files of this machine.
    pub fn is_local(&self) -> bool {
        matches!(self.backend, Backend::Local)
    }
}

/// Reads a store's answer about one path.
pub(crate) fn store_error(verb: &str, path: &str, error: object_store::Error) -> Error {
    use object_store::Error as Answer;
    let kind = match &error {
        Answer::PermissionDenied { .. } | Answer::Unauthenticated { .. } => ErrorKind::Invalid,
        Answer::InvalidPath { .. } => ErrorKind::Invalid,
        // Listings and uploads give refusals as generic errors; the status is in their text.
        Answer::Generic { source, .. } if is_refusal(&source.to_string()) => ErrorKind::Invalid,
        Answer::NotSupported { .. } | Answer::NotImplemented { .. } => ErrorKind::Unsupported,
        Answer::Precondition { .. } => ErrorKind::Stale,
        Answer::NotFound { .. } if verb == "read" => ErrorKind::Stale,
        // A bucket or container that does not exist.
        Answer::NotFound { .. } => ErrorKind::Invalid,
        _ => ErrorKind::Unavailable,
    };
    let ours = match kind {
        ErrorKind::Invalid => Error::new(kind, format!("the store refuses to {verb}"))
            .hint("check the bucket's name, the credentials and the rights on this prefix (docs/security.md)"),
        ErrorKind::Stale => Error::new(kind, "an object changed or vanished while it was used")
            .hint("plan again: the plan pins what is there now"),
        _ => Error::new(kind, format!("cannot {verb}")),
    };
    ours.with("object", path).because(error)
}

fn is_refusal(text: &str) -> bool {
    text.contains("403 Forbidden") || text.contains("401 Unauthorized")
}

#[cfg(test)]
mod tests;
