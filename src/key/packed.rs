//! Keys of fixed width in one integer of 128 bits.

use arrow::array::{Array as _, ArrayRef, AsArray as _, PrimitiveArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Date64Type, DurationMicrosecondType,
    DurationMillisecondType, DurationNanosecondType, DurationSecondType, Field, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use crate::error::{Error, Result};

/// Which bits each column takes, the first column's the highest.
#[derive(Debug)]
pub(super) struct Packing {
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    /// Bits of a value.
    width: u32,
    /// Whether one more bit says that there is a value: a null is less than any.
    nullable: bool,
}

impl Packing {
    /// A packing of these columns, when all are of fixed width and fit.
    pub(super) fn of(fields: &[&Field]) -> Option<Self> {
        let parts: Option<Vec<Part>> = fields
            .iter()
            .map(|field| {
                Some(Part { width: width_of(field.data_type())?, nullable: field.is_nullable() })
            })
            .collect();
        let parts = parts?;
        let bits: u32 = parts.iter().map(|part| part.width + u32::from(part.nullable)).sum();
        (bits <= u128::BITS && !parts.is_empty()).then_some(Self { parts })
    }

    pub(super) fn pack(&self, arrays: &[ArrayRef], rows: usize) -> Result<Vec<u128>> {
        let mut into = vec![0_u128; rows];
        for (part, array) in self.parts.iter().zip(arrays) {
            let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
            // The bit that says that there is a value comes with the value, where all have one.
            let all_there = part.nullable && nulls.is_none();
            if part.nullable && !all_there {
                for (row, key) in into.iter_mut().enumerate() {
                    let is_there = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                    *key = *key << 1 | u128::from(is_there);
                }
            }
            push(array, part.width, all_there, &mut into)?;
            if let Some(nulls) = nulls {
                // What lies below a null is anything: all nulls are one key.
                let mask = !low_bits(part.width);
                for (row, key) in into.iter_mut().enumerate() {
                    if nulls.is_null(row) {
                        *key &= mask;
                    }
                }
            }
        }
        Ok(into)
    }
}

fn low_bits(width: u32) -> u128 {
    1_u128.checked_shl(width).map_or(u128::MAX, |bit| bit - 1)
}

/// Bits of a type's values; none: its keys are not packed.
fn width_of(data_type: &DataType) -> Option<u32> {
    Some(match data_type {
        DataType::Boolean => 1,
        DataType::FixedSizeBinary(bytes) => {
            u32::try_from(*bytes).ok().filter(|bytes| *bytes <= 16)? * 8
        }
        // A decimal's stored integer may be greater than its precision says.
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..)
        | DataType::Float16
        | DataType::Interval(_) => return None,
        other => u32::try_from(other.primitive_width()? * 8).ok()?,
    })
}

/// What is above a value: the key so far, and a bit that says that there is one (`marked`).
#[inline]
fn above(key: u128, width: u32, marked: bool) -> u128 {
    let key = if marked { key << 1 | 1 } else { key };
    // A whole key of 16 bytes leaves nothing to shift.
    key.checked_shl(width).unwrap_or(0)
}

fn push(array: &ArrayRef, width: u32, marked: bool, into: &mut [u128]) -> Result<()> {
    match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean().values().iter();
            each(into, values.map(u128::from), 1, marked);
        }
        DataType::FixedSizeBinary(_) => {
            let values = array.as_fixed_size_binary();
            let values = (0..values.len()).map(|row| {
                values.value(row).iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte))
            });
            each(into, values, width, marked);
        }
        _ => push_primitive(array, marked, into)?,
    }
    Ok(())
}

#[inline]
fn each(into: &mut [u128], values: impl Iterator<Item = u128>, width: u32, marked: bool) {
    if marked {
        into.iter_mut()
            .zip(values)
            .for_each(|(key, value)| *key = above(*key, width, true) | value);
    } else {
        into.iter_mut()
            .zip(values)
            .for_each(|(key, value)| *key = above(*key, width, false) | value);
    }
}

