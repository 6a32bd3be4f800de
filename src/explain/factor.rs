//! Whole numbers scaled by a factor, exactly.

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
    pub(super) fn explains(self, before: i128, after: i128) -> bool {
        let products = product(before, self.digits).zip(product(after, self.tens));
        let Some((expected, found)) = products.filter(|_| before != 0) else { return false };
        let off = expected.abs_diff(found);
        if off == 0 || self.tens == 1 {
            return off == 0;
        }
        let unit = self.tens.unsigned_abs();
        // Of small values, half a unit is much.
        let is_small = expected.unsigned_abs() < unit.saturating_mul(100);
        let allowed = if is_small { unit / 2 } else { unit };
        let change = after.abs_diff(before).checked_mul(unit);
        off <= allowed && change.is_none_or(|change| allowed * 5 <= change)
    }
}

/// Nearly all numbers fit into 64 bits, and their products into 128.
#[inline]
fn product(one: i128, two: i128) -> Option<i128> {
    match (i64::try_from(one), i64::try_from(two)) {
        (Ok(one), Ok(two)) => Some(i128::from(one) * i128::from(two)),
        _ => one.checked_mul(two),
    }
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
        // Off by one unit is no factor of 1.001.
        assert!(!explains("1.001", 1_000, 1_002));
        assert!(explains("1e-6", 1_362_345_678_901_234, 1_362_345_679));
        assert!(explains("2.5e-5", 40_000_000, 1_000) && !explains("1e-6", 40_000_000, 41));
        assert!(explains("1e17", 3, 300_000_000_000_000_000));
        assert!(Factor::parse("").is_none() && Factor::parse("1e-70").is_none());
        assert!(Factor::parse("e5").is_none() && Factor::parse("inf").is_none());
    }
}
