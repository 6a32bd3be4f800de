//! **The only place that builds an engine session.**

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::config::SpillCompression;
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result as EngineResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::{Expr, LogicalPlan, SortExpr, when};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext, col, lit};

use super::sample_rank::sample_rank;
use super::{Parameters, PinnedTable, Query};
use crate::error::{ErrorKind, Result, from_engine};

/// The engine and everything about it that decides rows, as it enters a recipe.
pub const ENGINE: &str = "datafusion 55.2.0, arrow 59.3.2, session zone UTC, engine rules 1";

/// Batch size where an answer may follow the order of rows; then it is part of the recipe.
pub const FIXED_BATCH_ROWS: usize = 8_192;

/// Memory of one query whose answer may follow the order of rows: whether it spills, and so in
/// which order it adds, must not depend on its neighbours. Part of the recipe.
pub const FIXED_MEMORY_BYTES: usize = 1 << 30;

/// How a session runs; decides nothing about rows that are not order-sensitive.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// Rows of a batch.
    pub batch_rows: usize,
    /// Threads of one query.
    pub threads: usize,
    /// Memory of the query; absent: unlimited, for planning only.
    pub memory: Option<Arc<dyn MemoryPool>>,
    /// Where what does not fit into memory goes, and how much of it.
    pub spill: Option<(PathBuf, u64)>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self { batch_rows: FIXED_BATCH_ROWS, threads: 1, memory: None, spill: None }
    }
}

impl SessionOptions {
    /// A pool that shares `bytes` fairly between the operators of all queries.
    pub fn pool(bytes: usize) -> Arc<dyn MemoryPool> {
        Arc::new(FairSpillPool::new(bytes))
    }
}

/// One query's engine: nothing is shared with any other but the memory pool.
pub struct Session {
    context: SessionContext,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session")
    }
}

impl Session {
    /// A fresh session.
    ///
    /// # Errors
    /// `Exhausted` when the spill folder cannot be made.
    pub fn new(options: &SessionOptions) -> Result<Self> {
        let mut config = SessionConfig::new()
            .with_target_partitions(options.threads)
            .with_batch_size(options.batch_rows)
            .with_information_schema(false)
            .with_create_default_catalog_and_schema(true);
        let settings = config.options_mut();
        // Statistics are never answers: wrong footers have given wrong sums.
        settings.execution.collect_statistics = false;
        settings.execution.parquet.pruning = false;
        settings.execution.parquet.enable_page_index = false;
        settings.execution.parquet.bloom_filter_on_read = false;
        settings.execution.spill_compression = SpillCompression::Lz4Frame;
        settings.execution.time_zone = Some("UTC".to_owned());
        let mut runtime = RuntimeEnvBuilder::new()
            .with_file_statistics_cache_limit(0)
            .with_object_list_cache_limit(0)
            .with_metadata_cache_limit(0);
        if let Some(pool) = &options.memory {
            runtime = runtime.with_memory_pool(Arc::clone(pool));
        }
        if let Some((folder, bytes)) = &options.spill {
            runtime = runtime.with_temp_file_path(folder).with_max_temp_directory_size(*bytes);
        }
        let runtime = runtime.build_arc().map_err(|error| {
            from_engine(ErrorKind::Exhausted, "prepare the spill folder", error)
        })?;
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_default_features()
            .build();
        let context = SessionContext::new_with_state(state);
        context.register_udf(sample_rank());
        Ok(Self { context })
    }

    /// Makes a table known.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn register(&self, name: &str, table: PinnedTable) -> Result<()> {
        self.context
            .register_table(name, Arc::new(table))
            .map(drop)
            .map_err(|error| from_engine(ErrorKind::Internal, "register a table", error))
    }

    /// The plan of a query, with its parameters unbound.
    ///
    /// # Errors
    /// `Invalid` for unknown tables and columns, and types that do not fit.
    pub async fn plan(&self, query: &Query) -> Result<LogicalPlan> {
        self.context
            .state()
            .statement_to_plan(query.statement().clone())
            .await
            .map_err(|error| from_engine(ErrorKind::Invalid, "the SQL cannot be planned", error))
    }

    /// An expression over columns.
    pub(super) fn expression(&self, sql: &str, columns: &DFSchema) -> EngineResult<Expr> {
        self.context.state().create_logical_expr(sql, columns)
    }

    /// The same, ready to be computed.
    pub(super) fn physical(
        &self,
        expression: Expr,
        columns: &DFSchema,
    ) -> EngineResult<Arc<dyn PhysicalExpr>> {
        self.context.state().create_physical_expr(expression, columns)
    }

    pub(super) fn optimize(&self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        self.context
            .state()
            .optimize(plan)
            .map_err(|error| from_engine(ErrorKind::Invalid, "the SQL cannot be planned", error))
    }

    /// Sorts a stream of rows by columns, nulls first; what does not fit into memory spills.
    ///
    /// # Errors
    /// Each batch may fail, with `Exhausted` for memory and disk.
    pub async fn sort(
        &self,
        rows: Arc<dyn PartitionStream>,
        order: &[String],
    ) -> Result<SendableRecordBatchStream> {
        let fail = |error| from_engine(ErrorKind::Internal, "sort rows", error);
        let table = StreamingTable::try_new(Arc::clone(rows.schema()), vec![rows]).map_err(fail)?;
        let frame = self.context.read_table(Arc::new(table)).map_err(fail)?;
        let keys = sort_keys(frame.schema(), order).map_err(fail)?;
        frame.sort(keys).map_err(fail)?.execute_stream().await.map_err(fail)
    }

    /// Runs a query; with `order`, rows come sorted by those columns, nulls first.
    ///
    /// # Errors
    /// `Invalid` when it cannot be planned; each batch may fail, with `Exhausted` for memory.
    pub async fn run(
        &self,
        query: &Query,
        parameters: &Parameters,
        order: &[String],
    ) -> Result<SendableRecordBatchStream> {
        let plan = parameters.bind(self.plan(query).await?)?;
        let mut frame = DataFrame::new(self.context.state(), plan);
        let fail = |error| from_engine(ErrorKind::Invalid, "the SQL cannot be run", error);
        if !order.is_empty() {
            let keys = sort_keys(frame.schema(), order).map_err(fail)?;
            frame = frame.sort(keys).map_err(fail)?;
        }
        frame.execute_stream().await.map_err(fail)
    }
}

/// The order of [`crate::key`]: nulls first, and one NaN after all numbers.
fn sort_keys(schema: &DFSchema, order: &[String]) -> EngineResult<Vec<SortExpr>> {
    let keys = order.iter().map(|column| {
        let exact = col(Column::from_name(column));
        let data_type = schema.field_with_unqualified_name(column)?.data_type();
        let value = if data_type.is_floating() {
            // Compared in total order, in which a NaN with a sign is less than all numbers.
            let no_number =
                exact.clone().gt(lit(f64::INFINITY)).or(exact.clone().lt(lit(f64::NEG_INFINITY)));
            when(no_number, lit(f64::NAN)).otherwise(exact)?
        } else {
            exact
        };
        Ok(value.sort(true, true))
    });
    keys.collect()
}
