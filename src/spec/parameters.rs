//! Values that a spec gives to its SQL, typed as TOML types them.

use chrono::{DateTime, NaiveDate, NaiveDateTime};
use datafusion::common::ScalarValue;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A parameter as a plan keeps it: its kind and its value as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredParameter {
    /// `boolean`, `integer`, `float`, `datetime` or `text`.
    pub kind: String,
    /// The value.
    pub value: String,
}

impl From<&Parameter> for StoredParameter {
    fn from(parameter: &Parameter) -> Self {
        let (kind, value) = match parameter {
            Parameter::Boolean(value) => ("boolean", value.to_string()),
            Parameter::Integer(value) => ("integer", value.to_string()),
            Parameter::Float(value) => ("float", format!("{value:?}")),
            Parameter::Datetime(value) => ("datetime", value.to_string()),
            Parameter::Text(value) => ("text", value.clone()),
        };
        Self { kind: kind.to_owned(), value }
    }
}

impl StoredParameter {
    /// The parameter.
    ///
    /// # Errors
    /// `Corrupt` when the text is no value of its kind.
    pub fn parameter(&self) -> Result<Parameter> {
        let wrong = || Error::corrupt(format!("{:?} is no {}", self.value, self.kind));
        Ok(match self.kind.as_str() {
            "boolean" => Parameter::Boolean(self.value.parse().map_err(|_| wrong())?),
            "integer" => Parameter::Integer(self.value.parse().map_err(|_| wrong())?),
            "float" => Parameter::Float(self.value.parse().map_err(|_| wrong())?),
            "datetime" => Parameter::Datetime(self.value.parse().map_err(|_| wrong())?),
            "text" => Parameter::Text(self.value.clone()),
            _ => return Err(wrong()),
        })
    }
}

/// One parameter: an integer, float, string, boolean, date or timestamp.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Parameter {
    /// BOOLEAN
    Boolean(bool),
    /// BIGINT
    Integer(i64),
    /// DOUBLE
    Float(f64),
    /// DATE, TIMESTAMP, or TIMESTAMP WITH TIME ZONE when an offset is written
    Datetime(toml::value::Datetime),
    /// VARCHAR
    Text(String),
}

impl Parameter {
    /// The typed value.
    ///
    /// # Errors
    /// `Invalid` for a time of day without a date.
    pub fn value(&self) -> Result<ScalarValue> {
        match self {
            Self::Boolean(value) => Ok(ScalarValue::Boolean(Some(*value))),
            Self::Integer(value) => Ok(ScalarValue::Int64(Some(*value))),
            Self::Float(value) => Ok(ScalarValue::Float64(Some(*value))),
            Self::Text(value) => Ok(ScalarValue::Utf8(Some(value.clone()))),
            Self::Datetime(value) => datetime(value),
        }
    }
}

fn datetime(value: &toml::value::Datetime) -> Result<ScalarValue> {
    let text = value.to_string();
    let wrong = || {
        Error::invalid(format!("{text} is no date or timestamp"))
            .hint("write 2013-01-31, 2013-01-31T12:00:00 or 2013-01-31T12:00:00Z")
    };
    if value.offset.is_some() {
        let at = DateTime::parse_from_rfc3339(&text.replace(' ', "T")).map_err(|_| wrong())?;
        return Ok(ScalarValue::TimestampMicrosecond(
            Some(at.timestamp_micros()),
            Some("UTC".into()),
        ));
    }
    if value.date.is_some() && value.time.is_some() {
        let wall = NaiveDateTime::parse_from_str(&text.replace(' ', "T"), "%Y-%m-%dT%H:%M:%S%.f")
            .map_err(|_| wrong())?;
        return Ok(ScalarValue::TimestampMicrosecond(
            Some(wall.and_utc().timestamp_micros()),
            None,
        ));
    }
    let date = NaiveDate::parse_from_str(&text, "%Y-%m-%d").map_err(|_| wrong())?;
    let days = date.signed_duration_since(NaiveDate::default()).num_days();
    Ok(ScalarValue::Date32(Some(i32::try_from(days).map_err(|_| wrong())?)))
}
