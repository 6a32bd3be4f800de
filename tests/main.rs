//! The one integration binary: everything through the built program or the public API.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]
#![expect(clippy::disallowed_methods, reason = "tests make and break files")]

mod common;

mod bad_input;
mod bounds;
mod corruptions;
mod determinism;
mod exercise;
mod folders;
mod golden;
mod kills;
mod ledger;
mod live_writers;
mod memory;
mod mixtures;
mod object_store;
mod odd_folders;
mod partitions;
mod pitfalls;
mod races;
mod random_pairs;
mod readers;
mod rules;
mod ten_days;
mod three_way;
