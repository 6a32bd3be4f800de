//! Reports: what the stored candidate is like, how it differs from production, and whether that
//! is as it should be. A report is frozen and named by its digest; approvals bind it.

mod balance;
mod build;
mod decode;
mod history;
mod look;
mod rows;
mod sample;
mod saved;
mod stored;
mod violations;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::candidate::Scope;
use crate::check::{Finding, Verdict};
use crate::compare::Diff;
use crate::explain::Cluster;
use crate::identity::Digest;
use crate::metrics::Metrics;

pub use build::{CheckProgress, check};
pub(crate) use decode::{decode_partition, production_table, verified_table};
pub use rows::cluster_rows;
pub use saved::{current_report, find_report};
pub(crate) use saved::{moved, reports_about};

/// The format this program writes.
pub const FORMAT: u32 = 1;

/// A report over one scope of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The format of this object.
    pub format: u32,
    /// The plan.
    pub plan: Digest,
    /// Which part of its run.
    pub scope: Scope,
    /// The frozen candidate.
    pub candidate: Digest,
    /// The version of production that it was compared with.
    pub base_version: u64,
    /// Each partition, by name.
    pub partitions: BTreeMap<String, PartitionReport>,
    /// The difference over all partitions.
    pub total: Diff,
    /// The differences by what happened, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<Cluster>,
    /// Those that no claim of the spec explains: the discrepancies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unexplained: Vec<Cluster>,
    /// Every check's result.
    pub findings: Vec<Finding>,
    /// The worst of them.
    pub verdict: Verdict,
}

/// One partition of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionReport {
    /// What the stored bytes say.
    pub metrics: Metrics,
    /// What production had when it was compared; none: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseReport>,
    /// The difference.
    pub diff: Diff,
}

/// Production's side of a partition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseReport {
    /// The identity of its files.
    pub identity: Digest,
    /// Its numbers.
    pub metrics: Metrics,
}
