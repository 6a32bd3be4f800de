//! One column's numbers.

use arrow::array::{
    Array as _, ArrayRef, ArrowPrimitiveType, AsArray as _, GenericByteViewArray, PrimitiveArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    ByteViewType, DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type, i256,
};
use serde::{Deserialize, Serialize};

use super::bounds::{Bounds, is_orderable};
use super::float_sum::FloatSum;
use super::nulls::filled;
use super::profile::Profile;
use crate::error::{Error, ErrorKind, Result, from_arrow};
use crate::text_views;

/// A column's numbers; what does not apply to its type is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnMetrics {
    /// How many values are null.
    pub nulls: u64,
    /// The exact sum, as decimal text; of floats, rounded once to the nearest double, without NaN
    /// and infinities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<String>,
    /// The least value by total order, without NaN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<String>,
    /// The greatest value by total order, without NaN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<String>,
    /// How many floats are no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nans: Option<u64>,
    /// How many floats are infinite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infinities: Option<u64>,
    /// How many booleans are true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trues: Option<u64>,
    /// The bytes of all texts or binaries together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Of a part of nested values: how many of it there are, null or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<u64>,
    /// What was measured on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

/// Sees one column.
#[derive(Debug, Clone)]
pub(super) struct ColumnMeter {
    name: String,
    nulls: u64,
    items: Option<u64>,
    bounds: Option<Bounds>,
    total: Total,
}

/// What is added up, by type.
#[derive(Debug, Clone)]
enum Total {
    None,
    Integer(i128),
    Decimal { sum: i256, scale: i8 },
    Float(Box<FloatSum>),
    Boolean(u64),
    Bytes(u64),
}

impl ColumnMeter {
    /// For a column, or a part of nested ones (`is_part`).
    pub(super) fn new(name: &str, data_type: &DataType, is_part: bool) -> Self {
        let data_type = match data_type {
            DataType::Dictionary(_, values) => values,
            other => other,
        };
        let total = match data_type {
            DataType::Decimal32(_, scale)
            | DataType::Decimal64(_, scale)
            | DataType::Decimal128(_, scale)
            | DataType::Decimal256(_, scale) => Total::Decimal { sum: i256::ZERO, scale: *scale },
            data_type if data_type.is_integer() => Total::Integer(0),
            data_type if data_type.is_floating() => Total::Float(Box::default()),
            DataType::Boolean => Total::Boolean(0),
            DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => Total::Bytes(0),
            _ => Total::None,
        };
        let bounds = is_orderable(data_type).then(Bounds::default);
        Self { name: name.to_owned(), nulls: 0, items: is_part.then_some(0), bounds, total }
    }

    pub(super) fn update(&mut self, array: &ArrayRef) -> Result<()> {
        let unpacked;
        let array = match array.data_type() {
            DataType::Dictionary(_, values) => {
                // As views: nothing copies a text.
                let values = match values.as_ref() {
                    DataType::Utf8 | DataType::LargeUtf8 => &DataType::Utf8View,
                    DataType::Binary | DataType::LargeBinary => &DataType::BinaryView,
                    other => other,
                };
                unpacked = cast(array, values).map_err(|error| {
                    from_arrow(ErrorKind::Internal, "unpack a dictionary", error)
                })?;
                &unpacked
            }
            _ => array,
        };
        if let Some(items) = &mut self.items {
            *items += array.len() as u64;
        }
        self.nulls += array.logical_null_count() as u64;
        if let Some(bounds) = &mut self.bounds {
            bounds.update(array)?;
        }
        match &mut self.total {
            Total::None => Ok(()),
            Total::Integer(sum) => add_integers(sum, array),
            Total::Decimal { sum, .. } => add_decimals(sum, array),
            Total::Float(sum) => {
                add_floats(sum, array);
                Ok(())
            }
            Total::Boolean(trues) => {
                *trues += array.as_boolean().true_count() as u64;
                Ok(())
            }
            Total::Bytes(bytes) => {
                *bytes += byte_length(array);
                Ok(())
            }
        }
        .map_err(|error| error.with("column", &self.name))
    }

