//! Values of a column in another order.
//!
//! What costs is not the copying but that each value lies somewhere else in memory. A column of few
//! short texts is gathered as codes of one byte, which are near each other.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray as _, StringViewArray, UInt32Array};
use arrow::compute::{interleave, take};
use arrow::datatypes::DataType;

use crate::error::{ErrorKind, Result, from_arrow};

/// One column over several batches.
pub(super) enum Gather {
    /// A code for each row, the first row of each batch, and the texts.
    Codes { codes: Vec<u8>, starts: Vec<usize>, texts: ArrayRef },
    /// As it is.
    Arrays(Vec<ArrayRef>),
}

impl Gather {
    pub(super) fn new(arrays: Vec<ArrayRef>) -> Self {
        match codes(&arrays) {
            Some((codes, texts)) => {
                let lengths = arrays.iter().scan(0, |end, array| {
                    let start = *end;
                    *end += array.len();
                    Some(start)
                });
                Self::Codes { codes, starts: lengths.collect(), texts }
            }
            None => Self::Arrays(arrays),
        }
    }

    /// The values at these places, each a batch and a row of it.
    pub(super) fn at(&self, places: &[(usize, usize)]) -> Result<ArrayRef> {
        let gathered = match self {
            Self::Codes { codes, starts, texts } => {
                let of = |(batch, row): &(usize, usize)| u32::from(codes[starts[*batch] + row]);
                let codes: UInt32Array = places.iter().map(of).collect::<Vec<u32>>().into();
                take(texts, &codes, None)
            }
            Self::Arrays(arrays) => {
                let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
                interleave(&arrays, places)
            }
        };
        gathered.map_err(|error| from_arrow(ErrorKind::Internal, "put rows into key order", error))
    }
}

/// Bytes of a text that lies in its view.
const SHORT: u128 = 12;

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
            if *view & 0xffff_ffff > SHORT {
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
                let gather = Gather::new(arrays.clone());
                let has_codes = matches!(gather, Gather::Codes { .. });
                assert_eq!(has_codes, !with_nulls && different <= 256 && length <= 12);
                assert_eq!(&gather.at(&places).unwrap(), &expected);
            }
        }
    }
}
