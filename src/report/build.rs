//! Checking a run: everything from the stored bytes, decoded again.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use tempfile::TempDir;

use super::look::{Checker, Looked};
use super::{FORMAT, Report};
use crate::candidate::{Candidate, Scope, freeze, partitions_of};
use crate::check::{Claims, ComparedPartition, RangeFacts, check_range, verdict};
use crate::compare::Diff;
use crate::dataset::{Dataset, Version, layout};
use crate::diff::{DiffOptions, spill_folder};
use crate::error::Result;
use crate::explain::{Cluster, Explanations};
use crate::identity::{Digest, to_json};
use crate::metrics::Metrics;
use crate::plan::Plan;
use crate::run::{RunState, check_dataset};
use crate::storage::{Created, Stores};
use crate::task::Task;

/// Called after each partition with its name.
pub type CheckProgress<'a> = &'a (dyn Fn(&str) + Sync);

/// Checks a scope of a run and stores the report.
///
/// # Errors
/// `Corrupt` when stored bytes are not what was recorded, `Stale` when a pinned source that a
/// balance reads has changed. Failed checks are findings of the report.
pub async fn check(
    stores: &Arc<Stores>,
    dataset: &Dataset,
    plan: &Plan,
    scope: Scope,
    progress: CheckProgress<'_>,
) -> Result<(Report, Digest)> {
    let state = RunState::load(dataset, plan).await?;
    let (candidate, digest) = freeze(dataset, plan, scope, &state).await?;
    let head = dataset.head().await?;
    check_dataset(plan, &head)?;
    let spill = spill_folder()?;
    let checker = checker(stores, dataset, plan, &head, &spill).await?;
    let checker = Arc::new(checker);
    let batches = batch_numbers(plan)?;
    let looks: Vec<_> = plan
        .decides
        .partitions
        .iter()
        .filter_map(|partition| Some((partition, state.records.get(&partition.interval.name)?)))
        .filter(|(partition, _)| candidate.partitions.contains_key(&partition.interval.name))
        .map(|(partition, record)| {
            let (checker, partition, record) =
                (Arc::clone(&checker), partition.clone(), record.clone());
            let batch = batches.get(&partition.interval.name).copied().unwrap_or_default();
            async move { checker.look(&partition, &record, batch).await }
        })
        .collect();
    // Each partition is a task of its own, so that they share the machine's cores.
    let tasks = looks.into_iter().map(|look| async { Task::start(look).join().await });
    let mut tasks = pin!(futures::stream::iter(tasks).buffered(plan.terms.limits.source_queries));
    let mut looked: Vec<Looked> = Vec::new();
    let (mut explained, mut unexplained) = (Explanations::default(), Explanations::default());
    while let Some(mut one) = tasks.try_next().await? {
        progress(&one.name);
        explained.add(std::mem::take(&mut one.explained))?;
        unexplained.add(std::mem::take(&mut one.unexplained))?;
        looked.push(one);
    }
    let clusters = (explained.finish()?, unexplained.finish()?);
    let history = checker.history(plan.decides.checks.history()).await?;
    let report = assemble(plan, (&candidate, digest), head.number(), (looked, history), clusters)?;
    let digest = Digest::of_json(&report)?;
    let path = layout::run_object(&plan.id, "reports", &digest);
    let (Created::New(_) | Created::Exists) =
        dataset.control().create(&path, to_json(&report)?).await?;
    Ok((report, digest))
}

/// What looking at a plan's partitions needs.
pub(super) async fn checker(
    stores: &Arc<Stores>,
    dataset: &Dataset,
    plan: &Plan,
    head: &Version,
    spill: &TempDir,
) -> Result<Checker> {
    Ok(Checker {
        stores: Arc::clone(stores),
        dataset: dataset.clone(),
        plan: plan.clone(),
        schema: plan.decides.definition.file_schema()?,
        production: dataset.partitions(head).await?,
        options: DiffOptions {
            key: plan.decides.key.clone(),
            equality: plan.decides.compare.clone(),
            memory: share_of_memory(plan),
            spill: (spill.path().to_owned(), plan.terms.limits.spill.as_u64()),
        },
        claims: Arc::new(Claims::new(
            &plan.decides.expect,
            &plan.decides.changed_columns,
            &plan.decides.definition.file_schema()?,
        )?),
    })
}

/// What one partition may hold to sort a side: both sides of several partitions share the limit.
fn share_of_memory(plan: &Plan) -> usize {
    let limits = &plan.terms.limits;
    let all = usize::try_from(limits.memory.as_u64()).unwrap_or(usize::MAX);
    all / (2 * limits.source_queries.max(1))
}

fn batch_numbers(plan: &Plan) -> Result<BTreeMap<String, usize>> {
    let mut numbers = BTreeMap::new();
    for (number, batch) in plan.batches()?.into_iter().enumerate() {
        let partitions = batch.into_iter().filter_map(|at| plan.decides.partitions.get(at));
        numbers.extend(partitions.map(|one| (one.interval.name.clone(), number + 1)));
    }
    Ok(numbers)
}

fn assemble(
    plan: &Plan,
    (candidate, digest): (&Candidate, Digest),
    base_version: u64,
    (looked, history): (Vec<Looked>, BTreeMap<String, Vec<Arc<Metrics>>>),
    (clusters, unexplained): (Vec<Cluster>, Vec<Cluster>),
) -> Result<Report> {
    let decides = &plan.decides;
    let planned = partitions_of(plan, candidate.scope)?;
    let names = decides.partitions.iter().map(|partition| partition.interval.name.clone());
    let estimates: BTreeMap<String, u64> =
        names.zip(plan.estimates.iter().map(|estimate| estimate.rows)).collect();
    let facts: Vec<ComparedPartition<'_>> = looked
        .iter()
        .map(|one| ComparedPartition {
            partition: &one.name,
            batch: one.batch,
            metrics: &one.report.metrics,
            recorded: &one.recorded,
            planned_rows: one.planned_base.as_ref().map(|base| base.rows),
            production: one.report.base.as_ref().map(|base| &base.metrics),
            diff: &one.report.diff,
            balances: &one.balances,
            claims: &one.claims,
            estimated_rows: estimates.get(&one.name).copied(),
            history: history.get(&one.name).map(Vec::as_slice).unwrap_or_default(),
        })
        .collect();
    let range = RangeFacts {
        planned: &planned,
        partitions: &facts,
        whole: candidate.scope == Scope::Run,
        changed_columns: &decides.changed_columns,
        compare: &decides.compare,
    };
    let mut findings = check_range(&range, &decides.checks, &decides.expect);
    findings.extend(looked.iter().flat_map(|one| one.findings.iter().cloned()));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
    let mut total = Diff::default();
    looked.iter().for_each(|one| total.merge(&one.report.diff));
    Ok(Report {
        format: FORMAT,
        plan: plan.id.clone(),
        scope: candidate.scope,
        candidate: digest,
        base_version,
        partitions: looked.into_iter().map(|one| (one.name, one.report)).collect(),
        total,
        clusters,
        unexplained,
        verdict: verdict(&findings),
        findings,
    })
}
