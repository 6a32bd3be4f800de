//! A hash of each row: the cells of its values, summed and mixed. The rules are those of
//! [`super::digest`].

use std::hint::select_unpredictable;

use arrow::array::{
    Array as _, ArrayRef, ArrowPrimitiveType, AsArray as _, RecordBatch, StringViewArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Schema, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use super::words::{NULL, Words, class_of, float, push_values, signed, split, words_of};
use crate::error::Result;
use crate::text_views;

/// What parts a row's two products: the fractions of the golden ratio and of π, and splitmix64's
/// two multipliers. Any words would do.
const ROW: [u64; 4] =
    [0x9e37_79b9_7f4a_7c15, 0x243f_6a88_85a3_08d3, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];

/// Hashes the rows of batches of one schema.
#[derive(Debug)]
pub(crate) struct RowHasher {
    seeds: Vec<Words>,
    rows: Vec<Words>,
    values: Vec<Words>,
}

impl RowHasher {
    /// For a schema.
    ///
    /// # Errors
    /// `Unsupported` for a column type that has no values to hash.
    pub(crate) fn new(schema: &Schema) -> Result<Self> {
        let seeds = schema.fields().iter().map(|field| {
            let class =
                class_of(field.data_type()).map_err(|error| error.with("column", field.name()))?;
            Ok(words_of(format!("{}\0{class}", field.name()).as_bytes()))
        });
        Ok(Self { seeds: seeds.collect::<Result<_>>()?, rows: Vec::new(), values: Vec::new() })
    }

    /// Hands out each row's hash, in order.
    ///
    /// # Errors
    /// `Internal` only.
    pub(crate) fn hash(&mut self, batch: &RecordBatch, mut see: impl FnMut(u128)) -> Result<()> {
        self.rows.clear();
        self.rows.resize(batch.num_rows(), Words(0, 0));
        for (seed, array) in self.seeds.iter().zip(batch.columns()) {
            add_column(array, *seed, &mut self.rows, &mut self.values)?;
        }
        for row in &self.rows {
            see(bind(*row));
        }
        Ok(())
    }
}

/// Adds a column's cells to the rows.
fn add_column(
    array: &ArrayRef,
    seed: Words,
    rows: &mut [Words],
    values: &mut Vec<Words>,
) -> Result<()> {
    match array.data_type() {
        DataType::Int8 => add_integers::<Int8Type>(array, seed, rows),
        DataType::Int16 => add_integers::<Int16Type>(array, seed, rows),
        DataType::Int32 => add_integers::<Int32Type>(array, seed, rows),
        DataType::Int64 => add_integers::<Int64Type>(array, seed, rows),
        DataType::Date32 => add_integers::<Date32Type>(array, seed, rows),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            add_integers::<TimestampMillisecondType>(array, seed, rows);
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            add_integers::<TimestampMicrosecondType>(array, seed, rows);
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            add_integers::<TimestampNanosecondType>(array, seed, rows);
        }
        DataType::UInt8 => add_unsigned::<UInt8Type>(array, seed, rows),
        DataType::UInt16 => add_unsigned::<UInt16Type>(array, seed, rows),
        DataType::UInt32 => add_unsigned::<UInt32Type>(array, seed, rows),
        DataType::UInt64 => add_unsigned::<UInt64Type>(array, seed, rows),
        DataType::Boolean => {
            let values = array.as_boolean().values().iter();
            add_values(values.map(|value| Words(u64::from(value), 0)), array.nulls(), seed, rows);
        }
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>().values().iter();
            let values = values.map(|value| float(f64::from(*value)));
            add_values(values, array.nulls(), seed, rows);
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>().values().iter();
            add_values(values.map(|value| float(*value)), array.nulls(), seed, rows);
        }
        DataType::Decimal128(..) => {
            let values = array.as_primitive::<Decimal128Type>().values().iter();
            add_values(values.map(|value| signed(*value)), array.nulls(), seed, rows);
        }
        DataType::Utf8View => add_texts(array.as_string_view(), seed, rows),
        _ => {
            values.clear();
            push_values(array, values)?;
            for (row, value) in rows.iter_mut().zip(values) {
                add(row, cell(*value, seed));
            }
        }
    }
    Ok(())
}

fn add_integers<T>(array: &ArrayRef, seed: Words, rows: &mut [Words])
where
    T: ArrowPrimitiveType,
    i64: From<T::Native>,
{
    let values = array.as_primitive::<T>().values().iter();
    let values = values.map(|value| signed(i128::from(i64::from(*value))));
    add_values(values, array.nulls(), seed, rows);
}

