//! Values of a column in another order.
//!
//! What costs is not the copying but that each value lies somewhere else in memory. A column of few
//! short texts is gathered as codes of one byte, which are near each other; other values of one width
//! are put side by side first, so that a place is one number.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray as _, StringViewArray, UInt32Array};
use arrow::compute::{concat, interleave, take};
use arrow::datatypes::DataType;

use crate::error::{Error, ErrorKind, Result, from_arrow};
use crate::text_views;

/// One column over several batches.
pub(super) enum Gather {
    /// A code for each row, and the texts.
    Codes { codes: Vec<u8>, texts: ArrayRef },
    /// All of it.
    Whole(ArrayRef),
    /// As it is, and the first row of each part.
    Parts { arrays: Vec<ArrayRef>, starts: Vec<usize> },
}

impl Gather {
    pub(super) fn new(arrays: Vec<ArrayRef>) -> Result<Self> {
        if let Some((codes, texts)) = codes(&arrays) {
            return Ok(Self::Codes { codes, texts });
        }
        if arrays.first().is_some_and(|array| has_one_width(array.data_type())) {
            let parts: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
            return Ok(Self::Whole(concat(&parts).map_err(failed)?));
        }
        let starts = arrays.iter().scan(0, |end, array| {
            let start = *end;
            *end += array.len();
            Some(start)
        });
        Ok(Self::Parts { starts: starts.collect(), arrays })
    }

    /// The values at these places, counted over all batches.
    pub(super) fn at(&self, places: &UInt32Array) -> Result<ArrayRef> {
        let gathered = match self {
            Self::Codes { codes, texts } => {
                let of = |place: &u32| u32::from(codes[*place as usize]);
                let codes: UInt32Array =
                    places.values().iter().map(of).collect::<Vec<u32>>().into();
                take(texts, &codes, None)
            }
            Self::Whole(array) => take(array, places, None),
            Self::Parts { arrays, starts } => {
                let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
                let places = places.values().iter().map(|place| {
                    let place = *place as usize;
                    // The last part that starts at the place or before; empty parts start there too.
                    let part = starts.partition_point(|start| *start <= place).saturating_sub(1);
                    (part, place - starts[part])
                });
                interleave(&arrays, &places.collect::<Vec<_>>())
            }
        };
        gathered.map_err(failed)
    }
}

fn failed(error: arrow::error::ArrowError) -> Error {
    from_arrow(ErrorKind::Internal, "put rows into key order", error)
}

/// Whether an array of the type can be put together without moving more than its values: texts and
/// binaries that are views stay where they are.
fn has_one_width(data_type: &DataType) -> bool {
    data_type.primitive_width().is_some()
        || matches!(
            data_type,
            DataType::Boolean
                | DataType::FixedSizeBinary(_)
                | DataType::Utf8View
                | DataType::BinaryView
        )
}

/// Codes for a column of at most 256 different short texts without nulls.
fn codes(arrays: &[ArrayRef]) -> Option<(Vec<u8>, ArrayRef)> {
    if !arrays.iter().all(|array| array.data_type() == &DataType::Utf8View) {
        return None;
    }
    let mut known: HashMap<u128, u8> = HashMap::new();
    let mut texts: Vec<&str> = Vec::new();
    let mut codes = Vec::with_capacity(arrays.iter().map(|array| array.len()).sum());
    // The code of the view that was seen last at each place of a small table.
    let mut seen: [(u128, Option<u8>); 256] = [(0, None); 256];
    for array in arrays {
        let values = array.as_string_view();
        if values.null_count() > 0 {
            return None;
        }
        for (row, view) in values.views().iter().enumerate() {
            let place = &mut seen[place_of(*view)];
            if let (held, Some(code)) = *place
                && held == *view
            {
                codes.push(code);
                continue;
            }
            if text_views::length(*view) > text_views::LONGEST {
                return None;
            }
            let code = match known.get(view) {
                Some(code) => *code,
                None => {
                    let code = u8::try_from(texts.len()).ok()?;
                    texts.push(values.value(row));
                    known.insert(*view, code);
                    code
                }
            };
            *place = (*view, Some(code));
            codes.push(code);
        }
    }
    Some((codes, Arc::new(StringViewArray::from_iter_values(texts))))
}

fn place_of(view: u128) -> usize {
    let bytes = view.to_le_bytes();
    let [low, high] = [0, 8].map(|at| {
        let mut half = [0; 8];
        half.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(half)
    });
    usize::from((low ^ high).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0])
}

#[cfg(test)]
mod tests {
    use arrow::compute::cast;

    use super::*;

    #[test]
    fn few_texts_and_many_long_or_absent_ones_are_gathered_alike() {
        for (different, length) in [(1, 0), (7, 3), (256, 12), (257, 12), (9, 13)] {
            for with_nulls in [false, true] {
                let text = |n: usize| {
                    let text = format!("{:0length$}", n * 31 % different);
                    let text = if length == 0 { String::new() } else { text };
                    (!with_nulls || !n.is_multiple_of(5)).then_some(text)
                };
                let arrays: Vec<ArrayRef> = (0..3)
                    .map(|batch| {
                        let texts = (0..1_000).map(|row| text(batch * 1_000 + row));
                        Arc::new(StringViewArray::from_iter(texts)) as ArrayRef
                    })
                    .collect();
                let places: Vec<(usize, usize)> =
                    (0..3_000).map(|n| (n * 7 % 3, n * 13 % 1_000)).collect();
                let held: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
                let expected = interleave(&held, &places).unwrap();
                let flat =
                    places.iter().map(|(batch, row)| u32::try_from(batch * 1_000 + row).unwrap());
                let flat = UInt32Array::from_iter_values(flat);
                let gather = Gather::new(arrays.clone()).unwrap();
                let has_codes = matches!(gather, Gather::Codes { .. });
                assert_eq!(has_codes, !with_nulls && different <= 256 && length <= 12);
                assert_eq!(&gather.at(&flat).unwrap(), &expected);
                let texts: Vec<ArrayRef> =
                    arrays.iter().map(|array| cast(array, &DataType::Utf8).unwrap()).collect();
                let gather = Gather::new(texts).unwrap();
                assert!(matches!(gather, Gather::Parts { .. }));
                let again = cast(&gather.at(&flat).unwrap(), &DataType::Utf8View).unwrap();
                assert_eq!(&again, &expected);
            }
        }
    }
}
