//! Which partitions a request means.

use serde::{Deserialize, Serialize};

use super::{Calendar, Interval};
use crate::error::{Error, Result};

/// More partitions than this in one request is taken for a slip: 100 years of days, 4 of hours.
const MAX_PARTITIONS: usize = 40_000;

/// A bounded range of partitions, by names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Range {
    /// From the first to the last partition, both included.
    Inclusive {
        /// The first partition's name.
        first: String,
        /// The last partition's name.
        last: String,
    },
    /// From the start to the end, the end excluded.
    HalfOpen {
        /// The first partition's name.
        start: String,
        /// The name of the first partition that is left out.
        end: String,
    },
}

impl Calendar {
    /// The partitions of a range, in order of time; at least one.
    ///
    /// # Errors
    /// `Invalid` for a name that this calendar does not have, a range that is empty or the wrong
    /// way round, or one of more than 40,000 partitions.
    pub fn partitions(&self, range: &Range) -> Result<Vec<Interval>> {
        let (from, to, inclusive) = match range {
            Range::Inclusive { first, last } => (first, last, true),
            Range::HalfOpen { start, end } => (start, end, false),
        };
        let first = self.named(from)?;
        let last = self.named(to)?;
        let end = if inclusive { last.end } else { last.start };
        if end <= first.start {
            let names = if inclusive { ("first", "last") } else { ("start", "end") };
            return Err(Error::invalid(format!(
                "the range from {from} to {to} holds no partition"
            ))
            .hint(format!(
                "{} must come before {}{}",
                names.0,
                names.1,
                if inclusive { " or be the same" } else { "; the end is left out" }
            )));
        }
        let mut intervals = vec![first];
        while let Some(previous) = intervals.last()
            && previous.end < end
        {
            if intervals.len() == MAX_PARTITIONS {
                return Err(Error::invalid(format!(
                    "the range from {from} to {to} holds more than {MAX_PARTITIONS} partitions"
                ))
                .hint("check the year, or cut the work into several plans"));
            }
            intervals.push(self.next(previous));
        }
        Ok(intervals)
    }
}
