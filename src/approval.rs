//! Approvals: somebody's word for exactly one candidate, one report and one state of production.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::candidate::{Scope, freeze};
use crate::dataset::{Dataset, Kind, Policy, Version, layout};
use crate::env::Env;
use crate::error::{Error, ErrorKind, Result};
use crate::identity::{Digest, from_json, to_json};
use crate::ledger::{Standing, ledger_of, load_dispositions};
use crate::plan::{Plan, read_plan};
use crate::publish::Past;
use crate::report::{Report, current_report};
use crate::run::{RunState, check_dataset, check_expiry, load_events};
use crate::storage::Created;

/// One approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The dataset's id.
    pub dataset: String,
    /// The plan.
    pub plan: Digest,
    /// Which part of its run.
    pub scope: Scope,
    /// The frozen candidate.
    pub candidate: Digest,
    /// The report that was seen.
    pub report: Digest,
    /// What production had in each partition; none: nothing.
    pub base: BTreeMap<String, Option<Digest>>,
    /// Who approves.
    pub actor: String,
    /// Whether the identity is proven; until signatures come it is only claimed.
    pub signed: bool,
    /// Why, in the approver's words.
    pub comment: String,
    /// The newest version when it was given: after a rollback only later approvals count.
    pub head: u64,
    /// When.
    pub at: DateTime<Utc>,
}

/// What became of an approval.
#[derive(Debug)]
#[must_use]
pub enum ApproveOutcome {
    /// It is stored.
    Approved {
        /// The approval.
        approval: Box<Approval>,
        /// Its digest.
        digest: Digest,
        /// What was approved.
        report: Box<Report>,
        /// How many different people have approved now.
        have: usize,
        /// How many the policy asks for.
        need: usize,
    },
    /// Checks failed, or discrepancies are open: there is nothing to approve.
    NotClear(Box<Standing>),
    /// This person may not approve it.
    NotAllowed(String),
}

/// Approves what the current report says.
///
/// # Errors
/// `Stale` when there is no report about this candidate and production as it is now.
pub async fn approve(
    dataset: &Dataset,
    plan: &Plan,
    scope: Scope,
    actor: &str,
    comment: &str,
    env: &Env,
) -> Result<ApproveOutcome> {
    check_expiry(plan, env)?;
    let head = dataset.head().await?;
    check_dataset(plan, &head)?;
    let policy = dataset.policy(&head).await?;
    let state = RunState::load(dataset, plan).await?;
    let (_, candidate) = freeze(dataset, plan, scope, &state).await?;
    let production = dataset.partitions(&head).await?;
    let Some((report, digest)) = current_report(dataset, plan, &candidate, &production).await?
    else {
        return Err(Error::stale(
            "there is no report about this candidate and production as it is now",
        )
        .with("scope", scope)
        .hint(format!(
            "check it first: reissue check {} --dataset {}",
            plan.id.short(),
            dataset.root()
        )));
    };
    let standing = Standing::of(&report, &ledger_of(dataset, plan, &report, &policy).await?);
    if !standing.is_clear() {
        return Ok(ApproveOutcome::NotClear(Box::new(standing)));
    }
    let actor = &person(actor);
    let makers = makers(dataset, plan, &state).await?;
    if let Some(reason) = reason_against(&policy, &makers, actor) {
        return Ok(ApproveOutcome::NotAllowed(reason));
    }
    let base = report.partitions.iter().map(|(name, partition)| {
        (name.clone(), partition.base.as_ref().map(|base| base.identity.clone()))
    });
    let approval = Approval {
        dataset: head.manifest.dataset.clone(),
        plan: plan.id.clone(),
        scope,
        candidate,
        report: digest,
        base: base.collect(),
        actor: actor.clone(),
        signed: false,
        comment: comment.to_owned(),
        head: head.number(),
        at: env.now(),
    };
    let digest = Digest::of_json(&approval)?;
    let path = layout::run_object(&plan.id, "approvals", &digest);
    let (Created::New(_) | Created::Exists) =
        dataset.control().create(&path, to_json(&approval)?).await?;
    let all = load_approvals(dataset, plan).await?;
    let history = dataset.history().await?;
    let undone_in = Past::of(&plan.id, &history).undone(scope).map_or(0, |(_, by)| by.number());
    let bound = Bound {
        dataset: approval.dataset.clone(),
        plan: plan.id.clone(),
        scope,
        candidate: approval.candidate.clone(),
    };
    let rules =
        Rules { bound, policy: &policy, makers: &makers, consumed: consumed(&history), undone_in };
    let counting = rules.usable(&all, &approval.report);
    Ok(ApproveOutcome::Approved {
        approval: Box::new(approval),
        digest,
        report: Box::new(report),
        have: people(&counting).len(),
        need: rules.needed(),
    })
}

/// A person's name as it is compared: spaces and capitals do not make another person.
pub(crate) fn person(name: &str) -> String {
    name.trim().to_lowercase()
}

