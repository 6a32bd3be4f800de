//! Patterns of numbers and times.

use arrow::datatypes::i256;
use chrono::{DateTime, NaiveDate, NaiveDateTime};

use super::factor::Factor;
use super::fixed_tests::FixedTest;
use super::nearly::{best_rounded, is_nearly};
use super::pairs::Unit;
use super::pattern::Pattern;
use crate::compare::double;
use crate::metrics::decimal_text;

pub(super) type Test<'a> = Box<dyn Fn(usize) -> bool + 'a>;

/// Digits of a factor: fewer are tried first.
const FACTOR_DIGITS: [i32; 3] = [3, 6, 9];

/// Digits of a constant that is added: of doubles, and of floats of 32 bits or fewer, whose
/// differences have few that mean anything.
const SHIFT_DIGITS: [i32; 1] = [9];
const SHIFT_DIGITS_NARROW: [i32; 4] = [1, 2, 3, 4];

/// Places from which factors are guessed.
const GUESSES: usize = 512;

fn never<'a>() -> Test<'a> {
    Box::new(|_| false)
}

/// The most frequent of some values, and how often; of equally frequent ones the least.
pub(super) fn most<K: Ord>(keys: impl Iterator<Item = K>) -> Option<(K, usize)> {
    // Of a few thousand, sorting is faster than hashing.
    let mut keys: Vec<K> = keys.collect();
    keys.sort_unstable();
    let mut best: Option<(usize, usize)> = None;
    let mut start = 0;
    for alike in keys.chunk_by(|one, two| one == two) {
        if best.is_none_or(|(_, count)| alike.len() > count) {
            best = Some((start, alike.len()));
        }
        start += alike.len();
    }
    best.map(|(place, count)| (keys.swap_remove(place), count))
}

/// The best of candidates in order of preference: a later one must explain more.
pub(super) fn preferred(
    candidates: impl IntoIterator<Item = Option<(Pattern, usize)>>,
) -> Option<(Pattern, usize)> {
    let mut best: Option<(Pattern, usize)> = None;
    for candidate in candidates.into_iter().flatten() {
        if best.as_ref().is_none_or(|held| candidate.1 > held.1) {
            best = Some(candidate);
        }
    }
    best
}

pub(super) fn best_fixed(
    before: &[i128],
    after: &[i128],
    unit: Unit,
    places: &[usize],
) -> Option<(Pattern, usize)> {
    let pair = most(places.iter().map(|at| (before[*at], after[*at])));
    let replaced = pair.map(|((from, to), count)| {
        (Pattern::Replaced { from: fixed_text(from, unit), to: fixed_text(to, unit) }, count)
    });
    let turned = places.iter().filter(|at| turns(before[**at], after[**at])).count();
    let turned = (turned > 0).then_some((Pattern::SignTurned, turned));
    let shift = most(places.iter().filter_map(|at| after[*at].checked_sub(before[*at])));
    let shifted = shift.map(|(by, count)| (Pattern::Shifted { by: span_text(by, unit) }, count));
    let scaled = match unit {
        Unit::Number { .. } => {
            let pair = |at: usize| (double(before[at]), double(after[at]));
            best_factor(places, pair, |text| {
                let factor = Factor::parse(text)?;
                Some(move |at| factor.explains(before[at], after[at]))
            })
        }
        Unit::Time { .. } => None,
    };
    let became = most(places.iter().map(|at| after[*at]))
        .map(|(value, count)| (Pattern::Became { value: fixed_text(value, unit) }, count));
    let was = most(places.iter().map(|at| before[*at]))
        .map(|(value, count)| (Pattern::Was { value: fixed_text(value, unit) }, count));
    let turned = turned.filter(|_| matches!(unit, Unit::Number { .. }));
    let rounded = best_rounded_fixed(before, after, unit, places);
    preferred([replaced, turned, shifted, scaled, became, was, rounded])
}

/// Rounding of decimals to fewer places than the column has.
fn best_rounded_fixed(
    before: &[i128],
    after: &[i128],
    unit: Unit,
    places: &[usize],
) -> Option<(Pattern, usize)> {
    let Unit::Number { scale } = unit else { return None };
    let fewer = 0..u8::try_from(scale).unwrap_or(0);
    let each = fewer.map(|digits| {
        let pattern = Pattern::Rounded { places: digits };
        let test = FixedTest::new(&pattern, unit);
        let explains = |at: &&usize| test.explains((before[**at], after[**at]));
        let count = places.iter().filter(explains).count();
        Some((pattern, count)).filter(|found| found.1 > 0)
    });
    preferred(each)
}

