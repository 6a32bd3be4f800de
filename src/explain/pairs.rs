//! Changed values side by side, in a form in which patterns can be found and recognised.

use arrow::array::{Array as _, ArrayRef, AsArray as _, StringArray, StringViewArray};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit};

use super::fixed_tests::FixedTests;
use super::pattern::Pattern;
use super::{numbers, texts};
use crate::compare::{ChangedColumn, Numbers, double, unit};
use crate::metrics::value_text;

/// Pairs that are looked at to guess a pattern; all of them decide whether it is one.
const SAMPLE: usize = 1_024;

/// Pairs of values, neither of them null.
#[derive(Debug)]
pub(super) enum Pairs {
    /// Whole numbers of a unit: integers, decimals, dates and times.
    Fixed { before: ScalarBuffer<i128>, after: ScalarBuffer<i128>, unit: Unit },
    /// Doubles, and the precision of the column's type.
    Float { before: ScalarBuffer<f64>, after: ScalarBuffer<f64>, epsilon: f64 },
    /// Texts, and the texts of anything else.
    Text { before: StringViewArray, after: StringViewArray, is_text: bool },
}

/// What one of a whole number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// `10^-scale`.
    Number { scale: i8 },
    /// A span of time in nanoseconds.
    Time { nanoseconds: i64 },
}

/// Rows of changed values by what is null in them.
#[derive(Debug, Default)]
pub(super) struct ByNulls {
    /// Null in production.
    pub(super) was_null: Vec<u32>,
    /// Null in the candidate only.
    pub(super) became_null: Vec<u32>,
    /// Null on neither side.
    pub(super) values: Vec<u32>,
}

impl ByNulls {
    pub(super) fn of(column: &ChangedColumn) -> Self {
        let (before, after) = (column.before.logical_nulls(), column.after.logical_nulls());
        let is_null = |nulls: &Option<NullBuffer>, row| {
            nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
        };
        let mut found = Self::default();
        for row in column.differs.values().set_indices() {
            let rows = match (is_null(&before, row), is_null(&after, row)) {
                (true, _) => &mut found.was_null,
                (false, true) => &mut found.became_null,
                (false, false) => &mut found.values,
            };
            rows.push(u32::try_from(row).unwrap_or(u32::MAX));
        }
        found
    }
}

