//! What a dataset's partitions and columns are.

use std::str::FromStr as _;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use chrono::{DateTime, NaiveDateTime, Utc};
use datafusion::common::ScalarValue;
use serde::{Deserialize, Serialize};

use crate::calendar::{Calendar, Every, Interval};
use crate::error::{Error, Result};

/// A dataset's partitioning and columns; part of every version manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// How rows are cut into partitions.
    pub partition: PartitionColumn,
    /// The columns inside the files, in order.
    pub columns: Vec<ColumnDef>,
}

/// The partition column and its calendar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionColumn {
    /// The column's name, which is also the Hive key of the folders.
    pub column: String,
    /// Whether the files carry the column, or only the folder's name does.
    pub placement: Placement,
    /// How the column's values tell time.
    pub time: TimeKind,
    /// Which intervals exist.
    pub calendar: Calendar,
}

/// Where the partition column's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Only in the folder's name: `flight_date=2013-01-01`.
    Path,
    /// Also as a column of each file.
    File,
}

/// A kind of time. Values of different kinds must not be compared with each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeKind {
    /// A local date.
    Date,
    /// A partition's name, as text.
    Name,
    /// An instant: a timestamp with a zone.
    Instant {
        /// `s`, `ms`, `us` or `ns`.
        unit: String,
        /// The zone the column declares.
        zone: String,
    },
    /// A wall-clock reading: a timestamp without a zone.
    Wall {
        /// `s`, `ms`, `us` or `ns`.
        unit: String,
    },
}

/// One column of the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnDef {
    /// The exact name.
    pub name: String,
    /// The Arrow type, in Arrow's own notation.
    #[serde(rename = "type")]
    pub data_type: String,
    /// Whether values may be null.
    pub nullable: bool,
}

impl ColumnDef {
    /// From an Arrow field. Views and dictionaries count as what they hold.
    pub fn of(field: &Field) -> Self {
        Self {
            name: field.name().clone(),
            data_type: plain(field.data_type()).to_string(),
            nullable: field.is_nullable(),
        }
    }

    /// The Arrow field.
    ///
    /// # Errors
    /// `Corrupt` when the stored type is none.
    pub fn field(&self) -> Result<Field> {
        let data_type = DataType::from_str(&self.data_type).map_err(|error| {
            Error::corrupt(format!(
                "column {:?} has a type that is none: {}",
                self.name, self.data_type
            ))
            .because(error)
        })?;
        Ok(Field::new(&self.name, data_type, self.nullable))
    }
}

/// A type as it is stored: dictionaries and views are ways to hold values, not types of their own.
pub fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain(values),
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        other => other.clone(),
    }
}

impl Definition {
    /// The columns inside the files as an Arrow schema.
    ///
    /// # Errors
    /// `Corrupt` when a stored type is none.
    pub fn file_schema(&self) -> Result<SchemaRef> {
        let fields: Result<Vec<Field>> = self.columns.iter().map(ColumnDef::field).collect();
        Ok(Arc::new(Schema::new(fields?)))
    }

    /// The columns a reader sees: those of the files, then a partition column that is only in the
    /// path.
    ///
    /// # Errors
    /// `Corrupt` when a stored type is none.
    pub fn table_schema(&self) -> Result<SchemaRef> {
        let mut fields: Vec<Field> =
            self.columns.iter().map(ColumnDef::field).collect::<Result<_>>()?;
        if self.partition.placement == Placement::Path {
            fields.push(Field::new(&self.partition.column, self.partition.time.data_type(), false));
        }
        Ok(Arc::new(Schema::new(fields)))
    }
}

impl PartitionColumn {
    /// The folder of a partition: `flight_date=2013-01-01`.
    pub fn folder(&self, partition: &str) -> String {
        format!("{}={partition}", self.column)
    }

    /// The kind of a column that is only in the path: dates for whole dates, else names.
    pub fn path_time(calendar: &Calendar) -> TimeKind {
        match calendar.every {
            Every::Day | Every::Week => TimeKind::Date,
            Every::Hour | Every::Month => TimeKind::Name,
        }
    }

    /// The column's value at an interval's start, in the column's own type.
    ///
    /// # Errors
    /// `Invalid` when the instant is outside what the type can hold.
    pub fn start_value(&self, interval: &Interval) -> Result<ScalarValue> {
        self.time.value(&interval.name, interval.start, interval.local_start)
    }

