//! One partition: query, checks and metrics, file, in one pass; then its record.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::MemoryConsumer;
use futures::StreamExt as _;

use super::Runner;
use super::record::{FailedAttempt, Record, Started, store_step};
use crate::check::{PartitionFacts, ValueMeter, Verdict, check_partition, verdict};
use crate::dataset::{DataFile, Place, layout};
use crate::error::{Error, ErrorKind, Result, from_engine};
use crate::key::{KeyEncoder, MOST_SORTED_ROWS, Ordered, in_order, sort_rows};
use crate::metrics::Meter;
use crate::parquet_file::{FileWriter, viewed};
use crate::plan::{Plan, PlannedPartition};
use crate::query::{FIXED_MEMORY_BYTES, Footprint, Parameters, Query, Session, conform};
use crate::storage::Object;

/// What became of a partition.
pub(super) enum Computed {
    Recorded(Box<Record>),
    Failed(Box<FailedAttempt>),
}

/// The plan's query, through the same gate as when it was planned.
pub(super) fn query_of(plan: &Plan) -> Result<Query> {
    Query::parse(&plan.decides.sql, &plan.provenance.sql_file)
}

/// Computes a partition.
///
/// Errors of the partition itself become evidence; only what concerns the whole run (the store
/// does not answer, a signal) is an error here.
pub(super) async fn compute(runner: &Runner, partition: &PlannedPartition) -> Result<Computed> {
    let attempt = runner.env.id();
    let started_at = runner.env.now();
    let name = &partition.interval.name;
    let started = Started {
        partition: name.clone(),
        recipe: partition.recipe.clone(),
        actor: runner.options.actor.clone(),
        at: started_at,
    };
    // ORDER: the claim precedes the data, so that every file under data/ belongs to an attempt.
    store_step(&runner.dataset, &runner.plan, (name, &attempt, "started"), &started).await?;
    runner.env.reach("claim");
    let mut pass = Pass::new(runner, partition, &attempt)?;
    let failure = match pass.run().await {
        Ok(()) => None,
        Err(error) if is_of_the_run(&error) => {
            pass.abort().await;
            return Err(error.with("partition", name));
        }
        Err(error) => Some(error),
    };
    // Where the query failed, what was seen is only a part: nothing can be said of the whole.
    let findings = if failure.is_none() { pass.findings() } else { Vec::new() };
    if failure.is_none() && verdict(&findings) != Verdict::Fail {
        let (metrics, files) = pass.finish().await?;
        let record = Record {
            partition: name.clone(),
            recipe: partition.recipe.clone(),
            attempt,
            kept_from: None,
            files,
            metrics,
            started_at,
            finished_at: runner.env.now(),
        };
        runner.env.reach("record");
        let record = runner.store(record).await?;
        runner.env.reach("recorded");
        return Ok(Computed::Recorded(Box::new(record)));
    }
    let error = failure.unwrap_or_else(|| Error::new(ErrorKind::Failed, "a check failed"));
    let failed = FailedAttempt {
        partition: name.clone(),
        recipe: partition.recipe.clone(),
        attempt: attempt.clone(),
        error: error.to_string(),
        kind: error.kind().name().to_owned(),
        causes: error.causes(),
        hints: error.hints().to_vec(),
        findings: findings.into_iter().filter(|finding| finding.verdict == Verdict::Fail).collect(),
        metrics: Some(pass.meter.metrics()),
        outside: Some(pass.values.outside.clone()),
        domains: pass.values.found.clone(),
        files: Vec::new(),
        started_at,
        ended_at: runner.env.now(),
    };
    pass.abort().await;
    store_step(&runner.dataset, &runner.plan, (name, &attempt, "failed"), &failed).await?;
    Ok(Computed::Failed(Box::new(failed)))
}

/// Whether an error says nothing about the partition.
fn is_of_the_run(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Interrupted)
}

/// Bytes that sorting takes for a row besides the row: its key, twice the short key, its place.
const SORT_BYTES: usize = 40;

/// One pass over one partition's rows.
struct Pass<'a> {
    runner: &'a Runner,
    partition: &'a PlannedPartition,
    path: String,
    /// The file's columns.
    schema: SchemaRef,
    /// The same with texts and binaries as views: nothing copies them before they are written.
    views: SchemaRef,
    meter: Meter,
    values: ValueMeter,
    writer: Option<FileWriter>,
}

impl<'a> Pass<'a> {
    fn new(runner: &'a Runner, partition: &'a PlannedPartition, attempt: &str) -> Result<Self> {
        let decides = &runner.plan.decides;
        let column = &decides.definition.partition;
        let schema = decides.definition.file_schema()?;
        let path = layout::data(attempt, &column.folder(&partition.interval.name), 0);
        Ok(Self {
            runner,
            partition,
            path,
            meter: Meter::new(viewed(&schema), &decides.key)?,
            values: ValueMeter::new(column, &partition.interval, &decides.checks.domain)?,
            views: viewed(&schema),
            schema,
            writer: None,
        })
    }

