//! Object stores behind the `object_store` crate.

use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::path::Path;
use object_store::{
    Error as Answer, GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions,
    PutPayload,
};

use super::{Created, Listing, Object, store_error};
use crate::error::{Error, Result};

/// Reads a path as it is, without encoding it once more.
pub(super) fn key(path: &str) -> Result<Path> {
    Path::parse(path).map_err(|error| {
        Error::invalid("the path cannot be the name of an object")
            .with("object", path)
            .because(error)
    })
}

pub(super) fn describe(meta: ObjectMeta) -> Object {
    Object {
        path: meta.location.to_string(),
        size: meta.size,
        e_tag: meta.e_tag,
        version: meta.version,
        modified_at: meta.last_modified,
    }
}

pub(super) async fn list(store: &dyn ObjectStore, folder: &str) -> Result<Listing> {
    let prefix = key(folder)?;
    let found: Vec<ObjectMeta> = store
        .list(Some(&prefix))
        .try_collect()
        .await
        .map_err(|e| store_error("list", folder, e))?;
    // Azure's listings leave out the quotes that its other answers have, and that If-Match needs.
    let unquoted = store.to_string().contains("MicrosoftAzure");
    let quoted = |mut object: Object| {
        if unquoted {
            object.e_tag = object.e_tag.map(|tag| format!("\"{}\"", tag.trim_matches('"')));
        }
        object
    };
    let objects = found.into_iter().map(describe).map(quoted).collect();
    Ok(Listing { objects, refused: Vec::new() })
}

pub(super) async fn find(store: &dyn ObjectStore, path: &str) -> Result<Option<Object>> {
    match store.head(&key(path)?).await {
        Ok(meta) => Ok(Some(describe(meta))),
        Err(Answer::NotFound { .. }) => Ok(None),
        Err(error) => Err(store_error("look at", path, error)),
    }
}

pub(super) async fn read(store: &dyn ObjectStore, path: &str) -> Result<Option<Bytes>> {
    let answer = match store.get_opts(&key(path)?, GetOptions::default()).await {
        Ok(answer) => answer,
        Err(Answer::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(store_error("read", path, error)),
    };
    answer.bytes().await.map(Some).map_err(|error| store_error("read", path, error))
}

/// Creates an object. The data client retries, so "exists" may be our own first try: the bytes
/// decide.
pub(super) async fn create(store: &dyn ObjectStore, path: &str, bytes: Bytes) -> Result<Created> {
    let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    let target = key(path)?;
    match store.put_opts(&target, PutPayload::from_bytes(bytes.clone()), options).await {
        Ok(_) => {}
        Err(Answer::AlreadyExists { .. } | Answer::Precondition { .. }) => {
            match read(store, path).await? {
                Some(stored) if stored == bytes => {}
                Some(_) => return Ok(Created::Exists),
                None => {
                    return Err(Error::unavailable(
                        "the store answered both that an object exists and that it does not",
                    )
                    .with("object", path));
                }
            }
        }
        Err(error) => return Err(store_error("write", path, error)),
    }
    let stored = find(store, path).await?;
    stored.map(Created::New).ok_or_else(|| {
        Error::unavailable("the store does not show an object just written").with("object", path)
    })
}
