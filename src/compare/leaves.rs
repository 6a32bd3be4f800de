//! A schema's columns, with structs taken apart into their fields: `address.city`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, BooleanArray, RecordBatch, make_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Schema};

use crate::error::{Error, Result};

/// Whether a path is a column, or lies in it: `address.city` in `address`.
pub(crate) fn is_of(path: &str, column: &str) -> bool {
    path.strip_prefix(column).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The places of a schema's leaves.
#[derive(Debug, Clone)]
pub(super) struct Leaves {
    leaves: Vec<Leaf>,
}

#[derive(Debug, Clone)]
struct Leaf {
    path: String,
    /// The column, then the field of each struct on the way.
    steps: Vec<usize>,
    /// Whether it only says if a struct is there.
    presence: bool,
}

impl Leaves {
    /// Of all columns but some.
    ///
    /// # Errors
    /// `Invalid` when a column is called like the path of a struct's field.
    pub(super) fn of(schema: &Schema, without: &[String]) -> Result<Self> {
        let mut leaves = Vec::new();
        for (index, field) in schema.fields().iter().enumerate() {
            if !without.contains(field.name()) {
                push(field, String::new(), vec![index], &mut leaves);
            }
        }
        let mut paths = BTreeSet::new();
        match leaves.iter().find(|leaf| !paths.insert(leaf.path.as_str())) {
            None => Ok(Self { leaves }),
            Some(leaf) => {
                let struct_ = leaf.path.rsplit_once('.').map_or("", |(above, _)| above);
                Err(Error::invalid(format!(
                    "two columns are called {:?}: one by its name, one as a field of {struct_:?}",
                    leaf.path
                ))
                .hint("write one of them under another name"))
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.leaves.len()
    }

    pub(super) fn path(&self, leaf: usize) -> &str {
        self.leaves.get(leaf).map_or("", |leaf| &leaf.path)
    }

    /// The paths of a schema's columns and of the fields of its structs.
    ///
    /// # Errors
    /// `Invalid` when a column's name begins with another's and a dot: what is said of one could be
    /// taken to be about the other.
    pub(super) fn paths(schema: &Schema) -> Result<BTreeSet<String>> {
        let names: BTreeSet<&String> = schema.fields().iter().map(|field| field.name()).collect();
        for field in schema.fields() {
            let name = field.name();
            if let Some(other) = names.iter().find(|other| **other != name && is_of(name, other)) {
                return Err(Error::invalid(format!(
                    "the columns {other:?} and {name:?} cannot be told apart: a dot leads to a struct's field"
                ))
                .hint("write one of them under another name"));
            }
        }
        let leaves = Self::of(schema, &[])?.leaves;
        let fields = leaves.into_iter().map(|leaf| leaf.path);
        Ok(fields.chain(names.into_iter().cloned()).collect())
    }

    /// Each leaf's type.
    pub(super) fn types(&self, schema: &Schema) -> BTreeMap<String, DataType> {
        let none = RecordBatch::new_empty(Arc::new(schema.clone()));
        (0..self.len())
            .map(|leaf| (self.path(leaf).to_owned(), self.array(&none, leaf).data_type().clone()))
            .collect()
    }

    /// A leaf's values; a field of a null struct is null.
    pub(super) fn array(&self, rows: &RecordBatch, leaf: usize) -> ArrayRef {
        let leaf = &self.leaves[leaf];
        let mut array = Arc::clone(rows.column(leaf.steps[0]));
        let mut nulls: Option<NullBuffer> = None;
        for step in &leaf.steps[1..] {
            nulls = NullBuffer::union(nulls.as_ref(), array.nulls());
            array = Arc::clone(array.as_struct().column(*step));
        }
        if leaf.presence {
            nulls = NullBuffer::union(nulls.as_ref(), array.nulls());
            let there = nulls.map(|nulls| nulls.into_inner());
            let there = there.unwrap_or_else(|| arrow::buffer::BooleanBuffer::new_set(array.len()));
            return Arc::new(BooleanArray::new(there, None));
        }
        match nulls.filter(|nulls| nulls.null_count() > 0) {
            None => array,
            Some(nulls) => {
                let nulls = NullBuffer::union(Some(&nulls), array.nulls());
                let data = array.to_data().into_builder().nulls(nulls);
                // The same buffers with more nulls; should arrow refuse, the field is as it was.
                data.build().map_or(array, make_array)
            }
        }
    }
}

fn push(field: &Field, above: String, steps: Vec<usize>, into: &mut Vec<Leaf>) {
    let path =
        if above.is_empty() { field.name().clone() } else { format!("{above}.{}", field.name()) };
    let DataType::Struct(fields) = field.data_type() else {
        into.push(Leaf { path, steps, presence: false });
        return;
    };
    if field.is_nullable() || fields.is_empty() {
        into.push(Leaf { path: path.clone(), steps: steps.clone(), presence: true });
    }
    for (index, inner) in fields.iter().enumerate() {
        push(inner, path.clone(), [steps.as_slice(), &[index]].concat(), into);
    }
}
