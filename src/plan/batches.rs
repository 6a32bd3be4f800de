//! Grouping partitions into batches, in order of time, within limits. Pure.

use super::{Estimate, PlannedPartition};
use crate::error::{Error, Result};
use crate::spec::Limits;

/// The partitions of each batch, by number.
pub(super) fn group(
    partitions: &[PlannedPartition],
    estimates: &[Estimate],
    limits: &Limits,
) -> Result<Vec<Vec<usize>>> {
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let mut held = Estimate::default();
    for (number, (partition, estimate)) in partitions.iter().zip(estimates).enumerate() {
        check_alone(&partition.interval.name, estimate, limits)?;
        let sum = Estimate { rows: held.rows + estimate.rows, bytes: held.bytes + estimate.bytes };
        match batches.last_mut() {
            Some(batch) if batch.len() < limits.partitions_per_batch && fits(&sum, limits) => {
                batch.push(number);
                held = sum;
            }
            _ => {
                batches.push(vec![number]);
                held = *estimate;
            }
        }
    }
    Ok(batches)
}

fn fits(estimate: &Estimate, limits: &Limits) -> bool {
    limits.rows_per_batch.is_none_or(|most| estimate.rows <= most)
        && limits.read_bytes_per_batch.is_none_or(|most| estimate.bytes <= most.as_u64())
}

fn check_alone(name: &str, estimate: &Estimate, limits: &Limits) -> Result<()> {
    if fits(estimate, limits) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "partition {name} alone reads {} rows and {} bytes, more than a batch may",
        estimate.rows, estimate.bytes
    ))
    .hint("raise limits.rows_per_batch or limits.read_bytes_per_batch"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::{Calendar, Every, Range};
    use crate::identity::Digest;

    fn partitions(count: usize) -> Vec<PlannedPartition> {
        let days = Calendar { every: Every::Day, timezone: chrono_tz::Tz::UTC, week_start: None };
        let range = Range::Inclusive { first: "2024-01-01".into(), last: "2024-12-31".into() };
        let intervals = days.partitions(&range).unwrap().into_iter().take(count);
        intervals
            .map(|interval| PlannedPartition {
                interval,
                recipe: Digest::of_bytes(b""),
                parameters: Default::default(),
                reads: Default::default(),
                base: None,
            })
            .collect()
    }

    fn sizes(rows: &[u64], limits: &Limits) -> Vec<usize> {
        let estimates: Vec<Estimate> =
            rows.iter().map(|rows| Estimate { rows: *rows, bytes: rows * 10 }).collect();
        let batches = group(&partitions(rows.len()), &estimates, limits).unwrap();
        assert!(
            batches.iter().flatten().copied().eq(0..rows.len()),
            "each partition once, in order"
        );
        batches.iter().map(Vec::len).collect()
    }

    #[test]
    fn a_batch_ends_at_whichever_limit_comes_first() {
        let two = Limits { partitions_per_batch: 2, ..Limits::default() };
        assert_eq!(sizes(&[1; 5], &two), [2, 2, 1]);
        let rows = Limits { rows_per_batch: Some(10), ..Limits::default() };
        assert_eq!(sizes(&[4, 4, 4, 10, 1], &rows), [2, 1, 1, 1]);
        let bytes =
            Limits { read_bytes_per_batch: Some(bytesize::ByteSize(100)), ..Limits::default() };
        assert_eq!(sizes(&[5, 5, 5], &bytes), [2, 1]);
    }

    #[test]
    fn one_partition_over_a_limit_is_refused_by_name() {
        let rows = Limits { rows_per_batch: Some(10), ..Limits::default() };
        let error = group(&partitions(1), &[Estimate { rows: 11, bytes: 0 }], &rows).unwrap_err();
        assert!(error.message().contains("2024-01-01 alone reads 11 rows"), "{error}");
    }
}
