//! Whether batches come in key order.

use std::cmp::Ordering;

use super::{Key, Keys};

/// How a batch continues the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ordered {
    /// Each key is greater than the one before.
    Ascending,
    /// No key is less than the one before, some are equal.
    WithRepeats,
    /// The row at this place has a lesser key than the one before it.
    Not(usize),
}

/// Looks at a batch's keys after the last key of the batch before.
pub fn in_order(keys: &Keys, last: Option<&Key>) -> Ordered {
    let mut found = Ordered::Ascending;
    let mut see = |row: usize, order: Ordering| match (found, order) {
        (Ordered::Not(_), _) | (_, Ordering::Less) => {}
        (_, Ordering::Greater) => found = Ordered::Not(row),
        (_, Ordering::Equal) => found = Ordered::WithRepeats,
    };
    if let Some(last) = last.filter(|_| !keys.is_empty()) {
        see(0, keys.compare_to(0, last).reverse());
    }
    keys.neighbours(&mut see);
    found
}
