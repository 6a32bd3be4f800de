//! The content digest: the same for the same rows, however they are ordered, cut or stored.
//!
//! Version 1, in full (docs/format.md has the test vectors):
//!
//! * `mix(x)` is the finalizer of splitmix64; all arithmetic wraps.
//! * A column's seed is XXH3-128 of `name 0x00 class`; its low and high halves are `s0`, `s1`.
//!   Classes are `int`, `float`, `decimal:SCALE`, `bool`, `text`, `bytes`, `date`, … : what a value
//!   means, not how wide it is stored.
//! * A value is two words `v0`, `v1`: an integer's two's complement in 128 bits; a double's bits
//!   with every NaN as `7ff8000000000000` (−0.0 keeps its sign); XXH3-128 of a text's or binary's
//!   bytes; of a nested value, XXH3-128 of its parts' words with their count before them. Null is a
//!   word pair of its own.
//! * A cell is `c0 = mix(v0 ^ s0) + mix(v1 ^ rotl(s0, 32))`, `c1 = mix(v0 + s1) ^ mix(v1 +
//!   rotl(s1, 32))`.
//! * A row is the sum of its cells, mixed again: `mix(r0 ^ rotl(r1, 17))`, `mix(r1 + K·r0)`.
//!   Mixing the row binds its cells together: values swapped between two rows are seen.
//! * The digest is the sum of all rows modulo 2^128, and their number: `d1:ROWS:SUM`.
//!
//! It answers "is anything different?". It authorises nothing: sums can be forged on purpose.

use std::fmt;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;

use super::row_hash::RowHasher;
use crate::error::Result;

/// A digest of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContentDigest {
    rows: u64,
    sum: u128,
}

impl fmt::Display for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "d1:{}:{:032x}", self.rows, self.sum)
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
