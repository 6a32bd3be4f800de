//! The command line: arguments in, an answer out.
//!
//! Data goes to stdout, everything else to stderr. Every command can answer in JSON (`--json`):
//! one object on one line. The exit code says what a scheduler should do (see [`exit`]).

mod answer;
mod approve;
mod check;
mod context;
mod demo;
mod diff;
pub mod exit;
mod init;
mod ledger;
mod live;
mod plan;
mod policy;
mod publish;
mod read;
mod rollback;
mod run;
mod show;
mod signal;
mod status;
mod trial;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use answer::Answer;
use context::Context;

use crate::error::Result;

/// Recompute historical partitions of a Parquet dataset with corrected SQL, and release the result
/// safely.
#[derive(Debug, Parser)]
#[command(name = "reissue", version, max_term_width = 100)]
struct Arguments {
    /// Answer with one JSON object
    #[arg(long, global = true)]
    json: bool,
    /// Who is acting; else git's user.email
    #[arg(long = "as", global = true, value_name = "WHO")]
    actor: Option<String>,
    /// The dataset that a plan belongs to; else the variable REISSUE_DATASET
    #[arg(long, global = true, value_name = "URL")]
    dataset: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a dataset: adopt a Hive-partitioned folder in place, or begin an empty one
    Init(init::InitArguments),
    /// Take in what the dataset's own writers changed below its root
    Adopt(init::AdoptArguments),
    /// Run one partition of a spec and show its rows and differences; writes nothing
    Try(trial::TryArguments),
    /// Say exactly what a spec would do: a dry run, stored as an immutable plan
    Plan(plan::PlanArguments),
    /// Compute a plan's partitions, or go on where it stopped
    Run(run::RunArguments),
    /// Ask a run to start no further batch
    Pause(run::PauseArguments),
    /// Show plans, or what has become of one
    Status(status::StatusArguments),
    /// Check a run's stored candidate, and compare it with production
    Check(check::CheckArguments),
    /// Show how a checked candidate differs from production, or compare any two tables
    Diff(diff::DiffArguments),
    /// Differences that no claim explains: list them, look at one, say what is to become of them
    Ledger(ledger::LedgerArguments),
    /// Approve exactly what was checked
    Approve(approve::ApproveArguments),
    /// Make an approved candidate production, in one atomic commit
    Publish(publish::PublishArguments),
    /// Make partitions what they were; without --expect, only show what would happen
    Rollback(rollback::RollbackArguments),
    /// List a dataset's versions
    Log(read::LogArguments),
    /// List a version's files, for any reader
    Files(read::FilesArguments),
    /// Query a version: the dataset is the table of its folder's name
    Query(read::QueryArguments),
    /// Commit a live pipeline's files as one partition
    Commit(live::CommitArguments),
    /// Show the owner's rules, or change them
    Policy(policy::PolicyArguments),
    /// Go through a whole backfill on real flights, in a fresh folder
    Demo(demo::DemoArguments),
}

/// Runs the program.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    start_logging();
    let json = arguments.json;
    let result = on_big_stack(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .thread_stack_size(STACK_BYTES)
            .build()
            .map_err(|error| crate::error::Error::internal("start the runtime").because(error))?;
        runtime.block_on(answer(arguments))
    });
    match result {
        Ok(answer) => answer.print(json),
        Err(error) => answer::print_error(&error, json),
    }
}

/// A request that cannot be read, and requests for help. Machines get an object, as always.
fn usage(error: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().any(|word| word == "--json");
    if error.use_stderr() && wants_json {
        let text = error.to_string();
        let told = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
        let message = told.split_whitespace().collect::<Vec<_>>().join(" ");
        return answer::print_error(&crate::error::Error::invalid(message), true);
    }
    let text = error.render();
    if error.use_stderr() {
        answer::write_err(&text.to_string());
        return ExitCode::from(exit::INVALID);
    }
    answer::write_out(&text.to_string());
    ExitCode::SUCCESS
}

/// The engine plans by recursion; the gate bounds its depth, and this is room for it.
const STACK_BYTES: usize = 64 << 20;

fn on_big_stack(work: impl FnOnce() -> Result<Answer> + Send + 'static) -> Result<Answer> {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work);
    let handle =
        thread.map_err(|error| crate::error::Error::internal("start a thread").because(error))?;
    handle.join().unwrap_or_else(|_| Err(crate::error::Error::internal("the program panicked")))
}

fn start_logging() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("REISSUE_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}

async fn answer(arguments: Arguments) -> Result<Answer> {
    let context = Context::new(arguments.actor, arguments.dataset, arguments.json);
    match arguments.command {
        Command::Init(arguments) => init::init(&context, arguments).await,
        Command::Adopt(arguments) => init::adopt(&context, arguments).await,
        Command::Try(arguments) => trial::run(&context, arguments).await,
        Command::Plan(arguments) => plan::run(&context, arguments).await,
        Command::Run(arguments) => run::run(&context, arguments).await,
        Command::Pause(arguments) => run::pause(&context, arguments).await,
        Command::Status(arguments) => status::run(&context, arguments).await,
        Command::Check(arguments) => check::run(&context, arguments).await,
        Command::Diff(arguments) => diff::run(&context, arguments).await,
        Command::Ledger(arguments) => ledger::run(&context, arguments).await,
        Command::Approve(arguments) => approve::run(&context, arguments).await,
        Command::Publish(arguments) => publish::run(&context, arguments).await,
        Command::Rollback(arguments) => rollback::run(&context, arguments).await,
        Command::Log(arguments) => read::log(&context, arguments).await,
        Command::Files(arguments) => read::files(&context, arguments).await,
        Command::Query(arguments) => read::query(&context, arguments).await,
        Command::Commit(arguments) => live::commit(&context, arguments).await,
        Command::Policy(arguments) => policy::run(&context, arguments).await,
        Command::Demo(arguments) => demo::run(&context, arguments).await,
    }
}
