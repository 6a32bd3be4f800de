//! A table that is exactly its pinned files, and of them exactly the rows of one window.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, BooleanArray, RecordBatch, RecordBatchOptions, Scalar,
    StringViewArray,
};
use arrow::buffer::ScalarBuffer;
use arrow::compute::kernels::cmp::{gt_eq, lt};
use arrow::compute::{and, filter_record_batch};
use arrow::datatypes::{DataType, Field, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session as EngineSession, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};

use super::HeldTables;
use super::conform::strictly;
use super::pinned_scan::PinnedScan;
use crate::error::{Error, ErrorKind, Result, from_arrow};
use crate::parquet_file::{Footer, Scan, groups_in_window, read_footer, scan, viewed};
use crate::storage::{Object, Store};

/// One pinned file.
#[derive(Debug, Clone)]
pub struct PinnedFile {
    /// The object, as it was pinned.
    pub object: Object,
    /// Where it is.
    pub store: Arc<Store>,
    /// Its footer, when it was read already.
    pub footer: Option<Arc<Footer>>,
    /// The columns that have one value in all its rows, which is not in the file: its path has it,
    /// or it is null because the file lacks the column.
    pub path_values: BTreeMap<String, ScalarValue>,
}

/// Which rows of the files belong to the table: `column >= start AND column < end`.
#[derive(Debug, Clone)]
pub struct RowWindow {
    /// The column inside the files.
    pub column: String,
    /// The first value inside.
    pub start: ScalarValue,
    /// The first value after.
    pub end: ScalarValue,
}

/// A table of pinned files.
///
/// # Schema
/// As declared. A column that a file carries is decoded from its pages, one that only the path
/// carries is constant in each file. Rows come file by file, in the files' own order.
#[derive(Debug, Clone)]
pub struct PinnedTable {
    schema: SchemaRef,
    files: Arc<Vec<PinnedFile>>,
    window: Option<Arc<RowWindow>>,
    /// Who holds the decoded rows for all queries of a run, and under which name.
    held: Option<(Arc<HeldTables>, String)>,
    /// About how many rows there are.
    expected_rows: Option<u64>,
}

impl PinnedTable {
    /// A table of these files.
    pub fn new(schema: SchemaRef, files: Vec<PinnedFile>, window: Option<RowWindow>) -> Self {
        Self {
            schema,
            files: Arc::new(files),
            window: window.map(Arc::new),
            held: None,
            expected_rows: None,
        }
    }

    /// The same table, of which the engine knows about how many rows to expect.
    #[must_use]
    pub fn expecting(self, rows: u64) -> Self {
        Self { expected_rows: Some(rows), ..self }
    }

    /// The same table, which other queries of the run read whole as well: its rows are decoded
    /// once for all of them, and come as one batch, when `held` has room for them.
    #[must_use]
    pub fn held_in(self, held: Arc<HeldTables>, name: &str) -> Self {
        Self { held: Some((held, name.to_owned())), ..self }
    }

    /// Its columns.
    pub fn schema_ref(&self) -> &SchemaRef {
        &self.schema
    }

    /// Decodes some columns of all files.
    pub fn stream(
        &self,
        columns: SchemaRef,
        batch_rows: usize,
    ) -> BoxStream<'static, Result<RecordBatch>> {
        let window = self.window.clone();
        let files = Arc::clone(&self.files);
        futures::stream::iter(0..files.len())
            .then(move |number| {
                let file = files[number].clone();
                file_stream(file, Arc::clone(&columns), window.clone(), batch_rows)
            })
            .try_flatten()
            .boxed()
    }
}

/// Decodes one file into the wanted columns.
async fn file_stream(
    file: PinnedFile,
    wanted: SchemaRef,
    window: Option<Arc<RowWindow>>,
    batch_rows: usize,
) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let reader = file.store.open(&file.object)?;
    let footer = match &file.footer {
        Some(footer) => Arc::clone(footer),
        None => Arc::new(read_footer(&reader).await?),
    };
    let present = footer.schema();
    let window_column = window.iter().map(|window| window.column.as_str());
    let names = wanted.fields().iter().map(|field| field.name().as_str()).chain(window_column);
    // By name once: a table may have ten thousand columns.
    let places: HashMap<&str, usize> = present
        .fields()
        .iter()
        .enumerate()
        .map(|(at, field)| (field.name().as_str(), at))
        .collect();
    let mut columns: Vec<usize> = names
        .filter(|name| !file.path_values.contains_key(*name))
        .map(|name| {
            places.get(name).copied().ok_or_else(|| {
                Error::stale(format!("a pinned file has no column {name:?}"))
                    .with("file", &file.object.path)
            })
        })
        .collect::<Result<_>>()?;
    columns.sort_unstable();
    columns.dedup();
    let row_groups = window
        .as_ref()
        .map(|window| groups_in_window(&footer, &window.column, &window.start, &window.end));
    let is_view =
        |field: &Arc<Field>| matches!(field.data_type(), DataType::Utf8View | DataType::BinaryView);
    let views = wanted.fields().iter().any(is_view);
    let wish = Scan { columns: Some(columns), row_groups, batch_rows, views };
    let (_, batches) = scan(reader, &footer, wish)?;
    let path = file.object.path.clone();
    let shaped = batches.map(move |batch| {
        let batch = batch?;
        let kept = match &window {
            Some(window) => keep(&batch, window)?,
            None => batch,
        };
        shape(&kept, &wanted, &file.path_values).map_err(|error| error.with("file", &path))
    });
    Ok(shaped.boxed())
}

