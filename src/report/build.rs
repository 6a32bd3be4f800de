//! Checking a run: everything from the stored bytes, decoded again.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::{StreamExt as _, TryStreamExt as _};
use tokio::task::JoinHandle;

use super::{BaseReport, FORMAT, PartitionReport, Report, decode_partition, production_table};
use crate::candidate::{Candidate, Scope, freeze, partitions_of};
use crate::check::{
    ComparedPartition, Finding, PartitionFacts, RangeFacts, ValueMeter, Verdict, check_partition,
    check_range, verdict,
};
use crate::compare::{Diff, compare};
use crate::dataset::{Dataset, Partition, Partitions, layout};
use crate::error::{Error, ErrorKind, Result, from_engine};
use crate::identity::{Digest, to_json};
use crate::metrics::{Meter, Metrics};
use crate::plan::{BasePartition, Plan, PlannedPartition, source_table};
use crate::query::{Parameters, PinnedTable, Query, Session, SessionOptions};
use crate::run::{Record, RunState, check_dataset};
use crate::storage::{Created, Stores};

/// Called after each partition with its name.
pub type CheckProgress<'a> = &'a (dyn Fn(&str) + Sync);

/// One partition, looked at.
struct Looked {
    name: String,
    batch: usize,
    recorded: Metrics,
    planned_base: Option<BasePartition>,
    report: PartitionReport,
    findings: Vec<Finding>,
    balances: Vec<(String, String)>,
}

/// Everything that looking at a partition needs.
struct Checker {
    stores: Arc<Stores>,
    dataset: Dataset,
    plan: Plan,
    schema: SchemaRef,
    production: Partitions,
}

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
    let checker = Checker {
        stores: Arc::clone(stores),
        dataset: dataset.clone(),
        plan: plan.clone(),
        schema: plan.decides.definition.file_schema()?,
        production: dataset.partitions(&head).await?,
    };
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
    let looked: Vec<Looked> = futures::stream::iter(looks)
        .map(|look| async { AbortOnDrop(tokio::spawn(look)).join().await })
        .buffered(plan.terms.limits.source_queries)
        .inspect_ok(|looked| progress(&looked.name))
        .try_collect()
        .await?;
    let report = assemble(plan, &candidate, digest, head.number(), looked)?;
    let digest = Digest::of_json(&report)?;
    let path = layout::run_object(&plan.id, "reports", &digest);
    let (Created::New(_) | Created::Exists) =
        dataset.control().create(&path, to_json(&report)?).await?;
    Ok((report, digest))
}

/// A task that ends with whoever waits for it.
struct AbortOnDrop(JoinHandle<Result<Looked>>);

impl AbortOnDrop {
    async fn join(mut self) -> Result<Looked> {
        (&mut self.0)
            .await
            .map_err(|error| Error::internal("a partition's task ended").because(error))?
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
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
    candidate: &Candidate,
    digest: Digest,
    base_version: u64,
    looked: Vec<Looked>,
) -> Result<Report> {
    let decides = &plan.decides;
    let planned = partitions_of(plan, candidate.scope)?;
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
        })
        .collect();
    let range = RangeFacts {
        planned: &planned,
        partitions: &facts,
        whole: candidate.scope == Scope::Run,
        changed_columns: &decides.changed_columns,
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
        verdict: verdict(&findings),
        findings,
    })
}

impl Checker {
    async fn look(
        &self,
        partition: &PlannedPartition,
        record: &Record,
        batch: usize,
    ) -> Result<Looked> {
        let looked = self.look_at(partition, record, batch).await;
        looked.map_err(|error| error.with("partition", &partition.interval.name))
    }

    async fn look_at(
        &self,
        partition: &PlannedPartition,
        record: &Record,
        batch: usize,
    ) -> Result<Looked> {
        let decides = &self.plan.decides;
        let name = &partition.interval.name;
        let rows = decode_partition(&self.dataset, &self.schema, &record.files).await?;
        let metrics = measure(&rows, &decides.key)?;
        let mut values = ValueMeter::new(
            &decides.definition.partition,
            &partition.interval,
            &decides.checks.domain,
        )?;
        if rows.column_by_name(&decides.definition.partition.column).is_some() {
            values.see_interval(&rows)?;
        }
        values.see_domains(&rows)?;
        let base = self.base(partition).await?;
        let facts = PartitionFacts {
            name,
            metrics: &metrics,
            outside: &values.outside,
            domains: &values.found,
            production_rows: base.as_ref().map(|(report, _)| report.metrics.rows),
        };
        let findings = check_partition(&facts, &decides.checks);
        let diff = match &base {
            None => Diff {
                rows_candidate: metrics.rows,
                only_candidate: metrics.rows,
                ..Diff::default()
            },
            // Equal digests: the rows are the same, whatever their files look like.
            Some((report, _)) if report.metrics.content == metrics.content => {
                Diff::none(metrics.rows)
            }
            Some((_, before)) => compare(before, &rows, &decides.key)?,
        };
        let balances = self.balances(partition, record).await?;
        Ok(Looked {
            name: name.clone(),
            batch,
            recorded: record.metrics.clone(),
            planned_base: partition.base.clone(),
            report: PartitionReport { metrics, base: base.map(|(report, _)| report), diff },
            findings,
            balances,
        })
    }