pub(super) fn turns(before: i128, after: i128) -> bool {
    before != 0 && before.checked_neg() == Some(after)
}

/// `epsilon`: the precision of the column's type.
pub(super) fn best_float(
    before: &[f64],
    after: &[f64],
    epsilon: f64,
    places: &[usize],
) -> Option<(Pattern, usize)> {
    let finite: Vec<usize> = places
        .iter()
        .copied()
        .filter(|at| before[*at].is_finite() && after[*at].is_finite())
        .collect();
    let bits = |value: f64| if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() };
    let pair = most(places.iter().map(|at| (bits(before[*at]), bits(after[*at]))));
    let replaced = pair.map(|((from, to), count)| {
        let (from, to) = (float_text(f64::from_bits(from)), float_text(f64::from_bits(to)));
        (Pattern::Replaced { from, to }, count)
    });
    let turned = finite.iter().filter(|at| before[**at] != 0.0 && after[**at] == -before[**at]);
    let turned = Some((Pattern::SignTurned, turned.count())).filter(|found| found.1 > 0);
    let digits = if epsilon > f64::EPSILON { &SHIFT_DIGITS_NARROW[..] } else { &SHIFT_DIGITS };
    let shifted = preferred(digits.iter().map(|digits| {
        let (text, _) =
            most(finite.iter().map(|at| nearest_text(after[*at] - before[*at], *digits)))?;
        let by: f64 = text.parse().ok()?;
        let explains = |at: &&usize| is_shifted(before[**at], after[**at], by, epsilon);
        let count = finite.iter().filter(explains).count();
        Some((Pattern::Shifted { by: signed(&text) }, count))
    }));
    let scaled = best_factor(
        &finite,
        |at| (before[at], after[at]),
        |text| {
            let by: f64 = text.parse().ok()?;
            Some(move |at| is_scaled(before[at], after[at], by, epsilon))
        },
    );
    let became = most(places.iter().map(|at| bits(after[*at]))).map(|(value, count)| {
        (Pattern::Became { value: float_text(f64::from_bits(value)) }, count)
    });
    let was = most(places.iter().map(|at| bits(before[*at])))
        .map(|(value, count)| (Pattern::Was { value: float_text(f64::from_bits(value)) }, count));
    let rounded = best_rounded(&finite, |at| (before[at], after[at]), epsilon);
    let noise =
        finite.iter().filter(|at| is_nearly(&Pattern::Noise, (before[**at], after[**at]), epsilon));
    let noise = Some((Pattern::Noise, noise.count())).filter(|found| found.1 > 0);
    preferred([replaced, turned, shifted, scaled, became, was, rounded, noise])
}

/// The factor that explains most pairs, by guesses from some of them.
fn best_factor<T: Fn(usize) -> bool>(
    places: &[usize],
    pair: impl Fn(usize) -> (f64, f64),
    test: impl Fn(&str) -> Option<T>,
) -> Option<(Pattern, usize)> {
    // Large values are rounded least, so their ratios are nearest to the factor.
    let mut large: Vec<usize> =
        places.iter().copied().filter(|at| pair(*at).0 != 0.0 && pair(*at).1 != 0.0).collect();
    large.sort_by(|one, two| pair(*two).0.abs().total_cmp(&pair(*one).0.abs()));
    large.truncate(GUESSES);
    let mut best: Option<(Pattern, usize)> = None;
    for digits in FACTOR_DIGITS {
        let ratio = |at: &usize| pair(*at).1 / pair(*at).0;
        let finite = large.iter().map(ratio).filter(|ratio| ratio.is_finite());
        let ratios = finite.map(|ratio| nearest_text(ratio, digits));
        let Some((text, _)) = most(ratios) else { continue };
        let Some(explains) = test(&text) else { continue };
        let count = places.iter().filter(|at| explains(**at)).count();
        best = preferred([best, Some((Pattern::Scaled { by: text }, count))]);
    }
    best.filter(|found| found.1 > 0)
}

