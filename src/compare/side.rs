//! One side of a comparison: batches in key order, cut so that equal keys stay together.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::Schema;

use crate::error::{ErrorKind, Result, from_arrow};
use crate::key::{Key, KeyEncoder, Keys, Ordered, in_order};

/// Rows whose keys are known, with no key that goes on in another block.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) rows: RecordBatch,
    pub(super) keys: Keys,
    /// Whether each key is greater than the one before.
    pub(super) ascending: bool,
    /// The first row that is still to be compared.
    pub(super) at: usize,
}

impl Block {
    pub(super) fn left(&self) -> usize {
        self.keys.len() - self.at
    }
}

/// One side.
///
/// The last key of what was fed may go on in the next batch, so that batch is held back until the
/// next one, or the end, is known.
#[derive(Debug)]
pub(super) struct Side {
    encoder: Arc<KeyEncoder>,
    pub(super) ready: Option<Block>,
    held: Option<Block>,
    /// Rows of the last key alone, from several batches: joined once, when the key is over.
    repeated: Vec<RecordBatch>,
    last: Option<Key>,
    pub(super) ended: bool,
    pub(super) rows: u64,
    pub(super) null_keys: u64,
}

impl Side {
    pub(super) fn new(encoder: Arc<KeyEncoder>) -> Self {
        let (ready, held, last, repeated) = (None, None, None, Vec::new());
        Self { encoder, ready, held, repeated, last, ended: false, rows: 0, null_keys: 0 }
    }

    /// Whether a batch, or the end, must come before anything can be compared.
    pub(super) fn wants(&self) -> bool {
        self.ready.is_none() && !self.ended
    }

    /// Takes the next batch; `None`: there is no more. False: the batch is not in key order.
    pub(super) fn feed(&mut self, batch: Option<RecordBatch>) -> Result<bool> {
        let Some(batch) = batch else {
            self.ended = true;
            self.ready = self.held.take();
            if !self.repeated.is_empty() {
                self.ready = Some(self.join(None)?);
            }
            return Ok(true);
        };
        if batch.num_rows() == 0 {
            return Ok(true);
        }
        let keys = self.encoder.encode(&batch)?;
        let order = in_order(&keys, self.last.as_ref());
        if let Ordered::Not(_) = order {
            return Ok(false);
        }
        self.rows += batch.num_rows() as u64;
        self.null_keys += keys.nulls().map_or(0, |nulls| nulls.null_count() as u64);
        let goes_on = self.last.as_ref().is_some_and(|last| keys.compare_to(0, last).is_eq());
        let end = keys.len() - 1;
        let one_key = keys.compare(0, &keys, end).is_eq();
        self.last = Some(keys.one(end));
        if goes_on {
            self.set_last_key_aside()?;
            if one_key {
                self.repeated.push(batch);
            } else {
                self.held = Some(self.join(Some(batch))?);
            }
            return Ok(true);
        }
        self.ready = match self.repeated.is_empty() {
            true => self.held.take(),
            false => Some(self.join(None)?),
        };
        let ascending = order == Ordered::Ascending;
        self.held = Some(Block { rows: batch, keys, ascending, at: 0 });
        Ok(true)
    }

    /// The held batch's last key goes on: its rows wait, and those before are ready.
    fn set_last_key_aside(&mut self) -> Result<()> {
        let Some(held) = self.held.take() else { return Ok(()) };
        let rows = held.keys.len();
        let same = |row: &usize| held.keys.compare(*row, &held.keys, rows - 1).is_eq();
        let start = (0..rows).rev().take_while(same).last().unwrap_or(rows);
        if start > 0 {
            self.ready = Some(self.block(held.rows.slice(0, start), held.ascending)?);
        }
        self.repeated.push(held.rows.slice(start, rows - start));
        Ok(())
    }

    /// The rows of the key that went on over several batches, and those after it.
    fn join(&mut self, after: Option<RecordBatch>) -> Result<Block> {
        let mut parts = std::mem::take(&mut self.repeated);
        parts.extend(after);
        let schema = parts.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
        let joined = concat_batches(&schema, &parts)
            .map_err(|error| from_arrow(ErrorKind::Internal, "keep equal keys together", error))?;
        self.block(joined, false)
    }

    fn block(&self, rows: RecordBatch, ascending: bool) -> Result<Block> {
        let keys = self.encoder.encode(&rows)?;
        Ok(Block { rows, keys, ascending, at: 0 })
    }

    /// Lets go of a block whose rows are all compared.
    pub(super) fn advance(&mut self) {
        if self.ready.as_ref().is_some_and(|block| block.left() == 0) {
            self.ready = None;
        }
    }
}
