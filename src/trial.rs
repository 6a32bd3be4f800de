//! Trying one partition: its rows and its difference to production, with nothing written.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use chrono::DateTime;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt as _;

use crate::check::{
    ComparedPartition, Finding, PartitionFacts, RangeFacts, ValueMeter, check_partition,
    check_range,
};
use crate::compare::{Diff, compare};
use crate::dataset::Dataset;
use crate::error::{ErrorKind, Result, from_arrow, from_engine};
use crate::metrics::{Meter, Metrics};
use crate::plan::{agree, empty_tables, pin_source, read_sql, source_table};
use crate::query::{Parameters, Prepared, Session, SessionOptions, check_output, conform};
use crate::report::decode_partition;
use crate::spec::Spec;
use crate::storage::Stores;

/// What a trial shows.
#[derive(Debug)]
pub struct Trial {
    /// The partition.
    pub partition: String,
    /// The rows that the query gives, in key order.
    pub rows: RecordBatch,
    /// Their numbers.
    pub metrics: Metrics,
    /// The checks of one partition.
    pub findings: Vec<Finding>,
    /// The difference to production; none: nothing is there.
    pub diff: Option<Diff>,
    /// What in the SQL depends on the order of rows.
    pub order_sensitive: Vec<String>,
    /// Sums that the engine lets wrap around silently.
    pub wrapping: Vec<String>,
}

/// Runs one partition of a spec. Writes nothing, anywhere.
///
/// # Errors
/// As planning and running would.
pub async fn try_partition(stores: &Stores, spec: &Spec, partition: &str) -> Result<Trial> {
    let dataset = Dataset::at(stores, &spec.dataset.url, &spec.folder)?;
    let head = dataset.head().await?;
    let definition = &head.manifest.definition;
    let calendar = agree(spec, definition)?;
    let interval = calendar.named(partition)?;
    let (path, query) = read_sql(spec)?;
    let mut sources = BTreeMap::new();
    for (name, source) in &spec.sources {
        let pinned = pin_source(stores, &spec.folder, name, source, &calendar).await?;
        sources.insert(name.clone(), pinned);
    }
    let as_of = spec.as_of()?.unwrap_or(DateTime::UNIX_EPOCH);
    let parameters = Parameters::of(&interval, &definition.partition, as_of, &spec.parameters)?;
    let prepared = Prepared::new(&query, &empty_tables(&sources)?, &parameters)
        .await
        .and_then(|prepared| check_output(&prepared.output, definition).map(|()| prepared))
        .map_err(|error| error.with("sql", path.display()))?;
    let limit = usize::try_from(spec.limits.memory.as_u64()).unwrap_or(usize::MAX);
    let options =
        SessionOptions { memory: Some(SessionOptions::pool(limit)), ..SessionOptions::default() };
    let session = Session::new(&options)?;
    for name in prepared.reads.keys() {
        let Some(source) = sources.get(name) else { continue };
        let root = stores.root(&source.pin.url, Path::new("/"))?;
        let footers = Some(source.footers.as_slice());
        let table = source_table(&source.pin, root.store(), &calendar, &interval, footers, false)?;
        session.register(name, table)?;
    }
    let schema = definition.file_schema()?;
    let mut values = ValueMeter::new(&definition.partition, &interval, &spec.checks.domain)?;
    let mut meter = Meter::new(Arc::clone(&schema), &spec.dataset.key)?;
    let stream = session.run(&query, &parameters, &spec.dataset.key).await?;
    let rows = gather(stream, &schema, &mut values, &mut meter).await?;
    let production = dataset.partitions(&head).await?;
    let current = production.at(interval.start);
    let before = match current {
        None => None,
        Some(current) => Some(decode_partition(&dataset, &schema, &current.files).await?),
    };
    let diff = match &before {
        None => None,
        Some(before) => Some(compare(before, &rows, &spec.dataset.key, &spec.compare)?),
    };
    let metrics = meter.metrics();
    let mut findings = check_partition(
        &PartitionFacts {
            name: partition,
            metrics: &metrics,
            outside: &values.outside,
            domains: &values.found,
            production_rows: current.map(|partition| partition.rows),
        },
        &spec.checks,
    );
    if let (Some(before), Some(diff)) = (&before, &diff) {
        let mut meter = Meter::new(Arc::clone(&schema), &spec.dataset.key)?;
        meter.update(before)?;
        findings.extend(compared(spec, partition, (&metrics, &meter.metrics(), diff)));
    }
    Ok(Trial {
        partition: partition.to_owned(),
        rows,
        metrics,
        findings,
        diff,
        order_sensitive: prepared.order_sensitive,
        wrapping: prepared.wrapping,
    })
}

/// What `check` would say of the difference, as far as one partition shows it.
fn compared(
    spec: &Spec,
    partition: &str,
    (metrics, production, diff): (&Metrics, &Metrics, &Diff),
) -> Vec<Finding> {
    let facts = ComparedPartition {
        partition,
        batch: 1,
        metrics,
        recorded: metrics,
        planned_rows: Some(production.rows),
        production: Some(production),
        diff,
        balances: &[],
        claims: &BTreeMap::new(),
        estimated_rows: None,
        history: &[],
    };
    let range = RangeFacts {
        planned: &[partition.to_owned()],
        partitions: &[facts],
        whole: false,
        changed_columns: &spec.change.columns,
        compare: &spec.compare,
    };
    let mut findings = check_range(&range, &spec.checks, &spec.expect);
    // A batch of one partition says nothing that the partition does not.
    findings.retain(|finding| finding.batch.is_none());
    findings
}

/// All rows of a query, seen by the meters.
async fn gather(
    mut stream: SendableRecordBatchStream,
    schema: &SchemaRef,
    values: &mut ValueMeter,
    meter: &mut Meter,
) -> Result<RecordBatch> {
    let mut batches = Vec::new();
    while let Some(batch) = stream.next().await {
        let batch =
            batch.map_err(|error| from_engine(ErrorKind::Failed, "the query failed", error))?;
        values.see_interval(&batch)?;
        let rows = conform(&batch, schema)?;
        values.see_domains(&rows)?;
        meter.update(&rows)?;
        batches.push(rows);
    }
    concat_batches(schema, &batches)
        .map_err(|error| from_arrow(ErrorKind::Internal, "gather rows", error))
}
