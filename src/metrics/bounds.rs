//! The least and greatest value of a column, by total order.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray as _, BooleanArray,
    Float64Array, PrimitiveArray, StringViewArray, downcast_primitive_array, make_comparator,
};
use arrow::compute::{
    SortOptions, cast, max, max_string, max_string_view, min, min_string, min_string_view,
};
use arrow::datatypes::{DataType, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::error::{ErrorKind, Result, from_arrow};

/// The bounds seen so far, each as an array of one value.
#[derive(Debug, Clone, Default)]
pub(super) struct Bounds {
    min: Option<ArrayRef>,
    max: Option<ArrayRef>,
}

impl Bounds {
    /// Sees a batch's array. NaN is no bound; infinities are.
    pub(super) fn update(&mut self, array: &ArrayRef) -> Result<()> {
        let fail = |error| from_arrow(ErrorKind::Unsupported, "compare values of a column", error);
        let Some((least, greatest)) = extremes(array).map_err(fail)? else { return Ok(()) };
        self.offer(least, false)?;
        self.offer(greatest, true)
    }

    fn offer(&mut self, value: ArrayRef, greatest: bool) -> Result<()> {
        let held = if greatest { &mut self.max } else { &mut self.min };
        let better = match held {
            None => true,
            Some(held) => {
                let fail =
                    |error| from_arrow(ErrorKind::Unsupported, "compare values of a column", error);
                let compare =
                    make_comparator(&value, held, SortOptions::default()).map_err(fail)?;
                let order = compare(0, 0);
                if greatest { order.is_gt() } else { order.is_lt() }
            }
        };
        if better {
            *held = Some(value);
        }
        Ok(())
    }

    pub(super) fn min(&self) -> Option<String> {
        self.min.as_ref().map(text)
    }

    pub(super) fn max(&self) -> Option<String> {
        self.max.as_ref().map(text)
    }
}

type Extremes = Result<Option<(ArrayRef, ArrayRef)>, arrow::error::ArrowError>;

/// The least and greatest value of an array, leaving out nulls and NaN.
fn extremes(array: &ArrayRef) -> Extremes {
    match array.data_type() {
        DataType::Float64 => return Ok(float_extremes(array)),
        DataType::Float32 | DataType::Float16 => {
            let Some((least, greatest)) = float_extremes(&cast(array, &DataType::Float64)?) else {
                return Ok(None);
            };
            // Each was exact in the narrower type.
            let (least, greatest) =
                (cast(&least, array.data_type())?, cast(&greatest, array.data_type())?);
            return Ok(Some((least, greatest)));
        }
        DataType::Boolean => return Ok(boolean_extremes(array.as_boolean())),
        DataType::Utf8View => {
            return Ok(text_extremes(array.as_string_view()));
        }
        DataType::Utf8 => {
            let values = array.as_string::<i32>();
            let found = min_string(values).zip(max_string(values));
            return Ok(found.map(|(least, greatest)| (one_text(least), one_text(greatest))));
        }
        _ => {}
    }
    downcast_primitive_array! {
        array => Ok(extremes_of_primitives(array)),
        _ => {
            let Some((least, greatest)) = extremes_by_comparing(array)? else { return Ok(None) };
            Ok(Some((array.slice(least, 1), array.slice(greatest, 1))))
        }
    }
}

fn boolean_extremes(values: &BooleanArray) -> Option<(ArrayRef, ArrayRef)> {
    let (trues, falses) = (values.true_count(), values.false_count());
    let one = |value: bool| -> ArrayRef { Arc::new(BooleanArray::from(vec![value])) };
    (trues + falses > 0).then(|| (one(falses == 0), one(trues > 0)))
}

/// Texts of up to 12 bytes lie in their views, and compare as integers.
fn text_extremes(values: &StringViewArray) -> Option<(ArrayRef, ArrayRef)> {
    let key = StringViewArray::inline_key_fast;
    let are_short = values.views().iter().all(|view| *view & 0xffff_ffff <= 12);
    if values.null_count() > 0 || !are_short {
        let found = min_string_view(values).zip(max_string_view(values));
        return found.map(|(least, greatest)| (one_text(least), one_text(greatest)));
    }
    let (mut least, mut greatest) = (*values.views().first()?, *values.views().first()?);
    let (mut least_key, mut greatest_key) = (key(least), key(greatest));
    for view in values.views() {
        let here = key(*view);
        if here < least_key {
            (least, least_key) = (*view, here);
        }
        if here > greatest_key {
            (greatest, greatest_key) = (*view, here);
        }
    }
    let one = |view: u128| -> ArrayRef {
        let bytes = view.to_le_bytes();
        let length = usize::try_from(view & 0xffff_ffff).unwrap_or(0).min(12);
        one_text(std::str::from_utf8(&bytes[4..4 + length]).unwrap_or_default())
    };
    Some((one(least), one(greatest)))
}

fn one_text(text: &str) -> ArrayRef {
    Arc::new(StringViewArray::from_iter_values([text]))
}

fn extremes_of_primitives<T>(array: &PrimitiveArray<T>) -> Option<(ArrayRef, ArrayRef)>
where
    T: ArrowPrimitiveType,
    T::Native: ArrowNativeTypeOp,
{
    let one = |value: T::Native| -> ArrayRef {
        let one = PrimitiveArray::<T>::from_value(value, 1);
        Arc::new(one.with_data_type(array.data_type().clone()))
    };
    Some((one(min(array)?), one(max(array)?)))
}

/// By total order of the bits: −0.0 is less than 0.0.
fn float_extremes(array: &ArrayRef) -> Option<(ArrayRef, ArrayRef)> {
    let values = array.as_primitive::<Float64Type>();
    // Turned like this, bits compare as the numbers do.
    let turn = |bits: i64| bits ^ (((bits >> 63).cast_unsigned() >> 1).cast_signed());
    let see = |(least, greatest): (i64, i64), value: f64| {
        let turned = turn(value.to_bits().cast_signed());
        if value.is_nan() { (least, greatest) } else { (least.min(turned), greatest.max(turned)) }
    };
    let none = (i64::MAX, i64::MIN);
    let (least, greatest) = if values.null_count() == 0 {
        values.values().iter().copied().fold(none, see)
    } else {
        values.iter().flatten().fold(none, see)
    };
    let one = |turned: i64| -> ArrayRef {
        Arc::new(Float64Array::from(vec![f64::from_bits(turn(turned).cast_unsigned())]))
    };
    (least <= greatest).then(|| (one(least), one(greatest)))
}

fn extremes_by_comparing(
    array: &ArrayRef,
) -> Result<Option<(usize, usize)>, arrow::error::ArrowError> {
    let compare = make_comparator(array, array, SortOptions::default())?;
    let nulls = array.logical_nulls();
    let mut found: Option<(usize, usize)> = None;
    for row in 0..array.len() {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            continue;
        }
        found = Some(match found {
            None => (row, row),
            Some((least, greatest)) => (
                if compare(row, least).is_lt() { row } else { least },
                if compare(row, greatest).is_gt() { row } else { greatest },
            ),
        });
    }
    Ok(found)
}

