//! Source tables that every partition reads whole: decoded once in a run.
//!
//! A reference table is the side of a join that is read before the first row comes out, so a run
//! of many partitions would otherwise decode and put together the same rows again for each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::TryStreamExt as _;
use tokio::sync::OnceCell;

use super::PinnedTable;
use crate::error::{ErrorKind, Result, from_arrow};

/// A table's name and the columns that are held.
type Part = (String, Vec<String>);

/// The rows, when they fit into their share of the memory.
type Rows = Arc<OnceCell<Option<RecordBatch>>>;

/// What a run holds of its reference tables, within a share of its queries' memory.
pub struct HeldTables {
    tables: Mutex<BTreeMap<Part, Rows>>,
    memory: MemoryReservation,
    limit: usize,
}

impl std::fmt::Debug for HeldTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HeldTables({} of {} bytes)", self.memory.size(), self.limit)
    }
}

impl HeldTables {
    /// Nothing yet, and never more than `limit` bytes, which `memory` counts.
    pub fn new(memory: &Arc<dyn MemoryPool>, limit: usize) -> Self {
        let memory = MemoryConsumer::new("reference tables").register(memory);
        Self { tables: Mutex::default(), memory, limit }
    }

    /// All rows of some columns as one batch, decoded by the first who asks while others wait;
    /// none when they are too many to be held.
    ///
    /// # Errors
    /// As reading the table; who asks next tries again.
    pub(super) async fn rows(
        &self,
        name: &str,
        table: &PinnedTable,
        columns: &SchemaRef,
        batch_rows: usize,
    ) -> Result<Option<RecordBatch>> {
        let names = columns.fields().iter().map(|field| field.name().clone()).collect();
        let rows = {
            let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(tables.entry((name.to_owned(), names)).or_default())
        };
        let held = rows.get_or_try_init(|| self.decode(table, columns, batch_rows)).await?;
        Ok(held.clone())
    }

    async fn decode(
        &self,
        table: &PinnedTable,
        columns: &SchemaRef,
        batch_rows: usize,
    ) -> Result<Option<RecordBatch>> {
        // Given back when the rows turn out to be too many, or reading them fails.
        let taken = self.memory.new_empty();
        let mut batches = Vec::new();
        let mut stream = table.stream(Arc::clone(columns), batch_rows);
        while let Some(batch) = stream.try_next().await? {
            // Twice: the parts, and what they are put together to.
            let bytes = 2 * batch.get_array_memory_size();
            let in_all = self.memory.size() + taken.size() + bytes;
            if in_all > self.limit || taken.try_grow(bytes).is_err() {
                return Ok(None);
            }
            batches.push(batch);
        }
        let rows = concat_batches(columns, &batches).map_err(|error| {
            from_arrow(ErrorKind::Internal, "put a reference table together", error)
        })?;
        drop(batches);
        let bytes = rows.get_array_memory_size().min(taken.size());
        drop(taken);
        self.memory.grow(bytes);
        Ok(Some(rows))
    }
}
