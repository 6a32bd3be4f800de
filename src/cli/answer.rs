//! What a command answers, for people and for machines.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde::Serialize;

use super::exit;
use crate::error::{Error, Result};

/// A command's answer.
#[derive(Debug)]
pub(super) struct Answer {
    text: String,
    json: serde_json::Value,
    next: Option<String>,
    exit: u8,
}

impl Answer {
    /// An answer that people read as `text` and machines as `value`.
    pub(super) fn new(text: impl Into<String>, value: &impl Serialize) -> Result<Self> {
        let json = serde_json::to_value(value)
            .map_err(|error| Error::internal("write the answer as JSON").because(error))?;
        Ok(Self { text: text.into(), json, next: None, exit: exit::DONE })
    }

    /// What to do next, as a command that can be pasted.
    pub(super) fn next(mut self, command: impl Into<String>) -> Self {
        self.next = Some(command.into());
        self
    }

    /// Another exit code than 0.
    pub(super) fn exit(mut self, code: u8) -> Self {
        self.exit = code;
        self
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn json(&self) -> &serde_json::Value {
        &self.json
    }

    pub(super) fn code(&self) -> u8 {
        self.exit
    }

    /// Prints the answer and gives its exit code.
    pub(super) fn print(&self, json: bool) -> ExitCode {
        if json {
            let mut value = self.json.clone();
            if let Some(object) = value.as_object_mut() {
                object.insert("exit_code".to_owned(), self.exit.into());
                if let Some(next) = &self.next {
                    object.insert("next".to_owned(), next.as_str().into());
                }
            }
            write_out(&format!("{value}\n"));
        } else {
            write_out(&self.text);
            if let Some(next) = &self.next {
                write_err(&format!("\nnext: {next}\n"));
            }
        }
        ExitCode::from(self.exit)
    }
}

/// Prints an error and gives its exit code.
pub(super) fn print_error(error: &Error, json: bool) -> ExitCode {
    let code = exit::code(error.kind());
    if json {
        let context: serde_json::Map<String, serde_json::Value> = error
            .context()
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.as_str().into()))
            .collect();
        let value = serde_json::json!({
            "error": {
                "kind": error.kind().name(),
                "message": error.message(),
                "context": context,
                "causes": error.causes(),
                "hints": error.hints(),
                "retryable": error.kind().is_retryable(),
            },
            "exit_code": code,
        });
        write_out(&format!("{value}\n"));
    } else {
        write_err(&error_text(error));
    }
    ExitCode::from(code)
}

/// An error as people read it.
pub(super) fn error_text(error: &Error) -> String {
    let mut text = format!("error: {}\n", error.message());
    for (name, value) in error.context() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name}: {value}");
    }
    for cause in error.causes() {
        let _ = writeln!(text, "  because: {cause}");
    }
    for hint in error.hints() {
        let _ = writeln!(text, "hint: {hint}");
    }
    text
}

// A reader that has seen enough closes the pipe; that is no error of ours.
pub(super) fn write_out(text: &str) {
    let mut out = std::io::stdout().lock();
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

pub(super) fn write_err(text: &str) {
    drop(std::io::stderr().lock().write_all(text.as_bytes()));
}

/// Rows under headings, as wide as they need.
pub(super) fn table(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(headings);
    for row in rows {
        table.add_row(row);
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    format!("{}\n", lines.join("\n"))
}

/// A number with its thousands apart.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A size for people.
pub(super) fn bytes(number: u64) -> String {
    bytesize::ByteSize(number).display().iec().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_000), "1,000");
        assert_eq!(thousands(1_234_567), "1,234,567");
    }
}
