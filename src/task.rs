//! Tasks that end with whoever waits for them.

use tokio::task::JoinHandle;

use crate::error::{Error, Result};

/// Work on another thread; dropped, it stops at its next pause.
#[derive(Debug)]
pub(crate) struct Task<T>(JoinHandle<Result<T>>);

impl<T: Send + 'static> Task<T> {
    /// Starts the work.
    pub(crate) fn start(work: impl Future<Output = Result<T>> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// The work's own; `Internal` when it panicked.
    pub(crate) async fn join(mut self) -> Result<T> {
        (&mut self.0).await.map_err(|error| Error::internal("a task ended early").because(error))?
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
