//! Numbers of any type as something to subtract: exactly where they are whole in some unit.

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray as _};
use arrow::buffer::ScalarBuffer;
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};

/// The values of an array of numbers or times; what lies below a null is anything.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Numbers {
    /// Whole numbers of `10^-scale`.
    Fixed {
        /// How many of the unit.
        values: ScalarBuffer<i128>,
        /// Decimal places of the unit.
        scale: i8,
    },
    /// Doubles.
    Float(ScalarBuffer<f64>),
}

impl Numbers {
    /// The numbers of an array; none: its type has none. Those of 128 bits and doubles are not
    /// copied.
    pub(crate) fn of(array: &ArrayRef) -> Option<Self> {
        let fixed = |values| Some(Self::Fixed { values, scale: 0 });
        match array.data_type() {
            DataType::Int8 => fixed(whole::<Int8Type>(array)),
            DataType::Int16 => fixed(whole::<Int16Type>(array)),
            DataType::Int32 => fixed(whole::<Int32Type>(array)),
            DataType::Int64 => fixed(whole::<Int64Type>(array)),
            DataType::UInt8 => fixed(whole::<UInt8Type>(array)),
            DataType::UInt16 => fixed(whole::<UInt16Type>(array)),
            DataType::UInt32 => fixed(whole::<UInt32Type>(array)),
            DataType::UInt64 => fixed(whole::<UInt64Type>(array)),
            DataType::Date32 => fixed(whole::<Date32Type>(array)),
            DataType::Date64 => fixed(whole::<Date64Type>(array)),
            DataType::Timestamp(unit, _) => fixed(match unit {
                TimeUnit::Second => whole::<TimestampSecondType>(array),
                TimeUnit::Millisecond => whole::<TimestampMillisecondType>(array),
                TimeUnit::Microsecond => whole::<TimestampMicrosecondType>(array),
                TimeUnit::Nanosecond => whole::<TimestampNanosecondType>(array),
            }),
            DataType::Decimal32(_, scale) => {
                Some(Self::Fixed { values: whole::<Decimal32Type>(array), scale: *scale })
            }
            DataType::Decimal64(_, scale) => {
                Some(Self::Fixed { values: whole::<Decimal64Type>(array), scale: *scale })
            }
            DataType::Decimal128(_, scale) => {
                let values = array.as_primitive::<Decimal128Type>().values().clone();
                Some(Self::Fixed { values, scale: *scale })
            }
            DataType::Float16
            | DataType::Float32
            | DataType::Float64
            | DataType::Decimal256(..) => {
                let doubles = cast(array, &DataType::Float64).ok()?;
                Some(Self::Float(doubles.as_primitive::<Float64Type>().values().clone()))
            }
            _ => None,
        }
    }
}

fn whole<T>(array: &ArrayRef) -> ScalarBuffer<i128>
where
    T: ArrowPrimitiveType,
    i128: From<T::Native>,
{
    array.as_primitive::<T>().values().iter().map(|value| i128::from(*value)).collect()
}

/// One unit of a scale.
pub(crate) fn unit(scale: i8) -> f64 {
    10_f64.powi(-i32::from(scale))
}

/// A whole number as a double, rounded. Of what fits into 64 bits, which is nearly all, quickly.
#[inline]
pub(crate) fn double(value: i128) -> f64 {
    i64::try_from(value).map_or_else(|_| wide(value), |value| value as f64)
}

/// Apart, or the compiler computes it for every value, also where it is not needed.
#[cold]
#[inline(never)]
fn wide(value: i128) -> f64 {
    value as f64
}
