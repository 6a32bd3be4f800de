//! The demo's lake: real flights, a production folder made by defective logic, and corrections of
//! which one day's file is bad.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use chrono::DateTime;
use futures::TryStreamExt as _;

use crate::calendar::{Calendar, Interval, Range, Span};
use crate::dataset::{PartitionColumn, Placement, TimeKind};
use crate::error::{Error, ErrorKind, Result, from_arrow, from_engine};
use crate::parquet_file::FileWriter;
use crate::plan::{PinnedSource, pin_source, source_table};
use crate::query::{Parameters, Query, Session, SessionOptions, conform};
use crate::spec::{Source, calendar_of};
use crate::storage::{Environment, Stores};

/// Who makes the candidate.
pub(crate) const MAKER: &str = "analyst@example.com";
/// Who owns the dataset.
pub(crate) const APPROVER: &str = "owner@example.com";

const SPEC: &str = include_str!("on_time.toml");
const SQL: &str = include_str!("../../../sql/models/on_time.sql");
const SQL_BEFORE: &str = include_str!("../../../sql/models/on_time_before.sql");

/// Day 17 of the range.
const BAD_DAY: &str = "2013-01-17";

/// The second delivery of its corrections, waiting to replace the first.
const MENDED: &str = "second-delivery/corrections.parquet";

/// One correction: carrier, flight, origin, delay, and the day it is of (days after its folder's).
type Correction = (&'static str, i32, &'static str, i32, i32);

/// Corrections of real flights of day 17, as they should be.
const GOOD: [Correction; 2] = [("AA", 145, "JFK", 41, 0), ("AA", 269, "JFK", 3, 0)];

/// The same as they were delivered: one row twice, one moved to the next day.
const BAD: [Correction; 3] =
    [("AA", 145, "JFK", 41, 0), ("AA", 145, "JFK", 41, 0), ("AA", 269, "JFK", 3, 1)];

/// A folder with everything that the story needs.
#[derive(Debug)]
pub(crate) struct Lake {
    folder: PathBuf,
    stores: Stores,
}