/// Keeps the rows of a window. A row without a time is in no window; it is dropped here and
/// counted nowhere, which is what "exactly its interval's rows" means.
fn keep(batch: &RecordBatch, window: &RowWindow) -> Result<RecordBatch> {
    let fail = |error| from_arrow(ErrorKind::Internal, "select rows by time", error);
    let column = batch.column_by_name(&window.column).ok_or_else(|| {
        Error::internal("the time column was not read").with("column", &window.column)
    })?;
    let bound = |value: &ScalarValue| -> Result<Scalar<ArrayRef>> {
        let array = value
            .to_array()
            .map_err(|error| Error::internal("make a boundary").because(error.to_string()))?;
        // A boundary that became null would drop every row.
        let bound = strictly(&array, column.data_type()).map_err(fail)?;
        Ok(Scalar::new(bound))
    };
    let after: BooleanArray = gt_eq(column, &bound(&window.start)?).map_err(fail)?;
    let before = lt(column, &bound(&window.end)?).map_err(fail)?;
    filter_record_batch(batch, &and(&after, &before).map_err(fail)?).map_err(fail)
}

/// Puts columns into the wanted order, with the path's values, in the wanted types.
fn shape(
    batch: &RecordBatch,
    wanted: &SchemaRef,
    path_values: &BTreeMap<String, ScalarValue>,
) -> Result<RecordBatch> {
    let rows = batch.num_rows();
    let read: HashMap<&str, &ArrayRef> = batch
        .schema_ref()
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .zip(batch.columns())
        .collect();
    let mut arrays = Vec::with_capacity(wanted.fields().len());
    for field in wanted.fields() {
        let of_path = path_values.get(field.name());
        let because = |error: DataFusionError| {
            Error::internal("spread a path's value").because(error.to_string())
        };
        let array = match of_path {
            Some(value) => value.to_array().map_err(because)?,
            None => Arc::clone(read.get(field.name().as_str()).ok_or_else(|| {
                Error::internal("a column was not read").with("column", field.name())
            })?),
        };
        let array = if array.data_type() == field.data_type() {
            array
        } else {
            strictly(&array, field.data_type()).map_err(|error| {
                from_arrow(ErrorKind::Invalid, "a value does not fit into its column", error)
                    .with("column", field.name())
                    .with("in the file", array.data_type())
                    .with("read as", field.data_type())
                    .hint("write the column with one type everywhere")
            })?
        };
        arrays.push(if of_path.is_some() { spread(&array, rows).map_err(because)? } else { array });
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(wanted), arrays, &options).map_err(|error| {
        from_arrow(ErrorKind::Corrupt, "a column has nulls that it may not have", error)
    })
}

#[async_trait]
impl TableProvider for PinnedTable {
    fn schema(&self) -> SchemaRef {
        // Views: nothing copies a text before it is written.
        viewed(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn EngineSession,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let columns = match projection {
            Some(projection) => Arc::new(viewed(&self.schema).project(projection)?),
            None => viewed(&self.schema),
        };
        let stream = Arc::new(TableStream { table: self.clone(), columns });
        Ok(Arc::new(PinnedScan::new(stream, limit, self.expected_rows)?))
    }
}

/// The one stream of a table's scan.
struct TableStream {
    table: PinnedTable,
    columns: SchemaRef,
}

impl fmt::Debug for TableStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pinned files", self.table.files.len())
    }
}

impl PartitionStream for TableStream {
    fn schema(&self) -> &SchemaRef {
        &self.columns
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batch_rows = context.session_config().batch_size();
        let (table, columns) = (self.table.clone(), Arc::clone(&self.columns));
        let batches = async move {
            let held = match &table.held {
                Some((held, name)) => held.rows(name, &table, &columns, batch_rows).await?,
                None => None,
            };
            Ok(match held {
                Some(rows) => futures::stream::iter([Ok(rows)]).boxed(),
                None => table.stream(columns, batch_rows),
            })
        };
        let batches = futures::stream::once(batches)
            .try_flatten()
            .map_err(|error| DataFusionError::External(Box::new(error)));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.columns), batches))
    }
}

/// So many of one value: of a million equal texts none needs a look.
fn spread(one: &ArrayRef, rows: usize) -> EngineResult<ArrayRef> {
    match one.as_string_view_opt() {
        Some(text) if text.null_count() == 0 => {
            let views = ScalarBuffer::from(vec![text.views()[0]; rows]);
            let buffers = text.data_buffers().to_vec();
            Ok(Arc::new(StringViewArray::try_new(views, buffers, None)?))
        }
        _ => ScalarValue::try_from_array(one, 0)?.to_array_of_size(rows),
    }
}
