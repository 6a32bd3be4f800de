//! How much may be done at once. Limits decide nothing about results and are in no id.

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A run's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Partitions of one batch.
    pub partitions_per_batch: usize,
    /// Rows that a batch may read, by the plan's estimate; none: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_per_batch: Option<u64>,
    /// Bytes that a batch may read, by the plan's estimate; none: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_bytes_per_batch: Option<ByteSize>,
    /// Batches at once.
    pub concurrent_batches: usize,
    /// Queries at once, over all batches.
    pub source_queries: usize,
    /// Memory of all queries together.
    pub memory: ByteSize,
    /// Disk space for what does not fit into memory.
    pub spill: ByteSize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            partitions_per_batch: 31,
            rows_per_batch: None,
            read_bytes_per_batch: None,
            concurrent_batches: 1,
            source_queries: 2,
            memory: ByteSize::gib(2),
            spill: ByteSize::gib(20),
        }
    }
}

impl Limits {
    pub(super) fn check(&self) -> Result<()> {
        let counts = [
            ("partitions_per_batch", self.partitions_per_batch),
            ("concurrent_batches", self.concurrent_batches),
            ("source_queries", self.source_queries),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, value)| *value == 0) {
            return Err(Error::invalid(format!("limits.{name} is 0, so nothing could run"))
                .hint("write 1 or more"));
        }
        if self.memory < ByteSize::mib(16) {
            return Err(Error::invalid(format!("limits.memory of {} is too little", self.memory))
                .hint("write 16 MiB or more"));
        }
        Ok(())
    }
}
