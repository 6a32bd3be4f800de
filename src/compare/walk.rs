//! Which rows belong together: two blocks in key order, walked once.

use std::cmp::Ordering;

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
        let mut left = sorted(left_hashes.by_ref(), production).into_iter().peekable();
        let mut right = sorted(right_hashes.by_ref(), candidate).into_iter().peekable();
        let mut pairs = Vec::new();
        let (mut alone_left, mut alone_right) = (Vec::new(), Vec::new());
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(one), Some(two)) => one.0.cmp(&two.0),
            };
            let one = if order.is_le() { left.next() } else { None };
            let two = if order.is_ge() { right.next() } else { None };
            match (one, two) {
                (Some(one), Some(two)) => pairs.push((one.1, two.1)),
                (one, two) => {
                    alone_left.extend(one.map(|one| one.1));
                    alone_right.extend(two.map(|two| two.1));
                }
            }
        }
        pairs.sort_unstable();
        pairs.into_iter().for_each(|(one, two)| walk.pair(one as usize, two as usize, 1));
        alone_left.sort_unstable();
        alone_right.sort_unstable();
        walk.only_production.extend(alone_left);
        walk.only_candidate.extend(alone_right);
    }
    Ok(())
}

/// A group's rows by hash, the first of equal ones first.
fn sorted(hashes: impl Iterator<Item = u128>, rows: Vec<u32>) -> Vec<(u128, u32)> {
    // The rows come first: a `zip` that finds no row must not have taken a hash.
    let mut sorted: Vec<(u128, u32)> =
        rows.into_iter().zip(hashes).map(|(row, hash)| (hash, row)).collect();
    sorted.sort_unstable();
    sorted
}

fn hashes(rows: &RecordBatch, places: Vec<u32>, hasher: &mut RowHasher) -> Result<Vec<u128>> {
    let taken = take_record_batch(rows, &UInt32Array::from(places))
        .map_err(|error| from_arrow(ErrorKind::Internal, "take rows of repeated keys", error))?;
    let mut hashes = Vec::with_capacity(taken.num_rows());
    hasher.hash(&taken, |hash| hashes.push(hash))?;
    Ok(hashes)
}