fn is_scaled(before: f64, after: f64, by: f64, epsilon: f64) -> bool {
    let expected = before * by;
    let off = (after - expected).abs();
    expected.is_finite() && before != 0.0 && off <= expected.abs() * (4.0 * epsilon).max(1e-12)
}

fn is_shifted(before: f64, after: f64, by: f64, epsilon: f64) -> bool {
    let noise = 4.0 * epsilon * before.abs().max(after.abs());
    let is_finite = before.is_finite() && after.is_finite();
    is_finite && (after - before - by).abs() <= noise.max(by.abs() * 1e-9)
}

pub(super) fn float_test<'a>(
    before: &'a [f64],
    after: &'a [f64],
    epsilon: f64,
    pattern: &Pattern,
) -> Test<'a> {
    let same =
        |one: f64, two: f64| one.to_bits() == two.to_bits() || (one.is_nan() && two.is_nan());
    let value = |text: &str| text.parse::<f64>().ok();
    match pattern {
        Pattern::Replaced { from, to } => match (value(from), value(to)) {
            (Some(from), Some(to)) => {
                Box::new(move |at| same(before[at], from) && same(after[at], to))
            }
            _ => never(),
        },
        Pattern::Became { value: text } => match value(text) {
            Some(value) => Box::new(move |at| same(after[at], value)),
            None => never(),
        },
        Pattern::Was { value: text } => match value(text) {
            Some(value) => Box::new(move |at| same(before[at], value)),
            None => never(),
        },
        Pattern::SignTurned => Box::new(move |at| before[at] != 0.0 && after[at] == -before[at]),
        Pattern::Shifted { by } => match value(by) {
            Some(by) => Box::new(move |at| is_shifted(before[at], after[at], by, epsilon)),
            None => never(),
        },
        Pattern::Scaled { by } => match value(by) {
            Some(by) => Box::new(move |at| is_scaled(before[at], after[at], by, epsilon)),
            None => never(),
        },
        other => {
            let other = other.clone();
            Box::new(move |at| is_nearly(&other, (before[at], after[at]), epsilon))
        }
    }
}

/// A number with so many significant digits, without trailing zeros.
fn nearest_text(value: f64, digits: i32) -> String {
    let places = usize::try_from(digits - 1).unwrap_or(0);
    let rounded: f64 = format!("{value:.places$e}").parse().unwrap_or(value);
    format!("{rounded:?}").trim_end_matches(".0").to_owned()
}

fn signed(text: &str) -> String {
    if text.starts_with('-') { text.to_owned() } else { format!("+{text}") }
}

fn float_text(value: f64) -> String {
    format!("{value:?}")
}

/// A whole number of units as people write it.
fn fixed_text(value: i128, unit: Unit) -> String {
    match unit {
        Unit::Number { scale } => decimal_text(i256::from_i128(value), scale),
        Unit::Time { nanoseconds } => moment_text(value, nanoseconds),
    }
}

/// The value that a text stands for.
pub(super) fn fixed_value(text: &str, unit: Unit) -> Option<i128> {
    match unit {
        Unit::Number { scale } => undecimal(text, scale),
        Unit::Time { nanoseconds } => moment_value(text, nanoseconds),
    }
}

const DAY: i64 = 86_400_000_000_000;
const DATE: &str = "%Y-%m-%d";
const MOMENT: &str = "%Y-%m-%dT%H:%M:%S%.f";

/// A date, or a time of a date; the number itself where no calendar has it.
fn moment_text(value: i128, nanoseconds: i64) -> String {
    let all = value.saturating_mul(i128::from(nanoseconds));
    let parts = i64::try_from(all.div_euclid(1_000_000_000)).ok();
    let rest = u32::try_from(all.rem_euclid(1_000_000_000)).unwrap_or(0);
    match parts.and_then(|seconds| DateTime::from_timestamp(seconds, rest)) {
        None => value.to_string(),
        Some(moment) if nanoseconds == DAY => moment.format(DATE).to_string(),
        Some(moment) => moment.format(MOMENT).to_string(),
    }
}

fn moment_value(text: &str, nanoseconds: i64) -> Option<i128> {
    if let Ok(value) = text.parse() {
        return Some(value);
    }
    let moment = if nanoseconds == DAY {
        NaiveDate::parse_from_str(text, DATE).ok()?.and_hms_opt(0, 0, 0)?
    } else {
        NaiveDateTime::parse_from_str(text, MOMENT).ok()?
    }
    .and_utc();
    let all = i128::from(moment.timestamp()) * 1_000_000_000
        + i128::from(moment.timestamp_subsec_nanos());
    Some(all / i128::from(nanoseconds))
}