fn add_unsigned<T>(array: &ArrayRef, seed: Words, rows: &mut [Words])
where
    T: ArrowPrimitiveType,
    u64: From<T::Native>,
{
    let values = array.as_primitive::<T>().values().iter();
    add_values(values.map(|value| Words(u64::from(*value), 0)), array.nulls(), seed, rows);
}

#[inline]
fn add_values(
    values: impl Iterator<Item = Words>,
    nulls: Option<&NullBuffer>,
    seed: Words,
    rows: &mut [Words],
) {
    match nulls.filter(|nulls| nulls.null_count() > 0) {
        None => {
            for (row, value) in rows.iter_mut().zip(values) {
                add(row, cell(value, seed));
            }
        }
        Some(nulls) => {
            for ((row, value), valid) in rows.iter_mut().zip(values).zip(nulls) {
                let low = select_unpredictable(valid, value.0, NULL.0);
                let high = select_unpredictable(valid, value.1, NULL.1);
                add(row, cell(Words(low, high), seed));
            }
        }
    }
}

/// Cells kept of short texts: columns of few different ones are common.
const KEPT: usize = 256;

/// Adds texts. Those of up to 12 bytes lie in their views, so that the same view is the same text.
fn add_texts(array: &StringViewArray, seed: Words, rows: &mut [Words]) {
    let mut kept = [(0_u128, Words(0, 0)); KEPT];
    // A view of zeros is the empty text.
    kept[0].1 = cell(words_of(b""), seed);
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    let null = cell(NULL, seed);
    for (at, (row, view)) in rows.iter_mut().zip(array.views()).enumerate() {
        if nulls.is_some_and(|nulls| nulls.is_null(at)) {
            add(row, null);
            continue;
        }
        let place = kept_place(*view);
        let (known, of_known) = kept[place];
        if known == *view {
            add(row, of_known);
            continue;
        }
        let of_value = cell(words_of(array.value(at).as_bytes()), seed);
        if text_views::length(*view) <= text_views::LONGEST {
            kept[place] = (*view, of_value);
        }
        add(row, of_value);
    }
}

/// Where a view's cell is kept.
#[inline]
fn kept_place(view: u128) -> usize {
    let Words(low, high) = split(view);
    usize::try_from((low ^ high).wrapping_mul(ROW[0]) >> 56).unwrap_or(0)
}

#[inline]
fn add(row: &mut Words, cell: Words) {
    row.0 = row.0.wrapping_add(cell.0);
    row.1 = row.1.wrapping_add(cell.1);
}

/// Both halves of a product of 128 bits.
#[inline]
fn product(a: u64, b: u64) -> Words {
    split(u128::from(a) * u128::from(b))
}

#[inline]
fn cell(value: Words, seed: Words) -> Words {
    let Words(low, high) = product(value.0 ^ seed.0, value.1 ^ seed.1);
    Words(low ^ high, low.rotate_left(32).wrapping_sub(high ^ low >> 29))
}