/// Everybody whose work a run's candidate is: planners, runners and SQL authors, also of the runs
/// whose results it took over, and those who disposed of its discrepancies.
pub(crate) async fn makers(
    dataset: &Dataset,
    plan: &Plan,
    state: &RunState,
) -> Result<BTreeSet<String>> {
    let mut plans: BTreeSet<Digest> =
        state.records.values().filter_map(|record| record.kept_from.clone()).collect();
    plans.insert(plan.id.clone());
    let mut makers = BTreeSet::new();
    for id in plans {
        let made =
            if id == plan.id { plan.makers() } else { read_plan(dataset, &id).await?.makers() };
        makers.extend(made.iter().map(|name| person(name)));
        for event in load_events(dataset, &id).await? {
            if matches!(event.event.as_str(), "planned" | "run-started") {
                makers.insert(person(&event.actor));
            }
        }
    }
    // Who has called a discrepancy acceptable does not approve the result as well.
    let said = load_dispositions(dataset, plan).await?;
    makers.extend(said.iter().map(|said| person(&said.actor)));
    Ok(makers)
}

/// Why somebody may not approve, if so: makers never may.
fn reason_against(policy: &Policy, makers: &BTreeSet<String>, actor: &str) -> Option<String> {
    if makers.contains(actor) {
        let makers: Vec<&str> = makers.iter().map(String::as_str).collect();
        return Some(format!(
            "{actor} made this candidate (planned it, ran it, wrote its SQL or disposed of its discrepancies); approving is for somebody who is none of {}",
            makers.join(", ")
        ));
    }
    if !policy.approvers.is_empty() && !policy.approvers.iter().any(|name| person(name) == actor) {
        let approvers: Vec<&str> = policy.approvers.iter().map(String::as_str).collect();
        return Some(format!(
            "the dataset's policy lets only {} approve, not {actor}",
            approvers.join(", ")
        ));
    }
    if !policy.unsigned_approvals {
        return Some(
            "the dataset's policy asks for signed approvals, which this version cannot make"
                .to_owned(),
        );
    }
    None
}

/// All approvals of a plan's run.
///
/// # Errors
/// `Corrupt` when one was changed after it was made.
pub async fn load_approvals(dataset: &Dataset, plan: &Plan) -> Result<BTreeMap<Digest, Approval>> {
    let listing = dataset.control().list(&layout::run_folder(&plan.id, "approvals")).await?;
    let mut approvals = BTreeMap::new();
    for object in listing.objects {
        let Some(bytes) = dataset.control().read(&object.path).await? else { continue };
        let approval: Approval = from_json(&bytes, &object.path)?;
        let digest = Digest::of_json(&approval)?;
        if !object.path.contains(digest.as_str()) {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "an approval's content does not match its name",
            )
            .with("object", &object.path));
        }
        approvals.insert(digest, approval);
    }
    Ok(approvals)
}

/// The approvals that versions have consumed.
pub(crate) fn consumed(history: &[Version]) -> BTreeSet<Digest> {
    let publishes = history.iter().filter(|version| version.manifest.kind == Kind::Publish);
    publishes.flat_map(|version| version.manifest.cause.approvals.iter().cloned()).collect()
}

/// What an approval must be about.
pub(crate) struct Bound {
    pub(crate) dataset: String,
    pub(crate) plan: Digest,
    pub(crate) scope: Scope,
    pub(crate) candidate: Digest,
}

/// Which approvals count, by the rules in force now.
pub(crate) struct Rules<'a> {
    pub(crate) bound: Bound,
    pub(crate) policy: &'a Policy,
    pub(crate) makers: &'a BTreeSet<String>,
    /// Those that versions have consumed.
    pub(crate) consumed: BTreeSet<Digest>,
    /// The version that undid the scope's last publish: earlier approvals count no more; 0: none.
    pub(crate) undone_in: u64,
}

impl Rules<'_> {
    /// The approvals of a report that count.
    pub(crate) fn usable<'a>(
        &self,
        approvals: &'a BTreeMap<Digest, Approval>,
        report: &Digest,
    ) -> Vec<(&'a Digest, &'a Approval)> {
        approvals
            .iter()
            .filter(|(digest, approval)| {
                &approval.report == report
                    && approval.dataset == self.bound.dataset
                    && approval.plan == self.bound.plan
                    && approval.scope == self.bound.scope
                    && approval.candidate == self.bound.candidate
                    && !self.consumed.contains(*digest)
                    && approval.head >= self.undone_in
                    && reason_against(self.policy, self.makers, &person(&approval.actor)).is_none()
            })
            .collect()
    }

    /// How many people must have approved: after a rollback at least one, whatever the policy.
    pub(crate) fn needed(&self) -> usize {
        self.policy.approvals.max(usize::from(self.undone_in > 0))
    }
}

/// The different people behind approvals.
pub(crate) fn people(approvals: &[(&Digest, &Approval)]) -> BTreeSet<String> {
    approvals.iter().map(|(_, approval)| person(&approval.actor)).collect()
}
