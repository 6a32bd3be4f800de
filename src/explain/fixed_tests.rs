//! Patterns of whole numbers, tried on many pairs.
//!
//! Factors are what is tried most and costs most: which of them could explain a pair is found for many
//! pairs at once, by one subtraction each, and only that one is tried.

use super::factor::Factor;
use super::numbers::{fixed_value, span_value, turns};
use super::pairs::Unit;
use super::pattern::Pattern;
use crate::compare::double;

/// Pairs whose ratios are held at once.
const BLOCK: usize = 512;

/// The number of no pattern. Numbers of patterns lie in the bits of doubles, so that they can be
/// chosen by comparing doubles, several at once.
const NONE: f64 = f64::from_bits(u64::MAX);

/// Several patterns, of which the first that explains a pair counts.
#[derive(Debug)]
pub(super) struct FixedTests {
    tests: Vec<FixedTest>,
    /// The factors among them, with their numbers.
    factors: Vec<(f64, f64)>,
}

impl FixedTests {
    pub(super) fn new(patterns: &[Pattern], unit: Unit) -> Self {
        let tests: Vec<FixedTest> =
            patterns.iter().map(|pattern| FixedTest::new(pattern, unit)).collect();
        let factors = (0..).zip(&tests).filter_map(|(number, test)| match test {
            FixedTest::Scaled(by) => Some((f64::from_bits(number), by.double())),
            _ => None,
        });
        Self { factors: factors.collect(), tests }
    }

    /// Calls `see` for each place, with the number of the first pattern that explains its pair.
    pub(super) fn firsts(
        &self,
        before: &[i128],
        after: &[i128],
        places: &[usize],
        mut see: impl FnMut(usize, Option<usize>),
    ) {
        let mut near = [NONE; BLOCK];
        for block in places.chunks(BLOCK) {
            self.near_factors(block.iter().map(|at| (before[*at], after[*at])), &mut near);
            for (at, near) in block.iter().zip(near) {
                see(*at, self.first((before[*at], after[*at]), near));
            }
        }
    }

    /// For each pair, the first factor that could explain it.
    fn near_factors(&self, pairs: impl Iterator<Item = (i128, i128)>, near: &mut [f64; BLOCK]) {
        if self.factors.is_empty() {
            return;
        }
        // What a factor explains, with room: rounding by a unit, and what doubles cannot hold.
        let (mut ratios, mut slacks) = ([0.0; BLOCK], [0.0; BLOCK]);
        for ((before, after), (ratio, slack)) in pairs.zip(ratios.iter_mut().zip(&mut slacks)) {
            let one = 1.0 / double(before);
            *ratio = double(after) * one;
            *slack = 1.001 * one.abs() + 1e-9 * ratio.abs();
        }
        *near = [NONE; BLOCK];
        for (number, factor) in self.factors.iter().rev().copied() {
            // Only values, no places of them, are chosen from: else the compiler does one at a time.
            for ((near, ratio), slack) in near.iter_mut().zip(&ratios).zip(&slacks) {
                let (before, is_near) = (*near, (factor - ratio).abs() <= *slack);
                *near = if is_near { number } else { before };
            }
        }
    }

    /// `near`: no factor before this one explains the pair.
    #[inline]
    fn first(&self, pair: (i128, i128), near: f64) -> Option<usize> {
        let near = usize::try_from(near.to_bits()).unwrap_or(usize::MAX);
        let explains = |number: usize| {
            let test = &self.tests[number];
            let is_factor = matches!(test, FixedTest::Scaled(_));
            (!is_factor || number >= near) && test.explains(pair)
        };
        if self.factors.len() == self.tests.len() {
            match self.tests.get(near) {
                None => return None,
                Some(_) if explains(near) => return Some(near),
                Some(_) => {}
            }
        }
        (0..self.tests.len()).find(|number| explains(*number))
    }
}

