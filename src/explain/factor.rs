//! Whole numbers scaled by a factor, exactly.

use arrow::array::ArrowNativeTypeOp;
use arrow::datatypes::i256;

/// A factor as a whole number over a power of ten.
#[derive(Debug, Clone, Copy)]
pub(super) struct Factor {
    digits: i128,
    tens: i128,
}

impl Factor {
    /// A factor as it is told: `1.08`, `-2`, `1e-6`. None for one of too many digits.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (number, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        let places = i32::try_from(fraction.len()).ok()?.checked_sub(exponent.parse().ok()?)?;
        let power = 10_i128.checked_pow(places.unsigned_abs())?;
        Some(if places < 0 {
            Self { digits: digits.checked_mul(power)?, tens: 1 }
        } else {
            Self { digits, tens: power }
        })
    }

    pub(super) fn double(self) -> f64 {
        self.digits as f64 / self.tens as f64
    }

    /// Whether `after` is `before` times the factor, rounded to a unit. A whole factor rounds
    /// nothing; and what rounding alone could make of a small change is no proof of a factor.
    #[inline]
    pub(super) fn explains(&self, before: i128, after: i128) -> bool {
        if before == 0 {
            return false;
        }
        // Nearly all numbers fit into 64 bits, and their products into 128.
        let narrow = [before, after, self.digits, self.tens].map(i64::try_from);
        let [Ok(before), Ok(after), Ok(digits), Ok(tens)] = narrow.map(|n| n.map(i128::from))
        else {
            return self.explains_wide(before, after);
        };
        let (expected, found) = (before * digits, after * tens);
        expected == found || (tens != 1 && rounds(expected, found, after - before, tens))
    }

    #[cold]
    fn explains_wide(&self, before: i128, after: i128) -> bool {
        let [before, after, digits, tens] =
            [before, after, self.digits, self.tens].map(i256::from_i128);
        let (expected, found) = (before.wrapping_mul(digits), after.wrapping_mul(tens));
        let change = after.wrapping_sub(before);
        expected == found || (tens != i256::ONE && rounds(expected, found, change, tens))
    }
}

/// Whether rounding to a `unit` alone is between two products.
#[inline(never)]
fn rounds<N: ArrowNativeTypeOp>(expected: N, found: N, change: N, unit: N) -> bool {
    let magnitude = |number: N| if number.is_lt(N::ZERO) { number.neg_wrapping() } else { number };
    let off = magnitude(expected.sub_wrapping(found));
    // Of small values, half a unit is much.
    let is_small = magnitude(expected).is_lt(unit.mul_wrapping(N::usize_as(100)));
    let allowed = if is_small { unit.div_wrapping(N::usize_as(2)) } else { unit };
    let change = magnitude(change).mul_checked(unit);
    off.is_le(allowed)
        && change.map_or(true, |change| allowed.mul_wrapping(N::usize_as(5)).is_le(change))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explains(text: &str, before: i128, after: i128) -> bool {
        Factor::parse(text).unwrap().explains(before, after)
    }

    #[test]
    fn a_whole_factor_is_exact_and_a_decimal_one_up_to_rounding() {
        assert!(
            explains("2", 7, 14) && explains("-1", i128::from(i64::MAX), -i128::from(i64::MAX))
        );
        for off in [-1_000, -1, 1, 1_000] {
            let id = 1_000_000_000_000_000_000;
            assert!(!explains("1", id, id + off) && !explains("2", id, 2 * id + off));
            assert!(!explains("2", 7, 14 + off));
        }
        assert!(explains("1.08", 1_234_567, 1_333_332) && explains("1.08", 1_234_567, 1_333_333));
        assert!(!explains("1.08", 1_234_567, 1_333_335));
        assert!(!explains("1.08", 0, 0) && !explains("1.5", i128::MAX, 1));
        // Products of more than 128 bits: a million with 30 decimal places.
        let million = 10_i128.pow(36);
        assert!(explains("1.0725", million, million / 10_000 * 10_725));
        assert!(explains("1.0725", million + 1, million / 10_000 * 10_725 + 1));
        assert!(!explains("1.0725", million, million / 10_000 * 10_725 + 2));
        assert!(explains("-1", i128::MAX, -i128::MAX) && !explains("-1", i128::MIN, i128::MAX));
        // Off by one unit is no factor of 1.001.
        assert!(!explains("1.001", 1_000, 1_002));
        assert!(explains("1e-6", 1_362_345_678_901_234, 1_362_345_679));
        assert!(explains("2.5e-5", 40_000_000, 1_000) && !explains("1e-6", 40_000_000, 41));
        assert!(explains("1e17", 3, 300_000_000_000_000_000));
        assert!(Factor::parse("").is_none() && Factor::parse("1e-70").is_none());
        assert!(Factor::parse("e5").is_none() && Factor::parse("inf").is_none());
    }
}
