//! One NaN: floats that are no number are the same, whatever their bits say.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray as _, PrimitiveArray};
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};
use half::f16;

/// Every NaN becomes the one that is greater than all numbers.
pub(crate) fn with_one_nan(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float64 => {
            replaced::<Float64Type>(array, |v| if v.is_nan() { f64::NAN } else { v })
        }
        DataType::Float32 => {
            replaced::<Float32Type>(array, |v| if v.is_nan() { f32::NAN } else { v })
        }
        DataType::Float16 => {
            replaced::<Float16Type>(array, |v| if v.is_nan() { f16::NAN } else { v })
        }
        _ => Arc::clone(array),
    }
}

fn replaced<T: ArrowPrimitiveType>(array: &ArrayRef, one: fn(T::Native) -> T::Native) -> ArrayRef {
    let values: PrimitiveArray<T> = array.as_primitive::<T>().unary(one);
    Arc::new(values)
}
