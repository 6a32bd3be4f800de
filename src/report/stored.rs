//! Metrics of a partition's files, kept so that they need not be decoded again.

use serde::{Deserialize, Serialize};

use super::FORMAT;
use crate::dataset::{Dataset, layout};
use crate::error::{Error, Result};
use crate::identity::{Digest, from_json, to_json};
use crate::metrics::Metrics;
use crate::storage::Created;

/// What is stored under a partition's identity.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredMetrics {
    format: u32,
    identity: Digest,
    metrics: Metrics,
}

/// The metrics of the files of an identity, when somebody has measured them.
pub(super) async fn find_metrics(dataset: &Dataset, identity: &Digest) -> Result<Option<Metrics>> {
    let path = layout::metrics(identity);
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
    metrics: &Metrics,
) -> Result<()> {
    let stored =
        StoredMetrics { format: FORMAT, identity: identity.clone(), metrics: metrics.clone() };
    let (Created::New(_) | Created::Exists) =
        dataset.control().create(&layout::metrics(identity), to_json(&stored)?).await?;
    Ok(())
}
