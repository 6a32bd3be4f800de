//! Running a plan: batches in order, partitions side by side, each result recorded once.
//!
//! Running again resumes: partitions with a record are done. A failed partition keeps its evidence
//! and stops later batches from starting. A signal stops new partitions from starting, a pause new
//! batches.

mod compute;
mod events;
mod record;
mod spill;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::execution::memory_pool::MemoryPool;
use futures::StreamExt as _;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::dataset::{Dataset, Version};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::parquet_file::DECODED_ROWS;
use crate::plan::{Plan, rules};
use crate::query::{FIXED_BATCH_ROWS, FIXED_MEMORY_BYTES, HeldTables, Query, SessionOptions};
use crate::storage::Stores;

pub use events::{Event, load_events, pause_requested, store_event};
pub use record::{FailedAttempt, Record, RunState, Started};

use compute::{Computed, compute, query_of};
use record::store_record;
use spill::SpillFolder;

/// How to run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Who runs.
    pub actor: String,
    /// Rows of an engine batch; decides nothing about results.
    pub batch_rows: usize,
    /// Threads of one query; decides nothing about results.
    pub query_threads: usize,
    /// Whether later batches start although a partition has failed.
    pub keep_going: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { actor: String::new(), batch_rows: DECODED_ROWS, query_threads: 1, keep_going: false }
    }
}

/// What happens during a run, for progress.
#[derive(Debug, Clone)]
pub enum Progress {
    /// The run begins.
    Begun {
        /// Partitions of the plan.
        partitions: usize,
        /// Those that are done already.
        done: usize,
    },
    /// A partition is computed and recorded.
    Recorded {
        /// Its name.
        partition: String,
        /// Its validated rows.
        rows: u64,
        /// Whether an earlier plan's result was taken over.
        kept: bool,
    },
    /// A partition has failed.
    Failed {
        /// Its name.
        partition: String,
        /// What went wrong, in a line.
        why: String,
    },
}