impl Pairs {
    pub(super) fn of(before: &ArrayRef, after: &ArrayRef) -> Self {
        let data_type = before.data_type();
        match (Numbers::of(before), Numbers::of(after)) {
            (
                Some(Numbers::Fixed { values, scale }),
                Some(Numbers::Fixed { values: after, .. }),
            ) => {
                return Self::Fixed { before: values, after, unit: unit_of(data_type, scale) };
            }
            (Some(Numbers::Float(before)), Some(Numbers::Float(after))) => {
                return Self::Float { before, after, epsilon: epsilon_of(data_type) };
            }
            _ => {}
        }
        let is_text =
            matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        Self::Text { before: as_texts(before), after: as_texts(after), is_text }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Fixed { before, .. } => before.len(),
            Self::Float { before, .. } => before.len(),
            Self::Text { before, .. } => before.len(),
        }
    }

    /// The pattern that explains most of the pairs at these places, by a sample of them.
    pub(super) fn best(&self, places: &[usize]) -> Option<(Pattern, usize)> {
        let step = places.len().div_ceil(SAMPLE).max(1);
        let sample: Vec<usize> = places.iter().copied().step_by(step).collect();
        let places = &sample;
        match self {
            Self::Fixed { before, after, unit } => {
                numbers::best_fixed(before, after, *unit, places)
            }
            Self::Float { before, after, epsilon } => {
                numbers::best_float(before, after, *epsilon, places)
            }
            Self::Text { before, after, is_text } => texts::best(before, after, *is_text, places),
        }
    }

    /// The places, out of these, that a pattern explains; the others stay.
    pub(super) fn take(&self, pattern: &Pattern, places: &mut Vec<usize>) -> Vec<usize> {
        self.sort_into(std::slice::from_ref(pattern), places).swap_remove(0)
    }

    /// The places, out of these, that each pattern explains, the first that does; the others stay.
    pub(super) fn sort_into(
        &self,
        patterns: &[Pattern],
        places: &mut Vec<usize>,
    ) -> Vec<Vec<usize>> {
        match self {
            Self::Fixed { before, after, unit } => {
                let mut taken = vec![Vec::new(); patterns.len()];
                let mut open = Vec::new();
                let tests = FixedTests::new(patterns, *unit);
                tests.firsts(before, after, places, |place, first| match first {
                    Some(number) => taken[number].push(place),
                    None => open.push(place),
                });
                *places = open;
                taken
            }
            Self::Float { before, after, epsilon } => {
                let tests: Vec<_> = patterns
                    .iter()
                    .map(|pattern| numbers::float_test(before, after, *epsilon, pattern))
                    .collect();
                sorted(patterns.len(), places, |place| tests.iter().position(|test| test(place)))
            }
            Self::Text { before, after, .. } => {
                let tests: Vec<_> =
                    patterns.iter().map(|pattern| texts::test(before, after, pattern)).collect();
                sorted(patterns.len(), places, |place| tests.iter().position(|test| test(place)))
            }
        }
    }

    /// The changes at places, of numbers: each with its place among them.
    pub(super) fn changes(&self, places: &[usize]) -> Vec<(usize, f64)> {
        let places = places.iter().copied().enumerate();
        match self {
            Self::Fixed { before, after, unit: Unit::Number { scale } } => {
                let one = unit(*scale);
                let changes = places.filter_map(|(number, at)| {
                    Some((number, double(after[at].checked_sub(before[at])?) * one))
                });
                changes.collect()
            }
            Self::Float { before, after, .. } => {
                let changes = places.map(|(number, at)| (number, after[at] - before[at]));
                changes.filter(|(_, change)| change.is_finite()).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Puts places under the number that each has; those without one stay.
fn sorted(
    numbers: usize,
    places: &mut Vec<usize>,
    number: impl Fn(usize) -> Option<usize>,
) -> Vec<Vec<usize>> {
    let mut taken = vec![Vec::new(); numbers];
    places.retain(|place| match number(*place) {
        Some(number) => {
            taken[number].push(*place);
            false
        }
        None => true,
    });
    taken
}

fn epsilon_of(data_type: &DataType) -> f64 {
    match data_type {
        // A half has 11 bits.
        DataType::Float16 => 1.0 / 1_024.0,
        DataType::Float32 => f64::from(f32::EPSILON),
        _ => f64::EPSILON,
    }
}

fn unit_of(data_type: &DataType, scale: i8) -> Unit {
    match data_type {
        DataType::Date32 => Unit::Time { nanoseconds: 86_400_000_000_000 },
        DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => {
            Unit::Time { nanoseconds: 1_000_000 }
        }
        DataType::Timestamp(TimeUnit::Second, _) => Unit::Time { nanoseconds: 1_000_000_000 },
        DataType::Timestamp(TimeUnit::Microsecond, _) => Unit::Time { nanoseconds: 1_000 },
        DataType::Timestamp(TimeUnit::Nanosecond, _) => Unit::Time { nanoseconds: 1 },
        _ => Unit::Number { scale },
    }
}

fn as_texts(array: &ArrayRef) -> StringViewArray {
    if let Ok(views) = cast(array, &DataType::Utf8View)
        && views.null_count() == 0
    {
        return views.as_string_view().clone();
    }
    let texts = StringArray::from_iter_values((0..array.len()).map(|row| value_text(array, row)));
    StringViewArray::from_iter_values(texts.iter().flatten())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Float32Array;

    use super::*;

    #[test]
    fn a_cause_in_floats_of_32_bits_is_found_with_their_precision() {
        let before: Vec<f32> = (0..4_000_u16).map(|row| f32::from(row) * 0.37 + 1.013).collect();
        let sides = |change: fn(f32) -> f32| -> (ArrayRef, ArrayRef) {
            let after = before.iter().map(|value| change(*value));
            (
                Arc::new(Float32Array::from(before.clone())),
                Arc::new(Float32Array::from_iter_values(after)),
            )
        };
        for (change, pattern) in [
            ((|value| value + 0.1) as fn(f32) -> f32, "+0.1"),
            (|value| value + 5.0, "+5"),
            (|value| value * 1.1, "× 1.1"),
            (|value| value / 100.0, "× 0.01"),
            (|value| value * 1.08, "× 1.08"),
        ] {
            let (before, after) = sides(change);
            let pairs = Pairs::of(&before, &after);
            let mut places: Vec<usize> = (0..pairs.len()).collect();
            let (best, _) = pairs.best(&places).unwrap();
            assert_eq!(best.to_string(), pattern);
            assert_eq!(pairs.take(&best, &mut places).len(), pairs.len(), "{pattern}");
        }
    }
}
