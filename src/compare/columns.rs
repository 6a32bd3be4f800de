//! How the values of one column differ, in numbers.

use arrow::array::{Array as _, ArrayRef};
use serde::{Deserialize, Serialize};

use super::numbers::{Numbers, double, unit};
use crate::identity::Real;
use crate::metrics::FloatSum;

/// How one column's values differ over paired rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnDiff {
    /// How many values differ, in any way.
    pub changed: u64,
    /// Pairs that are null on both sides, and so equal.
    #[serde(default)]
    pub both_null: u64,
    /// Of the changed, null in production and a value in the candidate.
    pub null_only_production: u64,
    /// Of the changed, a value in production and null in the candidate.
    pub null_only_candidate: u64,
    /// Changed values that are finite numbers on both sides: what the following is about.
    #[serde(default)]
    pub measured: u64,
    /// The sum of candidate minus production, as a double.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_change: Option<Real>,
    /// The mean of candidate minus production.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_change: Option<Real>,
    /// The largest change by magnitude, with its sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_change: Option<Real>,
    /// How many changes there are of each size, the least change first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<ChangeSize>,
    /// Values that are not the same, and are equal only by the column's rule; none of the changed.
    #[serde(default, skip_serializing_if = "is_none")]
    pub tolerated: u64,
    /// The largest of their differences by magnitude, with its sign; of numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_tolerated: Option<Real>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// The larger of two changes by magnitude.
fn larger(one: Option<Real>, two: Option<Real>) -> Option<Real> {
    match (one, two) {
        (Some(one), Some(two)) => Some(if two.0.abs() > one.0.abs() { two } else { one }),
        (one, two) => one.or(two),
    }
}

/// Changes of one size: between one power of ten and the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeSize {
    /// Whether the candidate's values are less.
    pub less: bool,
    /// The power of ten: a change's magnitude is at least `10^power` and below `10^(power + 1)`.
    pub power: i32,
    /// How many.
    pub values: u64,
}

impl ChangeSize {
    fn rank(&self) -> (bool, i32) {
        (!self.less, if self.less { -self.power } else { self.power })
    }
}

impl ColumnDiff {
    pub(super) fn merge(&mut self, other: &Self) {
        self.changed += other.changed;
        self.both_null += other.both_null;
        self.null_only_production += other.null_only_production;
        self.null_only_candidate += other.null_only_candidate;
        self.measured += other.measured;
        self.net_change = match (self.net_change, other.net_change) {
            (Some(one), Some(two)) => Some(Real(one.0 + two.0)),
            (one, two) => one.or(two),
        };
        self.mean_change = self.net_change.map(|net| Real(net.0 / self.measured.max(1) as f64));
        self.largest_change = larger(self.largest_change, other.largest_change);
        self.tolerated += other.tolerated;
        self.largest_tolerated = larger(self.largest_tolerated, other.largest_tolerated);
        for size in &other.sizes {
            match self.sizes.iter_mut().find(|mine| mine.rank() == size.rank()) {
                Some(mine) => mine.values += size.values,
                None => self.sizes.push(*size),
            }
        }
        self.sizes.sort_by_key(ChangeSize::rank);
    }
}

/// The powers of ten that are told apart: `10^-15` and below to `10^24` and above.
const POWERS: std::ops::RangeInclusive<i32> = -15..=24;
const SIZES: usize = 40;

/// Sees the changed values of one column.
#[derive(Debug, Default)]
pub(super) struct ChangeMeter {
    pub(super) both_null: u64,
    changed: u64,
    null_only_production: u64,
    null_only_candidate: u64,
    measured: u64,
    whole: i128,
    scale: i8,
    sum: FloatSum,
    largest: Option<f64>,
    sizes: [Vec<u64>; 2],
    tolerated: u64,
    largest_tolerated: Option<f64>,
}

impl ChangeMeter {
    /// Sees values that differ, side by side.
    pub(super) fn see(&mut self, before: &ArrayRef, after: &ArrayRef) {
        self.changed += before.len() as u64;
        let (none_before, none_after) = (before.logical_nulls(), after.logical_nulls());
        let is_null = |nulls: &Option<arrow::buffer::NullBuffer>, row| {
            nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
        };
        if none_before.is_some() || none_after.is_some() {
            for row in 0..before.len() {
                match (is_null(&none_before, row), is_null(&none_after, row)) {
                    (true, false) => self.null_only_production += 1,
                    (false, true) => self.null_only_candidate += 1,
                    _ => {}
                }
            }
        }
        if !before.data_type().is_numeric() {
            return;
        }
        let both = |row: usize| !is_null(&none_before, row) && !is_null(&none_after, row);
        match (Numbers::of(before), Numbers::of(after)) {
            (
                Some(Numbers::Fixed { values: before, scale }),
                Some(Numbers::Fixed { values: after, .. }),
            ) => {
                self.scale = scale;
                let one = unit(scale);
                for row in (0..before.len()).filter(|row| both(*row)) {
                    self.see_whole(before[row], after[row], one);
                }
            }
            (Some(Numbers::Float(before)), Some(Numbers::Float(after))) => {
                for row in (0..before.len()).filter(|row| both(*row)) {
                    let change = after[row] - before[row];
                    if change.is_finite() {
                        self.sum.add(change);
                        self.size(change);
                    } else if !change.is_nan() {
                        self.larger(change);
                    }
                }
            }
            _ => {}
        }
    }

