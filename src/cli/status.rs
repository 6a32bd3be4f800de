//! `status`.

use clap::Args;

use super::answer::{Answer, table};
use super::check::scope_flag;
use super::context::Context;
use crate::approval::load_approvals;
use crate::candidate::{freeze, partitions_of};
use crate::dataset::{Dataset, ForeignReport, Partition, Version, layout};
use crate::error::Result;
use crate::ledger::{Standing, ledger_of};
use crate::plan::{Plan, read_plan};
use crate::publish::{Past, next_scope};
use crate::report::current_report;
use crate::run::{RunState, load_events};

#[derive(Debug, Args)]
pub(super) struct StatusArguments {
    /// The plan: the beginning of its id; none: all plans
    plan: Option<String>,
}

pub(super) async fn run(context: &Context, arguments: StatusArguments) -> Result<Answer> {
    match &arguments.plan {
        None => all(&context.dataset(None)?).await,
        Some(id) => {
            let (dataset, plan) = context.plan(id).await?;
            one(context, &dataset, &plan).await
        }
    }
}

async fn all(dataset: &Dataset) -> Result<Answer> {
    let history = dataset.history().await?;
    let mut plans = Vec::new();
    for object in dataset.control().list(layout::PLANS).await?.objects {
        if let Some(id) = layout::plan_id(&object.path) {
            plans.push(read_plan(dataset, &id).await?);
        }
    }
    plans.sort_by_key(|plan| plan.created_at);
    let mut rows = Vec::new();
    let mut values = Vec::new();
    for plan in &plans {
        let state = RunState::load(dataset, plan).await?;
        let standing = standing(&Past::of(&plan.id, &history), plan.decides.partitions.len());
        rows.push(vec![
            plan.id.short().to_owned(),
            plan.created_at.format("%Y-%m-%d %H:%M:%S").to_string(),
            format!("{} of {}", state.records.len(), plan.decides.partitions.len()),
            state.failed.len().to_string(),
            standing.clone(),
            plan.terms.reason.clone(),
        ]);
        values.push(serde_json::json!({
            "plan_id": plan.id, "created_at": plan.created_at, "planned": plan.decides.partitions.len(),
            "done": state.records.len(), "failed": state.failed.len(), "standing": standing,
        }));
    }
    let text = table(&["plan", "planned at (UTC)", "done", "failed", "published", "why"], rows);
    let version = history.last().map(Version::number);
    Answer::new(text, &serde_json::json!({ "version": version, "plans": values }))
}

fn standing(past: &Past, planned: usize) -> String {
    let Some(last) = past.all().last() else { return "no".to_owned() };
    match &last.undone_by {
        Some(version) => format!("{}, undone by {}", last.version.number(), version.number()),
        None => {
            let numbers: Vec<String> =
                past.standing_versions().map(|one| one.version.number().to_string()).collect();
            let count = past.standing_partitions();
            format!("version {} ({count} of {planned} partitions)", numbers.join(", "))
        }
    }
}

