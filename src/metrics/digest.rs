//! The content digest: the same for the same rows, however they are ordered, cut or stored.
//!
//! Version 1, in full (docs/format.md has the test vectors):
//!
//! * `mix(x)` is the finalizer of splitmix64; all arithmetic wraps.
//! * A column's seed is XXH3-128 of `name 0x00 class`; its low and high halves are `s0`, `s1`.
//!   Classes are `int`, `float`, `decimal:SCALE`, `bool`, `text`, `bytes`, `date`, … : what a value
//!   means, not how wide it is stored.
//! * A value is two words `v0`, `v1`: an integer's two's complement in 128 bits; a double's bits
//!   with every NaN as `7ff8000000000000` (−0.0 keeps its sign); XXH3-128 of a text's or binary's
//!   bytes; of a nested value, XXH3-128 of its parts' words with their count before them. Null is a
//!   word pair of its own.
//! * A cell is `c0 = mix(v0 ^ s0) + mix(v1 ^ rotl(s0, 32))`, `c1 = mix(v0 + s1) ^ mix(v1 +
//!   rotl(s1, 32))`.
//! * A row is the sum of its cells, mixed again: `mix(r0 ^ rotl(r1, 17))`, `mix(r1 + K·r0)`.
//!   Mixing the row binds its cells together: values swapped between two rows are seen.
//! * The digest is the sum of all rows modulo 2^128, and their number: `d1:ROWS:SUM`.
//!
//! It answers "is anything different?". It authorises nothing: sums can be forged on purpose.

use std::fmt;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, PrimitiveArray, RecordBatch, downcast_primitive_array,
};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal256Type, Float16Type, Float32Type, Float64Type, Schema,
    TimeUnit,
};
use xxhash_rust::xxh3::xxh3_128;

use crate::error::{Error, ErrorKind, Result};

/// Null: no integer of 64 bits has this high word.
const NULL: Words = Words(0x6e75_6c6c_6e75_6c6c, 0x9e37_79b9_7f4a_7c15);

/// An odd constant (the golden ratio) for the row's second word.
const K: u64 = 0x9e37_79b9_7f4a_7c15;

/// A value or cell as two words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Words(u64, u64);

/// A digest of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContentDigest {
    rows: u64,
    sum: u128,
}

impl fmt::Display for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "d1:{}:{:032x}", self.rows, self.sum)
    }
}

/// Sees batches.
#[derive(Debug)]
pub(super) struct DigestMeter {
    seeds: Vec<Words>,
    digest: ContentDigest,
    rows: Vec<Words>,
    values: Vec<Words>,
}

impl DigestMeter {
    pub(super) fn new(schema: &Schema) -> Result<Self> {
        let seeds = schema.fields().iter().map(|field| {
            let class =
                class_of(field.data_type()).map_err(|error| error.with("column", field.name()))?;
            Ok(words_of(format!("{}\0{class}", field.name()).as_bytes()))
        });
        Ok(Self {
            seeds: seeds.collect::<Result<_>>()?,
            digest: ContentDigest::default(),
            rows: Vec::new(),
            values: Vec::new(),
        })
    }

    pub(super) fn update(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows.clear();
        self.rows.resize(batch.num_rows(), Words(0, 0));
        for (seed, array) in self.seeds.iter().zip(batch.columns()) {
            self.values.clear();
            push_values(array, &mut self.values)?;
            for (row, value) in self.rows.iter_mut().zip(&self.values) {
                let cell = cell(*value, *seed);
                row.0 = row.0.wrapping_add(cell.0);
                row.1 = row.1.wrapping_add(cell.1);
            }
        }
        for row in &self.rows {
            let low = mix(row.0 ^ row.1.rotate_left(17));
            let high = mix(row.1.wrapping_add(K.wrapping_mul(row.0)));
            let mixed = u128::from(low) | u128::from(high) << 64;
            self.digest.sum = self.digest.sum.wrapping_add(mixed);
        }
        self.digest.rows += batch.num_rows() as u64;
        Ok(())
    }

