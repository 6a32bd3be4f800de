//! Reading pinned objects, and only those.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore};

use super::counters::Counters;
use super::{Object, local, remote, store_error};
use crate::error::{Error, Result};

/// Reads ranges of one pinned object.
///
/// # Guarantees
/// Local: all ranges come from one open file whose identity was the pinned one when it was opened;
/// [`ObjectReader::finish`] looks again after the last read. Object stores: each request carries
/// the pinned e-tag (and version), so the store itself refuses to answer for another object.
#[derive(Debug, Clone)]
pub struct ObjectReader {
    pinned: Object,
    source: Source,
    counters: Arc<Counters>,
}

#[derive(Debug, Clone)]
enum Source {
    Local(Arc<File>),
    Remote(Arc<dyn ObjectStore>),
}

impl ObjectReader {
    pub(super) fn local(pinned: &Object, counters: Arc<Counters>) -> Result<Self> {
        let path = local::file_of(&pinned.path);
        #[expect(clippy::disallowed_methods, reason = "storage opens files")]
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(gone(pinned));
            }
            Err(error) => return Err(local::io_error("open", &path, error)),
        };
        let reader =
            Self { pinned: pinned.clone(), source: Source::Local(Arc::new(file)), counters };
        reader.check_open_file()?;
        Ok(reader)
    }

    pub(super) fn remote(
        store: Arc<dyn ObjectStore>,
        pinned: &Object,
        counters: Arc<Counters>,
    ) -> Self {
        Self { pinned: pinned.clone(), source: Source::Remote(store), counters }
    }

    /// The object this reads.
    pub fn object(&self) -> &Object {
        &self.pinned
    }

    fn check_open_file(&self) -> Result<()> {
        let Source::Local(file) = &self.source else { return Ok(()) };
        let path = local::file_of(&self.pinned.path);
        let meta = file.metadata().map_err(|error| local::io_error("look at", &path, error))?;
        let found = local::describe(&self.pinned.path, &meta);
        if found.is_same_as(&self.pinned) { Ok(()) } else { Err(changed(&self.pinned, &found)) }
    }

    /// Reads bytes `range`.
    ///
    /// # Errors
    /// `Stale` when the object is no longer the pinned one, `Unavailable` when the store does not
    /// answer.
    pub async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.counters.get();
        let length = usize::try_from(range.end.saturating_sub(range.start))
            .map_err(|_| Error::internal("a read of more than the address space"))?;
        let bytes = match &self.source {
            Source::Local(file) => self.read_local(file, range.start, length)?,
            Source::Remote(store) => self.read_remote(store.as_ref(), range).await?,
        };
        self.counters.bytes_read(length);
        if bytes.len() != length {
            return Err(Error::stale(format!(
                "a read gave {} bytes, the pinned object has {length} there",
                bytes.len()
            ))
            .with("object", &self.pinned.path));
        }
        Ok(bytes)
    }

    /// BLAKE3 of the whole object, read in pieces, with its identity looked at afterwards.
    ///
    /// # Errors
    /// As [`ObjectReader::read`].
    pub async fn hash(&self) -> Result<String> {
        const PIECE: u64 = 8 << 20;
        let mut hasher = blake3::Hasher::new();
        let mut at = 0;
        while at < self.pinned.size {
            let end = (at + PIECE).min(self.pinned.size);
            hasher.update(&self.read(at..end).await?);
            at = end;
        }
        self.finish()?;
        Ok(hasher.finalize().to_hex().to_string())
    }

    /// Looks at the object once more, after the last read.
    ///
    /// # Errors
    /// `Stale` when it is no longer the pinned one.
    pub fn finish(&self) -> Result<()> {
        self.check_open_file()?;
        if let Source::Local(_) = &self.source {
            // The open file may be the pinned one still, while the name is another's.
            let found = local::find(&self.pinned.path)?.ok_or_else(|| gone(&self.pinned))?;
            if !found.is_same_as(&self.pinned) {
                return Err(changed(&self.pinned, &found));
            }
        }
        Ok(())
    }

    // Local reads come from the page cache or one disk: blocking here is cheaper than a thread
    // hop for every range.
    fn read_local(&self, file: &File, start: u64, length: usize) -> Result<Bytes> {
        let mut buffer = vec![0; length];
        file.read_exact_at(&mut buffer, start).map_err(|error| {
            if error.kind() == std::io::ErrorKind::UnexpectedEof {
                Error::stale("the file is shorter than when it was pinned")
                    .with("object", &self.pinned.path)
                    .hint("plan again: the plan pins what is there now")
            } else {
                local::io_error("read", &local::file_of(&self.pinned.path), error)
            }
        })?;
        Ok(buffer.into())
    }

    async fn read_remote(&self, store: &dyn ObjectStore, range: Range<u64>) -> Result<Bytes> {
        let options = GetOptions {
            if_match: self.pinned.e_tag.clone(),
            version: self.pinned.version.clone(),
            range: Some(GetRange::Bounded(range)),
            ..GetOptions::default()
        };
        let path: Path = remote::key(&self.pinned.path)?;
        let as_stale = |error| store_error("read", &self.pinned.path, error);
        let answer = store.get_opts(&path, options).await.map_err(as_stale)?;
        if answer.meta.size != self.pinned.size {
            return Err(changed(&self.pinned, &remote::describe(answer.meta)));
        }
        answer.bytes().await.map_err(as_stale)
    }
}

fn gone(pinned: &Object) -> Error {
    Error::stale("a pinned object is gone")
        .with("object", &pinned.path)
        .hint("plan again: the plan pins what is there now")
}

fn changed(pinned: &Object, found: &Object) -> Error {
    let tag = |object: &Object| object.e_tag.clone().unwrap_or_else(|| "none".to_owned());
    Error::stale("a pinned object has changed since it was pinned")
        .with("object", &pinned.path)
        .with("pinned", format!("{} bytes, tag {}", pinned.size, tag(pinned)))
        .with("found", format!("{} bytes, tag {}", found.size, tag(found)))
        .hint("plan again: the plan pins what is there now")
}
