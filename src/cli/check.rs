//! `check`, and the difference that it found.

use std::collections::BTreeMap;

use clap::Args;

use super::answer::Answer;
use super::context::Context;
use super::{exit, show};
use crate::candidate::{Scope, freeze};
use crate::check::suggest;
use crate::compare::Diff;
use crate::dataset::{Dataset, Version};
use crate::error::{Error, Result};
use crate::ledger::{Discrepancy, Standing, ledger_of};
use crate::metrics::Metrics;
use crate::plan::Plan;
use crate::report::{Report, check, current_report};
use crate::run::RunState;

#[derive(Debug, Args)]
pub(super) struct CheckArguments {
    /// The plan: the beginning of its id
    plan: String,
    /// One batch, counted from 1; else the whole run
    #[arg(long)]
    batch: Option<usize>,
    /// Also propose checks that production's own partitions would have passed, for the spec
    #[arg(long)]
    suggest: bool,
}

pub(super) fn scope_of(batch: Option<usize>) -> Scope {
    batch.map_or(Scope::Run, Scope::Batch)
}

pub(super) fn scope_flag(scope: Scope) -> String {
    match scope {
        Scope::Run => String::new(),
        Scope::Batch(number) => format!(" --batch {number}"),
    }
}

pub(super) async fn run(context: &Context, arguments: CheckArguments) -> Result<Answer> {
    let (dataset, plan) = context.plan(&arguments.plan).await?;
    let scope = scope_of(arguments.batch);
    let quiet = context.json || !context.on_terminal();
    let seen = |name: &str| {
        if !quiet {
            super::answer::write_err(&format!("\rchecked {name}  "));
        }
    };
    let (report, digest) = check(&context.stores, &dataset, &plan, scope, &seen).await?;
    if !quiet {
        super::answer::write_err("\r                              \r");
    }
    let text = format!(
        "report {} on {scope}: {} partitions decoded again from their stored bytes, compared with version {}\n{}{}{}",
        digest.short(),
        report.partitions.len(),
        report.base_version,
        show::findings(&report.findings),
        show::diff(&report.total),
        show::clusters(&report.clusters),
    );
    let metrics: Vec<_> = report
        .partitions
        .values()
        .map(|one| (&one.metrics, one.base.as_ref().map(|base| &base.metrics)))
        .collect();
    let text = text + &show::profiles(&metrics);
    let policy = dataset.policy(&dataset.head().await?).await?;
    let ledger = ledger_of(&dataset, &plan, &report, &policy).await?;
    let standing = Standing::of(&report, &ledger);
    let text = if ledger.is_empty() { text } else { text + &super::ledger::listed(&ledger) };
    let mut text = text;
    let mut value = summary(&report, &digest, &ledger, standing.is_clear());
    if arguments.suggest {
        let production: Vec<&Metrics> = report
            .partitions
            .values()
            .filter_map(|one| one.base.as_ref().map(|base| &base.metrics))
            .collect();
        let checks = suggest(&plan.decides.definition, &plan.decides.changed_columns, &production)?;
        let proposed = BTreeMap::from([("checks", &checks)]);
        let toml = toml::to_string(&proposed)
            .map_err(|error| Error::internal("write checks as TOML").because(error))?;
        text += &format!(
            "checks that all {} partitions of production would have passed, for the spec:\n\n{toml}",
            production.len()
        );
        value["suggested"] = serde_json::json!(checks);
    }
    let answer = Answer::new(text, &value)?;
    let flag = scope_flag(scope);
    Ok(if standing.is_clear() {
        let approve = context.command_for("<APPROVER>", "approve", &plan, &dataset);
        answer.next(format!("{approve}{flag}"))
    } else if standing.open.is_empty() {
        answer.exit(exit::FAILED)
    } else {
        let list = context.command("ledger list", &plan, &dataset);
        answer.exit(exit::FAILED).next(format!("{list}{flag}"))
    })
}

fn summary(
    report: &Report,
    digest: &crate::identity::Digest,
    ledger: &[Discrepancy],
    is_clear: bool,
) -> serde_json::Value {
    serde_json::json!({
        "report": digest, "plan_id": report.plan, "scope": report.scope,
        "candidate": report.candidate, "base_version": report.base_version,
        "verdict": report.verdict, "findings": report.findings, "total": report.total,
        "clusters": report.clusters, "discrepancies": ledger, "is_clear": is_clear,
        "partitions": report.partitions,
    })
}

/// A plan's report about its candidate and production as they are now.
pub(super) struct CurrentReport {
    pub(super) dataset: Dataset,
    pub(super) plan: Plan,
    pub(super) head: Version,
    pub(super) report: Report,
}

pub(super) async fn current(
    context: &Context,
    plan: &str,
    batch: Option<usize>,
) -> Result<CurrentReport> {
    let (dataset, plan) = context.plan(plan).await?;
    let scope = scope_of(batch);
    let state = RunState::load(&dataset, &plan).await?;
    let (_, candidate) = freeze(&dataset, &plan, scope, &state).await?;
    let head = dataset.head().await?;
    let production = dataset.partitions(&head).await?;
    let Some((report, _)) = current_report(&dataset, &plan, &candidate, &production).await? else {
        return Err(Error::stale(
            "there is no report about this candidate and production as it is now",
        )
        .hint(format!(
            "check it first: {}{}",
            context.command("check", &plan, &dataset),
            scope_flag(scope)
        )));
    };
    Ok(CurrentReport { dataset, plan, head, report })
}

/// The difference that the last report of a plan's candidate shows.
pub(super) async fn checked_difference(
    context: &Context,
    plan: &str,
    batch: Option<usize>,
    partition: Option<&str>,
) -> Result<Answer> {
    let CurrentReport { report, .. } = current(context, plan, batch).await?;
    if let Some(name) = partition {
        let partition = report
            .partitions
            .get(name)
            .ok_or_else(|| Error::invalid(format!("the report has no partition {name}")))?;
        let text = format!("{name}\n{}", show::diff(&partition.diff));
        return Answer::new(
            text,
            &serde_json::json!({ "partition": name, "diff": partition.diff }),
        );
    }
    let partitions: BTreeMap<String, Diff> =
        report.partitions.into_iter().map(|(name, one)| (name, one.diff)).collect();
    let text = show::diff(&report.total)
        + &show::clusters(&report.clusters)
        + &partition_rows(&partitions);
    let value = serde_json::json!({
        "total": report.total, "clusters": report.clusters, "partitions": partitions,
    });
    Answer::new(text, &value)
}

/// A line for each partition that differs.
pub(super) fn partition_rows(partitions: &BTreeMap<String, Diff>) -> String {
    let differ: Vec<_> = partitions.iter().filter(|(_, diff)| !diff.is_empty()).collect();
    if differ.is_empty() {
        return String::new();
    }
    super::answer::table(
        &["partition", "equal", "changed", "only production", "only candidate"],
        differ.into_iter().map(|(name, diff)| {
            let counts = [diff.equal, diff.changed, diff.only_production, diff.only_candidate];
            let name = if name.is_empty() { "(all)".to_owned() } else { name.clone() };
            std::iter::once(name).chain(counts.map(super::answer::thousands)).collect()
        }),
    )
}