fn undecimal(text: &str, scale: i8) -> Option<i128> {
    match usize::try_from(scale) {
        Ok(places @ 1..) => {
            let (whole, fraction) = text.split_once('.')?;
            (fraction.len() == places).then(|| format!("{whole}{fraction}").parse().ok())?
        }
        _ => {
            let value: i128 = text.parse().ok()?;
            Some(value / 10_i128.checked_pow(u32::from(scale.unsigned_abs()))?)
        }
    }
}

/// A span: of numbers with a sign, of times in the largest whole unit.
fn span_text(by: i128, unit: Unit) -> String {
    match unit {
        Unit::Number { scale } => signed(&decimal_text(i256::from_i128(by), scale)),
        Unit::Time { nanoseconds } => {
            let all = by.saturating_mul(i128::from(nanoseconds));
            let (size, name) =
                SPANS.into_iter().find(|(size, _)| all % size == 0).unwrap_or((1, "ns"));
            format!("{} {name}", signed(&(all / size).to_string()))
        }
    }
}

const SPANS: [(i128, &str); 7] = [
    (86_400_000_000_000, "d"),
    (3_600_000_000_000, "h"),
    (60_000_000_000, "min"),
    (1_000_000_000, "s"),
    (1_000_000, "ms"),
    (1_000, "us"),
    (1, "ns"),
];

pub(super) fn span_value(text: &str, unit: Unit) -> Option<i128> {
    match unit {
        Unit::Number { scale } => undecimal(text.trim_start_matches('+'), scale),
        Unit::Time { nanoseconds } => {
            let (number, name) = text.split_once(' ')?;
            let size = SPANS.into_iter().find(|(_, known)| *known == name)?.0;
            let all = number.parse::<i128>().ok()?.checked_mul(size)?;
            (all % i128::from(nanoseconds) == 0).then(|| all / i128::from(nanoseconds))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_shift_and_no_factor_explains_an_infinity() {
        let changes =
            [(f64::INFINITY, 3.5), (3.5, f64::NEG_INFINITY), (f64::INFINITY, f64::NEG_INFINITY)];
        for (before, after) in changes {
            assert!(!is_shifted(before, after, 0.1, f64::EPSILON));
            assert!(!is_scaled(before, after, 2.0, f64::EPSILON));
            let values = (vec![1.0, 2.0, before], vec![1.1, 2.1, after]);
            let test = float_test(
                &values.0,
                &values.1,
                f64::EPSILON,
                &Pattern::Shifted { by: "+0.1".to_owned() },
            );
            assert_eq!([0, 1, 2].map(test), [true, true, false]);
        }
    }

    #[test]
    fn spans_and_values_read_back() {
        for (by, unit) in [
            (5, Unit::Number { scale: 0 }),
            (-125, Unit::Number { scale: 2 }),
            (3, Unit::Number { scale: -2 }),
            (3_600, Unit::Time { nanoseconds: 1_000_000_000 }),
            (-1, Unit::Time { nanoseconds: 86_400_000_000_000 }),
            (1_500, Unit::Time { nanoseconds: 1_000 }),
        ] {
            assert_eq!(span_value(&span_text(by, unit), unit), Some(by), "{}", span_text(by, unit));
        }
        for (value, nanoseconds, text) in [
            (19_723, DAY, "2024-01-01"),
            (-1, DAY, "1969-12-31"),
            (1_704_067_200_000_001, 1_000, "2024-01-01T00:00:00.000001"),
            (-1, 1, "1969-12-31T23:59:59.999999999"),
            (253_402_300_800, 1_000_000_000, "+10000-01-01T00:00:00"),
            (i128::from(i64::MAX), 1_000_000_000, "9223372036854775807"),
        ] {
            let unit = Unit::Time { nanoseconds };
            assert_eq!(fixed_text(value, unit), text);
            assert_eq!(fixed_value(text, unit), Some(value), "{text}");
        }
        assert_eq!(span_text(3_600, Unit::Time { nanoseconds: 1_000_000_000 }), "+1 h");
        assert_eq!(span_text(-125, Unit::Number { scale: 2 }), "-1.25");
    }
}
