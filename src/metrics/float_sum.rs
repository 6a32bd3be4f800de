//! The exact sum of floating-point numbers, whatever their order.
//!
//! Every finite double is an integer multiple of 2^-1074, so a sum is an integer of about 2,100
//! bits. It is kept in digits of 32 bits, each in 64 bits of room, so that carries wait (a "small
//! superaccumulator": R. Neal, Fast exact summation, arXiv:1505.05571). Rounding happens once, at
//! the end, to the nearest double, ties to even.

/// 2,046 exponents, 53 bits of mantissa, and room for 2^64 summands, in digits of 32 bits.
const DIGITS: usize = 70;

/// A digit takes less than 2^32 from each summand, so this many fit before carries must move.
const SUMMANDS_BEFORE_CARRY: u32 = 1 << 30;

/// An exact running sum.
#[derive(Debug, Clone)]
pub struct FloatSum {
    digits: [i64; DIGITS],
    waiting: u32,
    positive_infinities: u64,
    negative_infinities: u64,
    nans: u64,
}

impl Default for FloatSum {
    fn default() -> Self {
        Self {
            digits: [0; DIGITS],
            waiting: 0,
            positive_infinities: 0,
            negative_infinities: 0,
            nans: 0,
        }
    }
}

impl FloatSum {
    /// Adds a number.
    #[inline]
    pub fn add(&mut self, value: f64) {
        let bits = value.to_bits();
        let exponent = (bits >> 52) & 0x7ff;
        if exponent == 0x7ff {
            return self.add_special(value);
        }
        self.add_scaled(mantissa_of(bits), exponent, value.is_sign_negative());
    }

    /// Adds many numbers, faster than one by one: mantissas of one exponent and sign are gathered
    /// first (R. Neal's "large superaccumulator"). A mantissa has 53 bits, so 2,047 of them fit
    /// into 64. Neighbours go to different tables: they often have one exponent, and an addition
    /// to the same place waits for the one before it.
    pub fn add_all(&mut self, values: &[f64]) {
        const ROOM: usize = 2_047;
        let mut gathered = [[[0_u64; 2]; 0x7ff]; 2];
        for values in values.chunks(2 * ROOM) {
            // A bit for each 32 exponents that came.
            let mut came = 0_u64;
            for two in values.chunks(2) {
                for (value, gathered) in two.iter().zip(&mut gathered) {
                    let bits = value.to_bits();
                    let exponent = usize::try_from((bits >> 52) & 0x7ff).unwrap_or_default();
                    let Some(sums) = gathered.get_mut(exponent) else {
                        self.add_special(*value);
                        continue;
                    };
                    sums[usize::from(bits >> 63 == 1)] += mantissa_of(bits);
                    came |= 1 << (exponent / 32);
                }
            }
            for gathered in &mut gathered {
                self.add_gathered(gathered, came);
            }
        }
    }

    /// Adds sums of mantissas by exponent and sign, and clears them.
    fn add_gathered(&mut self, gathered: &mut [[u64; 2]], came: u64) {
        for (exponents, sums) in (0_u64..).zip(gathered.chunks_mut(32)) {
            if came >> exponents & 1 == 0 {
                continue;
            }
            for (exponent, sums) in (32 * exponents..).zip(sums) {
                for (sum, is_negative) in std::mem::take(sums).into_iter().zip([false, true]) {
                    if sum > 0 {
                        self.add_scaled(sum, exponent, is_negative);
                    }
                }
            }
        }
    }

    /// Adds many numbers of single precision. Where the exponents of 256 of them are near each
    /// other, doubles hold their sum exactly: each is a multiple of the last bit of the least, and
    /// 24 bits of a mantissa, 8 for the count and the 21 between the exponents are 53.
    pub fn add_all_single(&mut self, values: &[f32]) {
        const FARTHEST: u32 = 21;
        const SPECIAL: u32 = 0xff << 23;
        for values in values.chunks(256) {
            let (mut least, mut most) = (SPECIAL, 0);
            for value in values {
                let magnitude = value.abs().to_bits();
                most = most.max(magnitude);
                least = least.min(if magnitude == 0 { SPECIAL } else { magnitude });
            }
            if most < SPECIAL && (most >> 23).saturating_sub((least >> 23).max(1)) <= FARTHEST {
                let mut lanes = [0.0; 4];
                for four in values.chunks(4) {
                    for (lane, value) in lanes.iter_mut().zip(four) {
                        *lane += f64::from(*value);
                    }
                }
                self.add(lanes.iter().sum());
            } else {
                values.iter().for_each(|value| self.add(f64::from(*value)));
            }
        }
    }