/// A value as people and other tools write it.
pub(crate) fn text(value: &ArrayRef) -> String {
    value_text(value.as_ref(), 0)
}

/// The value of one row as text; null is `null`.
pub(crate) fn value_text(array: &dyn Array, row: usize) -> String {
    if array.is_null(row) {
        return "null".to_owned();
    }
    if let DataType::Utf8 = array.data_type() {
        return array.as_string::<i32>().value(row).to_owned();
    }
    let options = FormatOptions::default().with_null("null");
    match ArrayFormatter::try_new(array, &options) {
        Ok(formatter) => formatter.value(row).to_string(),
        Err(error) => format!("<{error}>"),
    }
}

/// Whether values of a type have an order of their own.
pub(super) fn is_orderable(data_type: &DataType) -> bool {
    !data_type.is_nested() || matches!(data_type, DataType::Dictionary(_, _))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans_have_bounds() {
        let bounds_of = |array: ArrayRef| {
            let mut bounds = Bounds::default();
            bounds.update(&array).unwrap();
            bounds.min().zip(bounds.max())
        };
        let booleans =
            |values: &[Option<bool>]| bounds_of(Arc::new(BooleanArray::from_iter(values)));
        let pair = |one: &str, two: &str| Some((one.to_owned(), two.to_owned()));
        assert_eq!(booleans(&[None]), None);
        assert_eq!(booleans(&[Some(true), None]), pair("true", "true"));
        assert_eq!(booleans(&[Some(false)]), pair("false", "false"));
        assert_eq!(booleans(&[Some(true), Some(false)]), pair("false", "true"));
    }

    #[test]
    fn nan_is_no_bound_and_negative_zero_is_less_than_zero() {
        let mut bounds = Bounds::default();
        let values: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN, 0.0, -0.0]));
        bounds.update(&values).unwrap();
        assert_eq!((bounds.min().unwrap(), bounds.max().unwrap()), ("-0.0".into(), "0.0".into()));
        let values: ArrayRef = Arc::new(Float64Array::from(vec![f64::NEG_INFINITY]));
        bounds.update(&values).unwrap();
        assert_eq!(bounds.min().unwrap(), "-inf");
    }
}
