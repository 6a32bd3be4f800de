//! Which rows belong together: two blocks in key order, walked once.

use std::cmp::Ordering;
use std::collections::HashMap;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;

use super::side::Block;
use crate::error::{ErrorKind, Result, from_arrow};
use crate::metrics::RowHasher;

/// Rows that pair, one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) production: usize,
    pub(super) candidate: usize,
    pub(super) rows: usize,
}

/// Which rows are pairs, and which are alone.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// Pairs.
    pub(super) runs: Vec<Run>,
    /// Production's rows without a pair.
    pub(super) only_production: Vec<u32>,
    /// The candidate's rows without a pair.
    pub(super) only_candidate: Vec<u32>,
    /// Keys that occur more than once on a side.
    pub(super) repeated_keys: u64,
    /// Rows whose key is repeated or has a null, by key: they pair only when they are equal.
    groups: Vec<(Vec<u32>, Vec<u32>)>,
}

impl Walk {
    fn pair(&mut self, production: usize, candidate: usize, rows: usize) {
        match self.runs.last_mut() {
            Some(run)
                if run.production + run.rows == production
                    && run.candidate + run.rows == candidate =>
            {
                run.rows += rows;
            }
            _ => self.runs.push(Run { production, candidate, rows }),
        }
    }
}

fn place(row: usize) -> u32 {
    // Blocks are a batch, or rows of one key: arrow's own row numbers are of this size.
    u32::try_from(row).unwrap_or(u32::MAX)
}

fn places(rows: std::ops::Range<usize>) -> impl Iterator<Item = u32> {
    rows.map(place)
}

/// Walks two blocks until one of them ends.
pub(super) fn walk(left: &mut Block, right: &mut Block, hasher: &mut RowHasher) -> Result<Walk> {
    let mut walk = Walk::default();
    let plain = left.ascending
        && right.ascending
        && left.keys.nulls().is_none()
        && right.keys.nulls().is_none();
    while left.left() > 0 && right.left() > 0 {
        if plain {
            let most = left.left().min(right.left());
            let common = left.keys.common(left.at, &right.keys, right.at, most);
            if common > 0 {
                walk.pair(left.at, right.at, common);
                left.at += common;
                right.at += common;
                continue;
            }
        }
        step(left, right, plain, &mut walk);
    }
    resolve(left, right, hasher, &mut walk)?;
    Ok(walk)
}

/// All rows of a block whose other side has ended.
pub(super) fn walk_alone(block: &mut Block, is_production: bool) -> Walk {
    let mut walk = Walk::default();
    let rows: Vec<u32> = places(block.at..block.keys.len()).collect();
    if !block.ascending {
        let mut group = block.at;
        while group < block.keys.len() {
            let end = group_end(block, group);
            walk.repeated_keys += u64::from(end - group > 1);
            group = end;
        }
    }
    block.at = block.keys.len();
    if is_production {
        walk.only_production = rows;
    } else {
        walk.only_candidate = rows;
    }
    walk
}

/// The next key.
fn step(left: &mut Block, right: &mut Block, plain: bool, walk: &mut Walk) {
    let order = left.keys.compare(left.at, &right.keys, right.at);
    let end_left = match order {
        Ordering::Greater => left.at,
        _ if plain => left.at + 1,
        _ => group_end(left, left.at),
    };
    let end_right = match order {
        Ordering::Less => right.at,
        _ if plain => right.at + 1,
        _ => group_end(right, right.at),
    };
    let (rows_left, rows_right) = (end_left - left.at, end_right - right.at);
    walk.repeated_keys += u64::from(rows_left > 1 || rows_right > 1);
    let has_null = order.is_eq() && left.keys.is_null(left.at);
    match order {
        Ordering::Less => walk.only_production.extend(places(left.at..end_left)),
        Ordering::Greater => walk.only_candidate.extend(places(right.at..end_right)),
        Ordering::Equal if rows_left == 1 && rows_right == 1 && !has_null => {
            walk.pair(left.at, right.at, 1);
        }
        Ordering::Equal => walk
            .groups
            .push((places(left.at..end_left).collect(), places(right.at..end_right).collect())),
    }
    left.at = end_left;
    right.at = end_right;
}

/// Where the rows with the same key as the one at `from` end.
fn group_end(block: &Block, from: usize) -> usize {
    let keys = &block.keys;
    (from + 1..keys.len()).find(|row| keys.compare(*row, keys, from).is_ne()).unwrap_or(keys.len())
}

/// Rows of one key that are equal on both sides pair, by multiplicity; the others are alone.
fn resolve(left: &Block, right: &Block, hasher: &mut RowHasher, walk: &mut Walk) -> Result<()> {
    if walk.groups.is_empty() {
        return Ok(());
    }
    let groups = std::mem::take(&mut walk.groups);
    let rows_left = groups.iter().flat_map(|group| group.0.iter().copied()).collect();
    let rows_right = groups.iter().flat_map(|group| group.1.iter().copied()).collect();
    let mut left_hashes = hashes(&left.rows, rows_left, hasher)?.into_iter();
    let mut right_hashes = hashes(&right.rows, rows_right, hasher)?.into_iter();
    for (production, candidate) in groups {
        let mut waiting: HashMap<u128, Vec<u32>> = HashMap::new();
        // Backwards, so that the first row is taken first.
        let mut hashed: Vec<(u128, u32)> =
            right_hashes.by_ref().take(candidate.len()).zip(candidate.iter().copied()).collect();
        hashed.reverse();
        for (hash, row) in hashed {
            waiting.entry(hash).or_default().push(row);
        }
        let mut paired = Vec::new();
        for (row, hash) in production.into_iter().zip(left_hashes.by_ref()) {
            match waiting.get_mut(&hash).and_then(Vec::pop) {
                Some(other) => {
                    paired.push(other);
                    walk.pair(row as usize, other as usize, 1);
                }
                None => walk.only_production.push(row),
            }
        }
        paired.sort_unstable();
        let alone = candidate.into_iter().filter(|row| paired.binary_search(row).is_err());
        walk.only_candidate.extend(alone);
    }
    Ok(())
}

fn hashes(rows: &RecordBatch, places: Vec<u32>, hasher: &mut RowHasher) -> Result<Vec<u128>> {
    let taken = take_record_batch(rows, &UInt32Array::from(places))
        .map_err(|error| from_arrow(ErrorKind::Internal, "take rows of repeated keys", error))?;
    let mut hashes = Vec::with_capacity(taken.num_rows());
    hasher.hash(&taken, |hash| hashes.push(hash))?;
    Ok(hashes)
}
