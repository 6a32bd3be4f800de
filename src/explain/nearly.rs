//! Patterns of numbers that are nearly what they were: rounded, or off by next to nothing; and of
//! floats that are no number.

use super::pairs::Pairs;
use super::pattern::Pattern;

/// Places after the point to which values may have been rounded.
const PLACES: std::ops::RangeInclusive<u8> = 0..=6;

/// A change of at most this share is next to nothing: it is what 32 bits make of a double.
const NOISE: f64 = 1e-6;

/// What a single value is put under where no pattern explains it.
pub(super) const LAST_RESORT: [Pattern; 4] =
    [Pattern::BecameNan, Pattern::BecameInfinite, Pattern::ZeroSign, Pattern::Noise];

/// Rounding to the fewest places that explains most of the pairs.
pub(super) fn best_rounded(
    places: &[usize],
    pair: impl Fn(usize) -> (f64, f64),
    epsilon: f64,
) -> Option<(Pattern, usize)> {
    let mut best: Option<(Pattern, usize)> = None;
    for digits in PLACES {
        let explains = |at: &&usize| is_rounded(pair(**at), digits, epsilon);
        let count = places.iter().filter(explains).count();
        if count > best.as_ref().map_or(0, |held| held.1) {
            best = Some((Pattern::Rounded { places: digits }, count));
        }
    }
    best
}

/// Whether the second value is the first one with so many places after the point.
pub(super) fn is_rounded((before, after): (f64, f64), places: u8, epsilon: f64) -> bool {
    let unit = 10_f64.powi(-i32::from(places));
    let units = after / unit;
    let is_whole = (units.round() - units).abs() <= (units.abs() * epsilon).clamp(1e-6, 0.01)
        && units.abs() < 1e12;
    let change = (after - before).abs();
    is_whole && change > 0.0 && change <= 0.5 * unit * (1.0 + 1e-9) + epsilon * after.abs()
}

/// Whether a pattern of [`LAST_RESORT`] explains a pair of floats.
pub(super) fn is_nearly(pattern: &Pattern, (before, after): (f64, f64), epsilon: f64) -> bool {
    match pattern {
        Pattern::BecameNan => after.is_nan() && !before.is_nan(),
        Pattern::BecameInfinite => after.is_infinite() && !before.is_infinite(),
        Pattern::ZeroSign => before == 0.0 && after == 0.0,
        Pattern::Noise => {
            let change = (after - before).abs();
            change > 0.0 && change <= NOISE * before.abs() && before.is_finite()
        }
        Pattern::Rounded { places } => is_rounded((before, after), *places, epsilon),
        _ => false,
    }
}

impl Pairs {
    /// The places, out of these, that patterns of last resort explain; the others stay.
    pub(super) fn last_resort(&self, places: &mut Vec<usize>) -> Vec<(Pattern, Vec<usize>)> {
        let taken = self.sort_into(&LAST_RESORT, places);
        LAST_RESORT.into_iter().zip(taken).filter(|(_, taken)| !taken.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_known_by_what_it_leaves() {
        let pairs = [(3.0 / 7.0, 0.43), (5.0 / 7.0, 0.71), (9.0 / 7.0, 1.29)];
        let found = best_rounded(&[0, 1, 2], |at| pairs[at], f64::EPSILON);
        assert_eq!(found, Some((Pattern::Rounded { places: 2 }, 3)));
        for not in [(10.0, 11.0), (0.5, 0.5), (0.3, 0.5), (1e300, 1e299)] {
            assert!((0..=6).all(|places| !is_rounded(not, places, f64::EPSILON)), "{not:?}");
        }
    }

    #[test]
    fn one_value_is_enough_to_say_what_became_of_it() {
        for (pattern, pair) in [
            (Pattern::BecameNan, (1.0, f64::NAN)),
            (Pattern::BecameInfinite, (1.0, f64::NEG_INFINITY)),
            (Pattern::ZeroSign, (0.0, -0.0)),
            (Pattern::Noise, (1.0, 1.0 + f64::EPSILON)),
        ] {
            let fits: Vec<&Pattern> =
                LAST_RESORT.iter().filter(|one| is_nearly(one, pair, f64::EPSILON)).collect();
            assert_eq!(fits, [&pattern]);
        }
        assert!(!LAST_RESORT.iter().any(|one| is_nearly(one, (1.0, 1.1), f64::EPSILON)));
    }
}
