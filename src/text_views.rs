//! Texts that lie in their views: those of up to 12 bytes (Arrow's columnar format, "Variable-size
//! Binary View Layout"). The rest of such a view is zero, so that the same text is the same view.

use arrow::array::{Array as _, StringViewArray};

/// Bytes of the longest text that lies in its view.
pub(crate) const LONGEST: u64 = 12;

/// The bytes of a view's text.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lowest 32 bits are the length")]
pub(crate) fn length(view: u128) -> u64 {
    u64::from(view as u32)
}

/// The views of texts that all lie in them; none where one does not, or is null.
pub(crate) fn short(array: &StringViewArray) -> Option<&[u128]> {
    // 3 more than 12 is the most that fits into four bits. Nothing here asks each text by itself.
    let bits = |view: &u128| length(*view) + 15 - LONGEST;
    let any = array.views().iter().fold(0, |any, view| any | bits(view));
    (any < 16 && array.null_count() == 0).then_some(array.views())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_texts_of_up_to_twelve_bytes_without_nulls_are_short() {
        let of = |texts: &[Option<&str>]| short(&StringViewArray::from_iter(texts)).is_some();
        assert!(of(&[]) && of(&[Some("")]) && of(&[Some("123456789012"), Some("1")]));
        for length in 13..40 {
            assert!(!of(&[Some("1"), Some(&"x".repeat(length)), Some("")]), "{length}");
        }
        assert!(!of(&[Some("1"), None]));
    }
}
