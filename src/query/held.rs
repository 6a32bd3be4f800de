//! Source tables that every partition reads whole: decoded once in a run.
//!
//! A reference table is the side of a join that is read before the first row comes out, so a run
//! of many partitions would otherwise decode and put together the same rows again for each.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::future::{BoxFuture, FutureExt as _, Shared, TryFutureExt as _};
use futures::stream::{BoxStream, TryStreamExt as _};

use super::{Footprint, PinnedTable};
use crate::error::{Error, Result};

/// A table's name and the columns that are held.
type Part = (String, Vec<String>);

/// Whoever waits for the rows drives their decoding, so nobody waits for another query that has stopped
/// asking.
type Rows = Shared<BoxFuture<'static, std::result::Result<Decoded, Arc<Error>>>>;

/// What became of a table's rows.
#[derive(Clone)]
enum Decoded {
    /// They are here, and counted.
    Held { rows: RecordBatch, _share: Arc<Share> },
    /// They never fit.
    TooMany,
    /// Others use the memory at the moment.
    NoRoomNow,
}

/// What a run holds of its reference tables, within a share of its queries' memory.
pub struct HeldTables {
    tables: Mutex<BTreeMap<Part, Rows>>,
    memory: Arc<dyn MemoryPool>,
    used: Arc<AtomicUsize>,
    limit: usize,
}

impl std::fmt::Debug for HeldTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let used = self.used.load(Ordering::Relaxed);
        write!(f, "HeldTables({used} of {} bytes)", self.limit)
    }
}

/// One table's part of the limit and of the pool, given back when it goes.
struct Share {
    reserved: MemoryReservation,
    used: Arc<AtomicUsize>,
    limit: usize,
}

impl Share {
    /// None: it never fits. False: not at the moment.
    fn grow(&self, bytes: usize) -> Option<bool> {
        if self.reserved.size() + bytes > self.limit {
            return None;
        }
        let within = |used: usize| (used + bytes <= self.limit).then_some(used + bytes);
        if self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_err() {
            return Some(false);
        }
        let has_room = self.reserved.try_grow(bytes).is_ok();
        if !has_room {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        }
        Some(has_room)
    }

    fn shrink_to(&self, bytes: usize) {
        let over = self.reserved.size().saturating_sub(bytes);
        self.reserved.shrink(over);
        self.used.fetch_sub(over, Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.used.fetch_sub(self.reserved.size(), Ordering::Relaxed);
    }
}

impl HeldTables {
    /// Nothing yet, and never more than `limit` bytes, which `memory` counts.
    pub fn new(memory: &Arc<dyn MemoryPool>, limit: usize) -> Self {
        let memory = Arc::clone(memory);
        Self { tables: Mutex::default(), memory, used: Arc::default(), limit }
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
            let share = Share {
                reserved: MemoryConsumer::new("reference tables").register(&self.memory),
                used: Arc::clone(&self.used),
                limit: self.limit,
            };
            let stream = table.stream(Arc::clone(columns), batch_rows);
            decode(stream, Arc::clone(columns), share).map_err(Arc::new).boxed().shared()
        };
        let asked = self.tables().entry(part.clone()).or_insert_with(begin).clone();
        let found = asked.clone().await;
        if matches!(found, Err(_) | Ok(Decoded::NoRoomNow)) {
            let mut tables = self.tables();
            if tables.get(&part).is_some_and(|held| held.ptr_eq(&asked)) {
                tables.remove(&part);
            }
        }
        match found.map_err(|error| error.copy())? {
            Decoded::Held { rows, .. } => Ok(Some(rows)),
            Decoded::TooMany | Decoded::NoRoomNow => Ok(None),
        }
    }

    fn tables(&self) -> MutexGuard<'_, BTreeMap<Part, Rows>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn decode(
    mut stream: BoxStream<'static, Result<RecordBatch>>,
    columns: SchemaRef,
    share: Share,
) -> Result<Decoded> {
    let mut footprint = Footprint::default();
    let mut batches = Vec::new();
    while let Some(batch) = stream.try_next().await? {
        // Twice: the parts, and what they are put together to.
        match share.grow(2 * footprint.add(&batch)) {
            Some(true) => batches.push(batch),
            Some(false) => return Ok(Decoded::NoRoomNow),
            None => return Ok(Decoded::TooMany),
        }
    }
    // Dictionaries may need more keys together than their type has: then they stay apart.
    let Ok(rows) = concat_batches(&columns, &batches) else { return Ok(Decoded::TooMany) };
    drop(batches);
    share.shrink_to(Footprint::default().add(&rows));
    Ok(Decoded::Held { rows, _share: Arc::new(share) })
}
