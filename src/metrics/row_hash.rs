//! A hash of each row: the cells of its values, summed and mixed. The rules are those of
//! [`super::digest`].

use arrow::array::{Array as _, ArrayRef, ArrowPrimitiveType, AsArray as _, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    DataType, Date32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Schema, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
};

use super::words::{NULL, Words, class_of, float, push_values, words_of};
use crate::error::Result;

/// An odd constant (the golden ratio) for the row's second word.
const K: u64 = 0x9e37_79b9_7f4a_7c15;

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
            let low = mix(row.0 ^ row.1.rotate_left(17));
            let high = mix(row.1.wrapping_add(K.wrapping_mul(row.0)));
            see(u128::from(low) | u128::from(high) << 64);
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
        DataType::Float64 => {
            let words = array.as_primitive::<Float64Type>().values().iter();
            add_narrow(words.map(|value| (float(*value).0, false)), array.nulls(), seed, rows);
        }
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
    let values = array.as_primitive::<T>().values().iter().map(|value| {
        let value = i64::from(*value);
        (value.cast_unsigned(), value < 0)
    });
    add_narrow(values, array.nulls(), seed, rows);
}

/// Adds values of 64 bits: the high word is one of two, so its half of the cell is known.
#[inline]
fn add_narrow(
    values: impl Iterator<Item = (u64, bool)>,
    nulls: Option<&NullBuffer>,
    seed: Words,
    rows: &mut [Words],
) {
    let high = |word: u64| {
        Words(mix(word ^ seed.0.rotate_left(32)), mix(word.wrapping_add(seed.1.rotate_left(32))))
    };
    let (positive, negative) = (high(0), high(u64::MAX));
    let cell_of = |low: u64, is_negative: bool| {
        let high = if is_negative { negative } else { positive };
        Words(mix(low ^ seed.0).wrapping_add(high.0), mix(low.wrapping_add(seed.1)) ^ high.1)
    };
    match nulls.filter(|nulls| nulls.null_count() > 0) {
        None => {
            for (row, (low, is_negative)) in rows.iter_mut().zip(values) {
                add(row, cell_of(low, is_negative));
            }
        }
        Some(nulls) => {
            let null = cell(NULL, seed);
            for ((row, (low, is_negative)), valid) in rows.iter_mut().zip(values).zip(nulls) {
                add(row, if valid { cell_of(low, is_negative) } else { null });
            }
        }
    }
}

#[inline]
fn add(row: &mut Words, cell: Words) {
    row.0 = row.0.wrapping_add(cell.0);
    row.1 = row.1.wrapping_add(cell.1);
}

#[inline]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[inline]
fn cell(value: Words, seed: Words) -> Words {
    Words(
        mix(value.0 ^ seed.0).wrapping_add(mix(value.1 ^ seed.0.rotate_left(32))),
        mix(value.0.wrapping_add(seed.1)) ^ mix(value.1.wrapping_add(seed.1.rotate_left(32))),
    )
}
