//! A folder of a store: what a URL names.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::{CommitAnswer, Created, Listing, Object, ObjectWriter, Store};
use crate::error::Result;

/// A folder in a store. Paths given to it and got from it are relative to it.
#[derive(Debug, Clone)]
pub struct Root {
    store: Arc<Store>,
    folder: String,
    url: String,
}

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

impl Root {
    pub(super) fn new(store: Arc<Store>, folder: String, url: String) -> Self {
        Self { store, folder, url }
    }

    /// The store it is in.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The URL, or the plain path for local disk.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.folder.rsplit('/').next().unwrap_or(&self.folder)
    }

    /// The folder beside this one whose name ends in `suffix`.
    #[must_use]
    pub fn sibling(&self, suffix: &str) -> Self {
        Self {
            store: Arc::clone(&self.store),
            folder: format!("{}{suffix}", self.folder),
            url: format!("{}{suffix}", self.url),
        }
    }

    /// A path of this folder as a path of the store.
    pub fn full(&self, path: &str) -> String {
        match (self.folder.is_empty(), path.is_empty()) {
            (true, _) => path.to_owned(),
            (false, true) => self.folder.clone(),
            (false, false) => format!("{}/{path}", self.folder),
        }
    }

    /// A path of the store as a path of this folder.
    pub fn relative<'a>(&self, full: &'a str) -> Option<&'a str> {
        if self.folder.is_empty() {
            return Some(full);
        }
        full.strip_prefix(&self.folder)?.strip_prefix('/')
    }

    /// A path of this folder as other tools want it: a file path, or a URL.
    pub fn public(&self, path: &str) -> String {
        format!("{}/{path}", self.url)
    }

    /// Lists below a folder; paths are relative to this root.
    ///
    /// # Errors
    /// As [`Store::list`].
    pub async fn list(&self, folder: &str) -> Result<Listing> {
        let mut listing = self.store.list(&self.full(folder)).await?;
        for object in &mut listing.objects {
            if let Some(path) = self.relative(&object.path) {
                object.path = path.to_owned();
            }
        }
        for (path, _) in &mut listing.refused {
            if let Some(relative) = self.relative(path) {
                *path = relative.to_owned();
            }
        }
        Ok(listing)
    }

    /// Looks at one object.
    ///
    /// # Errors
    /// As [`Store::find`].
    pub async fn find(&self, path: &str) -> Result<Option<Object>> {
        let found = self.store.find(&self.full(path)).await?;
        Ok(found.map(|object| Object { path: path.to_owned(), ..object }))
    }

    /// Reads one small object.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub async fn read(&self, path: &str) -> Result<Option<Bytes>> {
        self.store.read(&self.full(path)).await
    }

    /// Stores bytes under a new path.
    ///
    /// # Errors
    /// As [`Store::create`].
    pub async fn create(&self, path: &str, bytes: impl Into<Bytes>) -> Result<Created> {
        let created = self.store.create(&self.full(path), bytes.into()).await?;
        Ok(match created {
            Created::New(object) => Created::New(Object { path: path.to_owned(), ..object }),
            Created::Exists => Created::Exists,
        })
    }

    /// Creates the object that makes something true, once.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub async fn commit(&self, path: &str, bytes: impl Into<Bytes>) -> Result<CommitAnswer> {
        self.store.commit(&self.full(path), bytes.into()).await
    }

    /// Starts writing a large object under a new path.
    ///
    /// # Errors
    /// As [`Store::writer`].
    pub async fn writer(&self, path: &str) -> Result<ObjectWriter> {
        self.store.writer(&self.full(path)).await
    }

    /// The object of a relative path, as the store's own.
    #[must_use]
    pub fn absolute(&self, object: &Object) -> Object {
        Object { path: self.full(&object.path), ..object.clone() }
    }
}
