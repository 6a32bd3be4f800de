//! Source tables that every partition reads whole: decoded once in a run.
//!
//! A reference table is the side of a join that is read before the first row comes out, so a run
//! of many partitions would otherwise decode and put together the same rows again for each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::future::{BoxFuture, FutureExt as _, Shared, TryFutureExt as _};
use futures::stream::{BoxStream, TryStreamExt as _};

use super::PinnedTable;
use crate::error::{Error, Result};

/// A table's name and the columns that are held.
type Part = (String, Vec<String>);

/// The rows, when they fit into their share of the memory. Whoever waits for them drives their
/// decoding, so nobody waits for another query that has stopped asking.
type Rows = Shared<BoxFuture<'static, std::result::Result<Option<RecordBatch>, Arc<Error>>>>;

/// What a run holds of its reference tables, within a share of its queries' memory.
pub struct HeldTables {
    tables: Mutex<BTreeMap<Part, Rows>>,
    memory: Arc<MemoryReservation>,
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
        let memory = Arc::new(MemoryConsumer::new("reference tables").register(memory));
        Self { tables: Mutex::default(), memory, limit }
    }

    /// All rows of some columns as one batch, decoded once for all who ask; none when they are
    /// too many to be held.
    ///
    /// # Errors
    /// As reading the table; who asks after an error tries again.
    pub(super) async fn rows(
        &self,
        name: &str,
        table: &PinnedTable,
        columns: &SchemaRef,
        batch_rows: usize,
    ) -> Result<Option<RecordBatch>> {
        let names = columns.fields().iter().map(|field| field.name().clone()).collect();
        let part: Part = (name.to_owned(), names);
        let begin = || {
            let stream = table.stream(Arc::clone(columns), batch_rows);
            let rows = decode(stream, Arc::clone(columns), Arc::clone(&self.memory), self.limit);
            rows.map_err(Arc::new).boxed().shared()
        };
        let rows = self.tables().entry(part.clone()).or_insert_with(begin).clone();
        rows.clone().await.map_err(|error| {
            let mut tables = self.tables();
            if tables.get(&part).is_some_and(|held| held.ptr_eq(&rows)) {
                tables.remove(&part);
            }
            error.copy()
        })
    }

    fn tables(&self) -> MutexGuard<'_, BTreeMap<Part, Rows>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn decode(
    mut stream: BoxStream<'static, Result<RecordBatch>>,
    columns: SchemaRef,
    memory: Arc<MemoryReservation>,
    limit: usize,
) -> Result<Option<RecordBatch>> {
    // Given back when the rows turn out to be too many, or reading them fails.
    let taken = memory.new_empty();
    let mut batches = Vec::new();
    while let Some(batch) = stream.try_next().await? {
        // Twice: the parts, and what they are put together to.
        let bytes = 2 * batch.get_array_memory_size();
        if memory.size() + taken.size() + bytes > limit || taken.try_grow(bytes).is_err() {
            return Ok(None);
        }
        batches.push(batch);
    }
    // Dictionaries may need more keys together than their type has: then they stay apart.
    let Ok(rows) = concat_batches(&columns, &batches) else { return Ok(None) };
    drop(batches);
    let bytes = rows.get_array_memory_size().min(taken.size());
    drop(taken);
    memory.grow(bytes);
    Ok(Some(rows))
}
