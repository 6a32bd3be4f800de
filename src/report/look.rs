//! Looking at one partition: its stored bytes decoded once, measured and compared in one pass.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::StreamExt as _;

use super::stored::{find_metrics, store_metrics};
use super::{BaseReport, PartitionReport, verified_table};
use crate::check::{
    ClaimMeter, ClaimTallies, Claims, Finding, PartitionFacts, ValueMeter, check_partition,
};
use crate::compare::{Diff, Origin, Piece};
use crate::dataset::{DataFile, Dataset, Partition, Partitions, identity_of};
use crate::diff::{DiffOptions, Rows, Witness, compare_rows};
use crate::error::{Error, ErrorKind, Result};
use crate::explain::{Explained, Explainer};
use crate::identity::Digest;
use crate::metrics::{KeyMetrics, Meter, Metrics};
use crate::parquet_file::{DECODED_ROWS, viewed};
use crate::plan::{BasePartition, Plan, PlannedPartition};
use crate::run::Record;
use crate::storage::Stores;

/// One partition, looked at.
pub(super) struct Looked {
    pub(super) name: String,
    pub(super) batch: usize,
    pub(super) recorded: Metrics,
    pub(super) planned_base: Option<BasePartition>,
    pub(super) report: PartitionReport,
    pub(super) findings: Vec<Finding>,
    pub(super) balances: Vec<(String, String)>,
    pub(super) explained: Explained,
    pub(super) claims: ClaimTallies,
    pub(super) unexplained: Explained,
}

/// Everything that looking at a partition needs.
pub(super) struct Checker {
    pub(super) stores: Arc<Stores>,
    pub(super) dataset: Dataset,
    pub(super) plan: Plan,
    pub(super) schema: SchemaRef,
    pub(super) production: Partitions,
    pub(super) options: DiffOptions,
    pub(super) claims: Arc<Claims>,
}

/// Measures both sides while they are compared.
struct Measured {
    candidate: Meter,
    values: ValueMeter,
    production: Option<Meter>,
    /// Whether the candidate's batches come sorted, not as they are stored.
    sorted: bool,
    has_interval: bool,
    explainer: Explainer,
    claims: ClaimMeter,
}

impl Measured {
    fn see_candidate(&mut self, batch: &RecordBatch) -> Result<()> {
        self.candidate.update(batch)?;
        if self.has_interval {
            self.values.see_interval(batch)?;
        }
        self.values.see_domains(batch)
    }
}

/// A witness that begins anew with each try.
struct Measuring<'a> {
    checker: &'a Checker,
    partition: &'a PlannedPartition,
    measured: Measured,
}

impl Witness for Measuring<'_> {
    fn restart(&mut self, sorted: Origin) -> Result<()> {
        let sorted = self.measured.sorted || sorted == Origin::Candidate;
        let measure_production = self.measured.production.is_some();
        let measured = self.checker.measured(self.partition, measure_production)?;
        self.measured = Measured { sorted, ..measured };
        Ok(())
    }

    fn batch(&mut self, origin: Origin, batch: &RecordBatch) -> Result<()> {
        match origin {
            Origin::Candidate => self.measured.see_candidate(batch),
            Origin::Production => match &mut self.measured.production {
                Some(meter) => meter.update(batch),
                None => Ok(()),
            },
        }
    }

    fn piece(&mut self, piece: &Piece) -> Result<()> {
        self.measured.explainer.see(piece)?;
        self.measured.claims.see(piece)
    }
}

impl Checker {
    pub(super) async fn look(
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
        let candidate = self.rows(&record.files).await?;
        let current = self.production.at(partition.interval.start);
        let (measured, base, diff) = match current {
            None => {
                let measured = self.measure(&candidate, partition).await?;
                (measured, None, None)
            }
            Some(current) => {
                let (measured, base, diff) =
                    self.compared(partition, &candidate, record, current).await?;
                (measured, Some(base), Some(diff))
            }
        };
        let metrics = measured.candidate.metrics();
        let diff = diff.unwrap_or_else(|| Diff {
            rows_candidate: metrics.rows,
            only_candidate: metrics.rows,
            ..Diff::default()
        });
        let facts = PartitionFacts {
            name,
            metrics: &metrics,
            outside: &measured.values.outside,
            domains: &measured.values.found,
            production_rows: base.as_ref().map(|base| base.metrics.rows),
        };
        let mut findings = check_partition(&facts, &decides.checks);
        findings.extend(decides.checks.soften(self.violations(partition, record).await?));
        // Once published, these files are production: their numbers need no second look then.
        self.keep(&identity_of(name, &record.files)?, metrics.clone()).await?;
        let balances = self.balances(partition, record).await?;
        let (claims, unexplained) = measured.claims.finish()?;
        Ok(Looked {
            name: name.clone(),
            batch,
            recorded: record.metrics.clone(),
            planned_base: partition.base.clone(),
            report: PartitionReport { metrics, base, diff },
            findings,
            balances,
            explained: measured.explainer.finish()?,
            claims,
            unexplained,
        })
    }

