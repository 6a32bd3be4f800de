//! The parts of nested values: a struct's fields, a list's items, a map's keys and values.
//!
//! A part is called by its path: `address.city`, `tags[]`, `labels.key`, `lines[].price`. Its
//! values are those that are really there: of a null list, or a null struct, there are none.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, UInt64Array};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::datatypes::{DataType, Field};

use crate::error::{ErrorKind, Result, from_arrow};

/// The parts of a nested type that are not nested themselves, with their types.
pub(super) fn parts_of(path: &str, data_type: &DataType) -> Vec<(String, DataType)> {
    let inner = |field: &Field, path: String| {
        if field.data_type().is_nested() && !is_dictionary(field.data_type()) {
            parts_of(&path, field.data_type())
        } else {
            vec![(path, field.data_type().clone())]
        }
    };
    match data_type {
        DataType::Struct(fields) => fields
            .iter()
            .flat_map(|field| inner(field, format!("{path}.{}", field.name())))
            .collect(),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            inner(item, format!("{path}[]"))
        }
        DataType::Map(entries, _) => parts_of(path, entries.data_type()),
        _ => Vec::new(),
    }
}

fn is_dictionary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Dictionary(_, _))
}

/// The values of those parts, in the same order.
pub(super) fn parts(array: &ArrayRef) -> Result<Vec<ArrayRef>> {
    let inner = |array: ArrayRef| {
        if array.data_type().is_nested() && !is_dictionary(array.data_type()) {
            parts(&array)
        } else {
            Ok(vec![array])
        }
    };
    match array.data_type() {
        DataType::Struct(_) => {
            let there = present(array.len(), array.nulls(), |row| (row, row + 1));
            let mut found = Vec::new();
            for column in array.as_struct().columns() {
                found.extend(inner(chosen(column, there.as_ref())?)?);
            }
            Ok(found)
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let at = |row: usize| usize::try_from(list.value_offsets()[row]).unwrap_or_default();
            items(list.values(), array, at).and_then(inner)
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            let at = |row: usize| usize::try_from(list.value_offsets()[row]).unwrap_or_default();
            items(list.values(), array, at).and_then(inner)
        }
        DataType::FixedSizeList(_, size) => {
            let size = usize::try_from(*size).unwrap_or_default();
            items(array.as_fixed_size_list().values(), array, |row| row * size).and_then(inner)
        }
        DataType::Map(_, _) => {
            let map = array.as_map();
            let at = |row: usize| usize::try_from(map.value_offsets()[row]).unwrap_or_default();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            items(&entries, array, at).and_then(inner)
        }
        _ => Ok(Vec::new()),
    }
}

/// The items of all lists that are there.
fn items(values: &ArrayRef, lists: &ArrayRef, at: impl Fn(usize) -> usize) -> Result<ArrayRef> {
    let there = present(lists.len(), lists.nulls(), |row| (at(row), at(row + 1)));
    match there {
        Some(_) => chosen(values, there.as_ref()),
        None => {
            let (start, end) = (at(0), at(lists.len()));
            Ok(values.slice(start, end - start))
        }
    }
}

/// The places below rows that are not null; none: all rows are there.
fn present(
    rows: usize,
    nulls: Option<&NullBuffer>,
    bounds: impl Fn(usize) -> (usize, usize),
) -> Option<UInt64Array> {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0)?;
    let places = (0..rows).filter(|row| nulls.is_valid(*row)).flat_map(|row| {
        let (start, end) = bounds(row);
        start as u64..end as u64
    });
    Some(UInt64Array::from_iter_values(places))
}

fn chosen(values: &ArrayRef, places: Option<&UInt64Array>) -> Result<ArrayRef> {
    match places {
        None => Ok(Arc::clone(values)),
        Some(places) => take(values, places, None)
            .map_err(|error| from_arrow(ErrorKind::Internal, "take nested values apart", error)),
    }
}