    async fn run(&mut self) -> Result<()> {
        let runner = self.runner;
        let decides = &runner.plan.decides;
        let session = Session::new(&runner.session_options())?;
        for (name, files) in &self.partition.reads {
            let Some(source) = decides.sources.get(name) else { continue };
            let interval = &self.partition.interval;
            let mut table = runner.plan.source_table(&runner.stores, source, interval, false)?;
            // Where an answer may follow the order of rows, that order stays as it always was.
            if decides.order_sensitive.is_empty() {
                let files = files.iter().filter_map(|number| source.files.get(*number));
                let rows = files.fold(0_u64, |sum, file| sum.saturating_add(file.rows));
                table = table.expecting(rows);
                if source.interval.is_none() && decides.partitions.len() > 1 {
                    table = table.held_in(Arc::clone(&runner.held), name);
                }
            }
            session.register(name, table)?;
        }
        let parameters = runner.plan.parameters_of(&self.partition.interval)?;
        if self.sort_in_memory(&session, &parameters).await? {
            return Ok(());
        }
        // Too large to be held: the engine sorts, and spills.
        let column = &decides.definition.partition;
        self.values = ValueMeter::new(column, &self.partition.interval, &decides.checks.domain)?;
        let mut stream = session.run(&runner.query, &parameters, &decides.key).await?;
        while let Some(batch) = stream.next().await {
            let rows = self.take_in(batch)?;
            self.put_out(&rows).await?;
        }
        Ok(())
    }

    /// Sorts the query's rows as packed keys with their places, which is several times faster than
    /// the engine's sort of whole rows. False: they do not fit into the memory that all queries
    /// share.
    async fn sort_in_memory(&mut self, session: &Session, parameters: &Parameters) -> Result<bool> {
        let runner = self.runner;
        let held_bytes = MemoryConsumer::new("rows to be sorted").register(&runner.memory);
        let mut stream = session.run(&runner.query, parameters, &[]).await?;
        let encoder = KeyEncoder::new(&self.views, &runner.plan.decides.key)?;
        let mut held = Vec::new();
        let (mut held_rows, mut own_bytes, mut footprint) = (0, 0, Footprint::default());
        // Where an answer may follow the order of rows, neither the neighbours nor the spec's limit
        // decide who sorts: the engine's sort would take memory from the query, which spills then.
        let is_fixed = !runner.plan.decides.order_sensitive.is_empty();
        let mut last = None;
        let mut ascending = true;
        while let Some(batch) = stream.next().await {
            let rows = self.take_in(batch)?;
            if rows.num_rows() == 0 {
                continue;
            }
            let keys = encoder.encode(&rows)?;
            ascending &= in_order(&keys, last.as_ref()) == Ordered::Ascending;
            last = Some(keys.one(keys.len() - 1));
            held_rows += rows.num_rows();
            let bytes = footprint.add(&rows) + SORT_BYTES * rows.num_rows();
            own_bytes += bytes;
            let fits = if is_fixed {
                own_bytes <= FIXED_MEMORY_BYTES / 2
            } else {
                // Half of the memory stays for what cannot spill: other partitions' joins.
                runner.memory.reserved() + bytes <= runner.memory_bytes / 2
                    && held_bytes.try_grow(bytes).is_ok()
            };
            if !fits || held_rows > MOST_SORTED_ROWS {
                return Ok(false);
            }
            held.push(rows);
        }
        drop(stream);
        if ascending {
            for rows in held {
                self.put_out(&rows).await?;
            }
            return Ok(true);
        }
        for rows in sort_rows(held, &encoder, runner.options.batch_rows)? {
            self.put_out(&rows?).await?;
        }
        Ok(true)
    }

    /// A batch of the query, looked at and put into the dataset's own shape.
    fn take_in(
        &mut self,
        batch: std::result::Result<RecordBatch, DataFusionError>,
    ) -> Result<RecordBatch> {
        let batch =
            batch.map_err(|error| from_engine(ErrorKind::Failed, "the query failed", error))?;
        if batch.num_rows() > 0 {
            self.values.see_interval(&batch)?;
        }
        let rows = conform(&batch, &self.views)?;
        self.values.see_domains(&rows)?;
        Ok(rows)
    }

    /// Rows in key order, measured and written.
    async fn put_out(&mut self, rows: &RecordBatch) -> Result<()> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        self.meter.update(rows)?;
        if self.writer.is_none() {
            let sink = self.runner.dataset.control().writer(&self.path).await?;
            self.writer = Some(FileWriter::new(Arc::clone(&self.schema), sink)?);
        }
        if let Some(writer) = &mut self.writer {
            writer.write(rows).await?;
        }
        self.runner.env.reach("write");
        Ok(())
    }

    fn findings(&self) -> Vec<crate::check::Finding> {
        let facts = PartitionFacts {
            name: &self.partition.interval.name,
            metrics: &self.meter.metrics(),
            outside: &self.values.outside,
            domains: &self.values.found,
            production_rows: self.partition.base.as_ref().map(|base| base.rows),
        };
        check_partition(&facts, &self.runner.plan.decides.checks)
    }

    async fn finish(self) -> Result<(crate::metrics::Metrics, Vec<DataFile>)> {
        let metrics = self.meter.metrics();
        let Some(writer) = self.writer else { return Ok((metrics, Vec::new())) };
        let written = writer.finish().await?;
        let object = Object { path: self.path, ..written.object };
        Ok((metrics, vec![DataFile::new(Place::Control, &object, written.rows, written.hash)]))
    }

    async fn abort(self) {
        if let Some(writer) = self.writer {
            writer.abort().await;
        }
    }
}
