//! Which row groups can hold rows of a window, by one column's statistics.
//!
//! This is the only place where statistics are used, and only for the column that a spec declares
//! as the source's interval. A group without usable statistics is read.

use arrow::array::ArrayRef;
use arrow::compute::cast;
use datafusion::common::ScalarValue;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;

use super::Footer;

/// The row groups that may hold values in `[start, end)` of a top-level column.
pub fn groups_in_window(
    footer: &Footer,
    column: &str,
    start: &ScalarValue,
    end: &ScalarValue,
) -> Vec<usize> {
    let groups = footer.metadata().row_groups();
    let all = || (0..groups.len()).collect();
    let descriptor = footer.metadata().file_metadata().schema_descr();
    let Ok(converter) = StatisticsConverter::try_new(column, footer.schema(), descriptor) else {
        return all();
    };
    let (Ok(mins), Ok(maxes)) =
        (converter.row_group_mins(groups.iter()), converter.row_group_maxes(groups.iter()))
    else {
        return all();
    };
    let (Some(start), Some(end)) = (as_type(start, &mins), as_type(end, &mins)) else {
        return all();
    };
    let at = |array: &ArrayRef, group: usize| {
        ScalarValue::try_from_array(array, group).ok().filter(|value| !value.is_null())
    };
    let may_hold = |group: &usize| match (at(&mins, *group), at(&maxes, *group)) {
        (Some(min), Some(max)) => !(max < start || min >= end),
        _ => true,
    };
    (0..groups.len()).filter(may_hold).collect()
}

/// How many values of a column are null, by the footer; `None` when it does not say. For notes to
/// people only.
pub fn nulls_by_footer(footer: &Footer, column: &str) -> Option<u64> {
    let groups = footer.metadata().row_groups();
    let descriptor = footer.metadata().file_metadata().schema_descr();
    let converter = StatisticsConverter::try_new(column, footer.schema(), descriptor).ok()?;
    let counts = converter.row_group_null_counts(groups.iter()).ok()?;
    Some(counts.iter().flatten().sum())
}

fn as_type(value: &ScalarValue, like: &ArrayRef) -> Option<ScalarValue> {
    let array = cast(&value.to_array().ok()?, like.data_type()).ok()?;
    ScalarValue::try_from_array(&array, 0).ok().filter(|value| !value.is_null())
}
