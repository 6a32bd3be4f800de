//! Recomputes historical partitions of a Parquet dataset with corrected SQL and releases the
//! result safely.

pub mod approval;
pub mod calendar;
pub mod candidate;
pub mod check;
pub mod cli;
pub mod compare;
pub mod dataset;
pub mod diff;
pub mod env;
pub mod error;
pub mod explain;
pub mod export;
pub mod identity;
pub mod key;
pub mod ledger;
pub mod metrics;
pub mod parquet_file;
pub mod plan;
pub mod publish;
pub mod query;
pub mod report;
pub mod run;
pub mod spec;
pub mod storage;
mod task;
mod text_views;
pub mod trial;
