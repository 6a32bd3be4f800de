//! The one write that decides: create-only, never retried, and honest about not knowing.

use bytes::Bytes;
use object_store::{Error as Answer, PutMode, PutOptions, PutPayload};

use super::{Backend, Created, Store, local, remote, store_error};
use crate::error::{Error, Result};

/// What a store said to a commit. Only [`CommitAnswer::Written`] is certain; the caller settles
/// the others by reading.
#[derive(Debug)]
#[must_use]
pub enum CommitAnswer {
    /// The object is stored, durably, by this call.
    Written,
    /// Something is stored under this path; perhaps by this very call.
    Exists,
    /// No usable answer: the object may be there now, later, or never.
    Doubtful(Error),
}

impl Store {
    /// Creates the object that makes something true, once.
    ///
    /// # Errors
    /// Only for a path that no store could accept. Everything else is an answer.
    pub async fn commit(&self, path: &str, bytes: Bytes) -> Result<CommitAnswer> {
        self.counters.put(bytes.len());
        let Backend::Remote { commit, .. } = &self.backend else {
            return Ok(match local::create(path, &bytes) {
                Ok(Created::New(_)) => CommitAnswer::Written,
                Ok(Created::Exists) => CommitAnswer::Exists,
                Err(error) => CommitAnswer::Doubtful(error),
            });
        };
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let target = remote::key(path)?;
        Ok(match commit.put_opts(&target, PutPayload::from_bytes(bytes), options).await {
            Ok(_) => CommitAnswer::Written,
            Err(Answer::AlreadyExists { .. } | Answer::Precondition { .. }) => CommitAnswer::Exists,
            Err(error) => CommitAnswer::Doubtful(store_error("commit", path, error)),
        })
    }
}
