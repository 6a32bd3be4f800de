//! Names made from content: SHA-256 over canonical JSON, BLAKE3 over file bytes.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};

/// A SHA-256, written as 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// The digest of some bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(hex::encode(Sha256::digest(bytes)))
    }

    /// The digest of a value's canonical JSON: keys in order, no white space.
    ///
    /// # Errors
    /// `Internal` when the value cannot be written as JSON.
    pub fn of_json<T: Serialize>(value: &T) -> Result<Self> {
        // A `Value` keeps its maps sorted by key, which makes the text canonical.
        let value = serde_json::to_value(value)
            .map_err(|error| Error::internal("write canonical JSON").because(error))?;
        Ok(Self::of_bytes(value.to_string().as_bytes()))
    }

    /// All 64 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first 12 digits, enough for people.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }

    /// Reads 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let well_formed = text.len() == 64
            && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        well_formed.then(|| Self(text.to_owned()))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A floating-point number that is written as text and so read back as exactly the same one: what
/// is digested must survive being stored.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Real(pub f64);

impl fmt::Display for Real {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without hundreds of zeros.
        match self.0.abs() {
            size if size >= 1e16 || (size > 0.0 && size < 1e-6) => fmt::LowerExp::fmt(&self.0, f),
            _ => self.0.fmt(f),
        }
    }
}

impl Serialize for Real {
    fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{:?}", self.0))
    }
}

impl<'de> Deserialize<'de> for Real {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        struct AsNumberOrText;
        impl serde::de::Visitor<'_> for AsNumberOrText {
            type Value = Real;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_f64<E: serde::de::Error>(self, value: f64) -> std::result::Result<Real, E> {
                Ok(Real(value))
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> std::result::Result<Real, E> {
                Ok(Real(value as f64))
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> std::result::Result<Real, E> {
                Ok(Real(value as f64))
            }

            fn visit_str<E: serde::de::Error>(self, value: &str) -> std::result::Result<Real, E> {
                value.parse().map(Real).map_err(|_| E::custom(format!("{value:?} is no number")))
            }
        }
        from.deserialize_any(AsNumberOrText)
    }
}

/// The BLAKE3 of some bytes, as hexadecimal digits: how a file is known.
pub fn file_hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Pretty JSON with a final newline: how our small objects are stored.
///
/// # Errors
/// `Internal` when the value cannot be written as JSON.
pub fn to_json<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    let value = serde_json::to_value(value)
        .map_err(|error| Error::internal("write JSON").because(error))?;
    let mut bytes = serde_json::to_vec_pretty(&value)
        .map_err(|error| Error::internal("write JSON").because(error))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Reads one of our small objects.
///
/// # Errors
/// `Corrupt` when the bytes are not what this version of the format writes.
pub fn from_json<T: serde::de::DeserializeOwned>(bytes: &[u8], path: &str) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        Error::corrupt("stored object is not readable JSON of its kind")
            .with("object", path)
            .because(error)
            .hint("it was changed or cut short after it was written; restore it from a backup")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_json_does_not_depend_on_field_order() {
        let one = serde_json::json!({"b": 1, "a": [1, 2]});
        let two = serde_json::json!({"a": [1, 2], "b": 1});
        assert_eq!(Digest::of_json(&one).unwrap(), Digest::of_json(&two).unwrap());
        let three = serde_json::json!({"a": [2, 1], "b": 1});
        assert_ne!(Digest::of_json(&one).unwrap(), Digest::of_json(&three).unwrap());
    }

    #[test]
    fn numbers_survive_being_stored() {
        for value in [0.1, 1.0 / 3.0, f64::MIN_POSITIVE / 3.0, -0.0, 5e-324, 1.797e308] {
            let stored = to_json(&Real(value)).unwrap();
            let back: Real = from_json(&stored, "test").unwrap();
            assert_eq!(back.0.to_bits(), value.to_bits());
        }
    }

    #[test]
    fn only_full_lower_case_digests_are_read() {
        let digest = Digest::of_bytes(b"x");
        assert_eq!(Digest::parse(digest.as_str()), Some(digest.clone()));
        assert_eq!(Digest::parse(&digest.as_str().to_uppercase()), None);
        assert_eq!(Digest::parse(digest.short()), None);
    }
}
