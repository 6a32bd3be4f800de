//! `run` and `pause`.

use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::answer::{Answer, thousands, write_err};
use super::context::Context;
use super::exit;
use super::signal::listen;
use crate::error::{ErrorKind, Result};
use crate::run::{Progress, RunOptions, Stop, run as run_plan, store_event};
use crate::spec::Unit;

#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// The plan: the beginning of its id
    plan: String,
    /// Rows of an engine batch; decides nothing about results
    #[arg(long, default_value_t = RunOptions::default().batch_rows, value_parser = at_least_one)]
    batch_rows: usize,
    /// Threads of one query; decides nothing about results
    #[arg(long, default_value_t = 1, value_parser = at_least_one)]
    query_threads: usize,
    /// Go on with other batches although a partition fails; nothing of it can be published
    #[arg(long)]
    keep_going: bool,
}

#[derive(Debug, Args)]
pub(super) struct PauseArguments {
    /// The plan: the beginning of its id
    plan: String,
}

fn at_least_one(text: &str) -> std::result::Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("a number of 1 or more is needed".to_owned()),
        Ok(number) => Ok(number),
    }
}

pub(super) async fn run(context: &Context, arguments: RunArguments) -> Result<Answer> {
    let (dataset, plan) = context.plan(&arguments.plan).await?;
    let options = RunOptions {
        actor: context.actor()?,
        batch_rows: arguments.batch_rows,
        query_threads: arguments.query_threads,
        keep_going: arguments.keep_going,
    };
    let stop = Stop::default();
    let signal = listen(stop.clone())?;
    let show = Arc::new(Shown::new(context.on_terminal(), context.json));
    let shown = Arc::clone(&show);
    let listener = Arc::new(move |progress| shown.see(&progress));
    let begun = Instant::now();
    let outcome =
        run_plan(&context.stores, &dataset, &plan, &options, &context.env, &stop, listener).await;
    show.finish();
    let interrupted = signal.code();
    let outcome = outcome?;
    let mut text = format!(
        "run of {}: {} of {} partitions are done ({} now, {} kept from earlier plans, {} before) in {:.1} s\n",
        plan.id.short(),
        outcome.computed + outcome.kept + outcome.done_before,
        outcome.planned,
        outcome.computed,
        outcome.kept,
        outcome.done_before,
        begun.elapsed().as_secs_f64()
    );
    for failed in &outcome.failed {
        text += &format!("FAILED {}: {}\n", failed.partition, failed.error);
        for finding in &failed.findings {
            text += &format!("  {}\n", finding.line());
        }
        for cause in &failed.causes {
            text += &format!("  because: {cause}\n");
        }
        for hint in &failed.hints {
            text += &format!("  hint: {hint}\n");
        }
        text += "  its evidence is kept; production is untouched\n";
    }
    if !outcome.failed.is_empty() && !arguments.keep_going {
        text += "later batches were not started\n";
    }
    if let Some(reason) = &outcome.stopped {
        text += &format!("stopped: {reason}; everything done is recorded, running again goes on\n");
    }
    let value = serde_json::json!({
        "plan_id": plan.id, "complete": outcome.is_complete(), "planned": outcome.planned,
        "computed": outcome.computed, "kept": outcome.kept, "done_before": outcome.done_before,
        "failed": outcome.failed, "stopped": outcome.stopped,
        "stores": store_counts(context),
    });
    let answer = Answer::new(text, &value)?;
    if let Some(failed) = outcome.failed.first() {
        let next = format!(
            "mend the cause in {}, then plan again: results of equal recipe are kept (or go on as it is: {})",
            failed.partition,
            context.command("run", &plan, &dataset)
        );
        return Ok(answer.exit(exit_of(failed)).next(next));
    }
    if outcome.stopped.is_some() {
        let code = interrupted.unwrap_or(exit::STOPPED);
        return Ok(answer.exit(code).next(context.command("run", &plan, &dataset)));
    }
    let scope = if plan.decides.publish_unit == Unit::Batch { " --batch 1" } else { "" };
    Ok(answer.next(format!("{}{scope}", context.command("check", &plan, &dataset))))
}

