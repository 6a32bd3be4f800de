//! One side of a comparison: batches in key order, cut so that equal keys stay together.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;

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
    last: Option<Key>,
    pub(super) ended: bool,
    pub(super) rows: u64,
    pub(super) null_keys: u64,
}

impl Side {
    pub(super) fn new(encoder: Arc<KeyEncoder>) -> Self {
        let (ready, held, last) = (None, None, None);
        Self { encoder, ready, held, last, ended: false, rows: 0, null_keys: 0 }
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
        self.last = Some(keys.one(keys.len() - 1));
        let block = Block { rows: batch, keys, ascending: order == Ordered::Ascending, at: 0 };
        match self.held.take() {
            Some(held) if goes_on => self.join(held, &block)?,
            held => {
                self.ready = held;
                self.held = Some(block);
            }
        }
        Ok(true)
    }

    /// The held batch's last key goes on: its rows move to the next batch.
    fn join(&mut self, held: Block, block: &Block) -> Result<()> {
        let rows = held.keys.len();
        let last = held.keys.one(rows - 1);
        let start = (0..rows).rev().take_while(|row| held.keys.compare_to(*row, &last).is_eq());
        let start = start.last().unwrap_or(rows);
        let tail = held.rows.slice(start, rows - start);
        if start > 0 {
            self.ready = Some(self.block(held.rows.slice(0, start), held.ascending)?);
        }
        let joined = concat_batches(&tail.schema(), [&tail, &block.rows])
            .map_err(|error| from_arrow(ErrorKind::Internal, "keep equal keys together", error))?;
        self.held = Some(self.block(joined, false)?);
        Ok(())
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
