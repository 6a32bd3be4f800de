//! Writing large objects piece by piece.

use std::sync::Arc;

use bytes::Bytes;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt as _, PutPayload};

use super::counters::Counters;
use super::local::Unfinished;
use super::{Created, Object, remote, store_error};
use crate::error::{Error, Result};

/// Parts of this size keep a 10,000-part upload under 80 GB; S3's least is 5 MiB.
const PART_BYTES: usize = 8 << 20;

/// An object being written. Nothing is visible before [`ObjectWriter::finish`]; dropping it, or an
/// error, leaves nothing that anything would believe.
#[derive(Debug)]
pub struct ObjectWriter {
    path: String,
    sink: Sink,
    hash: blake3::Hasher,
    size: u64,
    counters: Arc<Counters>,
}

#[derive(Debug)]
enum Sink {
    Local(Unfinished),
    Remote {
        store: Arc<dyn ObjectStore>,
        upload: Box<dyn MultipartUpload>,
        part: Vec<u8>,
    },
    /// The path had an object before the first byte.
    Taken,
}

/// A finished object.
#[derive(Debug)]
pub struct Written {
    /// As the store describes it.
    pub object: Object,
    /// BLAKE3 of all its bytes.
    pub hash: String,
}

impl ObjectWriter {
    pub(super) fn local(path: &str, counters: Arc<Counters>) -> Result<Self> {
        Ok(Self::new(path, Sink::Local(Unfinished::begin(path)?), counters))
    }

    pub(super) async fn remote(
        store: &Arc<dyn ObjectStore>,
        path: &str,
        counters: Arc<Counters>,
    ) -> Result<Self> {
        // ORDER: an upload's completion overwrites without asking, so the path must be new. Paths
        // are random, or made from content, where a race writes the same bytes.
        if remote::find(store.as_ref(), path).await?.is_some() {
            return Ok(Self::new(path, Sink::Taken, counters));
        }
        let upload = store
            .put_multipart(&remote::key(path)?)
            .await
            .map_err(|error| store_error("write", path, error))?;
        let sink = Sink::Remote { store: Arc::clone(store), upload, part: Vec::new() };
        Ok(Self::new(path, sink, counters))
    }

    fn new(path: &str, sink: Sink, counters: Arc<Counters>) -> Self {
        Self { path: path.to_owned(), sink, hash: blake3::Hasher::new(), size: 0, counters }
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// `Exhausted` when the disk is full, `Unavailable` when the store does not answer; the upload
    /// is given up.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        match &mut self.sink {
            Sink::Taken => Ok(()),
            Sink::Local(file) => file.write(bytes),
            Sink::Remote { part, .. } => {
                part.extend_from_slice(bytes);
                if part.len() < PART_BYTES { Ok(()) } else { self.send_part().await }
            }
        }
    }

    async fn send_part(&mut self) -> Result<()> {
        let Sink::Remote { upload, part, .. } = &mut self.sink else { return Ok(()) };
        // An upload needs one part; a further one without bytes is refused by some stores.
        if part.is_empty() && self.size > 0 {
            return Ok(());
        }
        let payload = PutPayload::from_bytes(Bytes::from(std::mem::take(part)));
        let sent = upload.put_part(payload).await;
        if let Err(error) = sent {
            give_up(upload.as_mut()).await;
            return Err(store_error("write", &self.path, error));
        }
        Ok(())
    }

    /// Makes the object visible and durable.
    ///
    /// # Errors
    /// As [`ObjectWriter::write`]; `Internal` when the path was taken meanwhile.
    pub async fn finish(self) -> Result<Written> {
        let path = self.path.clone();
        self.finish_unless_exists()
            .await?
            .ok_or_else(|| Error::internal("an object would be written twice").with("object", path))
    }

    /// The same, for paths made from content: `None` when somebody else has written them meanwhile.
    ///
    /// # Errors
    /// As [`ObjectWriter::write`].
    pub async fn finish_unless_exists(mut self) -> Result<Option<Written>> {
        self.counters.put(usize::try_from(self.size).unwrap_or(usize::MAX));
        self.send_part().await?;
        let hash = self.hash.finalize().to_hex().to_string();
        let object = match self.sink {
            Sink::Taken => return Ok(None),
            Sink::Local(file) => match file.finish()? {
                Created::New(object) => object,
                Created::Exists => return Ok(None),
            },
            Sink::Remote { store, mut upload, .. } => {
                if let Err(error) = upload.complete().await {
                    give_up(upload.as_mut()).await;
                    return Err(store_error("write", &self.path, error));
                }
                remote::find(store.as_ref(), &self.path).await?.ok_or_else(|| {
                    Error::unavailable("the store does not show an object just written")
                        .with("object", &self.path)
                })?
            }
        };
        Ok(Some(Written { object, hash }))
    }

    /// Gives up: parts already sent are removed from the store.
    pub async fn abort(mut self) {
        if let Sink::Remote { upload, .. } = &mut self.sink {
            give_up(upload.as_mut()).await;
        }
    }
}

async fn give_up(upload: &mut dyn MultipartUpload) {
    if let Err(error) = upload.abort().await {
        tracing::warn!(%error, "parts of an upload stay in the store; a lifecycle rule removes them");
    }
}
