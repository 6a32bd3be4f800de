//! What was asked of a store, counted where it happens.
//!
//! For HTTP stores the requests are counted below the client, in its connector, so that retries
//! and refused answers are seen; for local disk at the operation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use serde::Serialize;

/// Running totals of one store.
#[derive(Debug, Default)]
pub struct Counters {
    reads: AtomicU64,
    writes: AtomicU64,
    lists: AtomicU64,
    looks: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
    http_requests: AtomicU64,
    http_errors: AtomicU64,
    http_retryable: AtomicU64,
}

/// A reading of [`Counters`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Reads of objects or parts of them.
    pub reads: u64,
    /// Objects written.
    pub writes: u64,
    /// Listings.
    pub lists: u64,
    /// Looks at one object's description.
    pub looks: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// HTTP requests sent, retries included; 0 for local disk.
    pub http_requests: u64,
    /// Requests without an answer, or answered with an error status.
    pub http_errors: u64,
    /// Those of `http_errors` that the client may try again: 408, 429, 5xx or no answer.
    pub http_retryable: u64,
}

impl Counters {
    pub(crate) fn get(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn head(&self) {
        self.looks.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn list(&self) {
        self.lists.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn put(&self, bytes: usize) {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.bytes_written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn bytes_read(&self, bytes: usize) {
        self.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The totals now.
    pub fn read(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            reads: read(&self.reads),
            writes: read(&self.writes),
            lists: read(&self.lists),
            looks: read(&self.looks),
            bytes_read: read(&self.bytes_read),
            bytes_written: read(&self.bytes_written),
            http_requests: read(&self.http_requests),
            http_errors: read(&self.http_errors),
            http_retryable: read(&self.http_retryable),
        }
    }
}

/// Connects HTTP clients whose requests are counted.
#[derive(Debug)]
pub(crate) struct CountingConnector {
    pub(crate) counters: Arc<Counters>,
}

impl HttpConnector for CountingConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let inner = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(CountingService { inner, counters: Arc::clone(&self.counters) }))
    }
}

#[derive(Debug)]
struct CountingService {
    inner: HttpClient,
    counters: Arc<Counters>,
}

#[async_trait]
impl HttpService for CountingService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        self.counters.http_requests.fetch_add(1, Ordering::Relaxed);
        let answer = self.inner.execute(request).await;
        let (failed, retryable) = match &answer {
            Ok(response) => {
                let status = response.status();
                let retryable = status.is_server_error() || matches!(status.as_u16(), 408 | 429);
                (status.is_client_error() || status.is_server_error(), retryable)
            }
            Err(_) => (true, true),
        };
        self.counters.http_errors.fetch_add(u64::from(failed), Ordering::Relaxed);
        self.counters.http_retryable.fetch_add(u64::from(retryable), Ordering::Relaxed);
        answer
    }
}
