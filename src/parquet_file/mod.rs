//! Parquet files: opening them with suspicion, decoding them, writing them the same way each time.
//!
//! Nothing here believes a file's statistics: rows come from decoded pages, and the only part of
//! a footer that is used is its layout.

mod footer;
mod groups;
mod reader;
mod writer;

pub use footer::{Footer, read_footer};
pub use groups::{groups_in_window, nulls_by_footer};
pub use reader::{DECODED_ROWS, Scan, scan, viewed};
pub use writer::{FileWriter, WRITER_PROPERTIES, WrittenFile};
