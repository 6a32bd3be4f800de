//! What a value is to the content digest: two words. The rules are those of [`super::digest`].

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, PrimitiveArray, downcast_dictionary_array,
    downcast_primitive_array,
};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal256Type, Float16Type, Float32Type, Float64Type,
    IntervalDayTime, IntervalMonthDayNano, IntervalUnit, TimeUnit,
};
use xxhash_rust::xxh3::xxh3_128;

use crate::error::{Error, ErrorKind, Result};

/// Null: no integer of 64 bits has this high word.
pub(super) const NULL: Words = Words(0x6e75_6c6c_6e75_6c6c, 0x9e37_79b9_7f4a_7c15);

/// A value or cell as two words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Words(pub(super) u64, pub(super) u64);

pub(super) fn words_of(bytes: &[u8]) -> Words {
    split(xxh3_128(bytes))
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves are what is wanted")]
pub(super) fn split(value: u128) -> Words {
    Words(value as u64, (value >> 64) as u64)
}

#[expect(clippy::cast_sign_loss, reason = "two's complement is what is wanted")]
pub(super) fn signed(value: i128) -> Words {
    split(value as u128)
}

/// What a type's values mean.
pub(super) fn class_of(data_type: &DataType) -> Result<String> {
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
        DataType::Dictionary(_, values) => class_of(values)?,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".to_owned(),
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => "bytes".to_owned(),
        DataType::Interval(IntervalUnit::YearMonth) => "months".to_owned(),
        DataType::Interval(IntervalUnit::DayTime) => "days-ms".to_owned(),
        DataType::Interval(IntervalUnit::MonthDayNano) => "months-days-ns".to_owned(),
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

/// Each row's value as two words, equal exactly when the values are, up to chance in 2^128.
///
/// # Errors
/// `Internal` for a type without values.
pub(crate) fn words_of_rows(array: &ArrayRef) -> Result<Vec<(u64, u64)>> {
    let mut words = Vec::with_capacity(array.len());
    push_values(array, &mut words)?;
    Ok(words.into_iter().map(|words| (words.0, words.1)).collect())
}

/// Appends each row's words.
pub(super) fn push_values(array: &ArrayRef, into: &mut Vec<Words>) -> Result<()> {
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
        DataType::Utf8View => {
            push_bytes(array.as_string_view().iter().map(|v| v.map(str::as_bytes)), into);
        }
        DataType::BinaryView => push_bytes(array.as_binary_view().iter(), into),
        DataType::Dictionary(_, _) => push_dictionary(array, into)?,
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

pub(super) fn float(value: f64) -> Words {
    Words(if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() }, 0)
}

/// Each value of the dictionary is hashed once.
fn push_dictionary(array: &ArrayRef, into: &mut Vec<Words>) -> Result<()> {
    downcast_dictionary_array! {
        array => {
            let mut values = Vec::new();
            push_values(array.values(), &mut values)?;
            into.extend(array.keys_iter().map(|key| {
                key.and_then(|key| values.get(key).copied()).unwrap_or(NULL)
            }));
            Ok(())
        },
        other => Err(Error::internal(format!("{other} is no dictionary")))
    }
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

not_integral!(f32, f64, half::f16, arrow::datatypes::i256);

impl Integral for IntervalDayTime {
    fn words(self) -> Words {
        Words(signed(i128::from(self.days)).0, signed(i128::from(self.milliseconds)).0)
    }
}

impl Integral for IntervalMonthDayNano {
    fn words(self) -> Words {
        let high =
            u64::from(self.months.cast_unsigned()) << 32 | u64::from(self.days.cast_unsigned());
        Words(signed(i128::from(self.nanoseconds)).0, high)
    }
}

/// Lists, structs and maps: the hash of their parts' words, with their count before them.
fn push_nested(array: &ArrayRef, into: &mut Vec<Words>) -> Result<()> {
    match array.data_type() {
        DataType::Struct(_) => {
            let columns = array.as_struct().columns();
            let mut parts = vec![Vec::new(); columns.len()];
            for (column, part) in columns.iter().zip(&mut parts) {
                push_values(column, part)?;
            }
            let mut bytes = Vec::new();
            for row in 0..array.len() {
                into.push(hash_parts(parts.iter().map(|part| part[row]), &mut bytes));
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
    let (Some(start), Some(end)) = (offsets.first(), offsets.last()) else { return Ok(()) };
    // A slice of lists still has the items of all of them.
    let mut parts = Vec::with_capacity(end - start);
    push_values(&values.slice(*start, end - start), &mut parts)?;
    let mut bytes = Vec::new();
    for bounds in offsets.windows(2) {
        let slice = &mut parts[bounds[0] - start..bounds[1] - start];
        if sorted {
            slice.sort_unstable_by_key(|words| (words.0, words.1));
        }
        into.push(hash_parts(slice.iter().copied(), &mut bytes));
    }
    Ok(())
}

/// `bytes`: room for all parts side by side.
fn hash_parts(parts: impl ExactSizeIterator<Item = Words>, bytes: &mut Vec<u8>) -> Words {
    bytes.clear();
    bytes.extend_from_slice(&(parts.len() as u64).to_le_bytes());
    for part in parts {
        bytes.extend_from_slice(&part.0.to_le_bytes());
        bytes.extend_from_slice(&part.1.to_le_bytes());
    }
    words_of(bytes)
}