async fn one(context: &Context, dataset: &Dataset, plan: &Plan) -> Result<Answer> {
    let history = dataset.history().await?;
    let past = Past::of(&plan.id, &history);
    let state = RunState::load(dataset, plan).await?;
    let events = load_events(dataset, &plan.id).await?;
    let approvals = load_approvals(dataset, plan).await?;
    let planned = plan.decides.partitions.len();
    let mut text = format!(
        "plan {}: {}\n  {} of {planned} partitions are done, {} failed; published: {}\n",
        plan.id.short(),
        plan.terms.reason,
        state.records.len(),
        state.failed.len(),
        standing(&past, planned)
    );
    for failed in state.failed.values() {
        text += &format!(
            "  FAILED {} (attempt {}, {}): {}\n",
            failed.partition,
            failed.attempt,
            failed.ended_at.to_rfc3339(),
            failed.line()
        );
    }
    let (foreign, replaced) = now(dataset, plan, &past, &history).await?;
    for change in &foreign.changes {
        text += &format!("  changed outside reissue: {} {}\n", change.path, change.what);
    }
    for line in &replaced {
        text += &format!("  {line}\n");
    }
    for approval in approvals.values() {
        text += &format!(
            "  approved by {} at {}: {}\n",
            approval.actor,
            approval.at.to_rfc3339(),
            approval.scope
        );
    }
    for event in &events {
        text += &format!(
            "  {} {} by {} {}\n",
            event.at.to_rfc3339(),
            event.event,
            event.actor,
            event.detail
        );
    }
    let value = serde_json::json!({
        "plan_id": plan.id, "planned": planned, "done": state.records.len(),
        "records": state.records.values().map(|record| serde_json::json!({
            "partition": record.partition, "rows": record.metrics.rows, "attempt": record.attempt,
            "started_at": record.started_at, "finished_at": record.finished_at,
            "kept_from": record.kept_from, "files": record.files,
        })).collect::<Vec<_>>(),
        "failed": state.failed.values().collect::<Vec<_>>(), "attempts": state.attempts,
        "approvals": approvals.values().collect::<Vec<_>>(), "events": events,
        "published": standing(&past, planned), "terms": plan.terms,
        "changed_outside": foreign.changes, "changed_since_publish": replaced,
    });
    let answer = Answer::new(text, &value)?;
    Ok(match next_step(context, dataset, plan, (&state, &past)).await? {
        Some(next) => answer.next(next),
        None => answer,
    })
}

/// What production's objects of the plan's partitions are now, and which of them somebody else
/// changed since the plan was published.
async fn now(
    dataset: &Dataset,
    plan: &Plan,
    past: &Past,
    history: &[Version],
) -> Result<(ForeignReport, Vec<String>)> {
    let Some(head) = history.last() else { return Ok((ForeignReport::default(), Vec::new())) };
    let partitions = dataset.partitions(head).await?;
    let planned = plan.decides.partitions.iter();
    let current: Vec<&Partition> =
        planned.filter_map(|one| partitions.at(one.interval.start)).collect();
    let foreign = dataset.foreign_changes(current.iter().copied()).await?;
    let published = past.standing_versions().map(|one| one.version.number()).max();
    let replaced = current.iter().filter(|one| published.is_some_and(|ours| one.changed_in > ours));
    let lines = replaced
        .map(|one| {
            format!("{} is no longer the plan's: version {} changed it", one.name, one.changed_in)
        })
        .collect();
    Ok((foreign, lines))
}

/// What to do next with a plan, as far as its stored state tells.
async fn next_step(
    context: &Context,
    dataset: &Dataset,
    plan: &Plan,
    (state, past): (&RunState, &Past),
) -> Result<Option<String>> {
    if let Some(failed) = state.failed.keys().next() {
        return Ok(Some(format!(
            "mend the cause in {failed}, then plan again: results of equal recipe are kept"
        )));
    }
    let Some(scope) = next_scope(plan, past)? else { return Ok(None) };
    if past.standing(scope).is_some() {
        return Ok(None);
    }
    let flag = scope_flag(scope);
    let step = |verb: &str| Some(format!("{}{flag}", context.command(verb, plan, dataset)));
    let names = partitions_of(plan, scope)?;
    if names.iter().any(|name| !state.records.contains_key(name)) {
        return Ok(Some(context.command("run", plan, dataset)));
    }
    let head = dataset.head().await?;
    let (_, candidate) = freeze(dataset, plan, scope, state).await?;
    let production = dataset.partitions(&head).await?;
    let Some((report, digest)) = current_report(dataset, plan, &candidate, &production).await?
    else {
        return Ok(step("check"));
    };
    let policy = dataset.policy(&head).await?;
    let standing = Standing::of(&report, &ledger_of(dataset, plan, &report, &policy).await?);
    if !standing.failed.is_empty() {
        return Ok(step("check").map(|check| format!("the checks failed; see them again: {check}")));
    }
    if !standing.open.is_empty() {
        return Ok(step("ledger list").map(|list| format!("discrepancies are open: {list}")));
    }
    let approvals = load_approvals(dataset, plan).await?;
    let approved = approvals.values().any(|approval| approval.report == digest);
    Ok(if approved && past.undone(scope).is_none() {
        step("publish")
    } else {
        let approve = context.command_for("<APPROVER>", "approve", plan, dataset);
        Some(format!("{approve}{flag}"))
    })
}