    /// A partition's rows, once its files' bytes are the recorded ones.
    pub(super) async fn rows(&self, files: &[DataFile]) -> Result<Rows> {
        Ok(Rows::new(verified_table(&self.dataset, &self.schema, files).await?, true))
    }

    fn measured(&self, partition: &PlannedPartition, production: bool) -> Result<Measured> {
        let decides = &self.plan.decides;
        let column = &decides.definition.partition;
        let profiled = decides.checks.profiled();
        let meter =
            || Ok::<_, Error>(Meter::new(viewed(&self.schema), &decides.key)?.profiling(&profiled));
        Ok(Measured {
            candidate: meter()?,
            values: ValueMeter::new(column, &partition.interval, &decides.checks.domain)?,
            production: production.then(meter).transpose()?,
            sorted: false,
            has_interval: self.schema.field_with_name(&column.column).is_ok(),
            explainer: Explainer::new(&partition.interval.name, &decides.key),
            claims: ClaimMeter::new(&self.claims, &partition.interval.name, &decides.key),
        })
    }

    /// Measures the candidate alone, as it is stored.
    async fn measure(&self, rows: &Rows, partition: &PlannedPartition) -> Result<Measured> {
        let mut measured = self.measured(partition, false)?;
        let mut batches = rows.raw(DECODED_ROWS);
        while let Some(batch) = batches.next().await {
            measured.see_candidate(&batch?)?;
        }
        Ok(measured)
    }

    /// Measures and compares in one pass; where both sides are known to be equal, production is
    /// not decoded.
    async fn compared(
        &self,
        partition: &PlannedPartition,
        candidate: &Rows,
        record: &Record,
        current: &Partition,
    ) -> Result<(Measured, BaseReport, Diff)> {
        let identity = current.identity()?;
        let known =
            find_metrics(&self.dataset, &identity, &self.plan.decides.checks.profiled()).await?;
        if let Some(metrics) =
            known.as_ref().filter(|known| known.content == record.metrics.content)
        {
            for file in &current.files {
                let object = self.dataset.current_object(file).await;
                object.map_err(|error| as_conflict(error, current))?;
            }
            let measured = self.measure(candidate, partition).await?;
            // The writer's word was only a reason to look less closely; the stored bytes decide.
            if measured.candidate.metrics().content == metrics.content {
                let diff = Diff::none(metrics.rows);
                return Ok((measured, BaseReport { identity, metrics: metrics.clone() }, diff));
            }
        }
        let production =
            self.rows(&current.files).await.map_err(|error| as_conflict(error, current))?;
        let measured = self.measured(partition, known.is_none())?;
        let mut measuring = Measuring { checker: self, partition, measured };
        let diff = compare_rows(&production, candidate, &self.options, &mut measuring).await?;
        let mut measured = measuring.measured;
        if measured.sorted {
            // What depends on order is said of the rows as they are stored.
            let stored = self.measure(candidate, partition).await?;
            measured = Measured { candidate: stored.candidate, values: stored.values, ..measured };
        }
        let metrics = match (known, &measured.production) {
            (Some(known), _) => known,
            (None, Some(meter)) => self.keep(&identity, meter.metrics()).await?,
            (None, None) => return Err(Error::internal("production was not measured")),
        };
        Ok((measured, BaseReport { identity, metrics }, diff))
    }

    /// Stores numbers for the next time. Production's rows come in an order of their own: what
    /// depends on order is not said of them.
    async fn keep(&self, identity: &Digest, metrics: Metrics) -> Result<Metrics> {
        let metrics = Metrics { keys: KeyMetrics::default(), ..metrics };
        let profiled = self.plan.decides.checks.profiled();
        store_metrics(&self.dataset, identity, &profiled, &metrics).await?;
        Ok(metrics)
    }
}

pub(super) fn as_conflict(error: Error, current: &Partition) -> Error {
    if error.kind() == ErrorKind::Corrupt { conflict(error, current) } else { error }
}

/// Production's files are not what the version says: somebody else wrote them.
fn conflict(error: Error, partition: &Partition) -> Error {
    Error::new(ErrorKind::Conflict, "production was changed outside reissue")
        .with("partition", &partition.name)
        .because(error)
        .hint("take the change in: reissue adopt --again; then plan again")
}