/// Stops a run: shared between it and whoever listens for signals.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks the run to stop.
    pub fn request(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether it was asked.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// What a run has come to.
#[derive(Debug, Clone, Default)]
pub struct RunOutcome {
    /// Partitions computed now.
    pub computed: usize,
    /// Partitions taken over from earlier plans now.
    pub kept: usize,
    /// Partitions that had a record before.
    pub done_before: usize,
    /// Partitions of the plan.
    pub planned: usize,
    /// The evidence of partitions that failed now.
    pub failed: Vec<FailedAttempt>,
    /// Why it ended early, when it did.
    pub stopped: Option<String>,
}

impl RunOutcome {
    /// Whether every planned partition has a record.
    pub fn is_complete(&self) -> bool {
        self.computed + self.kept + self.done_before == self.planned
    }
}

/// Told what happens, from any thread.
pub type ProgressListener = Arc<dyn Fn(Progress) + Send + Sync>;

/// Everything one run shares.
struct Runner {
    stores: Arc<Stores>,
    dataset: Dataset,
    plan: Plan,
    query: Query,
    options: RunOptions,
    env: Env,
    stop: Stop,
    progress: ProgressListener,
    memory: Arc<dyn MemoryPool>,
    memory_bytes: usize,
    /// The reference tables, decoded once for all partitions.
    held: Arc<HeldTables>,
    spill: SpillFolder,
    queries: Semaphore,
    /// Records that partitions have already; the next one follows them.
    record_counts: BTreeMap<String, usize>,
    /// Whether a partition has failed: then no later batch starts.
    failed: AtomicBool,
}

/// Runs a plan, or resumes it.
///
/// # Errors
/// `Stale` when the plan has expired or production's id is another; `Invalid` when its logic no
/// longer reads. A partition's failure is part of the outcome, not an error.
pub async fn run(
    stores: &Arc<Stores>,
    dataset: &Dataset,
    plan: &Plan,
    options: &RunOptions,
    env: &Env,
    stop: &Stop,
    progress: ProgressListener,
) -> Result<RunOutcome> {
    check_terms(dataset, plan, env).await?;
    dataset.control().store().sweep_unfinished(&dataset.control().full(""))?;
    let state = RunState::load(dataset, plan).await?.without_lost(dataset).await?;
    let limits = &plan.terms.limits;
    let bytes = usize::try_from(limits.memory.as_u64()).unwrap_or(usize::MAX);
    let memory = SessionOptions::pool(bytes);
    let runner = Runner {
        stores: Arc::clone(stores),
        dataset: dataset.clone(),
        plan: plan.clone(),
        query: query_of(plan)?,
        options: options.clone(),
        env: env.clone(),
        stop: stop.clone(),
        progress,
        held: Arc::new(HeldTables::new(&memory, bytes / 8)),
        memory,
        memory_bytes: bytes,
        spill: SpillFolder::new(plan.id.short(), limits.spill.as_u64())?,
        queries: Semaphore::new(limits.source_queries),
        record_counts: state.record_counts.clone(),
        failed: AtomicBool::new(false),
    };
    store_event(dataset, &plan.id, "run-started", &options.actor, "", env).await?;
    let outcome = Arc::new(runner).run(&state).await?;
    let word = if outcome.is_complete() { "run-finished" } else { "run-stopped" };
    let detail = format!("{} computed, {} failed", outcome.computed, outcome.failed.len());
    store_event(dataset, &plan.id, word, &options.actor, &detail, env).await?;
    Ok(outcome)
}

async fn check_terms(dataset: &Dataset, plan: &Plan, env: &Env) -> Result<()> {
    let head = dataset.head().await?;
    check_dataset(plan, &head)?;
    check_rules(plan)?;
    if head.number() < plan.base_version {
        return Err(Error::corrupt(format!(
            "the plan was made against version {}, and the newest is {}: history was removed",
            plan.base_version,
            head.number()
        )));
    }
    check_expiry(plan, env)
}

/// Refuses a plan that was made for another dataset.
pub(crate) fn check_dataset(plan: &Plan, head: &Version) -> Result<()> {
    if head.manifest.dataset == plan.decides.dataset {
        return Ok(());
    }
    Err(Error::stale("the plan was made for another dataset")
        .with("plan", plan.id.short())
        .with("this dataset", &head.manifest.dataset)
        .with("the plan's", &plan.decides.dataset)
        .hint("plan again for this dataset"))
}

/// Refuses a plan of a program whose results could be others under the same recipes.
fn check_rules(plan: &Plan) -> Result<()> {
    if plan.decides.rules == rules() {
        return Ok(());
    }
    Err(Error::stale("another release of reissue made the plan")
        .with("plan", plan.id.short())
        .with("its rules", &plan.decides.rules)
        .with("this release's", rules())
        .hint("plan again; what is already published stays as it is"))
}

/// Refuses what has expired.
pub(crate) fn check_expiry(plan: &Plan, env: &Env) -> Result<()> {
    match plan.terms.expires_at {
        Some(at) if env.now() >= at => {
            Err(Error::stale(format!("the plan expired at {}", at.to_rfc3339()))
                .with("plan", plan.id.short())
                .hint("look at the spec again, move change.expires, and plan again"))
        }
        _ => Ok(()),
    }
}

impl Runner {
    async fn run(self: &Arc<Self>, state: &RunState) -> Result<RunOutcome> {
        let partitions = &self.plan.decides.partitions;
        let done: BTreeSet<&str> = state.records.keys().map(String::as_str).collect();
        let mut outcome = RunOutcome {
            planned: partitions.len(),
            done_before: done.len(),
            ..RunOutcome::default()
        };
        (self.progress)(Progress::Begun { partitions: partitions.len(), done: done.len() });
        let kept = self.take_over(&done).await?;
        outcome.kept = kept.len();
        let open = |number: &usize| {
            let name = partitions[*number].interval.name.as_str();
            !done.contains(name) && !kept.contains(name)
        };
        let batches: Vec<Vec<usize>> = self
            .plan
            .batches()?
            .into_iter()
            .map(|batch| batch.into_iter().filter(|number| open(number)).collect())
            .filter(|batch: &Vec<usize>| !batch.is_empty())
            .collect();
        let started_at = self.env.now();
        let results = futures::stream::iter(batches)
            .map(|batch| self.run_batch(batch, started_at))
            .buffered(self.plan.terms.limits.concurrent_batches);
        let mut results = std::pin::pin!(results);
        while let Some(result) = results.next().await {
            let batch = result?;
            outcome.computed += batch.computed;
            outcome.failed.extend(batch.failed);
            outcome.failed.sort_by(|one, two| one.partition.cmp(&two.partition));
            outcome.stopped = outcome.stopped.or(batch.stopped);
        }
        Ok(outcome)
    }

    /// Takes over results of equal recipe that other plans' runs left.
    async fn take_over(&self, done: &BTreeSet<&str>) -> Result<BTreeSet<String>> {
        let kept = crate::plan::find_kept(&self.dataset, &self.plan).await?;
        let mut names = BTreeSet::new();
        for (name, one) in kept {
            if done.contains(name.as_str()) {
                continue;
            }
            let rows = one.record.metrics.rows;
            // The plan that computed it, also where several have taken it over since.
            let kept_from = one.record.kept_from.clone().or(Some(one.plan));
            let record = Record { kept_from, ..one.record };
            self.store(record).await?;
            (self.progress)(Progress::Recorded { partition: name.clone(), rows, kept: true });
            names.insert(name);
        }
        Ok(names)
    }

    async fn store(&self, record: Record) -> Result<Record> {
        let number = self.record_counts.get(&record.partition).copied().unwrap_or_default();
        store_record(&self.dataset, &self.plan, record, number).await
    }

    async fn run_batch(
        self: &Arc<Self>,
        batch: Vec<usize>,
        started_at: chrono::DateTime<chrono::Utc>,
    ) -> Result<RunOutcome> {
        let mut outcome = RunOutcome::default();
        if self.failed.load(Ordering::SeqCst) && !self.options.keep_going {
            return Ok(outcome);
        }
        if let Some(reason) = self.reason_to_stop(started_at).await? {
            outcome.stopped = Some(reason);
            return Ok(outcome);
        }
        // Each partition is a task of its own, so that they share the machine's cores. Dropping
        // the set ends them.
        let mut work = JoinSet::new();
        for number in batch {
            let runner = Arc::clone(self);
            work.spawn(async move { runner.run_partition(number).await });
        }
        while let Some(result) = work.join_next().await {
            let result = result
                .map_err(|error| Error::internal("a partition's task ended").because(error))?;
            match result? {
                None => outcome.stopped = Some("stopped by a signal".to_owned()),
                Some(Computed::Recorded(_)) => outcome.computed += 1,
                Some(Computed::Failed(failed)) => {
                    self.failed.store(true, Ordering::SeqCst);
                    outcome.failed.push(*failed);
                }
            }
        }
        Ok(outcome)
    }

    async fn reason_to_stop(
        &self,
        started_at: chrono::DateTime<chrono::Utc>,
    ) -> Result<Option<String>> {
        if self.stop.is_requested() {
            return Ok(Some("stopped by a signal".to_owned()));
        }
        if let Some(window) = self.plan.terms.window
            && !window.contains(self.env.now())
        {
            return Ok(Some(format!("outside the window {window}")));
        }
        if pause_requested(&self.dataset, &self.plan.id, started_at).await? {
            return Ok(Some("paused".to_owned()));
        }
        check_expiry(&self.plan, &self.env)?;
        Ok(None)
    }

    async fn run_partition(&self, number: usize) -> Result<Option<Computed>> {
        let permit = self.queries.acquire().await;
        let _permit =
            permit.map_err(|error| Error::internal("wait for a query's turn").because(error))?;
        if self.stop.is_requested() {
            return Ok(None);
        }
        let Some(partition) = self.plan.decides.partitions.get(number) else {
            return Err(Error::internal("a batch names a partition that is not planned"));
        };
        let computed = tokio::select! {
            computed = compute(self, partition) => computed?,
            () = stopped(&self.stop) => return Ok(None),
        };
        let name = partition.interval.name.clone();
        (self.progress)(match &computed {
            Computed::Recorded(record) => {
                Progress::Recorded { partition: name, rows: record.metrics.rows, kept: false }
            }
            Computed::Failed(failed) => Progress::Failed { partition: name, why: failed.line() },
        });
        Ok(Some(computed))
    }

    fn session_options(&self) -> SessionOptions {
        let fixed = !self.plan.decides.order_sensitive.is_empty();
        SessionOptions {
            batch_rows: if fixed { FIXED_BATCH_ROWS } else { self.options.batch_rows },
            threads: if fixed { 1 } else { self.options.query_threads },
            memory: Some(if fixed {
                SessionOptions::pool(FIXED_MEMORY_BYTES)
            } else {
                Arc::clone(&self.memory)
            }),
            spill: Some(self.spill.folder()),
        }
    }
}

/// A partition that is being computed may end by itself for some seconds after a stop; then it is
/// dropped, which leaves nothing: no record, and a file that nothing names.
async fn stopped(stop: &Stop) {
    while !stop.is_requested() {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
}

impl FailedAttempt {
    /// What went wrong, in a line.
    pub fn line(&self) -> String {
        let failed =
            self.findings.iter().find(|finding| finding.verdict == crate::check::Verdict::Fail);
        failed.map_or_else(|| self.error.clone(), crate::check::Finding::line)
    }
}
