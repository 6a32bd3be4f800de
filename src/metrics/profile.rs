//! What is measured of a column on request: how many different values it has, how its numbers are
//! distributed, and its most frequent values. None of it depends on the order of rows.

use std::collections::{BTreeMap, HashMap};

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::bounds::value_text;
use super::words::words_of_rows;
use crate::error::{ErrorKind, Result, from_arrow};

/// Bits of a hash that choose a register: 2,048 registers, whose standard error is 2.3 %.
const BITS: u32 = 11;
const REGISTERS: usize = 1 << BITS;

/// Quantiles are right to 1 % of their value.
const ACCURACY: f64 = 0.01;

/// Different values up to which the most frequent ones are counted.
const MOST_VALUES: usize = 10_000;
const TOP: usize = 20;

/// A column's profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// How many different values there are, but for null: a sketch.
    pub distinct: Distinct,
    /// How the finite numbers are distributed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantiles: Option<Quantiles>,
    /// The most frequent values with their counts; absent when there are more than 10,000 different
    /// ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top: Option<Vec<(String, u64)>>,
}

impl Profile {
    /// Takes another partition's profile in. The most frequent values are those of both together, as
    /// far as they were among the most frequent of each.
    pub fn merge(&mut self, other: &Self) {
        self.distinct.merge(&other.distinct);
        match (&mut self.quantiles, &other.quantiles) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (mine, theirs) => *mine = mine.take().or_else(|| theirs.clone()),
        }
        self.top = match (self.top.take(), &other.top) {
            (Some(mine), Some(theirs)) => {
                let mut counts: BTreeMap<String, u64> = mine.into_iter().collect();
                theirs
                    .iter()
                    .for_each(|(value, count)| *counts.entry(value.clone()).or_default() += count);
                Some(most_frequent(counts.into_iter().collect()))
            }
            _ => None,
        };
    }
}

fn most_frequent(mut counts: Vec<(String, u64)>) -> Vec<(String, u64)> {
    counts.sort_by(|one, two| two.1.cmp(&one.1).then_with(|| one.0.cmp(&two.0)));
    counts.truncate(TOP);
    counts
}

/// A sketch of how many different values there are (HyperLogLog, Flajolet et al. 2007).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distinct {
    registers: Vec<u8>,
}

impl Default for Distinct {
    fn default() -> Self {
        Self { registers: vec![0; REGISTERS] }
    }
}

impl Distinct {
    fn see(&mut self, hash: u64) {
        let register = usize::try_from(hash >> (64 - BITS)).unwrap_or(0);
        let rank = u8::try_from((hash << BITS).leading_zeros().min(64 - BITS) + 1).unwrap_or(0);
        if let Some(held) = self.registers.get_mut(register) {
            *held = (*held).max(rank);
        }
    }

    /// Takes another partition's values in.
    pub fn merge(&mut self, other: &Self) {
        for (held, rank) in self.registers.iter_mut().zip(&other.registers) {
            *held = (*held).max(*rank);
        }
    }

    /// How many there are, with a standard error of 2.3 %.
    pub fn estimate(&self) -> f64 {
        let registers = REGISTERS as f64;
        let sum: f64 = self.registers.iter().map(|rank| 2_f64.powi(-i32::from(*rank))).sum();
        let estimate = 0.7213 / (1.0 + 1.079 / registers) * registers * registers / sum;
        let empty = self.registers.iter().filter(|rank| **rank == 0).count();
        if estimate <= 2.5 * registers && empty > 0 {
            // Few values: how many registers none has met says more.
            return (registers * (registers / empty as f64).ln()).round();
        }
        estimate.round()
    }
}

/// One character for each register: ranks are below 64.
const ALPHABET: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

impl Serialize for Distinct {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let letters =
            self.registers.iter().map(|rank| char::from(ALPHABET[usize::from(*rank) % 64]));
        serializer.serialize_str(&letters.collect::<String>())
    }
}

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let rank = |letter| ALPHABET.iter().position(|known| *known == letter);
        let ranks: Option<Vec<u8>> =
            text.bytes().map(|letter| u8::try_from(rank(letter)?).ok()).collect();
        match ranks {
            Some(registers) if registers.len() == REGISTERS => Ok(Self { registers }),
            _ => Err(de::Error::custom("this is no sketch of 2,048 registers")),
        }
    }
}

/// How numbers are distributed: counts of ranges whose ends are 2 % apart (DDSketch, Masson et al.
/// 2019).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quantiles {
    /// Numbers below zero, by the range of their magnitude.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    below: BTreeMap<i32, u64>,
    /// Zeros.
    zeros: u64,
    /// Numbers above zero.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    above: BTreeMap<i32, u64>,
}

fn gamma() -> f64 {
    (1.0 + ACCURACY) / (1.0 - ACCURACY)
}

impl Quantiles {
    fn see(&mut self, value: f64, per_range: f64) {
        if value == 0.0 {
            self.zeros += 1;
            return;
        }
        #[expect(clippy::cast_possible_truncation, reason = "a double's logarithm is small")]
        let range = (value.abs().ln() * per_range).ceil() as i32;
        let side = if value < 0.0 { &mut self.below } else { &mut self.above };
        *side.entry(range).or_default() += 1;
    }

    /// Takes another partition's numbers in.
    pub fn merge(&mut self, other: &Self) {
        self.zeros += other.zeros;
        for (mine, theirs) in [(&mut self.below, &other.below), (&mut self.above, &other.above)] {
            for (range, count) in theirs {
                *mine.entry(*range).or_default() += count;
            }
        }
    }

