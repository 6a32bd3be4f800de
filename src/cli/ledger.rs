//! `ledger`: differences that no claim explains, and what is said of them.

use std::path::PathBuf;

use arrow::array::RecordBatch;
use clap::{Args, Subcommand, ValueEnum};

use super::answer::{Answer, table, thousands};
use super::check::{CurrentReport, current, scope_flag, scope_of};
use super::context::Context;
use super::{exit, show};
use crate::dataset::{Dataset, Policy};
use crate::error::{Error, Result};
use crate::explain::Cluster;
use crate::export::Export;
use crate::identity::Real;
use crate::ledger::{Discrepancy, DisposeOutcome, Standing, State, dispose, export, ledger_of};
use crate::metrics::value_text;
use crate::plan::Plan;
use crate::report::cluster_rows;

#[derive(Debug, Args)]
pub(super) struct LedgerArguments {
    #[command(subcommand)]
    command: LedgerCommand,
}

#[derive(Debug, Subcommand)]
enum LedgerCommand {
    /// List the discrepancies of a checked run
    List(ListArguments),
    /// Show one discrepancy's rows side by side
    Explain(ExplainArguments),
    /// Say what is to become of discrepancies
    Dispose(DisposeArguments),
}

#[derive(Debug, Args)]
struct ListArguments {
    /// The plan: the beginning of its id
    plan: String,
    /// One batch, counted from 1; else the whole run
    #[arg(long)]
    batch: Option<usize>,
    /// Write the list to a new file: .parquet or .csv
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct ExplainArguments {
    /// The discrepancy: the beginning of its id
    id: String,
    /// The plan: the beginning of its id
    plan: String,
    /// One batch, counted from 1; else the whole run
    #[arg(long)]
    batch: Option<usize>,
    /// Show so many of its rows, read again; else the examples of the report
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    /// Write all its rows to a new file: .parquet or .csv
    #[arg(long, value_name = "FILE", conflicts_with = "rows")]
    export: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct DisposeArguments {
    /// The plan: the beginning of its id
    plan: String,
    /// Which: the beginning of an id, `column=NAME`, or `all`
    #[arg(required = true)]
    which: Vec<String>,
    /// What is said of them; `expected` and `accepted` are for the dataset's owners
    #[arg(long, value_enum)]
    state: GivenState,
    /// Why
    #[arg(long)]
    reason: String,
    /// One batch, counted from 1; else the whole run
    #[arg(long)]
    batch: Option<usize>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum GivenState {
    Open,
    Expected,
    Accepted,
    ToFix,
}

impl From<GivenState> for State {
    fn from(given: GivenState) -> Self {
        match given {
            GivenState::Open => Self::Open,
            GivenState::Expected => Self::Expected,
            GivenState::Accepted => Self::Accepted,
            GivenState::ToFix => Self::ToFix,
        }
    }
}

pub(super) async fn run(context: &Context, arguments: LedgerArguments) -> Result<Answer> {
    match arguments.command {
        LedgerCommand::List(arguments) => list(context, arguments).await,
        LedgerCommand::Explain(arguments) => explain(context, arguments).await,
        LedgerCommand::Dispose(arguments) => say(context, arguments).await,
    }
}

/// The ledger of a plan's current report.
async fn opened(
    context: &Context,
    plan: &str,
    batch: Option<usize>,
) -> Result<(Dataset, Plan, Policy, Vec<Discrepancy>)> {
    let CurrentReport { dataset, plan, head, report } = current(context, plan, batch).await?;
    let policy = dataset.policy(&head).await?;
    let ledger = ledger_of(&dataset, &plan, &report, &policy).await?;
    Ok((dataset, plan, policy, ledger))
}

async fn list(context: &Context, arguments: ListArguments) -> Result<Answer> {
    let CurrentReport { dataset, plan, head, report } =
        current(context, &arguments.plan, arguments.batch).await?;
    let policy = dataset.policy(&head).await?;
    let ledger = ledger_of(&dataset, &plan, &report, &policy).await?;
    if let Some(file) = &arguments.export {
        export(&ledger, file)?;
    }
    let value = serde_json::json!({ "plan_id": plan.id, "discrepancies": ledger });
    let answer = Answer::new(listed(&ledger), &value)?;
    let standing = Standing::of(&report, &ledger);
    let verb = match standing.open.first() {
        Some(one) => format!("ledger explain {}", one.id),
        None if standing.is_clear() => "approve".to_owned(),
        // What else keeps it from being published is shown there.
        None => "check".to_owned(),
    };
    let flag = scope_flag(scope_of(arguments.batch));
    Ok(answer.next(format!("{}{flag}", context.command(&verb, &plan, &dataset))))
}

/// The discrepancies as a table.
pub(super) fn listed(ledger: &[Discrepancy]) -> String {
    if ledger.is_empty() {
        return "no discrepancy: the spec's claims explain every difference\n".to_owned();
    }
    let blocking = ledger.iter().filter(|one| one.blocks).count();
    let mut text = format!("{} discrepancies, {blocking} of them block a publish\n", ledger.len());
    let optional = |value: Option<Real>| value.map_or("-".to_owned(), |value| value.to_string());
    text += &table(
        &["id", "what", "values", "from", "to", "net change", "state"],
        ledger.iter().map(|one| {
            let cluster = &one.cluster;
            let state = match &one.reopened {
                Some(why) => format!("open again: {why}"),
                None => one.state.name().to_owned(),
            };
            vec![
                one.id.clone(),
                cluster.line(),
                thousands(cluster.values),
                cluster.first.clone(),
                cluster.last.clone(),
                optional(cluster.net_change),
                state,
            ]
        }),
    );
    text
}

async fn explain(context: &Context, arguments: ExplainArguments) -> Result<Answer> {
    let found = current(context, &arguments.plan, arguments.batch).await?;
    let policy = found.dataset.policy(&found.head).await?;
    let ledger = ledger_of(&found.dataset, &found.plan, &found.report, &policy).await?;
    let plan = &found.plan;
    let one = chosen(&ledger, std::slice::from_ref(&arguments.id))?.remove(0);
    let cluster = &one.cluster;
    let mut text = format!(
        "{} {}\n  {} values in {} partitions, {} to {}; owner of the change: {}\n",
        one.id,
        cluster.line(),
        thousands(cluster.values),
        cluster.partitions,
        cluster.first,
        cluster.last,
        plan.terms.owner
    );
    if let (Some(net), Some(largest)) = (cluster.net_change, cluster.largest_change) {
        text += &format!("  all changes together {net}, the largest {largest}\n");
    }
    match (&one.disposition, &one.reopened) {
        (None, _) => text += "  open: nobody has said anything of it\n",
        (Some(said), None) => {
            text += &format!("  {} by {}: {}\n", said.state.name(), said.actor, said.reason);
        }
        (Some(said), Some(why)) => {
            text += &format!(
                "  open again, {why}; {} called it {}: {}\n",
                said.actor,
                said.state.name(),
                said.reason
            );
        }
    }
    let mut value = serde_json::to_value(&one)
        .map_err(|error| Error::internal("write a discrepancy as JSON").because(error))?;
    if arguments.rows.is_some() || arguments.export.is_some() {
        let (told, rows) = read_again(context, &found, cluster, &arguments).await?;
        text += &told;
        value["rows"] = rows;
    } else {
        text += &show::examples(
            cluster.examples.iter().map(|example| (Some(example.partition.as_str()), &example.row)),
        );
    }
    Answer::new(text, &value)
}

/// A discrepancy's rows as a table and as JSON, or in a file.
async fn read_again(
    context: &Context,
    found: &CurrentReport,
    cluster: &Cluster,
    arguments: &ExplainArguments,
) -> Result<(String, serde_json::Value)> {
    let mut export = arguments.export.as_deref().map(Export::create).transpose()?;
    let most = arguments.rows.unwrap_or(usize::MAX);
    let (mut written, mut headings, mut lines) = (0, Vec::new(), Vec::new());
    let mut see = |rows: RecordBatch| {
        if let Some(export) = &mut export {
            export.write(&rows)?;
            written += rows.num_rows();
            return Ok(true);
        }
        headings = rows.schema().fields().iter().map(|field| field.name().clone()).collect();
        for row in 0..rows.num_rows().min(most - lines.len()) {
            lines.push(rows.columns().iter().map(|array| value_text(array, row)).collect());
        }
        Ok(lines.len() < most)
    };
    let about = (&found.report, cluster);
    cluster_rows(&context.stores, &found.dataset, &found.plan, about, &mut see).await?;
    if let (Some(export), Some(file)) = (export, &arguments.export) {
        export.close()?;
        let mut text =
            format!("{} rows written to {}\n", thousands(written as u64), file.display());
        if written as u64 != cluster.values {
            text += &format!(
                "the report counts {}: a value that several explanations fit is under the largest of them here\n",
                thousands(cluster.values)
            );
        }
        return Ok((text, serde_json::json!(written)));
    }
    let rows: Vec<serde_json::Value> = lines
        .iter()
        .map(|line: &Vec<String>| {
            headings
                .iter()
                .cloned()
                .zip(line.iter().cloned().map(serde_json::Value::String))
                .collect()
        })
        .collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    Ok((table(&headings, lines), serde_json::json!(rows)))
}

/// The discrepancies that words mean.
fn chosen(ledger: &[Discrepancy], which: &[String]) -> Result<Vec<Discrepancy>> {
    let mut found: Vec<Discrepancy> = Vec::new();
    for word in which {
        let is_id = word.split_once('=').is_none() && word != "all";
        let fits = |one: &&Discrepancy| match word.split_once('=') {
            Some(("column", name)) => one.cluster.column.as_deref() == Some(name),
            _ => word == "all" || (!word.is_empty() && one.id.starts_with(word.as_str())),
        };
        let here: Vec<&Discrepancy> = ledger.iter().filter(fits).collect();
        let known = |found: &mut dyn Iterator<Item = &Discrepancy>| {
            found.map(|one| one.id.as_str()).collect::<Vec<_>>().join(", ")
        };
        if here.is_empty() {
            let hint = match known(&mut ledger.iter()) {
                none if none.is_empty() => "the ledger has no discrepancy".to_owned(),
                ids => format!("the ledger has: {ids}"),
            };
            return Err(Error::invalid(format!("no discrepancy is called {word:?}")).hint(hint));
        }
        if is_id && here.len() > 1 {
            let ids = known(&mut here.into_iter());
            return Err(Error::invalid(format!("{word:?} is the beginning of several ids"))
                .hint(format!("say which: {ids}; or column=NAME, or all")));
        }
        for one in here {
            if !found.iter().any(|held| held.id == one.id) {
                found.push(one.clone());
            }
        }
    }
    Ok(found)
}

async fn say(context: &Context, arguments: DisposeArguments) -> Result<Answer> {
    let (dataset, plan, policy, ledger) = opened(context, &arguments.plan, arguments.batch).await?;
    let chosen = chosen(&ledger, &arguments.which)?;
    let actor = context.actor()?;
    let said = (chosen.as_slice(), arguments.state.into(), arguments.reason.as_str());
    match dispose(&dataset, &plan, &policy, said, &actor, &context.env).await? {
        DisposeOutcome::Disposed(dispositions) => {
            let mut text = String::new();
            for one in &chosen {
                text += &format!(
                    "{} {}: {}\n",
                    one.id,
                    State::from(arguments.state).name(),
                    one.cluster.line()
                );
            }
            let answer = Answer::new(text, &serde_json::json!({ "dispositions": dispositions }))?;
            let next = context.command("ledger list", &plan, &dataset);
            Ok(answer.next(format!("{next}{}", scope_flag(scope_of(arguments.batch)))))
        }
        DisposeOutcome::NotAllowed(reason) => {
            let value = serde_json::json!({ "disposed": false, "reason": reason });
            Ok(Answer::new(format!("not disposed: {reason}\n"), &value)?.exit(exit::FAILED))
        }
    }
}
