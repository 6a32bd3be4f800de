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
            if part.nullable {
                let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
                for (row, key) in into.iter_mut().enumerate() {
                    let is_there = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                    *key = *key << 1 | u128::from(is_there);
                }
            }
            push(array, part.width, &mut into)?;
            if let Some(nulls) = array.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
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

fn push(array: &ArrayRef, width: u32, into: &mut [u128]) -> Result<()> {
    match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean().values();
            into.iter_mut().enumerate().for_each(|(row, key)| {
                *key = *key << 1 | u128::from(values.value(row));
            });
        }
        DataType::FixedSizeBinary(_) => {
            let values = array.as_fixed_size_binary();
            for (row, key) in into.iter_mut().enumerate() {
                let bytes = values.value(row).iter();
                // A whole key of 16 bytes leaves nothing to shift.
                let above = key.checked_shl(width).unwrap_or(0);
                *key = above | bytes.fold(0, |sum, byte| sum << 8 | u128::from(*byte));
            }
        }
        _ => push_primitive(array, into)?,
    }
    Ok(())
}

/// Signed integers with their sign turned, so that they compare as unsigned ones.
fn signed<T>(array: &ArrayRef, into: &mut [u128])
where
    T: ArrowPrimitiveType,
    i64: From<T::Native>,
{
    let width = u32::try_from(size_of::<T::Native>() * 8).unwrap_or(64);
    let turn = 1_u64 << (width - 1);
    let mask = u64::MAX >> (64 - width);
    let values: &PrimitiveArray<T> = array.as_primitive();
    for (key, value) in into.iter_mut().zip(values.values()) {
        let bits = (i64::from(*value).cast_unsigned() & mask) ^ turn;
        *key = *key << width | u128::from(bits);
    }
}

fn unsigned<T>(array: &ArrayRef, into: &mut [u128])
where
    T: ArrowPrimitiveType,
    u128: From<T::Native>,
{
    let width = size_of::<T::Native>() * 8;
    let values: &PrimitiveArray<T> = array.as_primitive();
    for (key, value) in into.iter_mut().zip(values.values()) {
        *key = *key << width | u128::from(*value);
    }
}

fn push_primitive(array: &ArrayRef, into: &mut [u128]) -> Result<()> {
    match array.data_type() {
        DataType::Int8 => signed::<Int8Type>(array, into),
        DataType::Int16 => signed::<Int16Type>(array, into),
        DataType::Int32 => signed::<Int32Type>(array, into),
        DataType::Int64 => signed::<Int64Type>(array, into),
        DataType::UInt8 => unsigned::<UInt8Type>(array, into),
        DataType::UInt16 => unsigned::<UInt16Type>(array, into),
        DataType::UInt32 => unsigned::<UInt32Type>(array, into),
        DataType::UInt64 => unsigned::<UInt64Type>(array, into),
        DataType::Date32 => signed::<Date32Type>(array, into),
        DataType::Date64 => signed::<Date64Type>(array, into),
        DataType::Time32(TimeUnit::Second) => signed::<Time32SecondType>(array, into),
        DataType::Time32(_) => signed::<Time32MillisecondType>(array, into),
        DataType::Time64(TimeUnit::Microsecond) => signed::<Time64MicrosecondType>(array, into),
        DataType::Time64(_) => signed::<Time64NanosecondType>(array, into),
        DataType::Timestamp(TimeUnit::Second, _) => signed::<TimestampSecondType>(array, into),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            signed::<TimestampMillisecondType>(array, into);
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            signed::<TimestampMicrosecondType>(array, into);
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            signed::<TimestampNanosecondType>(array, into);
        }
        DataType::Duration(TimeUnit::Second) => signed::<DurationSecondType>(array, into),
        DataType::Duration(TimeUnit::Millisecond) => signed::<DurationMillisecondType>(array, into),
        DataType::Duration(TimeUnit::Microsecond) => signed::<DurationMicrosecondType>(array, into),
        DataType::Duration(TimeUnit::Nanosecond) => signed::<DurationNanosecondType>(array, into),
        DataType::Float32 => {
            for (key, value) in into.iter_mut().zip(array.as_primitive::<Float32Type>().values()) {
                let bits = if value.is_nan() { f32::NAN } else { *value }.to_bits();
                let turned = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
                *key = *key << 32 | u128::from(turned);
            }
        }
        DataType::Float64 => {
            for (key, value) in into.iter_mut().zip(array.as_primitive::<Float64Type>().values()) {
                let bits = if value.is_nan() { f64::NAN } else { *value }.to_bits();
                let turned = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
                *key = *key << 64 | u128::from(turned);
            }
        }
        other => return Err(Error::internal(format!("keys of {other} are not packed"))),
    }
    Ok(())
}
