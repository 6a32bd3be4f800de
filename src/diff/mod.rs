//! Comparing two tables of pinned files: what drives a [`Comparer`] with batches.
//!
//! Both sides are taken to be in key order, which files of ours are and most others too. Where one
//! turns out not to be, the comparison begins again with that side sorted: in memory where it fits,
//! else through the engine, which spills to disk. So what is held of a side is two batches, or
//! `memory` bytes where it must be sorted.

mod align;
mod common;
mod folder;
mod hive;
mod open;
mod rows;
mod tables;

use std::path::PathBuf;

use arrow::array::RecordBatch;
use futures::StreamExt as _;
use tempfile::TempDir;

use crate::compare::{Comparer, Diff, Equality, Origin, Piece, Step};
use crate::error::{Error, ErrorKind, Result};

pub use align::{Aligned, align};
pub use common::SchemaDifference;
pub use folder::open_folder;
pub(crate) use open::pinned_files;
pub use open::{OpenedSide, open_side};
pub use rows::{ROW_HASH, Rows};
pub use tables::{DiffProgress, TablePartition, Tables, TablesDiff, compare_all};

/// How a comparison is done.
#[derive(Debug, Clone)]
pub struct DiffOptions {
    /// The key's columns; none: rows are compared as multisets.
    pub key: Vec<String>,
    /// When values are equal.
    pub equality: Equality,
    /// Bytes of one side that may be held to sort it.
    pub memory: usize,
    /// Where what does not fit goes, and how much of it.
    pub spill: (PathBuf, u64),
}

impl DiffOptions {
    /// The columns by which rows are put in order.
    pub(crate) fn order(&self) -> Vec<String> {
        if self.key.is_empty() {
            ROW_HASH.iter().map(|name| (*name).to_owned()).collect()
        } else {
            self.key.clone()
        }
    }
}

/// A folder for what does not fit into memory; gone when it is dropped.
///
/// # Errors
/// `Exhausted` when it cannot be made.
pub fn spill_folder() -> Result<TempDir> {
    tempfile::Builder::new().prefix("reissue-diff-").tempdir().map_err(|error| {
        Error::new(ErrorKind::Exhausted, "cannot make the spill folder").because(error)
    })
}

/// Sees everything that a comparison sees.
pub trait Witness: Send {
    /// The comparison begins again: what was seen is void. The side given is sorted from now on.
    ///
    /// # Errors
    /// Its own.
    fn restart(&mut self, sorted: Origin) -> Result<()>;

    /// A batch of one side, before it is compared; most have no use for it.
    ///
    /// # Errors
    /// Its own.
    fn batch(&mut self, _origin: Origin, _batch: &RecordBatch) -> Result<()> {
        Ok(())
    }

    /// What came out of some rows.
    ///
    /// # Errors
    /// Its own.
    fn piece(&mut self, piece: &Piece) -> Result<()>;
}

/// Compares two sides of the same columns.
///
/// # Errors
/// As reading does; `Exhausted` when a side cannot be sorted within memory and disk.
pub async fn compare_rows(
    production: &Rows,
    candidate: &Rows,
    options: &DiffOptions,
    witness: &mut dyn Witness,
) -> Result<Diff> {
    let (mut sort_production, mut sort_candidate) =
        (options.key.is_empty(), options.key.is_empty());
    loop {
        let sorts = (sort_production, sort_candidate);
        match attempt((production, candidate), sorts, options, witness).await? {
            Ok(diff) => return Ok(diff),
            Err(Origin::Production) if !sort_production => sort_production = true,
            Err(Origin::Candidate) if !sort_candidate => sort_candidate = true,
            Err(origin) => {
                return Err(Error::internal("rows that were sorted are in no order")
                    .with("side", format!("{origin:?}")));
            }
        }
    }
}

/// One try; the side that turned out to be in no order, when one did.
async fn attempt(
    (production, candidate): (&Rows, &Rows),
    (sort_production, sort_candidate): (bool, bool),
    options: &DiffOptions,
    witness: &mut dyn Witness,
) -> Result<Result<Diff, Origin>> {
    let mut left = production.stream(options, sort_production).await?;
    let mut right = candidate.stream(options, sort_candidate).await?;
    let mut comparer = Comparer::new(candidate.schema(), &options.order(), &options.equality)?;
    loop {
        match comparer.step()? {
            Step::Feed(origin) => {
                let stream = if origin == Origin::Production { &mut left } else { &mut right };
                let batch = stream.next().await.transpose()?;
                if let Some(batch) = &batch {
                    witness.batch(origin, batch)?;
                }
                comparer.feed(origin, batch)?;
            }
            Step::Compared(piece) => witness.piece(&piece)?,
            Step::Unordered(origin) => {
                witness.restart(origin)?;
                return Ok(Err(origin));
            }
            Step::Done => {
                let mut diff = comparer.finish();
                if options.key.is_empty() {
                    without_hashes(&mut diff);
                }
                return Ok(Ok(diff));
            }
        }
    }
}

/// Without a key there is no row to be changed, and nothing to call it by.
fn without_hashes(diff: &mut Diff) {
    diff.repeated_keys = 0;
    for example in &mut diff.examples {
        example.key.clear();
    }
}