    pub(super) fn digest(&self) -> ContentDigest {
        self.digest
    }
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

fn words_of(bytes: &[u8]) -> Words {
    split(xxh3_128(bytes))
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves are what is wanted")]
fn split(value: u128) -> Words {
    Words(value as u64, (value >> 64) as u64)
}

#[expect(clippy::cast_sign_loss, reason = "two's complement is what is wanted")]
fn signed(value: i128) -> Words {
    split(value as u128)
}

/// What a type's values mean.
fn class_of(data_type: &DataType) -> Result<String> {
    let unit = |unit: &TimeUnit| match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    };
    Ok(match data_type {
        DataType::Null => "null".to_owned(),
        DataType::Boolean => "bool".to_owned(),
        other if other.is_integer() => "int".to_owned(),
        other if other.is_floating() => "float".to_owned(),
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => format!("decimal:{scale}"),
        DataType::Utf8 | DataType::LargeUtf8 => "text".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_) => {
            "bytes".to_owned()
        }
        DataType::Date32 => "date".to_owned(),
        DataType::Date64 => "date:ms".to_owned(),
        DataType::Time32(of) | DataType::Time64(of) => format!("time:{}", unit(of)),
        DataType::Duration(of) => format!("duration:{}", unit(of)),
        DataType::Timestamp(of, None) => format!("wall:{}", unit(of)),
        DataType::Timestamp(of, Some(_)) => format!("instant:{}", unit(of)),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            format!("list<{}>", class_of(item.data_type())?)
        }
        DataType::Struct(fields) => {
            let parts: Result<Vec<String>> = fields
                .iter()
                .map(|field| Ok(format!("{}:{}", field.name(), class_of(field.data_type())?)))
                .collect();
            format!("struct<{}>", parts?.join(","))
        }
        DataType::Map(entries, _) => format!("map<{}>", class_of(entries.data_type())?),
        other => {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("columns of type {other} are not supported"),
            )
            .hint("cast the column to another type in the SQL"));
        }
    })
}

/// Appends each row's words.
fn push_values(array: &ArrayRef, into: &mut Vec<Words>) -> Result<()> {
    let start = into.len();
    match array.data_type() {
        DataType::Null => into.resize(start + array.len(), NULL),
        DataType::Boolean => {
            into.extend(array.as_boolean().values().iter().map(|value| Words(u64::from(value), 0)));
        }
        DataType::Float16 => {
            let values = array.as_primitive::<Float16Type>().values().iter();
            into.extend(values.map(|value| float(value.to_f64())));
        }
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>().values().iter();
            into.extend(values.map(|value| float(f64::from(*value))));
        }
        DataType::Float64 => {
            into.extend(array.as_primitive::<Float64Type>().values().iter().map(|v| float(*v)));
        }
        DataType::Decimal256(_, _) => {
            let values = array.as_primitive::<Decimal256Type>().values().iter();
            into.extend(values.map(|value| match value.to_i128() {
                Some(value) => signed(value),
                None => words_of(&value.to_le_bytes()),
            }));
        }
        DataType::Utf8 => {
            push_bytes(array.as_string::<i32>().iter().map(|v| v.map(str::as_bytes)), into);
        }
        DataType::LargeUtf8 => {
            push_bytes(array.as_string::<i64>().iter().map(|v| v.map(str::as_bytes)), into);
        }
        DataType::Binary => push_bytes(array.as_binary::<i32>().iter(), into),
        DataType::LargeBinary => push_bytes(array.as_binary::<i64>().iter(), into),
        DataType::FixedSizeBinary(_) => push_bytes(array.as_fixed_size_binary().iter(), into),
        _ if array.data_type().is_nested() => push_nested(array, into)?,
        _ => downcast_primitive_array! {
            array => push_integers(array, into),
            other => return Err(Error::internal(format!("no digest of {other}")))
        },
    }
    if let Some(nulls) = array.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
        for (row, value) in into[start..].iter_mut().enumerate() {
            if nulls.is_null(row) {
                *value = NULL;
            }
        }
    }
    Ok(())
}

