//! The least and greatest value of a column, by total order.

use std::ops::Neg;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray as _, BooleanArray,
    PrimitiveArray, StringViewArray, downcast_primitive_array, make_comparator,
};
use arrow::compute::{
    SortOptions, cast, max, max_string, max_string_view, min, min_string, min_string_view,
};
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::nulls::filled;
use crate::error::{ErrorKind, Result, from_arrow};
use crate::text_views;

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
        DataType::Float64 => {
            return Ok(float_extremes::<Float64Type>(array, f64::NAN, f64::INFINITY));
        }
        DataType::Float32 => {
            return Ok(float_extremes::<Float32Type>(array, f32::NAN, f32::INFINITY));
        }
        DataType::Float16 => {
            let single = cast(array, &DataType::Float32)?;
            let found = float_extremes::<Float32Type>(&single, f32::NAN, f32::INFINITY);
            let Some((least, greatest)) = found else { return Ok(None) };
            // Each was exact in the narrower type.
            let (least, greatest) =
                (cast(&least, array.data_type())?, cast(&greatest, array.data_type())?);
            return Ok(Some((least, greatest)));
        }
        DataType::Decimal128(_, _) => {
            let values = array.as_primitive::<Decimal128Type>();
            return Ok(narrow_extremes(values).or_else(|| extremes_of_primitives(values)));
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
    let Some(views) = text_views::short(values) else {
        let found = min_string_view(values).zip(max_string_view(values));
        return found.map(|(least, greatest)| (one_text(least), one_text(greatest)));
    };
    let (mut least, mut greatest) = (*views.first()?, *views.first()?);
    let (mut least_key, mut greatest_key) = (key(least), key(greatest));
    let mut views = views.iter();
    // Hardly any lies outside, and until one does no value waits for the one before it.
    while let Some(view) = views.find(|view| !(least_key..=greatest_key).contains(&key(**view))) {
        let here = key(*view);
        if here < least_key {
            (least, least_key) = (*view, here);
        } else {
            (greatest, greatest_key) = (*view, here);
        }
    }
    let one = |view: u128| -> ArrayRef {
        let bytes = view.to_le_bytes();
        let length = usize::try_from(text_views::length(view)).unwrap_or(0).min(12);
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

/// Of decimals that fit into 64 bits, which compare faster. None where one does not.
fn narrow_extremes(array: &PrimitiveArray<Decimal128Type>) -> Option<(ArrayRef, ArrayRef)> {
    if array.null_count() > 0 {
        return None;
    }
    let see = |(narrow, least, greatest): (bool, i64, i64), value: &i128| {
        #[expect(clippy::cast_possible_truncation, reason = "what is lost is looked for")]
        let low = *value as i64;
        (narrow & (i128::from(low) == *value), least.min(low), greatest.max(low))
    };
    let (narrow, least, greatest) = array.values().iter().fold((true, i64::MAX, i64::MIN), see);
    let one = |value: i64| -> ArrayRef {
        let one = PrimitiveArray::<Decimal128Type>::from_value(i128::from(value), 1);
        Arc::new(one.with_data_type(array.data_type().clone()))
    };
    (narrow && least <= greatest).then(|| (one(least), one(greatest)))
}

/// By total order: −0.0 is less than 0.0. Processors compare numbers faster than bits, but for the
/// two zeros, which are looked for at the end.
fn float_extremes<T>(
    array: &ArrayRef,
    nan: T::Native,
    infinity: T::Native,
) -> Option<(ArrayRef, ArrayRef)>
where
    T: ArrowPrimitiveType,
    T::Native: PartialOrd + Neg<Output = T::Native> + Into<f64>,
{
    const LANES: usize = 8;
    let values = filled::<T>(array.as_primitive(), nan);
    let (mut least, mut greatest) = ([infinity; LANES], [-infinity; LANES]);
    // NaN is neither less nor greater.
    for values in values.chunks(LANES) {
        for ((least, greatest), value) in least.iter_mut().zip(&mut greatest).zip(values) {
            *least = if *value < *least { *value } else { *least };
            *greatest = if *value > *greatest { *value } else { *greatest };
        }
    }
    let least = least.into_iter().reduce(|one, two| if two < one { two } else { one })?;
    let greatest = greatest.into_iter().reduce(|one, two| if two > one { two } else { one })?;
    let zero = |of: T::Native, negative: bool| {
        let is_it = |value: &&T::Native| {
            let value: f64 = (**value).into();
            value == 0.0 && value.is_sign_negative() == negative
        };
        if of.into() == 0.0 { values.iter().find(is_it).copied().unwrap_or(of) } else { of }
    };
    let one =
        |value: T::Native| -> ArrayRef { Arc::new(PrimitiveArray::<T>::from_value(value, 1)) };
    (least <= greatest).then(|| (one(zero(least, true)), one(zero(greatest, false))))
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
    use arrow::array::{Float32Array, Float64Array};
    use proptest::prelude::*;

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

    proptest! {
        /// Few different numbers, so that zeros, NaN and nulls meet in one chunk.
        #[test]
        fn bounds_of_floats_are_those_of_the_total_order(
            values in prop::collection::vec(
                prop::option::of(prop::sample::select(vec![
                    -0.0, 0.0, f32::NAN, -f32::NAN, 1.5, -2.0, f32::INFINITY, f32::NEG_INFINITY,
                    f32::MIN_POSITIVE / 2.0, -f32::MAX,
                ])),
                0..40,
            ),
        ) {
            let numbers = || values.iter().flatten().filter(|value| !value.is_nan());
            let least = numbers().min_by(|one, two| one.total_cmp(two));
            let greatest = numbers().max_by(|one, two| one.total_cmp(two));
            let found = |array: ArrayRef| {
                let mut bounds = Bounds::default();
                bounds.update(&array).unwrap();
                (bounds.min(), bounds.max())
            };
            let text = |array: ArrayRef| value_text(&array, 0);
            let single = |value: &f32| text(Arc::new(Float32Array::from(vec![*value])));
            let double = |value: &f32| text(Arc::new(Float64Array::from(vec![f64::from(*value)])));
            prop_assert_eq!(
                found(Arc::new(Float32Array::from(values.clone()))),
                (least.map(single), greatest.map(single))
            );
            let doubles = values.iter().map(|value| value.map(f64::from)).collect::<Float64Array>();
            prop_assert_eq!(found(Arc::new(doubles)), (least.map(double), greatest.map(double)));
        }

        #[test]
        fn bounds_of_decimals_are_exact_in_64_bits_and_beyond(
            values in prop::collection::vec(prop::option::of(any::<i128>()), 1..40),
            shift in prop::sample::select(vec![0_u32, 63, 64, 65, 120]),
            nulls in any::<bool>(),
        ) {
            let values = values.iter().map(|value| value.map(|value| (value >> 1) >> shift));
            let values: Vec<_> = values.filter(|value| nulls || value.is_some()).collect();
            let array = arrow::array::Decimal128Array::from(values.clone());
            let array: ArrayRef = Arc::new(array.with_precision_and_scale(38, 0).unwrap());
            let mut bounds = Bounds::default();
            bounds.update(&array).unwrap();
            let (least, greatest) = (values.iter().flatten().min(), values.iter().flatten().max());
            prop_assert_eq!(bounds.min(), least.map(ToString::to_string));
            prop_assert_eq!(bounds.max(), greatest.map(ToString::to_string));
        }
    }
}