    /// The value at an interval's end, which is outside of it.
    ///
    /// # Errors
    /// As [`PartitionColumn::start_value`].
    pub fn end_value(&self, interval: &Interval) -> Result<ScalarValue> {
        let next = self.calendar.next(interval);
        self.time.value(&next.name, interval.end, interval.local_end)
    }
}

impl TimeKind {
    /// The kind of a column, by its Arrow type.
    pub fn of(data_type: &DataType) -> Option<Self> {
        match plain(data_type) {
            DataType::Date32 | DataType::Date64 => Some(Self::Date),
            DataType::Timestamp(unit, Some(zone)) => {
                Some(Self::Instant { unit: unit_name(unit).into(), zone: zone.to_string() })
            }
            DataType::Timestamp(unit, None) => Some(Self::Wall { unit: unit_name(unit).into() }),
            DataType::Utf8 | DataType::LargeUtf8 => Some(Self::Name),
            _ => None,
        }
    }

    /// The Arrow type of the kind.
    pub fn data_type(&self) -> DataType {
        match self {
            Self::Date => DataType::Date32,
            Self::Name => DataType::Utf8,
            Self::Instant { unit, zone } => {
                DataType::Timestamp(unit_of(unit), Some(zone.as_str().into()))
            }
            Self::Wall { unit } => DataType::Timestamp(unit_of(unit), None),
        }
    }

    /// In words, for errors.
    pub fn words(&self) -> &'static str {
        match self {
            Self::Date => "a local date",
            Self::Name => "a name",
            Self::Instant { .. } => "an instant (a timestamp with a zone)",
            Self::Wall { .. } => "a wall-clock reading (a timestamp without a zone)",
        }
    }

    /// A boundary as a value of this kind.
    ///
    /// # Errors
    /// `Invalid` when the boundary is outside what the type can hold.
    pub fn value(&self, name: &str, at: DateTime<Utc>, wall: NaiveDateTime) -> Result<ScalarValue> {
        match self {
            Self::Date => {
                let days =
                    wall.date().signed_duration_since(chrono::NaiveDate::default()).num_days();
                i32::try_from(days).map(|days| ScalarValue::Date32(Some(days))).map_err(|_| {
                    Error::invalid(format!("{name} is outside the dates that can be stored"))
                })
            }
            Self::Name => Ok(ScalarValue::Utf8(Some(name.to_owned()))),
            Self::Instant { unit, zone } => timestamp(unit, at, Some(zone.as_str().into())),
            Self::Wall { unit } => timestamp(unit, wall.and_utc(), None),
        }
    }
}

fn timestamp(unit: &str, at: DateTime<Utc>, zone: Option<Arc<str>>) -> Result<ScalarValue> {
    Ok(match unit_of(unit) {
        TimeUnit::Second => ScalarValue::TimestampSecond(Some(at.timestamp()), zone),
        TimeUnit::Millisecond => {
            ScalarValue::TimestampMillisecond(Some(at.timestamp_millis()), zone)
        }
        TimeUnit::Microsecond => {
            ScalarValue::TimestampMicrosecond(Some(at.timestamp_micros()), zone)
        }
        TimeUnit::Nanosecond => {
            let value = at.timestamp_nanos_opt().ok_or_else(|| {
                Error::invalid(format!("{at} cannot be stored in nanoseconds"))
                    .hint("nanoseconds reach from 1677 to 2262: declare the column in microseconds")
            })?;
            ScalarValue::TimestampNanosecond(Some(value), zone)
        }
    })
}

fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

fn unit_of(name: &str) -> TimeUnit {
    match name {
        "s" => TimeUnit::Second,
        "ms" => TimeUnit::Millisecond,
        "ns" => TimeUnit::Nanosecond,
        _ => TimeUnit::Microsecond,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stored_type_reads_back() {
        let fields = [
            DataType::Int32,
            DataType::Utf8,
            DataType::LargeUtf8,
            DataType::Float64,
            DataType::Boolean,
            DataType::Date32,
            DataType::Decimal128(18, 6),
            DataType::Decimal256(60, 2),
            DataType::Timestamp(TimeUnit::Microsecond, Some("America/New_York".into())),
            DataType::Timestamp(TimeUnit::Nanosecond, None),
            DataType::Time64(TimeUnit::Microsecond),
            DataType::FixedSizeBinary(16),
            DataType::new_list(DataType::Int64, true),
            DataType::Struct(vec![Field::new("a", DataType::Utf8, true)].into()),
        ];
        for data_type in fields {
            let column = ColumnDef::of(&Field::new("c", data_type.clone(), true));
            assert_eq!(column.field().unwrap().data_type(), &data_type, "{}", column.data_type);
        }
    }
}