    pub(super) fn metrics(&self) -> ColumnMetrics {
        let mut metrics = ColumnMetrics {
            nulls: self.nulls,
            items: self.items,
            min: self.bounds.as_ref().and_then(Bounds::min),
            max: self.bounds.as_ref().and_then(Bounds::max),
            ..ColumnMetrics::default()
        };
        match &self.total {
            Total::None => {}
            Total::Integer(sum) => metrics.sum = Some(sum.to_string()),
            Total::Decimal { sum, scale } => metrics.sum = Some(decimal_text(*sum, *scale)),
            Total::Float(sum) => {
                metrics.sum = Some(format!("{:?}", sum.value()));
                metrics.nans = Some(sum.nans());
                metrics.infinities = Some(sum.infinities());
            }
            Total::Boolean(trues) => metrics.trues = Some(*trues),
            Total::Bytes(bytes) => metrics.bytes = Some(*bytes),
        }
        metrics
    }
}

fn overflow() -> Error {
    Error::invalid("the exact sum does not fit into its 128 or 256 bits")
        .hint("this many such values cannot be real; look at the largest ones")
}

/// Adds the values of a primitive array that are there.
fn fold<T, S>(array: &ArrayRef, sum: &mut S, add: impl Fn(S, T::Native) -> Option<S>) -> Result<()>
where
    T: ArrowPrimitiveType,
    S: Copy,
{
    for value in filled::<T>(array.as_primitive(), T::default_value()).iter() {
        *sum = add(*sum, *value).ok_or_else(overflow)?;
    }
    Ok(())
}

fn add_integers(sum: &mut i128, array: &ArrayRef) -> Result<()> {
    fn add<T>(array: &ArrayRef, sum: &mut i128) -> Result<()>
    where
        T: ArrowPrimitiveType,
        i128: From<T::Native>,
    {
        // 2^63 values of 64 bits fit into 128, so one batch cannot overflow.
        let values = filled::<T>(array.as_primitive(), T::default_value());
        let of_batch: i128 = values.iter().map(|value| i128::from(*value)).sum();
        *sum = sum.checked_add(of_batch).ok_or_else(overflow)?;
        Ok(())
    }
    /// Of up to 32 bits: 2^31 of them fit into 64.
    fn add_narrow<T>(array: &ArrayRef, sum: &mut i128) -> Result<()>
    where
        T: ArrowPrimitiveType,
        i64: From<T::Native>,
    {
        let values = filled::<T>(array.as_primitive(), T::default_value());
        for values in values.chunks(1 << 31) {
            let of_chunk: i64 = values.iter().map(|value| i64::from(*value)).sum();
            *sum = sum.checked_add(i128::from(of_chunk)).ok_or_else(overflow)?;
        }
        Ok(())
    }
    match array.data_type() {
        DataType::Int8 => add_narrow::<Int8Type>(array, sum),
        DataType::Int16 => add_narrow::<Int16Type>(array, sum),
        DataType::Int32 => add_narrow::<Int32Type>(array, sum),
        DataType::Int64 => add::<Int64Type>(array, sum),
        DataType::UInt8 => add_narrow::<UInt8Type>(array, sum),
        DataType::UInt16 => add_narrow::<UInt16Type>(array, sum),
        DataType::UInt32 => add_narrow::<UInt32Type>(array, sum),
        DataType::UInt64 => add::<UInt64Type>(array, sum),
        other => Err(Error::internal(format!("{other} is no integer"))),
    }
}