    /// Production's side: its numbers and its rows.
    async fn base(
        &self,
        partition: &PlannedPartition,
    ) -> Result<Option<(BaseReport, RecordBatch)>> {
        let Some(current) = self.production.at(partition.interval.start) else { return Ok(None) };
        let rows = decode_partition(&self.dataset, &self.schema, &current.files).await.map_err(
            |error| {
                if error.kind() == ErrorKind::Corrupt { conflict(error, current) } else { error }
            },
        )?;
        let metrics = measure_unsorted(&rows, &self.plan.decides.key)?;
        Ok(Some((BaseReport { identity: current.identity()?, metrics }, rows)))
    }

    /// Each balance's two values for a partition.
    async fn balances(
        &self,
        partition: &PlannedPartition,
        record: &Record,
    ) -> Result<Vec<(String, String)>> {
        let decides = &self.plan.decides;
        let mut values = Vec::new();
        for balance in &decides.checks.balance {
            let mut sources = BTreeMap::new();
            for (name, source) in &decides.sources {
                let root = self.stores.root(&source.url, std::path::Path::new("/"))?;
                let calendar = &decides.definition.partition.calendar;
                let table =
                    source_table(source, root.store(), calendar, &partition.interval, None, true)?;
                sources.insert(name.clone(), table);
            }
            let files = [(&partition.interval, record.files.as_slice())];
            let candidate = production_table(&self.dataset, &decides.definition, &files).await?;
            let candidate = BTreeMap::from([("candidate".to_owned(), candidate)]);
            let one = self.value(&balance.source, &balance.name, sources, partition).await?;
            let two = self.value(&balance.candidate, &balance.name, candidate, partition).await?;
            values.push((one, two));
        }
        Ok(values)
    }

    /// The one value of a query.
    async fn value(
        &self,
        sql: &str,
        name: &str,
        tables: BTreeMap<String, PinnedTable>,
        partition: &PlannedPartition,
    ) -> Result<String> {
        let decides = &self.plan.decides;
        let query = Query::parse(sql, name)?;
        let bytes = usize::try_from(self.plan.terms.limits.memory.as_u64()).unwrap_or(usize::MAX);
        let options = SessionOptions {
            memory: Some(SessionOptions::pool(bytes)),
            ..SessionOptions::default()
        };
        let session = Session::new(&options)?;
        for (table, pinned) in tables {
            session.register(&table, pinned)?;
        }
        let as_of = decides.as_of.unwrap_or(chrono::DateTime::UNIX_EPOCH);
        let column = &decides.definition.partition;
        let parameters =
            Parameters::of(&partition.interval, column, as_of, &self.plan.parameters()?)?;
        let stream = session.run(&query, &parameters, &[]).await?;
        let batches: Vec<RecordBatch> = stream
            .try_collect()
            .await
            .map_err(|error| from_engine(ErrorKind::Failed, "a balance's query failed", error))?;
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let first = batches.iter().find(|batch| batch.num_rows() > 0);
        match (first, rows) {
            (Some(batch), 1) => Ok(crate::metrics::value_text(batch.column(0), 0)),
            _ => Err(Error::invalid(format!("the balance {name:?} gave {rows} rows"))
                .hint("each side must give exactly one: select one aggregate, such as count(*)")),
        }
    }
}

/// Production's files are not what the version says: somebody else wrote them.
fn conflict(error: Error, partition: &Partition) -> Error {
    Error::new(ErrorKind::Conflict, "production was changed outside reissue")
        .with("partition", &partition.name)
        .because(error)
        .hint("take the change in: reissue adopt --again; then plan again")
}

fn measure(rows: &RecordBatch, key: &[String]) -> Result<Metrics> {
    let mut meter = Meter::new(rows.schema(), key)?;
    meter.update(rows)?;
    Ok(meter.metrics())
}

/// Numbers of production, whose rows come in an order of their own: what depends on order is not
/// said of them.
fn measure_unsorted(rows: &RecordBatch, key: &[String]) -> Result<Metrics> {
    let mut metrics = measure(rows, key)?;
    metrics.keys = crate::metrics::KeyMetrics::default();
    Ok(metrics)
}

impl Report {
    /// Whether it can be approved.
    pub fn passed(&self) -> bool {
        self.verdict != Verdict::Fail
    }
}