/// Signed integers with their sign turned, so that they compare as unsigned ones.
fn signed<T>(array: &ArrayRef, marked: bool, into: &mut [u128])
where
    T: ArrowPrimitiveType,
    i64: From<T::Native>,
{
    let width = bits_of::<T>();
    let turn = 1_u64 << (width - 1);
    let mask = u64::MAX >> (64 - width);
    let values: &PrimitiveArray<T> = array.as_primitive();
    let turned = |value: &T::Native| (i64::from(*value).cast_unsigned() & mask) ^ turn;
    each(into, values.values().iter().map(|value| u128::from(turned(value))), width, marked);
}

fn unsigned<T>(array: &ArrayRef, marked: bool, into: &mut [u128])
where
    T: ArrowPrimitiveType,
    u128: From<T::Native>,
{
    let values: &PrimitiveArray<T> = array.as_primitive();
    each(into, values.values().iter().map(|value| u128::from(*value)), bits_of::<T>(), marked);
}

fn bits_of<T: ArrowPrimitiveType>() -> u32 {
    u32::try_from(size_of::<T::Native>() * 8).unwrap_or(64)
}

fn push_primitive(array: &ArrayRef, marked: bool, into: &mut [u128]) -> Result<()> {
    match array.data_type() {
        DataType::Int8 => signed::<Int8Type>(array, marked, into),
        DataType::Int16 => signed::<Int16Type>(array, marked, into),
        DataType::Int32 => signed::<Int32Type>(array, marked, into),
        DataType::Int64 => signed::<Int64Type>(array, marked, into),
        DataType::UInt8 => unsigned::<UInt8Type>(array, marked, into),
        DataType::UInt16 => unsigned::<UInt16Type>(array, marked, into),
        DataType::UInt32 => unsigned::<UInt32Type>(array, marked, into),
        DataType::UInt64 => unsigned::<UInt64Type>(array, marked, into),
        DataType::Date32 => signed::<Date32Type>(array, marked, into),
        DataType::Date64 => signed::<Date64Type>(array, marked, into),
        DataType::Time32(TimeUnit::Second) => signed::<Time32SecondType>(array, marked, into),
        DataType::Time32(_) => signed::<Time32MillisecondType>(array, marked, into),
        DataType::Time64(TimeUnit::Microsecond) => {
            signed::<Time64MicrosecondType>(array, marked, into);
        }
        DataType::Time64(_) => signed::<Time64NanosecondType>(array, marked, into),
        DataType::Timestamp(TimeUnit::Second, _) => {
            signed::<TimestampSecondType>(array, marked, into);
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            signed::<TimestampMillisecondType>(array, marked, into);
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            signed::<TimestampMicrosecondType>(array, marked, into);
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            signed::<TimestampNanosecondType>(array, marked, into);
        }
        DataType::Duration(TimeUnit::Second) => signed::<DurationSecondType>(array, marked, into),
        DataType::Duration(TimeUnit::Millisecond) => {
            signed::<DurationMillisecondType>(array, marked, into);
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            signed::<DurationMicrosecondType>(array, marked, into);
        }
        DataType::Duration(TimeUnit::Nanosecond) => {
            signed::<DurationNanosecondType>(array, marked, into);
        }
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>().values().iter();
            let turned = values.map(|value| {
                let bits = if value.is_nan() { f32::NAN } else { *value }.to_bits();
                u128::from(if bits >> 31 == 1 { !bits } else { bits | 1 << 31 })
            });
            each(into, turned, 32, marked);
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>().values().iter();
            let turned = values.map(|value| {
                let bits = if value.is_nan() { f64::NAN } else { *value }.to_bits();
                u128::from(if bits >> 63 == 1 { !bits } else { bits | 1 << 63 })
            });
            each(into, turned, 64, marked);
        }
        other => return Err(Error::internal(format!("keys of {other} are not packed"))),
    }
    Ok(())
}
