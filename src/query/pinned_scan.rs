//! The scan of a pinned table, with what the engine may know before it reads.
//!
//! The engine puts the smaller side of a join into memory. It knows no sizes by itself, because
//! statistics are never answers; an estimate is enough to choose, and can change no row.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result as EngineResult, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr,
    PlanProperties, ReplaceChildrenOptions,
};

/// Bytes of a text, a binary or a nested value in memory, of which nothing better is known.
const UNKNOWN_WIDTH: usize = 16;

/// One stream of rows, and how many they will be.
#[derive(Debug)]
pub(super) struct PinnedScan {
    rows: StreamingTableExec,
    estimate: Option<u64>,
}

impl PinnedScan {
    pub(super) fn new(
        stream: Arc<dyn PartitionStream>,
        limit: Option<usize>,
        estimate: Option<u64>,
    ) -> EngineResult<Self> {
        let columns = Arc::clone(stream.schema());
        let rows = StreamingTableExec::try_new(columns, vec![stream], None, None, false, limit)?;
        let most = limit.and_then(|limit| u64::try_from(limit).ok()).unwrap_or(u64::MAX);
        Ok(Self { rows, estimate: estimate.map(|rows| rows.min(most)) })
    }
}

impl DisplayAs for PinnedScan {
    fn fmt_as(
        &self,
        _kind: DisplayFormatType,
        f: &mut std::fmt::Formatter<'_>,
    ) -> std::fmt::Result {
        write!(f, "PinnedScan: about {:?} rows", self.estimate)
    }
}

impl ExecutionPlan for PinnedScan {
    fn name(&self) -> &'static str {
        "PinnedScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.rows.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> EngineResult<TreeNodeRecursion>,
    ) -> EngineResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("a scan has no children") }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> EngineResult<SendableRecordBatchStream> {
        self.rows.execute(partition, context)
    }

    fn statistics_from_inputs(
        &self,
        _inputs: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> EngineResult<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema());
        if let Some(rows) = self.estimate.and_then(|rows| usize::try_from(rows).ok()) {
            // Never exact: an exact number would be taken for the answer of a count.
            statistics.num_rows = Precision::Inexact(rows);
            let bytes = rows.saturating_mul(row_width(&self.schema()));
            statistics.total_byte_size = Precision::Inexact(bytes);
        }
        Ok(Arc::new(statistics))
    }
}

fn row_width(columns: &SchemaRef) -> usize {
    let widths = columns
        .fields()
        .iter()
        .map(|field| field.data_type().primitive_width().unwrap_or(UNKNOWN_WIDTH));
    widths.sum()
}
