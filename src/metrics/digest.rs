//! The content digest: the same for the same rows, however they are ordered, cut or stored.
//!
//! Version 2, in full (docs/format.md has the test vectors):
//!
//! * All arithmetic wraps. `a * b` is the whole product, of 128 bits: its halves are `lo` and `hi`.
//! * A column's seed is XXH3-128 of `name 0x00 class`; its low and high halves are `s0`, `s1`.
//!   Classes are `int`, `float`, `decimal:SCALE`, `bool`, `text`, `bytes`, `date`, … : what a value
//!   means, not how wide it is stored.
//! * A value is two words `v0`, `v1`: an integer's two's complement in 128 bits; a double's bits
//!   with every NaN as `7ff8000000000000` (−0.0 keeps its sign); XXH3-128 of a text's or binary's
//!   bytes; of a nested value, XXH3-128 of its parts' words with their count before them. Null is a
//!   word pair of its own.
//! * A cell is of `(v0 ^ s0) * (v1 ^ s1)`: `c0 = lo ^ hi`, `c1 = rotl(lo, 32) - (hi ^ (lo >> 29))`.
//! * A row is the sum of its cells `r0`, `r1`, multiplied again: `lo ^ hi` of `(r0 ^ K0) * (r1 ^
//!   K1)` is its low word, of `(rotl(r0, 32) ^ K2) * (r1 + K3)` its high one. The products bind its
//!   cells together: values swapped between two rows are seen.
//! * The digest is the sum of all rows modulo 2^128, and their number: `d2:ROWS:SUM`.
//!
//! It answers "is anything different?". It authorises nothing: sums can be forged on purpose.

use std::fmt;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;

use super::row_hash::RowHasher;
use crate::error::Result;

/// The version of these rules. What was recorded under another one tells nothing about a digest.
pub(crate) const DIGEST: &str = "d2";

/// A digest of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContentDigest {
    rows: u64,
    sum: u128,
}

impl fmt::Display for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{DIGEST}:{}:{:032x}", self.rows, self.sum)
    }
}

/// Sees batches.
#[derive(Debug)]
pub(super) struct DigestMeter {
    hasher: RowHasher,
    digest: ContentDigest,
}

impl DigestMeter {
    pub(super) fn new(schema: &Schema) -> Result<Self> {
        Ok(Self { hasher: RowHasher::new(schema)?, digest: ContentDigest::default() })
    }

    pub(super) fn update(&mut self, batch: &RecordBatch) -> Result<()> {
        let sum = &mut self.digest.sum;
        self.hasher.hash(batch, |row| *sum = sum.wrapping_add(row))?;
        self.digest.rows += batch.num_rows() as u64;
        Ok(())
    }

    pub(super) fn digest(&self) -> ContentDigest {
        self.digest
    }
}
