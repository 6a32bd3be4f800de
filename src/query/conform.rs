//! From a query's columns to the dataset's: same names, same types, nothing lost.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;

use crate::dataset::{Definition, plain};
use crate::error::{Error, ErrorKind, Result, from_arrow};

/// Checks that a query gives every column of a dataset, and nothing else, in types that fit.
///
/// # Errors
/// `Invalid`, with the column and what to write.
pub fn check_output(output: &Schema, definition: &Definition) -> Result<()> {
    let wanted = definition.table_schema()?;
    for field in wanted.fields() {
        let Ok(given) = output.field_with_name(field.name()) else {
            return Err(missing(output, field.name(), definition));
        };
        let is_null = given.data_type() == &DataType::Null && !field.is_nullable();
        if is_null || !fits(given.data_type(), field.data_type()) {
            return Err(Error::invalid(format!(
                "the SQL gives column {:?} as {}, the dataset has {}",
                field.name(),
                plain(given.data_type()),
                field.data_type()
            ))
            .hint(format!(
                "write arrow_cast({}, '{}') AS {}",
                field.name(),
                field.data_type(),
                field.name()
            )));
        }
    }
    let extra = output.fields().iter().find(|field| wanted.field_with_name(field.name()).is_err());
    match extra {
        None => Ok(()),
        Some(field) => Err(Error::invalid(format!(
            "the SQL gives a column {:?} that the dataset does not have",
            field.name()
        ))
        .hint("leave it out; a new column is a new dataset")),
    }
}

fn missing(output: &Schema, name: &str, definition: &Definition) -> Error {
    let error = Error::invalid(format!("the SQL does not give the dataset's column {name:?}"));
    let other_case = output.fields().iter().find(|field| field.name().eq_ignore_ascii_case(name));
    if let Some(field) = other_case {
        return error.hint(format!("it gives {:?}: write AS \"{name}\"", field.name()));
    }
    if name == definition.partition.column {
        return error
            .hint(format!("select {name} too: it proves that each row belongs to its partition"));
    }
    error.hint("select it, unchanged if it is not what the change is about")
}

/// Whether every value of a type can be given as another without losing anything; a value that
/// does not fit is an error of its row, never another value.
fn fits(given: &DataType, wanted: &DataType) -> bool {
    let given = plain(given);
    match (&given, wanted) {
        (one, two) if one == two => true,
        (DataType::Null, _) => true,
        (one, two) if one.is_integer() && two.is_integer() => true,
        (DataType::Utf8, DataType::LargeUtf8) | (DataType::LargeUtf8, DataType::Utf8) => true,
        (DataType::Binary, DataType::LargeBinary) | (DataType::LargeBinary, DataType::Binary) => {
            true
        }
        (DataType::Float32, DataType::Float64) => true,
        (
            DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32,
            DataType::Float64,
        ) => true,
        (DataType::Decimal128(_, one), DataType::Decimal128(_, two)) => one == two,
        (DataType::Timestamp(one, zone), DataType::Timestamp(two, other)) => {
            zone == other && fineness(one) <= fineness(two)
        }
        _ => false,
    }
}

fn fineness(unit: &TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    }
}

/// Casts values; one that does not fit is an error, never a null.
pub(super) fn strictly(
    array: &ArrayRef,
    data_type: &DataType,
) -> std::result::Result<ArrayRef, ArrowError> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, data_type, &strict)
}

/// Puts a query's batch into a schema: order, types, and no null where none may be.
///
/// # Errors
/// `Failed` when a value does not fit, or is null where it may not be.
pub fn conform(batch: &RecordBatch, target: &SchemaRef) -> Result<RecordBatch> {
    let mut columns = Vec::with_capacity(target.fields().len());
    for field in target.fields() {
        let given = batch.column_by_name(field.name()).ok_or_else(|| {
            Error::internal("a column vanished from the query").with("column", field.name())
        })?;
        let column = if given.data_type() == field.data_type() {
            Arc::clone(given)
        } else {
            strictly(given, field.data_type()).map_err(|error| {
                from_arrow(ErrorKind::Failed, "a value does not fit into its column", error)
                    .with("column", field.name())
                    .with("type", field.data_type())
            })?
        };
        if !field.is_nullable() && column.null_count() > 0 {
            return Err(Error::new(ErrorKind::Failed, "a column has nulls that it may not have")
                .with("column", field.name())
                .with("nulls", column.null_count())
                .hint("give a value with coalesce(), or leave the rows out"));
        }
        columns.push(column);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(target), columns, &options)
        .map_err(|error| from_arrow(ErrorKind::Internal, "shape a batch", error))
}
