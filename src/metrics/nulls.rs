//! Nulls without a branch for each row: where they are in no order, a processor cannot foresee them.

use std::borrow::Cow;
use std::hint::select_unpredictable;

use arrow::array::{Array as _, ArrowPrimitiveType, PrimitiveArray};

/// An array's values with `neutral` in place of each null: something that does not count.
pub(super) fn filled<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    neutral: T::Native,
) -> Cow<'_, [T::Native]> {
    match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => Cow::Borrowed(array.values()),
        Some(nulls) => {
            let values = array.values().iter().zip(nulls);
            values.map(|(value, valid)| select_unpredictable(valid, *value, neutral)).collect()
        }
    }
}
