//! SQL as a stream over pinned files: one query, typed parameters, nothing else.
//!
//! The engine is used as a calculator: it never lists, caches, prunes by statistics or writes.
//! [`gate`](Query::parse) refuses what is not one query; [`Prepared::new`] refuses clocks, chance,
//! unknown parameters and comparisons of different kinds of time, and names what depends on the
//! order of rows; [`Session`] runs it.

mod condition;
mod conform;
mod footprint;
mod gate;
mod held;
mod order;
mod parameters;
mod pinned_scan;
mod pinned_table;
mod prepared;
mod sample_rank;
mod session;
mod time_kinds;

pub use condition::RowCondition;
pub use conform::{check_output, conform};
pub use footprint::Footprint;
pub use gate::Query;
pub use held::HeldTables;
pub use parameters::Parameters;
pub use pinned_table::{PinnedFile, PinnedTable, RowWindow};
pub use prepared::{Prepared, SourceColumns};
pub use session::{ENGINE, FIXED_BATCH_ROWS, FIXED_MEMORY_BYTES, Session, SessionOptions};

#[cfg(test)]
mod tests;