/// A pattern of whole numbers, ready to be tried on many pairs.
#[derive(Debug, Clone, Copy)]
pub(super) enum FixedTest {
    Replaced(i128, i128),
    Became(i128),
    Was(i128),
    SignTurned,
    Shifted(i128),
    Scaled(Factor),
    /// To multiples of this.
    Rounded(i128),
    Never,
}

impl FixedTest {
    pub(super) fn new(pattern: &Pattern, unit: Unit) -> Self {
        let made = match pattern {
            Pattern::Replaced { from, to } => fixed_value(from, unit)
                .zip(fixed_value(to, unit))
                .map(|(from, to)| Self::Replaced(from, to)),
            Pattern::Became { value } => fixed_value(value, unit).map(Self::Became),
            Pattern::Was { value } => fixed_value(value, unit).map(Self::Was),
            Pattern::SignTurned => Some(Self::SignTurned),
            Pattern::Shifted { by } => span_value(by, unit).map(Self::Shifted),
            Pattern::Scaled { by } => Factor::parse(by).map(Self::Scaled),
            Pattern::Rounded { places } => rounding_step(*places, unit).map(Self::Rounded),
            _ => None,
        };
        made.unwrap_or(Self::Never)
    }

    /// Whether it explains a pair.
    #[inline]
    pub(super) fn explains(&self, (before, after): (i128, i128)) -> bool {
        match self {
            Self::Replaced(from, to) => before == *from && after == *to,
            Self::Became(value) => after == *value,
            Self::Was(value) => before == *value,
            Self::SignTurned => turns(before, after),
            Self::Shifted(by) => after.checked_sub(before) == Some(*by),
            Self::Scaled(by) => by.explains(before, after),
            Self::Rounded(step) => {
                let change = after.abs_diff(before);
                after % step == 0 && change > 0 && change <= step.unsigned_abs() / 2
            }
            Self::Never => false,
        }
    }
}

/// What values rounded to so many places are multiples of, in units of the column.
fn rounding_step(places: u8, unit: Unit) -> Option<i128> {
    let Unit::Number { scale } = unit else { return None };
    let dropped = u32::try_from(i16::from(scale) - i16::from(places)).ok()?;
    10_i128.checked_pow(dropped).filter(|step| *step > 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern() -> impl Strategy<Value = Pattern> {
        prop_oneof![
            prop::sample::select(vec!["1.1", "0.5", "-1", "100", "1.08", "1.07", "0.001"])
                .prop_map(|by| Pattern::Scaled { by: by.to_owned() }),
            Just(Pattern::SignTurned),
            (-3_i64..4).prop_map(|by| Pattern::Shifted { by: format!("{by:+}.00") }),
            Just(Pattern::Became { value: "0.00".to_owned() }),
            Just(Pattern::Rounded { places: 1 }),
        ]
    }

    fn pair() -> impl Strategy<Value = (i128, i128)> {
        let value = prop_oneof![-200_i128..200, -1_000_000_i128..1_000_000, any::<i128>()];
        let factor = prop::sample::select(vec![(11, 10), (1, 2), (-1, 1), (108, 100), (1, 1_000)]);
        (value, factor, -2_i128..3).prop_map(|(before, (by, of), off)| {
            let scaled = before.checked_mul(by).map_or(before, |scaled| scaled / of);
            (before, scaled.saturating_add(off))
        })
    }

    proptest! {
        #[test]
        fn the_first_pattern_that_explains_a_pair_is_found_with_many_at_once(
            patterns in prop::collection::vec(pattern(), 0..8),
            pairs in prop::collection::vec(pair(), 1..1_200),
        ) {
            let tests = FixedTests::new(&patterns, Unit::Number { scale: 2 });
            let (before, after): (Vec<i128>, Vec<i128>) = pairs.iter().copied().unzip();
            let places: Vec<usize> = (0..pairs.len()).rev().collect();
            let mut found = Vec::new();
            tests.firsts(&before, &after, &places, |place, first| found.push((place, first)));
            let expected: Vec<(usize, Option<usize>)> = places
                .into_iter()
                .map(|at| (at, tests.tests.iter().position(|test| test.explains(pairs[at]))))
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}