    /// The number below which this share of them lies, right to 1 %; none: there are no numbers.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let middle = |range: i32| 2.0 * gamma().powi(range) / (gamma() + 1.0);
        let below = self.below.iter().rev().map(|(range, count)| (-middle(*range), *count));
        let above = self.above.iter().map(|(range, count)| (middle(*range), *count));
        let ranges: Vec<(f64, u64)> = below.chain([(0.0, self.zeros)]).chain(above).collect();
        let all: u64 = ranges.iter().map(|(_, count)| count).sum();
        let rank = share.clamp(0.0, 1.0) * all.saturating_sub(1) as f64;
        let mut seen = 0;
        ranges.into_iter().filter(|(_, count)| *count > 0).find_map(|(value, count)| {
            seen += count;
            (seen as f64 > rank).then_some(value)
        })
    }
}

/// Sees one column.
#[derive(Debug, Clone, Default)]
pub(super) struct ProfileMeter {
    distinct: Distinct,
    quantiles: Option<Quantiles>,
    /// By the values' words; none: there are too many.
    counts: Option<HashMap<(u64, u64), (String, u64)>>,
}

impl ProfileMeter {
    pub(super) fn new() -> Self {
        Self { counts: Some(HashMap::new()), ..Self::default() }
    }

    /// Sees a batch.
    ///
    /// # Errors
    /// `Unsupported` for a type without values to hash.
    pub(super) fn update(&mut self, array: &ArrayRef) -> Result<()> {
        let nulls = array.logical_nulls();
        let there = |row: &usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row));
        let words = words_of_rows(array)?;
        for row in (0..array.len()).filter(there) {
            let word = words[row];
            self.distinct.see(xxh3_64_with_seed(&word.0.to_le_bytes(), word.1));
            if let Some(counts) = &mut self.counts {
                counts.entry(word).or_insert_with(|| (value_text(array, row), 0)).1 += 1;
                if counts.len() > MOST_VALUES {
                    self.counts = None;
                }
            }
        }
        if !array.data_type().is_numeric() {
            return Ok(());
        }
        let quantiles = self.quantiles.get_or_insert_default();
        let per_range = 1.0 / gamma().ln();
        let doubles = cast(array, &DataType::Float64)
            .map_err(|error| from_arrow(ErrorKind::Internal, "read numbers", error))?;
        let doubles = doubles.as_primitive::<Float64Type>();
        for value in doubles.iter().flatten().filter(|value| value.is_finite()) {
            quantiles.see(value, per_range);
        }
        Ok(())
    }

    pub(super) fn profile(&self) -> Profile {
        let top =
            self.counts.as_ref().map(|counts| most_frequent(counts.values().cloned().collect()));
        Profile { distinct: self.distinct.clone(), quantiles: self.quantiles.clone(), top }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int64Array, StringArray};

    use super::*;

    fn profile(arrays: &[ArrayRef]) -> Profile {
        let mut meter = ProfileMeter::new();
        arrays.iter().for_each(|array| meter.update(array).unwrap());
        meter.profile()
    }

    #[test]
    fn different_values_are_estimated_within_a_few_percent_and_merge() {
        for count in [0, 1, 10, 1_000, 5_000, 30_000, 200_000] {
            let values: ArrayRef =
                Arc::new(Int64Array::from_iter_values((0..count).map(|v| v * 7)));
            let whole = profile(&[Arc::clone(&values), Arc::clone(&values)]);
            let expected = count as f64;
            let off = (whole.distinct.estimate() - expected).abs();
            assert!(off <= 0.07 * expected, "{count}: {}", whole.distinct.estimate());
            let half = usize::try_from(count / 2).unwrap();
            let mut parts = profile(&[values.slice(0, half)]);
            parts.distinct.merge(&profile(&[values.slice(half, values.len() - half)]).distinct);
            assert_eq!(parts.distinct, whole.distinct);
        }
    }

    #[test]
    fn quantiles_are_right_to_one_percent_whatever_the_order() {
        let numbers: Vec<f64> = (-5_000..20_000).map(|n| f64::from(n) * 0.37).collect();
        let mut turned = numbers.clone();
        turned.reverse();
        let one = profile(&[Arc::new(Float64Array::from(numbers.clone()))]);
        assert_eq!(one, profile(&[Arc::new(Float64Array::from(turned))]));
        for percent in [0, 1, 10, 25, 50, 90, 99, 100_u32] {
            let exact = numbers[usize::try_from(percent).unwrap() * (numbers.len() - 1) / 100];
            let share = f64::from(percent) / 100.0;
            let found = one.quantiles.as_ref().unwrap().quantile(share).unwrap();
            assert!(
                (found - exact).abs() <= 0.0101 * exact.abs() + 1e-9,
                "{share}: {found} {exact}"
            );
        }
    }

    #[test]
    fn the_most_frequent_values_are_counted_exactly_or_not_at_all() {
        let texts = (0..1_000).map(|n| (n % 10 != 0).then(|| format!("v{}", n % 7)));
        let found = profile(&[Arc::new(StringArray::from_iter(texts.clone()))]);
        let top = found.top.unwrap();
        assert_eq!(top.len(), 7);
        assert_eq!(top.iter().map(|(_, count)| count).sum::<u64>(), 900);
        let expected = texts.flatten().filter(|text| text == &top[0].0).count();
        assert_eq!(top[0].1, expected as u64);
        let many = StringArray::from_iter_values((0..10_001).map(|n| n.to_string()));
        assert_eq!(profile(&[Arc::new(many)]).top, None);
    }

    #[test]
    fn a_profile_is_stored_as_it_is() {
        let found = profile(&[Arc::new(Int64Array::from_iter_values(-50..500))]);
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), found);
    }
}
