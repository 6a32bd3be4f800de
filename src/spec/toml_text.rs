//! TOML errors that show the line and say what to write.

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Error, Result};

/// A TOML text and where it came from.
pub(super) struct TomlText<'a> {
    pub(super) text: &'a str,
    pub(super) file: &'a str,
}

/// Reads a TOML text.
///
/// # Errors
/// `Invalid`, with the line shown.
pub fn read_toml<T: DeserializeOwned>(text: &str, file: &str) -> Result<T> {
    toml::from_str(text).map_err(|error| {
        let at = TomlText { text, file };
        let ours = Error::invalid(explain(error.message()));
        let ours = match error.span() {
            Some(span) => at.show(ours, span.start),
            None => ours.with("file", file),
        };
        match fix_of(error.message()) {
            Some(fix) => ours.hint(fix),
            None => ours,
        }
    })
}

fn explain(message: &str) -> String {
    message
        .lines()
        .next()
        .unwrap_or(message)
        .replace("unknown field", "unknown key")
        .replace("missing field", "missing key")
}

fn fix_of(message: &str) -> Option<&'static str> {
    if message.contains("unknown field") {
        Some("remove the key, or write one of those expected here")
    } else if message.contains("missing field") {
        Some("add the key to this table")
    } else if message.contains("unknown variant") {
        Some("write one of the values expected here")
    } else if message.contains("duplicate key") {
        Some("write the key once")
    } else if message.contains("invalid type") || message.contains("did not match") {
        Some("write a value of the expected type (docs/spec.md has every key)")
    } else {
        Some("check quotes, brackets and commas on this line")
    }
}

impl TomlText<'_> {
    /// Adds the line of a key to an error.
    pub(super) fn locate(&self, error: Error, path: &[&str]) -> Error {
        match self.offset(path) {
            Some(offset) => self.show(error, offset),
            None => error.with("file", self.file),
        }
    }

    fn show(&self, error: Error, offset: usize) -> Error {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let number = before.matches('\n').count() + 1;
        let line = self.text.lines().nth(number - 1).unwrap_or_default();
        error.with("file", self.file).with("line", format!("{number}: {}", line.trim_end()))
    }

    /// Where a key stands; its table when the key is absent.
    fn offset(&self, path: &[&str]) -> Option<usize> {
        let document = DeTable::parse(self.text).ok()?;
        let mut table: &DeTable<'_> = document.get_ref();
        let mut found = None;
        for part in path {
            let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref().as_ref() == *part)
            else {
                break;
            };
            found = Some(key.span().start);
            match Spanned::get_ref(value) {
                DeValue::Table(inner) => table = inner,
                _ => break,
            }
        }
        found
    }
}