    /// Sees values that are equal only by a rule, side by side.
    pub(super) fn tolerate(&mut self, before: &ArrayRef, after: &ArrayRef) {
        self.tolerated += before.len() as u64;
        if !before.data_type().is_numeric() {
            return;
        }
        let mut alike = Self::default();
        alike.see(before, after);
        let held = self.largest_tolerated.map(Real);
        self.largest_tolerated = larger(held, alike.largest.map(Real)).map(|change| change.0);
    }

    #[inline]
    fn see_whole(&mut self, before: i128, after: i128, one: f64) {
        let Some(change) = after.checked_sub(before) else {
            return self.size_of_huge(after as f64 * one - before as f64 * one);
        };
        match self.whole.checked_add(change) {
            Some(sum) => self.whole = sum,
            None => {
                // What has gathered moves to where there is room, rounded once.
                self.sum.add(self.whole as f64 * one);
                self.whole = change;
            }
        }
        self.size(double(change) * one);
    }

    fn size_of_huge(&mut self, change: f64) {
        self.sum.add(change);
        self.size(change);
    }

    fn larger(&mut self, change: f64) {
        if self.largest.is_none_or(|held| change.abs() > held.abs()) {
            self.largest = Some(change);
        }
    }

    #[inline]
    fn size(&mut self, change: f64) {
        self.measured += 1;
        self.larger(change);
        let sizes = &mut self.sizes[usize::from(change < 0.0)];
        if sizes.is_empty() {
            sizes.resize(SIZES, 0);
        }
        if let Some(count) = sizes.get_mut(place_of(change.abs())) {
            *count += 1;
        }
    }

    pub(super) fn diff(&self) -> ColumnDiff {
        let mut sum = self.sum.clone();
        sum.add(self.whole as f64 * unit(self.scale));
        let net = self.largest.map(|_| sum.value());
        let mut sizes = Vec::new();
        for (less, counts) in [(true, &self.sizes[1]), (false, &self.sizes[0])] {
            for (power, values) in POWERS.zip(counts).filter(|(_, values)| **values > 0) {
                sizes.push(ChangeSize { less, power, values: *values });
            }
        }
        sizes.sort_by_key(ChangeSize::rank);
        ColumnDiff {
            changed: self.changed,
            both_null: self.both_null,
            null_only_production: self.null_only_production,
            null_only_candidate: self.null_only_candidate,
            measured: self.measured,
            net_change: net.map(Real),
            mean_change: net.map(|net| Real(net / self.measured.max(1) as f64)),
            largest_change: self.largest.map(Real),
            sizes,
            tolerated: self.tolerated,
            largest_tolerated: self.largest_tolerated.map(Real),
        }
    }
}

/// The place of a magnitude among the powers of ten.
#[inline]
fn place_of(magnitude: f64) -> usize {
    // By the binary exponent first: log10(2) is 0.30103, so this is right or one too low.
    let exponent = i64::try_from(magnitude.to_bits() >> 52).unwrap_or(0) - 1_023;
    let power = (exponent * 30_103).div_euclid(100_000);
    let power = i32::try_from(power).unwrap_or(0).clamp(*POWERS.start(), *POWERS.end());
    let power = if magnitude >= TEN[usize::try_from(power - POWERS.start() + 1).unwrap_or(0)] {
        power + 1
    } else {
        power
    };
    usize::try_from(power.min(*POWERS.end()) - POWERS.start()).unwrap_or(0)
}

/// The powers of ten from the least on, and one more.
const TEN: [f64; SIZES + 1] = [
    1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1,
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_counted_between_its_powers_of_ten() {
        for (magnitude, power) in [
            (1.0, 0),
            (9.99, 0),
            (10.0, 1),
            (99.0, 1),
            (100.0, 2),
            (0.1, -1),
            (0.099, -2),
            (1e-30, -15),
            (0.0, -15),
            (1e30, 24),
            (1e24, 24),
            (1023.0, 3),
            (8.0, 0),
        ] {
            assert_eq!(
                POWERS.start() + i32::try_from(place_of(magnitude)).unwrap(),
                power,
                "{magnitude}"
            );
        }
    }
}