/// The exit code of a failed partition: stale inputs and exhausted resources say so.
fn exit_of(failed: &crate::run::FailedAttempt) -> u8 {
    let kinds =
        [ErrorKind::Stale, ErrorKind::Exhausted, ErrorKind::Corrupt, ErrorKind::Unsupported];
    let kind = kinds.into_iter().find(|kind| kind.name() == failed.kind);
    kind.map_or(exit::FAILED, exit::code)
}

fn store_counts(context: &Context) -> serde_json::Value {
    let stores = context.stores.opened_stores().into_iter();
    stores.map(|(name, store)| (name, serde_json::json!(store.counters()))).collect()
}

/// Progress in intervals and validated rows: a bar on a terminal, plain lines elsewhere.
struct Shown {
    bar: Option<ProgressBar>,
    quiet: bool,
    counts: std::sync::Mutex<Counts>,
}

struct Counts {
    begun: Instant,
    planned: usize,
    done: usize,
    done_now: usize,
    rows: u64,
    last_line: Instant,
}

impl Shown {
    fn new(terminal: bool, quiet: bool) -> Self {
        let bar = terminal.then(|| {
            let bar = ProgressBar::new(0);
            let style =
                ProgressStyle::with_template("{bar:30} {pos}/{len} intervals  {msg}  {eta} left");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        let now = Instant::now();
        let counts =
            Counts { begun: now, planned: 0, done: 0, done_now: 0, rows: 0, last_line: now };
        Self { bar, quiet, counts: std::sync::Mutex::new(counts) }
    }

    fn see(&self, progress: &Progress) {
        let mut counts = self.counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let line = match progress {
            Progress::Begun { partitions, done } => {
                (counts.planned, counts.done) = (*partitions, *done);
                if let Some(bar) = &self.bar {
                    bar.set_length(*partitions as u64);
                    bar.set_position(*done as u64);
                    bar.reset_eta();
                }
                format!("run: {partitions} intervals, {done} done before")
            }
            Progress::Recorded { partition, rows, kept } => {
                counts.done += 1;
                counts.done_now += 1;
                counts.rows += rows;
                let word = if *kept { "kept" } else { "validated" };
                format!("{partition}: {word} {} rows  ({})", thousands(*rows), counts.summary())
            }
            Progress::Failed { partition, why } => format!("{partition}: FAILED {why}"),
        };
        match &self.bar {
            Some(bar) => {
                bar.set_position(counts.done as u64);
                bar.set_message(format!("{} validated rows", thousands(counts.rows)));
                if matches!(progress, Progress::Failed { .. }) {
                    bar.println(line);
                }
            }
            None if self.quiet => {}
            None if counts.is_due(progress) => write_err(&format!("{line}\n")),
            None => {}
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Off a terminal, progress is told at most this often, besides failures and the end.
const LINE_EVERY: std::time::Duration = std::time::Duration::from_secs(5);

impl Counts {
    fn is_due(&mut self, progress: &Progress) -> bool {
        let matters = !matches!(progress, Progress::Recorded { .. }) || self.done == self.planned;
        let due = matters || self.last_line.elapsed() >= LINE_EVERY;
        if due {
            self.last_line = Instant::now();
        }
        due
    }

    fn summary(&self) -> String {
        let seconds = self.begun.elapsed().as_secs_f64().max(0.001);
        let rate = self.done_now as f64 / seconds;
        let left = self.planned.saturating_sub(self.done) as f64 / rate.max(0.001);
        format!(
            "{} of {} intervals, {} rows, {rate:.1} intervals/s, {left:.0} s left",
            self.done,
            self.planned,
            thousands(self.rows)
        )
    }
}

pub(super) async fn pause(context: &Context, arguments: PauseArguments) -> Result<Answer> {
    let (dataset, plan) = context.plan(&arguments.plan).await?;
    store_event(&dataset, &plan.id, "pause", &context.actor()?, "", &context.env).await?;
    let text =
        format!("runs of {} start no further batch; running again goes on\n", plan.id.short());
    let value = serde_json::json!({ "plan_id": plan.id, "paused": true });
    Ok(Answer::new(text, &value)?.next(context.command("run", &plan, &dataset)))
}