    /// Adds a sum of mantissas of one exponent.
    #[inline]
    fn add_scaled(&mut self, mantissa: u64, exponent: u64, is_negative: bool) {
        // A subnormal has the least exponent.
        let shift = exponent.saturating_sub(1);
        let index = usize::try_from(shift / 32).unwrap_or_default();
        let wide = u128::from(mantissa) << (shift % 32);
        let digit = |place: u32| {
            i64::from(u32::try_from((wide >> (32 * place)) & 0xffff_ffff).unwrap_or_default())
        };
        let sign = if is_negative { -1 } else { 1 };
        self.digits[index] += sign * digit(0);
        self.digits[index + 1] += sign * digit(1);
        self.digits[index + 2] += sign * digit(2);
        self.waiting += 1;
        if self.waiting == SUMMANDS_BEFORE_CARRY {
            self.carry();
        }
    }

    fn add_special(&mut self, value: f64) {
        if value.is_nan() {
            self.nans += 1;
        } else if value > 0.0 {
            self.positive_infinities += 1;
        } else {
            self.negative_infinities += 1;
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        other.carry();
        self.carry();
        for (mine, theirs) in self.digits.iter_mut().zip(other.digits) {
            *mine += theirs;
        }
        self.waiting = 1;
        self.nans += other.nans;
        self.positive_infinities += other.positive_infinities;
        self.negative_infinities += other.negative_infinities;
    }

    /// How many summands were no number.
    pub fn nans(&self) -> u64 {
        self.nans
    }

    /// How many summands were infinite.
    pub fn infinities(&self) -> u64 {
        self.positive_infinities + self.negative_infinities
    }

    /// Moves carries up: every digit but the last is then in `0..2^32`.
    fn carry(&mut self) {
        let mut carry = 0;
        for digit in &mut self.digits[..DIGITS - 1] {
            let sum = *digit + carry;
            carry = sum >> 32;
            *digit = sum & 0xffff_ffff;
        }
        self.digits[DIGITS - 1] += carry;
        self.waiting = 0;
    }

    /// The sum of all finite summands, rounded once, to the nearest double.
    pub fn value(&self) -> f64 {
        let mut sum = self.clone();
        sum.carry();
        let negative = sum.digits[DIGITS - 1] < 0;
        if negative {
            for digit in &mut sum.digits {
                *digit = -*digit;
            }
            sum.carry();
        }
        let magnitude = magnitude(&sum.digits);
        if negative { -magnitude } else { magnitude }
    }
}

/// The mantissa of a finite double: a subnormal has no hidden bit.
#[inline]
fn mantissa_of(bits: u64) -> u64 {
    let hidden = u64::from((bits >> 52) & 0x7ff != 0) << 52;
    bits & ((1 << 52) - 1) | hidden
}

/// The double nearest to digits that are all in `0..2^32`.
fn magnitude(digits: &[i64; DIGITS]) -> f64 {
    let Some(top) = digits.iter().rposition(|digit| *digit != 0) else { return 0.0 };
    // The leading 96 bits, and whether anything follows.
    let at = |index: Option<usize>| {
        index
            .and_then(|index| digits.get(index))
            .map_or(0, |digit| u128::try_from(*digit).unwrap_or_default())
    };
    let leading = at(Some(top)) << 64 | at(top.checked_sub(1)) << 32 | at(top.checked_sub(2));
    let rest = top >= 3 && digits[..top - 2].iter().any(|digit| *digit != 0);
    // The exponent of the lowest of the 96 bits, in units of 2^-1074.
    let low = i64::try_from(top).unwrap_or_default() * 32 - 64;
    let length = i64::from(128 - leading.leading_zeros());
    // 53 bits are kept, fewer where the least exponent cuts them off.
    let drop = (length - 53).max(-low).max(0);
    let kept = leading.checked_shr(u32::try_from(drop).unwrap_or(127)).unwrap_or(0);
    let dropped = leading & !(u128::MAX << drop);
    let half = if drop == 0 { 0 } else { 1_u128 << (drop - 1) };
    let up = drop > 0 && (dropped > half || (dropped == half && (rest || kept & 1 == 1)));
    let kept = kept + u128::from(up);
    scale(u64::try_from(kept).unwrap_or(u64::MAX), low + drop)
}

/// `mantissa * 2^(shift - 1074)`, exactly; the mantissa has at most 54 bits.
fn scale(mantissa: u64, shift: i64) -> f64 {
    let (mantissa, shift) =
        if mantissa == 1 << 53 { (1 << 52, shift + 1) } else { (mantissa, shift) };
    if mantissa < 1 << 52 {
        // Subnormal: the shift is zero by construction.
        return f64::from_bits(mantissa);
    }
    let exponent = u64::try_from(shift + 1).unwrap_or_default();
    if exponent >= 0x7ff {
        return f64::INFINITY;
    }
    f64::from_bits(exponent << 52 | (mantissa & ((1 << 52) - 1)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(values: &[f64]) -> f64 {
        let mut sum = FloatSum::default();
        values.iter().for_each(|value| sum.add(*value));
        sum.value()
    }

    #[test]
    fn what_cancels_leaves_the_rest() {
        assert_eq!(sum(&[1e308, 1.0, -1e308]), 1.0);
        assert_eq!(sum(&[0.1; 10]), 1.0);
        assert_eq!(sum(&[1e16, 1.0, 1.0]), 10_000_000_000_000_002.0);
        assert_eq!(sum(&[f64::MIN_POSITIVE / 4.0; 3]), f64::MIN_POSITIVE * 0.75);
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(sum(&[-3.5, 1.25]), -2.25);
        assert_eq!(sum(&[]), 0.0);
    }

    #[test]
    fn ties_round_to_even() {
        let one_and_half_step = 1.0 + f64::EPSILON / 2.0;
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0]), one_and_half_step);
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0, f64::MIN_POSITIVE]), 1.0 + f64::EPSILON);
        assert_eq!(sum(&[1.0 + f64::EPSILON, f64::EPSILON / 2.0]), 1.0 + 2.0 * f64::EPSILON);
    }

    #[test]
    fn what_is_no_number_is_counted_apart() {
        let mut sum = FloatSum::default();
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 2.0].iter().for_each(|v| sum.add(*v));
        assert_eq!((sum.nans(), sum.infinities(), sum.value()), (1, 2, 2.0));
    }

    proptest! {
        #[test]
        fn a_single_number_comes_back(value in any::<f64>().prop_filter("finite", |v| v.is_finite())) {
            prop_assert_eq!(sum(&[value]), value);
        }

        #[test]
        fn two_numbers_round_as_the_processor_rounds(
            one in any::<f64>().prop_filter("finite", |v| v.is_finite()),
            two in any::<f64>().prop_filter("finite", |v| v.is_finite()),
        ) {
            prop_assert_eq!(sum(&[one, two]), one + two);
        }

        #[test]
        fn order_and_merging_do_not_matter(
            values in prop::collection::vec(any::<f64>().prop_filter("finite", |v| v.is_finite()), 0..50),
            cut in 0_usize..50,
        ) {
            let mut reversed = values.clone();
            reversed.reverse();
            let cut = cut.min(values.len());
            let mut left = FloatSum::default();
            values[..cut].iter().for_each(|value| left.add(*value));
            let mut right = FloatSum::default();
            values[cut..].iter().for_each(|value| right.add(*value));
            left.merge(&right);
            prop_assert_eq!(sum(&values).to_bits(), sum(&reversed).to_bits());
            prop_assert_eq!(sum(&values).to_bits(), left.value().to_bits());
            let mut gathered = FloatSum::default();
            gathered.add_all(&values.repeat(101));
            let mut one_by_one = FloatSum::default();
            (0..101).for_each(|_| values.iter().for_each(|value| one_by_one.add(*value)));
            prop_assert_eq!(gathered.value().to_bits(), one_by_one.value().to_bits());
        }

        /// `near`: how many bits of the exponent are free, so that doubles hold the sum or not.
        #[test]
        fn numbers_of_single_precision_are_added_exactly(
            bits in prop::collection::vec(any::<u32>(), 0..700),
            near in 0_u32..9,
            high in any::<u32>(),
        ) {
            let free = 0x807f_ffff | ((1 << near) - 1) << 23;
            let values: Vec<f32> =
                bits.iter().map(|bits| f32::from_bits(bits & free | high & !free)).collect();
            let (mut single, mut double) = (FloatSum::default(), FloatSum::default());
            single.add_all_single(&values);
            values.iter().for_each(|value| double.add(f64::from(*value)));
            prop_assert_eq!(single.value().to_bits(), double.value().to_bits());
            prop_assert_eq!((single.nans(), single.infinities()), (double.nans(), double.infinities()));
        }
    }
}