fn add_decimals(sum: &mut i256, array: &ArrayRef) -> Result<()> {
    let wide = |sum: i256, value: i128| sum.checked_add(i256::from_i128(value));
    if let DataType::Decimal128(_, _) = array.data_type()
        && let Some(of_batch) = narrow_sum(array.as_primitive())
    {
        *sum = wide(*sum, of_batch).ok_or_else(overflow)?;
        return Ok(());
    }
    match array.data_type() {
        DataType::Decimal32(_, _) => {
            fold::<Decimal32Type, i256>(array, sum, |sum, value| wide(sum, i128::from(value)))
        }
        DataType::Decimal64(_, _) => {
            fold::<Decimal64Type, i256>(array, sum, |sum, value| wide(sum, i128::from(value)))
        }
        DataType::Decimal128(_, _) => fold::<Decimal128Type, i256>(array, sum, wide),
        DataType::Decimal256(_, _) => fold::<Decimal256Type, i256>(array, sum, i256::checked_add),
        other => Err(Error::internal(format!("{other} is no decimal"))),
    }
}

/// The sum of a batch in 128 bits, where it is sure to fit: all values below 2^63.
fn narrow_sum(values: &PrimitiveArray<Decimal128Type>) -> Option<i128> {
    let fits = |value: i128| value.unsigned_abs() >> 63 == 0;
    let (sum, narrow) = filled(values, 0).iter().fold((0_i128, true), |(sum, narrow), value| {
        (sum.wrapping_add(*value), narrow & fits(*value))
    });
    narrow.then_some(sum)
}

fn add_floats(sum: &mut FloatSum, array: &ArrayRef) {
    match array.data_type() {
        DataType::Float64 => sum.add_all(&filled::<Float64Type>(array.as_primitive(), 0.0)),
        DataType::Float32 => sum.add_all_single(&filled::<Float32Type>(array.as_primitive(), 0.0)),
        _ => {
            let values = array.as_primitive::<Float16Type>().iter().flatten();
            sum.add_all_single(&values.map(|value| value.to_f32()).collect::<Vec<_>>());
        }
    }
}

fn byte_length(array: &ArrayRef) -> u64 {
    let length: usize = match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().flatten().map(str::len).sum(),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().flatten().map(str::len).sum(),
        DataType::Utf8View => return view_length(array.as_string_view()),
        DataType::Binary => array.as_binary::<i32>().iter().flatten().map(<[u8]>::len).sum(),
        DataType::LargeBinary => array.as_binary::<i64>().iter().flatten().map(<[u8]>::len).sum(),
        DataType::BinaryView => return view_length(array.as_binary_view()),
        _ => array.as_fixed_size_binary().iter().flatten().map(<[u8]>::len).sum(),
    };
    length as u64
}

fn view_length<T: ByteViewType>(array: &GenericByteViewArray<T>) -> u64 {
    let length = |view: &u128| text_views::length(*view);
    match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => array.views().iter().map(length).sum(),
        Some(nulls) => {
            let lengths = array.views().iter().map(length).zip(nulls);
            lengths.map(|(length, valid)| length * u64::from(valid)).sum()
        }
    }
}

/// A scaled integer as decimal text.
pub(crate) fn decimal_text(value: i256, scale: i8) -> String {
    let digits = value.to_string();
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits.to_owned()),
        None => ("", digits),
    };
    let Ok(places) = usize::try_from(scale) else {
        let zeros = "0".repeat(usize::from(scale.unsigned_abs()));
        return if digits == "0" { digits } else { format!("{sign}{digits}{zeros}") };
    };
    if places == 0 {
        return format!("{sign}{digits}");
    }
    let padded = format!("{digits:0>width$}", width = places + 1);
    let (whole, fraction) = padded.split_at(padded.len() - places);
    format!("{sign}{whole}.{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_written_with_their_scale() {
        let text = |value: i128, scale| decimal_text(i256::from_i128(value), scale);
        assert_eq!(text(12_345, 2), "123.45");
        assert_eq!(text(-5, 3), "-0.005");
        assert_eq!(text(5, -2), "500");
        assert_eq!(text(0, 2), "0.00");
    }
}
