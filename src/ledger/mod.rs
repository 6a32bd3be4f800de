//! The ledger: differences that no claim explains, and what was said of each.
//!
//! A *discrepancy* is a cluster of unexplained differences. Its id is a digest of its column and
//! pattern, so it is the same one after recomputing, and in the next candidate of the same change.
//! Its state is the fold of its dispositions, which are create-only objects of the change. A
//! disposition holds for what was seen, as far as [`Seen`] tells it, and for no more: when the discrepancy is another
//! one since, it is open again.

mod export;
mod seen;
mod stored;
mod words;

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::check::{Finding, Verdict};
use crate::compare::is_of;
use crate::dataset::{Dataset, Policy};
use crate::error::Result;
use crate::explain::{Cluster, Pattern};
use crate::identity::Digest;
use crate::plan::Plan;
use crate::report::Report;

pub use export::export;
pub use seen::Seen;
use seen::grown;
pub use stored::{DisposeOutcome, dispose, load_dispositions};
use words::Words;

/// The format this program writes.
pub const FORMAT: u32 = 2;

/// What is said of a discrepancy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Nobody has said anything that still holds.
    Open,
    /// It should be there; the spec just does not say so.
    Expected,
    /// It should not be there, and is put up with.
    Accepted,
    /// It must go before anything is published.
    ToFix,
}

impl State {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Expected => "expected",
            Self::Accepted => "accepted",
            Self::ToFix => "to-fix",
        }
    }

    /// Whether a publish is possible with it.
    fn settles(self) -> bool {
        matches!(self, Self::Expected | Self::Accepted)
    }
}

/// What somebody said of a discrepancy, stored once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disposition {
    /// The format of this object.
    pub format: u32,
    /// The change that the discrepancy belongs to.
    pub change: Digest,
    /// The discrepancy.
    pub discrepancy: String,
    /// What is said.
    pub state: State,
    /// Why.
    pub reason: String,
    /// Who says it.
    pub actor: String,
    /// When.
    pub at: DateTime<Utc>,
    /// The plan whose report was seen.
    pub plan: Digest,
    /// The words on the same discrepancy that were the last then: more than one when some did not
    /// know of each other.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub after: BTreeSet<Digest>,
    /// The discrepancy as it was seen.
    pub seen: Seen,
}

/// One group of differences that no claim explains.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Discrepancy {
    /// Its id: of its column and pattern.
    pub id: String,
    /// The differences.
    pub cluster: Cluster,
    /// What was said last, if it still holds.
    pub state: State,
    /// The last word on it.
    pub disposition: Option<Disposition>,
    /// The digests of the words that nobody has answered yet.
    #[serde(skip)]
    pub heads: BTreeSet<Digest>,
    /// Everybody who said last that it must be fixed.
    #[serde(skip)]
    pub fixers: BTreeSet<String>,
    /// Why that word holds no longer.
    pub reopened: Option<String>,
    /// Whether it keeps the candidate from being published.
    pub blocks: bool,
}

/// The id of a discrepancy.
///
/// # Errors
/// `Internal` only.
pub fn discrepancy_id(cluster: &Cluster) -> Result<String> {
    let digest = Digest::of_json(&("discrepancy 1", &cluster.column, &cluster.pattern))?;
    Ok(digest.short().to_owned())
}

/// The ledger of a report: each unexplained cluster with its last disposition.
///
/// # Errors
/// `Internal` only.
pub fn fold(
    report: &Report,
    dispositions: &[Disposition],
    policy: &Policy,
) -> Result<Vec<Discrepancy>> {
    let words = Words::of(dispositions, policy)?;
    let mut ledger = Vec::new();
    for cluster in &report.unexplained {
        let id = discrepancy_id(cluster)?;
        let last = words.last(&id);
        let mut said = last;
        let mut reopened = None;
        if let Some(word) = last {
            // A later word may cover less than an earlier one that nobody took back.
            let covering =
                words.since(&id).into_iter().find(|one| grown(&one.seen, cluster).is_none());
            reopened = if word.state.settles() && covering.is_none() {
                grown(&word.seen, cluster)
            } else {
                None
            };
            said = if word.state.settles() { covering.or(last) } else { last };
        }
        let state = match (said, &reopened) {
            (Some(word), None) => word.state,
            _ => State::Open,
        };
        let is_material = cluster.values > policy.immaterial_values;
        ledger.push(Discrepancy {
            heads: words.heads(&id),
            fixers: words.fixers(&id),
            id,
            cluster: cluster.clone(),
            state,
            disposition: said.cloned(),
            reopened,
            blocks: state == State::ToFix || (is_material && !state.settles()),
        });
    }
    Ok(ledger)
}

/// The ledger of a report, with what was said until now.
///
/// # Errors
/// `Corrupt` when a disposition was changed after it was made.
pub async fn ledger_of(
    dataset: &Dataset,
    plan: &Plan,
    report: &Report,
    policy: &Policy,
) -> Result<Vec<Discrepancy>> {
    fold(report, &load_dispositions(dataset, plan).await?, policy)
}

/// What stands between a report and an approval.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Standing {
    /// Checks that failed, and that no disposition settles.
    pub failed: Vec<Finding>,
    /// Discrepancies that block.
    pub open: Vec<Discrepancy>,
}

impl Standing {
    /// Of a report and its ledger.
    ///
    /// A refuted claim about differences is settled when every discrepancy that it consists of is.
    pub fn of(report: &Report, ledger: &[Discrepancy]) -> Self {
        let failed = report.findings.iter().filter(|one| one.verdict == Verdict::Fail);
        Self {
            failed: failed.filter(|finding| !is_settled(finding, ledger)).cloned().collect(),
            open: ledger.iter().filter(|one| one.blocks).cloned().collect(),
        }
    }

    /// Whether nothing does.
    pub fn is_clear(&self) -> bool {
        self.failed.is_empty() && self.open.is_empty()
    }
}

fn is_settled(finding: &Finding, ledger: &[Discrepancy]) -> bool {
    let about = |one: &&Discrepancy| {
        let cluster = &one.cluster;
        let column = cluster.column.as_deref();
        match finding.check.as_str() {
            "changed-columns" | "changed-values" => finding
                .column
                .as_deref()
                .zip(column)
                .is_some_and(|(found, path)| is_of(path, found)),
            "changed-rows-where" => column.is_some(),
            "added-rows" => cluster.pattern == Pattern::OnlyCandidate,
            "removed-rows" => cluster.pattern == Pattern::OnlyProduction,
            "expected-rows" => column.is_none(),
            _ => false,
        }
    };
    let mut found = ledger.iter().filter(about).peekable();
    found.peek().is_some() && found.all(|one| !one.blocks)
}