impl Lake {
    /// Makes the lake in a folder that must be empty or new.
    pub(crate) async fn make(folder: &Path, data: &Path) -> Result<Self> {
        let folder = std::path::absolute(folder)
            .map_err(|error| Error::invalid("the folder is not usable").because(error))?;
        if folder.join("lake").exists() {
            return Err(Error::invalid("the folder has a lake already")
                .with("folder", folder.display())
                .hint("name a new folder"));
        }
        for part in ["lake", "specs", "sql"] {
            make_folder(&folder.join(part))?;
        }
        copy_tree(&data.join("flights"), &folder.join("lake/flights"))?;
        write_text(&folder.join("specs/on_time.toml"), SPEC)?;
        write_text(&folder.join("sql/on_time.sql"), SQL)?;
        let lake = Self { folder, stores: Stores::new(Environment::default()) };
        lake.make_production().await?;
        let path = |day: &str| format!("lake/corrections/flight_date={day}/corrections.parquet");
        let other_day = "2013-01-05";
        lake.write_corrections(&path(other_day), other_day, &[("AA", 1, "JFK", 7, 0)]).await?;
        lake.write_corrections(&path(BAD_DAY), BAD_DAY, &BAD).await?;
        lake.write_corrections(MENDED, BAD_DAY, &GOOD).await?;
        Ok(lake)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A path in the lake, as text.
    pub(crate) fn path(&self, path: &str) -> String {
        self.folder.join(path).display().to_string()
    }

    /// Delivers the corrections of day 17 once more, as they should be.
    pub(crate) fn mend_corrections(&self) -> Result<()> {
        let folder = self.folder.join(format!("lake/corrections/flight_date={BAD_DAY}"));
        let fail = |error| Error::invalid("the bad file cannot be replaced").because(error);
        fs::rename(self.folder.join(MENDED), folder.join("corrections.parquet")).map_err(fail)
    }

    async fn write_corrections(&self, path: &str, day: &str, rows: &[Correction]) -> Result<()> {
        let calendar = days()?;
        let first = calendar.named(day)?.local_start.date();
        let date = first.signed_duration_since(chrono::NaiveDate::default()).num_days();
        let date = i32::try_from(date).unwrap_or_default();
        let batch = RecordBatch::try_from_iter([
            (
                "carrier",
                Arc::new(StringArray::from_iter_values(rows.iter().map(|r| r.0))) as ArrayRef,
            ),
            ("flight", Arc::new(Int32Array::from_iter_values(rows.iter().map(|r| r.1)))),
            ("origin", Arc::new(StringArray::from_iter_values(rows.iter().map(|r| r.2)))),
            ("dep_delay", Arc::new(Int32Array::from_iter_values(rows.iter().map(|r| r.3)))),
            (
                "local_date",
                Arc::new(Date32Array::from_iter_values(rows.iter().map(|r| date + r.4))),
            ),
        ])
        .map_err(|error| from_arrow(ErrorKind::Internal, "make corrections", error))?;
        self.write(path, batch.schema(), &[batch]).await
    }

    async fn write(&self, path: &str, schema: SchemaRef, batches: &[RecordBatch]) -> Result<()> {
        let root = self.stores.root(".", &self.folder)?;
        let mut writer = FileWriter::new(schema, root.writer(path).await?)?;
        for batch in batches {
            writer.write(batch).await?;
        }
        writer.finish().await.map(drop)
    }

    /// Writes production as the defective logic made it.
    async fn make_production(&self) -> Result<()> {
        let calendar = days()?;
        let source = Source {
            url: "lake/flights".to_owned(),
            interval: Some("flight_date".to_owned()),
            lookback: Span::NONE,
            lookahead: Span::NONE,
            timezone: None,
        };
        let flights = pin_source(&self.stores, &self.folder, "flights", &source, &calendar).await?;
        let range = Range::Inclusive { first: "2013-01-01".into(), last: "2013-04-30".into() };
        for interval in calendar.partitions(&range)? {
            self.make_partition(&flights, &calendar, &interval).await?;
        }
        Ok(())
    }

    async fn make_partition(
        &self,
        flights: &PinnedSource,
        calendar: &Calendar,
        interval: &Interval,
    ) -> Result<()> {
        let column = PartitionColumn {
            column: "flight_date".to_owned(),
            placement: Placement::Path,
            time: TimeKind::Date,
            calendar: calendar.clone(),
        };
        let query = Query::parse(SQL_BEFORE, "on_time_before.sql")?;
        let session = Session::new(&SessionOptions::default())?;
        let footers = Some(flights.footers.as_slice());
        session.register(
            "flights",
            source_table(&flights.pin, &flights.store, calendar, interval, footers, false)?,
        )?;
        let parameters = Parameters::of(interval, &column, DateTime::UNIX_EPOCH, &BTreeMap::new())?;
        let stream = session.run(&query, &parameters, &[]).await?;
        let batches: Vec<RecordBatch> = stream
            .try_collect()
            .await
            .map_err(|error| from_engine(ErrorKind::Internal, "make production", error))?;
        let Some(first) = batches.first() else { return Ok(()) };
        let given = first.schema();
        let kept = given.fields().iter().filter(|field| field.name() != "flight_date");
        let fields: Vec<_> = kept
            .map(|field| {
                let plain = crate::dataset::plain(field.data_type());
                arrow::datatypes::Field::new(field.name(), plain, true)
            })
            .collect();
        let schema = Arc::new(arrow::datatypes::Schema::new(fields));
        let rows: Vec<RecordBatch> =
            batches.iter().map(|batch| conform(batch, &schema)).collect::<Result<_>>()?;
        let path = format!("lake/on_time/{}/part-0.parquet", column.folder(&interval.name));
        self.write(&path, schema, &rows).await
    }
}

fn days() -> Result<Calendar> {
    calendar_of(crate::calendar::Every::Day, "America/New_York", None)
}

fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| {
        Error::invalid("the folder cannot be made").with("folder", folder.display()).because(error)
    })
}

#[expect(clippy::disallowed_methods, reason = "the demo's own folder")]
fn write_text(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).map_err(|error| {
        Error::invalid("the file cannot be written").with("file", file.display()).because(error)
    })
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    let fail = |error: std::io::Error| {
        Error::invalid("the flights cannot be copied").with("from", from.display()).because(error)
    };
    make_folder(to)?;
    for entry in fs::read_dir(from).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let target = to.join(entry.file_name());
        if entry.file_type().map_err(fail)?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target).map_err(fail)?;
        }
    }
    Ok(())
}