/// The hash of a row, from the sums of its cells.
#[inline]
fn bind(row: Words) -> u128 {
    let low = product(row.0 ^ ROW[0], row.1 ^ ROW[1]);
    let high = product(row.0.rotate_left(32) ^ ROW[2], row.1.wrapping_add(ROW[3]));
    u128::from(low.0 ^ low.1) | u128::from(high.0 ^ high.1) << 64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use arrow::array::{Decimal128Array, Decimal256Array, Int64Array, StringArray};
    use arrow::datatypes::{Field, i256};

    use super::*;

    fn hashes(array: ArrayRef) -> Vec<u128> {
        let field = Field::new("c", array.data_type().clone(), true);
        let schema = Arc::new(Schema::new(vec![field]));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![array]).unwrap();
        let mut found = Vec::new();
        RowHasher::new(&schema).unwrap().hash(&batch, |hash| found.push(hash)).unwrap();
        found
    }

    #[test]
    fn a_text_has_one_hash_whether_it_is_a_view_or_not_and_however_often_it_comes() {
        let texts: Vec<Option<String>> = (0..4_000_u32)
            .map(|n| match n % 7 {
                0 => None,
                1 => Some(String::new()),
                2 => Some("x".repeat((n % 30) as usize)),
                3 => Some(format!("{:012}", n % 600)),
                4 => Some(format!("{:013}", n % 600)),
                5 => Some("\0".repeat((n % 4) as usize)),
                _ => Some(format!("{n}")),
            })
            .collect();
        let plain = StringArray::from_iter(texts.iter().map(Option::as_deref));
        let views = StringViewArray::from_iter(texts.iter().map(Option::as_deref));
        assert_eq!(hashes(Arc::new(plain)), hashes(Arc::new(views)));
    }

    /// Values that have a path of their own, in a list: there they take the general one.
    #[test]
    fn a_value_has_one_hash_by_its_own_path_and_by_the_general_one() {
        let texts = ["0", "1", "7", "100", "-1", "0.5", "true", "255", "65535", "4294967295"];
        let texts: ArrayRef =
            Arc::new(StringArray::from_iter(texts.iter().map(Some).chain([None])));
        for data_type in [
            DataType::Boolean,
            DataType::Int8,
            DataType::Int16,
            DataType::Int32,
            DataType::Int64,
            DataType::UInt8,
            DataType::UInt16,
            DataType::UInt32,
            DataType::UInt64,
            DataType::Float32,
            DataType::Float64,
            DataType::Decimal128(12, 1),
        ] {
            let values = arrow::compute::cast(&texts, &data_type).unwrap();
            assert!(values.null_count() < 9, "{data_type}");
            let mut general = Vec::new();
            push_values(&values, &mut general).unwrap();
            let seed = Words(3, 5);
            let mut expected = vec![Words(0, 0); values.len()];
            for (row, value) in expected.iter_mut().zip(general) {
                add(row, cell(value, seed));
            }
            let mut ours = vec![Words(0, 0); values.len()];
            add_column(&values, seed, &mut ours, &mut Vec::new()).unwrap();
            assert_eq!(ours, expected, "{data_type}");
        }
    }

    /// Small numbers and neighbours are what real columns hold, and where products could repeat.
    #[test]
    fn no_two_rows_of_a_grid_of_small_numbers_share_half_a_hash() {
        for (columns, side) in [(1_u32, 250_000_i64), (2, 500), (3, 63), (4, 22), (8, 4)] {
            let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
            let rows = side.pow(columns);
            let arrays = (0..columns).map(|column| {
                let digits = (0..rows).map(|row| row / side.pow(column) % side - side / 2);
                Arc::new(Int64Array::from_iter_values(digits)) as ArrayRef
            });
            let batch = RecordBatch::try_from_iter(names.iter().zip(arrays)).unwrap();
            let (mut low, mut high) = (BTreeSet::new(), BTreeSet::new());
            let mut hasher = RowHasher::new(&batch.schema()).unwrap();
            hasher
                .hash(&batch, |hash| {
                    let Words(of_low, of_high) = split(hash);
                    low.insert(of_low);
                    high.insert(of_high);
                })
                .unwrap();
            assert_eq!((low.len(), high.len()), (batch.num_rows(), batch.num_rows()), "{columns}");
        }
    }

    /// Each row swapped with its neighbour in one column: no pair keeps its sum.
    #[test]
    fn values_swapped_between_two_rows_change_their_sum() {
        let first: Vec<i64> = (0..100_000).collect();
        let second: Vec<i64> = first.iter().map(|n| n * 37 % 1_000).collect();
        let swapped: Vec<i64> = second.chunks(2).flat_map(|two| [two[1], two[0]]).collect();
        let sums = |second: Vec<i64>| {
            let first: ArrayRef = Arc::new(Int64Array::from(first.clone()));
            let second: ArrayRef = Arc::new(Int64Array::from(second));
            let batch = RecordBatch::try_from_iter([("a", first), ("b", second)]).unwrap();
            let mut found = Vec::new();
            let mut hasher = RowHasher::new(&batch.schema()).unwrap();
            hasher.hash(&batch, |hash| found.push(hash)).unwrap();
            found.chunks(2).map(|two| two[0].wrapping_add(two[1])).collect::<Vec<_>>()
        };
        for (before, after) in sums(second).into_iter().zip(sums(swapped)) {
            let (Words(low, high), Words(new_low, new_high)) = (split(before), split(after));
            assert!(low != new_low && high != new_high);
        }
    }

    #[test]
    fn a_decimal_has_one_hash_in_any_width() {
        let edge = i128::from(u64::MAX);
        let values =
            [0, 1, -1, edge, -edge, edge + 1, -edge - 1, i128::from(i64::MIN), 10_i128.pow(37)];
        let values: Vec<Option<i128>> = values.into_iter().map(Some).chain([None]).collect();
        let narrow = Decimal128Array::from(values.clone()).with_precision_and_scale(38, 3).unwrap();
        let wide = values.iter().map(|value| value.map(i256::from_i128));
        let wide = Decimal256Array::from_iter(wide).with_precision_and_scale(40, 3).unwrap();
        assert_eq!(hashes(Arc::new(narrow)), hashes(Arc::new(wide)));
    }
}
