//! The memory of batches that share buffers.

use std::collections::HashSet;

use arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::DataType;

/// Adds up batches. The buffers that views point into, which many batches may share, count once.
#[derive(Debug, Default)]
pub struct Footprint {
    seen: HashSet<usize>,
}

impl Footprint {
    /// The bytes that a batch adds to those before it.
    pub fn add(&mut self, batch: &RecordBatch) -> usize {
        batch.columns().iter().map(|array| self.of(array)).sum()
    }

    fn of(&mut self, array: &ArrayRef) -> usize {
        let buffers = match array.data_type() {
            DataType::Utf8View => array.as_string_view().data_buffers(),
            DataType::BinaryView => array.as_binary_view().data_buffers(),
            _ => return array.get_array_memory_size(),
        };
        let shared: usize = buffers.iter().map(Buffer::capacity).sum();
        let new = buffers.iter().filter(|buffer| self.seen.insert(buffer.as_ptr().addr()));
        let new: usize = new.map(Buffer::capacity).sum();
        array.get_array_memory_size().saturating_sub(shared) + new
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::StringViewArray;

    use super::*;

    #[test]
    fn what_slices_of_long_texts_share_counts_once() {
        let texts = (0..1_000).map(|row| format!("a text of more than twelve bytes, {row}"));
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts));
        let batch = RecordBatch::try_from_iter([("text", texts)]).unwrap();
        let mut footprint = Footprint::default();
        let whole = footprint.add(&batch);
        assert_eq!(whole, batch.get_array_memory_size());
        let again = footprint.add(&batch.slice(0, 10));
        assert!(again < whole / 2, "{again} of {whole}");
    }
}
