//! The least and greatest value of a column, by total order.

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray as _, PrimitiveArray,
    UInt32Array, downcast_primitive_array, make_comparator,
};
use arrow::compute::{SortOptions, take};
use arrow::datatypes::DataType;
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
        let one = |row: u32| take(array, &UInt32Array::from(vec![row]), None).map_err(fail);
        self.offer(one(least)?, false)?;
        self.offer(one(greatest)?, true)
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

/// The rows of the least and greatest value of an array, leaving out nulls and NaN.
fn extremes(array: &ArrayRef) -> Result<Option<(u32, u32)>, arrow::error::ArrowError> {
    let found = downcast_primitive_array! {
        array => extremes_of_primitives(array),
        _ => extremes_by_comparing(array)?
    };
    let place = |row: usize| u32::try_from(row).unwrap_or(u32::MAX);
    Ok(found.map(|(least, greatest)| (place(least), place(greatest))))
}

fn extremes_of_primitives<T>(array: &PrimitiveArray<T>) -> Option<(usize, usize)>
where
    T: ArrowPrimitiveType,
    T::Native: ArrowNativeTypeOp,
{
    let mut found: Option<[(usize, T::Native); 2]> = None;
    let values = array.values();
    let mut see = |row: usize| {
        let value = values[row];
        // Only NaN differs from itself.
        #[expect(clippy::eq_op, reason = "the one portable test for NaN over all native types")]
        if value != value {
            return;
        }
        match &mut found {
            None => found = Some([(row, value); 2]),
            Some([least, greatest]) => {
                if value.is_lt(least.1) {
                    *least = (row, value);
                } else if value.is_gt(greatest.1) {
                    *greatest = (row, value);
                }
            }
        }
    };
    match array.nulls() {
        None => (0..array.len()).for_each(&mut see),
        Some(nulls) => nulls.valid_indices().for_each(&mut see),
    }
    found.map(|[least, greatest]| (least.0, greatest.0))
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
    use std::sync::Arc;

    use arrow::array::Float64Array;

    use super::*;

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
