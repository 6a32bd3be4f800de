//! Keys as values that compare in one step.
//!
//! A [`KeyEncoder`] turns a batch's key columns into [`Keys`], whose order is that of SQL's `ORDER
//! BY` with nulls first, and of floats by total order (so −0.0 is less than 0.0) with one NaN, greater
//! than all numbers. Keys of fixed width are packed into one integer of 128 bits; others become
//! comparable bytes.

mod gather;
mod nan;
mod ordered;
mod packed;
mod short;
mod sort;

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::datatypes::Schema;
use arrow::row::{RowConverter, Rows, SortField};

use crate::error::{Error, ErrorKind, Result, from_arrow};

pub(crate) use nan::with_one_nan;
pub use ordered::{Ordered, in_order};
pub use sort::{MOST_SORTED_ROWS, sort_rows};

use packed::Packing;

/// Encodes the key columns of batches of one schema.
#[derive(Debug)]
pub struct KeyEncoder {
    names: Vec<String>,
    columns: Vec<usize>,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Packed(Packing),
    Bytes(RowConverter),
}

/// The keys of a batch's rows.
#[derive(Debug)]
pub struct Keys {
    values: Values,
    /// Where a column of the key is null; absent when none is.
    nulls: Option<NullBuffer>,
}

#[derive(Debug)]
enum Values {
    Packed(Vec<u128>),
    Bytes(Rows),
}

impl KeyEncoder {
    /// For a schema and the names of the key's columns.
    ///
    /// # Errors
    /// `Invalid` for a column that the schema lacks or that has no order.
    pub fn new(schema: &Schema, key: &[String]) -> Result<Self> {
        let columns: Vec<usize> =
            key.iter().map(|name| index_of(schema, name)).collect::<Result<_>>()?;
        let fields: Vec<_> = columns.iter().map(|index| schema.field(*index)).collect();
        let form = match Packing::of(&fields) {
            Some(packing) => Form::Packed(packing),
            None => {
                let sorts =
                    fields.iter().map(|field| SortField::new(field.data_type().clone())).collect();
                Form::Bytes(RowConverter::new(sorts).map_err(|error| {
                    from_arrow(ErrorKind::Invalid, "the key's columns have no order", error)
                })?)
            }
        };
        Ok(Self { names: key.to_vec(), columns, form })
    }

    /// The names of the key's columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The key columns of a batch.
    pub fn arrays(&self, batch: &RecordBatch) -> Vec<ArrayRef> {
        self.columns.iter().map(|index| Arc::clone(batch.column(*index))).collect()
    }

    /// Encodes a batch's keys.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn encode(&self, batch: &RecordBatch) -> Result<Keys> {
        let arrays = self.arrays(batch);
        let nulls = arrays
            .iter()
            .filter_map(|array| array.logical_nulls())
            .filter(|nulls| nulls.null_count() > 0)
            .reduce(|one, two| NullBuffer::new(one.inner() & two.inner()));
        let values = match &self.form {
            Form::Packed(packing) => Values::Packed(packing.pack(&arrays, batch.num_rows())?),
            Form::Bytes(converter) => {
                let arrays: Vec<ArrayRef> = arrays.iter().map(with_one_nan).collect();
                Values::Bytes(converter.convert_columns(&arrays).map_err(|error| {
                    from_arrow(ErrorKind::Internal, "make keys comparable", error)
                })?)
            }
        };
        Ok(Keys { values, nulls })
    }
}

fn index_of(schema: &Schema, name: &str) -> Result<usize> {
    schema.index_of(name).map_err(|_| {
        let known: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        Error::invalid(format!("the key column {name:?} is not a column of the dataset"))
            .hint(format!("the columns are {}", known.join(", ")))
    })
}

impl Keys {
    /// How many.
    pub fn len(&self) -> usize {
        match &self.values {
            Values::Packed(values) => values.len(),
            Values::Bytes(rows) => rows.num_rows(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where a column of the key is null; absent when none is.
    pub fn nulls(&self) -> Option<&NullBuffer> {
        self.nulls.as_ref()
    }

    /// Whether a column of a row's key is null.
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Compares a row's key with another's. Both must be of the same encoder's form.
    #[inline]
    pub fn compare(&self, row: usize, other: &Self, other_row: usize) -> Ordering {
        match (&self.values, &other.values) {
            (Values::Packed(one), Values::Packed(two)) => one[row].cmp(&two[other_row]),
            (Values::Bytes(one), Values::Bytes(two)) => one.row(row).cmp(&two.row(other_row)),
            // Keys of two encoders never meet.
            (Values::Packed(_), Values::Bytes(_)) => Ordering::Less,
            (Values::Bytes(_), Values::Packed(_)) => Ordering::Greater,
        }
    }

    /// How many rows from `from` and `other_from` on have the same keys, `most` at most.
    pub fn common(&self, from: usize, other: &Self, other_from: usize, most: usize) -> usize {
        match (&self.values, &other.values) {
            (Values::Packed(one), Values::Packed(two)) => {
                let pairs = one[from..from + most].iter().zip(&two[other_from..other_from + most]);
                pairs.take_while(|(one, two)| one == two).count()
            }
            _ => (0..most)
                .take_while(|step| {
                    self.compare(from + step, other, other_from + step) == Ordering::Equal
                })
                .count(),
        }
    }

    /// The order of each row relative to the one before it, folded: calls `see` for each row that
    /// is not greater than the one before, with that order.
    pub fn neighbours(&self, mut see: impl FnMut(usize, Ordering)) {
        match &self.values {
            Values::Packed(values) => {
                // The usual case first: nothing but ascending keys, found without a branch a row.
                let ascends =
                    values.windows(2).fold(true, |so_far, pair| so_far & (pair[0] < pair[1]));
                if ascends {
                    return;
                }
                for (before, pair) in values.windows(2).enumerate() {
                    let order = pair[0].cmp(&pair[1]);
                    if order != Ordering::Less {
                        see(before + 1, order);
                    }
                }
            }
            Values::Bytes(rows) => {
                for row in 1..rows.num_rows() {
                    let order = rows.row(row - 1).cmp(&rows.row(row));
                    if order != Ordering::Less {
                        see(row, order);
                    }
                }
            }
        }
    }

    /// One row's key by itself.
    pub fn one(&self, row: usize) -> Key {
        match &self.values {
            Values::Packed(values) => Key::Packed(values[row]),
            Values::Bytes(rows) => Key::Bytes(rows.row(row).data().into()),
        }
    }

    /// Compares a row's key with a key kept from elsewhere.
    pub fn compare_to(&self, row: usize, key: &Key) -> Ordering {
        match (&self.values, key) {
            (Values::Packed(values), Key::Packed(key)) => values[row].cmp(key),
            (Values::Bytes(rows), Key::Bytes(key)) => rows.row(row).data().cmp(key),
            (Values::Packed(_), Key::Bytes(_)) => Ordering::Less,
            (Values::Bytes(_), Key::Packed(_)) => Ordering::Greater,
        }
    }
}

/// One key, kept while its batch goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// As an integer.
    Packed(u128),
    /// As comparable bytes.
    Bytes(Box<[u8]>),
}

#[cfg(test)]
mod tests;
