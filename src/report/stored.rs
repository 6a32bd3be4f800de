//! Metrics of a partition's files, kept so that they need not be decoded again.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::FORMAT;
use crate::dataset::{Dataset, layout};
use crate::error::{Error, Result};
use crate::identity::{Digest, from_json, to_json};
use crate::metrics::{DIGEST, Metrics};
use crate::storage::Created;

/// What is stored under a partition's identity.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredMetrics {
    format: u32,
    identity: Digest,
    metrics: Metrics,
}

/// Metrics with a profile of some columns are kept beside those without; those of another version
/// of the content digest stay where they are, unread.
fn path(identity: &Digest, profiled: &BTreeSet<String>) -> Result<String> {
    if profiled.is_empty() {
        return Ok(layout::metrics(identity, DIGEST));
    }
    let columns = Digest::of_json(&("profile 1", profiled))?;
    Ok(layout::metrics(identity, &format!("{DIGEST}.{}", columns.short())))
}

/// The metrics of the files of an identity, when somebody has measured them.
///
/// # Errors
/// `Corrupt` when they are about other files.
pub(super) async fn find_metrics(
    dataset: &Dataset,
    identity: &Digest,
    profiled: &BTreeSet<String>,
) -> Result<Option<Metrics>> {
    let path = path(identity, profiled)?;
    let Some(bytes) = dataset.control().read(&path).await? else { return Ok(None) };
    let stored: StoredMetrics = from_json(&bytes, &path)?;
    if &stored.identity != identity {
        return Err(
            Error::corrupt("stored metrics are about another partition").with("object", &path)
        );
    }
    Ok((stored.format == FORMAT).then_some(stored.metrics))
}

/// Stores the metrics of the files of an identity.
pub(super) async fn store_metrics(
    dataset: &Dataset,
    identity: &Digest,
    profiled: &BTreeSet<String>,
    metrics: &Metrics,
) -> Result<()> {
    let stored =
        StoredMetrics { format: FORMAT, identity: identity.clone(), metrics: metrics.clone() };
    let (Created::New(_) | Created::Exists) =
        dataset.control().create(&path(identity, profiled)?, to_json(&stored)?).await?;
    Ok(())
}
