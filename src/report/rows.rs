//! The rows of one cluster of differences, read again.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow::compute::{take, take_record_batch};

use super::Report;
use super::build::checker;
use super::look::{Checker, as_conflict};
use crate::candidate::{Scope, freeze};
use crate::check::ClaimMeter;
use crate::compare::{Changed, ChangedColumn, Origin, Piece};
use crate::dataset::Dataset;
use crate::diff::{Witness, compare_rows, spill_folder};
use crate::error::{ErrorKind, Result, from_arrow};
use crate::explain::{Cluster, Pattern, assign};
use crate::plan::{Plan, PlannedPartition};
use crate::run::{Record, RunState};
use crate::storage::Stores;

/// Hands every row of an unexplained cluster to `see`, partition by partition, until it says that
/// that is enough (false).
///
/// # Schema
/// Of values: `partition` (text), the key's columns, `production` and `candidate` (as the column's
/// type). Of whole rows: `partition`, and all columns.
///
/// # Errors
/// `Conflict` when production was changed outside reissue, `Corrupt` when the candidate was.
pub async fn cluster_rows(
    stores: &Arc<Stores>,
    dataset: &Dataset,
    plan: &Plan,
    (report, cluster): (&Report, &Cluster),
    see: &mut (dyn FnMut(RecordBatch) -> Result<bool> + Send),
) -> Result<()> {
    let state = RunState::load(dataset, plan).await?;
    let (candidate, _) = freeze(dataset, plan, report.scope, &state).await?;
    let spill = spill_folder()?;
    let head = dataset.head().await?;
    let checker = checker(stores, dataset, plan, &head, &spill).await?;
    for partition in &plan.decides.partitions {
        let name = &partition.interval.name;
        let Some(record) = state.records.get(name) else { continue };
        let in_scope = candidate.partitions.contains_key(name) || report.scope == Scope::Run;
        if !in_scope || *name < cluster.first || *name > cluster.last {
            continue;
        }
        for batch in checker.cluster_rows(partition, record, report, cluster).await? {
            if !see(batch)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

impl Checker {
    async fn cluster_rows(
        &self,
        partition: &PlannedPartition,
        record: &Record,
        report: &Report,
        cluster: &Cluster,
    ) -> Result<Vec<RecordBatch>> {
        let candidate = self.rows(&record.files).await?;
        let Some(current) = self.production.at(partition.interval.start) else {
            return Ok(Vec::new());
        };
        let production =
            self.rows(&current.files).await.map_err(|error| as_conflict(error, current))?;
        let mut picking = Picking {
            checker: self,
            partition,
            report,
            cluster,
            picked: Vec::new(),
            claims: self.meter(partition),
        };
        compare_rows(&production, &candidate, &self.options, &mut picking).await?;
        Ok(picking.picked)
    }

    fn meter(&self, partition: &PlannedPartition) -> ClaimMeter {
        ClaimMeter::new(&self.claims, &partition.interval.name, &self.plan.decides.key)
    }
}

/// Picks the rows of a cluster while partitions are compared.
struct Picking<'a> {
    checker: &'a Checker,
    partition: &'a PlannedPartition,
    report: &'a Report,
    cluster: &'a Cluster,
    picked: Vec<RecordBatch>,
    claims: ClaimMeter,
}

impl Witness for Picking<'_> {
    fn restart(&mut self, _sorted: Origin) -> Result<()> {
        self.picked.clear();
        self.claims = self.checker.meter(self.partition);
        Ok(())
    }

    fn piece(&mut self, piece: &Piece) -> Result<()> {
        let open = self.claims.unexplained(piece)?;
        match (&self.cluster.column, &self.cluster.pattern) {
            (Some(column), _) => {
                for changed in &open.changed {
                    let found = changed.columns.iter().find(|one| &one.name == column);
                    let batch = found.map(|found| self.values(changed, found)).transpose()?;
                    self.picked.extend(batch.flatten());
                }
            }
            (None, Pattern::OnlyProduction) => self.lone(open.only_production.as_ref())?,
            (None, _) => self.lone(open.only_candidate.as_ref())?,
        }
        Ok(())
    }
}

impl Picking<'_> {
    fn values(&self, changed: &Changed, column: &ChangedColumn) -> Result<Option<RecordBatch>> {
        let clusters = &self.report.unexplained;
        let wanted = clusters.iter().position(|one| {
            one.column == self.cluster.column && one.pattern == self.cluster.pattern
        });
        let rows = column.differs.values().set_indices();
        let assigned = rows.zip(assign(clusters, column)?).filter(|(_, at)| *at == wanted);
        let places: UInt32Array =
            assigned.map(|(row, _)| u32::try_from(row).unwrap_or(u32::MAX)).collect();
        if places.is_empty() {
            return Ok(None);
        }
        let fail = |error| from_arrow(ErrorKind::Internal, "take a cluster's rows", error);
        let mut columns: Vec<(String, ArrayRef)> = Vec::new();
        for name in &self.checker.plan.decides.key {
            if let Some(array) = changed.candidate.column_by_name(name) {
                columns.push((name.clone(), take(array, &places, None).map_err(fail)?));
            }
        }
        for (name, array) in [("production", &column.before), ("candidate", &column.after)] {
            columns.push((name.to_owned(), take(array, &places, None).map_err(fail)?));
        }
        self.with_partition(columns, places.len()).map(Some)
    }

    fn lone(&mut self, rows: Option<&RecordBatch>) -> Result<()> {
        let Some(rows) = rows else { return Ok(()) };
        let all: UInt32Array = (0..u32::try_from(rows.num_rows()).unwrap_or(u32::MAX)).collect();
        let rows = take_record_batch(rows, &all)
            .map_err(|error| from_arrow(ErrorKind::Internal, "take a cluster's rows", error))?;
        let fields = rows.schema_ref().fields().iter().map(|field| field.name().clone());
        let columns = fields.zip(rows.columns().iter().cloned()).collect();
        self.picked.push(self.with_partition(columns, rows.num_rows())?);
        Ok(())
    }

    fn with_partition(&self, columns: Vec<(String, ArrayRef)>, rows: usize) -> Result<RecordBatch> {
        let name = self.partition.interval.name.as_str();
        let partition: ArrayRef = Arc::new(StringArray::from(vec![name; rows]));
        let named = distinct([("partition".to_owned(), partition)].into_iter().chain(columns));
        let named = named.into_iter().map(|(name, array)| (name, array, true));
        RecordBatch::try_from_iter_with_nullable(named)
            .map_err(|error| from_arrow(ErrorKind::Internal, "show a cluster's rows", error))
    }
}

/// Names that a table may have: one that is taken already is written with a line behind it.
fn distinct(columns: impl Iterator<Item = (String, ArrayRef)>) -> Vec<(String, ArrayRef)> {
    let mut named: Vec<(String, ArrayRef)> = Vec::new();
    for (mut name, array) in columns {
        while named.iter().any(|(known, _)| *known == name) {
            name.push('_');
        }
        named.push((name, array));
    }
    named
}
