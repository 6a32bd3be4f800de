//! Why a publish cannot go on: partitions that are not what they were compared with.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::dataset::{Dataset, Partition, Partitions};
use crate::error::Result;
use crate::identity::Digest;
use crate::plan::Plan;
use crate::report::{self, reports_about};

/// One partition in conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConflictedPartition {
    /// Its name.
    pub partition: String,
    /// What was observed, in words.
    pub reason: String,
}

/// Partitions that production has other content of than every report about a candidate.
pub(super) async fn moved(
    dataset: &Dataset,
    plan: &Plan,
    candidate: &Digest,
    production: &Partitions,
) -> Result<Vec<ConflictedPartition>> {
    let Some((report, _)) = reports_about(dataset, plan, candidate).await?.pop() else {
        return Ok(Vec::new());
    };
    let mut conflicts = Vec::new();
    for (partition, now) in report::moved(&report, plan, production)? {
        let reason = match now {
            Some(now) => format!(
                "version {} changed it after it was compared (in version {}){}",
                now.changed_in,
                report.base_version,
                now.logic.as_ref().map(|logic| format!(", with logic {logic}")).unwrap_or_default()
            ),
            None => "it was removed after it was compared".to_owned(),
        };
        conflicts.push(ConflictedPartition { partition, reason });
    }
    Ok(conflicts)
}

/// Partitions whose objects somebody changed without telling us.
pub(super) async fn changed_outside(
    dataset: &Dataset,
    plan: &Plan,
    partitions: &[Partition],
    production: &Partitions,
) -> Result<Vec<ConflictedPartition>> {
    let touched: Vec<Partition> = partitions
        .iter()
        .filter_map(|partition| {
            let (_, planned) = plan.partition(&partition.name)?;
            let now = production.at(partition.start).cloned();
            // Where production has nothing, its folder must hold nothing either.
            Some(now.unwrap_or_else(|| Partition::of(&planned.interval, Vec::new(), 0)))
        })
        .collect();
    conflicts_of(dataset, &touched).await
}

/// Objects of some partitions that are not as their version says, gathered by partition.
pub(super) async fn conflicts_of(
    dataset: &Dataset,
    partitions: &[Partition],
) -> Result<Vec<ConflictedPartition>> {
    let report = dataset.foreign_changes(partitions).await?;
    let mut by_partition: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for change in report.changes {
        let line = format!("{} {}", change.path, change.what);
        by_partition.entry(change.partition).or_default().push(line);
    }
    let each = by_partition.into_iter().map(|(partition, lines)| ConflictedPartition {
        partition,
        reason: format!("changed outside reissue: {}", lines.join(", ")),
    });
    Ok(each.collect())
}