fn float(value: f64) -> Words {
    Words(if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() }, 0)
}

fn push_bytes<'a>(values: impl Iterator<Item = Option<&'a [u8]>>, into: &mut Vec<Words>) {
    into.extend(values.map(|value| value.map_or(NULL, words_of)));
}

/// Integers, dates, times, timestamps, durations and decimals up to 128 bits.
fn push_integers<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, into: &mut Vec<Words>)
where
    T::Native: Integral,
{
    into.extend(array.values().iter().map(|value| value.words()));
}

/// Native values as 128-bit two's complement.
trait Integral: Copy {
    fn words(self) -> Words;
}

macro_rules! integral {
    ($($native:ty),*) => {
        $(impl Integral for $native {
            #[inline]
            fn words(self) -> Words {
                signed(i128::from(self))
            }
        })*
    };
}

integral!(i8, i16, i32, i64, i128, u8, u16, u32, u64);

macro_rules! not_integral {
    ($($native:ty),*) => {
        // Types that `push_values` has taken before, or that `class_of` refuses.
        $(impl Integral for $native {
            fn words(self) -> Words {
                NULL
            }
        })*
    };
}

not_integral!(
    f32,
    f64,
    half::f16,
    arrow::datatypes::i256,
    arrow::datatypes::IntervalDayTime,
    arrow::datatypes::IntervalMonthDayNano
);

/// Lists, structs and maps: the hash of their parts' words, with their count before them.
fn push_nested(array: &ArrayRef, into: &mut Vec<Words>) -> Result<()> {
    match array.data_type() {
        DataType::Struct(_) => {
            let columns = array.as_struct().columns();
            let mut parts = vec![Vec::new(); columns.len()];
            for (column, part) in columns.iter().zip(&mut parts) {
                push_values(column, part)?;
            }
            for row in 0..array.len() {
                into.push(hash_parts(parts.iter().map(|part| part[row])));
            }
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let offsets =
                list.value_offsets().iter().map(|at| usize::try_from(*at).unwrap_or_default());
            push_slices(list.values(), &offsets.collect::<Vec<_>>(), false, into)?;
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            let offsets =
                list.value_offsets().iter().map(|at| usize::try_from(*at).unwrap_or_default());
            push_slices(list.values(), &offsets.collect::<Vec<_>>(), false, into)?;
        }
        DataType::FixedSizeList(_, size) => {
            let list = array.as_fixed_size_list();
            let size = usize::try_from(*size).unwrap_or_default();
            let offsets: Vec<usize> = (0..=list.len()).map(|row| row * size).collect();
            push_slices(list.values(), &offsets, false, into)?;
        }
        _ => {
            let map = array.as_map();
            let offsets =
                map.value_offsets().iter().map(|at| usize::try_from(*at).unwrap_or_default());
            let entries: ArrayRef = std::sync::Arc::new(map.entries().clone());
            // Maps that differ only in the order of their entries are equal.
            push_slices(&entries, &offsets.collect::<Vec<_>>(), true, into)?;
        }
    }
    Ok(())
}

fn push_slices(
    values: &ArrayRef,
    offsets: &[usize],
    sorted: bool,
    into: &mut Vec<Words>,
) -> Result<()> {
    let mut parts = Vec::new();
    push_values(values, &mut parts)?;
    for bounds in offsets.windows(2) {
        let slice = &mut parts[bounds[0]..bounds[1]];
        if sorted {
            slice.sort_unstable_by_key(|words| (words.0, words.1));
        }
        into.push(hash_parts(slice.iter().copied()));
    }
    Ok(())
}

fn hash_parts(parts: impl ExactSizeIterator<Item = Words>) -> Words {
    let mut bytes = Vec::with_capacity(8 + 16 * parts.len());
    bytes.extend_from_slice(&(parts.len() as u64).to_le_bytes());
    for part in parts {
        bytes.extend_from_slice(&part.0.to_le_bytes());
        bytes.extend_from_slice(&part.1.to_le_bytes());
    }
    words_of(&bytes)
}
