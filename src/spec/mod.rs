//! What a person asks for: one TOML file beside one SQL file.
//!
//! Reading a spec checks its form; whether the dataset, the sources and the SQL agree with it is
//! the plan's business. Unknown keys are refused, and every error shows the line.

mod bound;
mod checks;
mod limits;
mod parameters;
mod rules;
mod sample;
mod toml_text;
mod window;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::calendar::{Calendar, Every, Range, Span};
use crate::compare::Equality;
use crate::error::{Error, Result};

pub use bound::{Bound, Per, Quantity, Reference as BoundReference, Statistic};
pub use checks::{Balance, Bounds, Checks, Count, Expect, NullRate, RowBounds, SumBounds};
pub use limits::Limits;
pub use parameters::{Parameter, StoredParameter};
pub use rules::{Direction, DistinctBounds, Drift, Reference, Rules, Severity, Violations};
pub(crate) use sample::RANK;
pub use sample::Sample;
pub use toml_text::read_toml;
pub use window::Window;

use toml_text::TomlText;

/// A backfill as asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The dataset to correct.
    pub dataset: DatasetSpec,
    /// Which partitions; the command line may say instead.
    #[serde(default)]
    pub range: Option<Range>,
    /// Why, for whom, and what may change.
    pub change: ChangeSpec,
    /// The corrected logic.
    pub transform: Transform,
    /// Typed values for the SQL.
    #[serde(default)]
    pub parameters: BTreeMap<String, Parameter>,
    /// The input tables, by the name that the SQL uses.
    pub sources: BTreeMap<String, Source>,
    /// How much may be done at once.
    #[serde(default)]
    pub limits: Limits,
    /// What must hold inside the candidate.
    #[serde(default)]
    pub checks: Checks,
    /// What must hold of the difference to production.
    #[serde(default)]
    pub expect: Expect,
    /// When values are equal, by column; exactly unless said otherwise.
    #[serde(default)]
    pub compare: Equality,
    /// How the result becomes production.
    #[serde(default)]
    pub publish: PublishSpec,
    /// The folder that relative paths are relative to: the spec's own.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// The dataset a spec corrects.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetSpec {
    /// Its root: a path relative to the spec, or a URL.
    pub url: String,
    /// Its partitioning, as the dataset itself has it.
    pub partition: PartitionSpec,
    /// Columns that together are unique within a partition; rows are written in this order.
    pub key: Vec<String>,
}

/// A dataset's partitioning as a spec states it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionSpec {
    /// The partition column.
    pub column: String,
    /// How long a partition is, and by which clock.
    pub every: Every,
    /// The IANA zone.
    pub timezone: String,
    /// The first day of a week; needed exactly for weeks.
    #[serde(default)]
    pub week_start: Option<String>,
}

/// Why a backfill happens and what it may change.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeSpec {
    /// The reason, in a sentence.
    pub reason: String,
    /// Who answers for the result.
    pub owner: String,
    /// The only columns whose values may differ from production.
    pub columns: BTreeSet<String>,
    /// Why the range covers everything that is wrong.
    #[serde(default)]
    pub why_range: Option<String>,
    /// Jobs that read the dataset; publish names them.
    #[serde(default)]
    pub downstream: Option<Vec<String>>,
    /// What else the change sets off outside the dataset; publish names it.
    #[serde(default)]
    pub side_effects: Option<Vec<String>>,
    /// After this the plan can be neither run, approved nor published.
    #[serde(default)]
    pub expires: Option<toml::value::Datetime>,
    /// Runs start batches, and publishes happen, only inside.
    #[serde(default)]
    pub window: Option<Window>,
}

/// The corrected logic.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transform {
    /// The SQL file, relative to the spec.
    pub sql: PathBuf,
    /// How its rows become the partition.
    #[serde(default)]
    pub mode: Mode,
    /// The instant that `$as_of` stands for.
    #[serde(default)]
    pub as_of: Option<toml::value::Datetime>,
}

/// How a query's rows become the partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// They are the partition.
    #[default]
    Replace,
}

/// An input table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// A file or folder: a path relative to the spec, or a URL. A reissue dataset is read through
    /// its current version.
    pub url: String,
    /// The column that tells a row's time; none: reference data, read whole.
    #[serde(default)]
    pub interval: Option<String>,
    /// How much before a partition's start its query sees.
    #[serde(default = "no_span")]
    pub lookback: Span,
    /// How much after a partition's end its query sees.
    #[serde(default = "no_span")]
    pub lookahead: Span,
    /// The zone of an interval column that is a timestamp without one.
    #[serde(default)]
    pub timezone: Option<String>,
}

fn no_span() -> Span {
    Span::NONE
}

/// How a result becomes production.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PublishSpec {
    /// The whole run at once, or batch by batch in order.
    pub unit: Unit,
    /// How long a rollback must stay possible.
    pub rollback_window: Span,
}

impl Default for PublishSpec {
    fn default() -> Self {
        let rollback_window = Span { amount: 30, unit: crate::calendar::SpanUnit::Day };
        Self { unit: Unit::Run, rollback_window }
    }
}

/// What becomes visible in one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// All partitions of the run.
    Run,
    /// One batch.
    Batch,
}

impl Spec {
    /// Reads a spec; paths in it are relative to the file's folder.
    ///
    /// # Errors
    /// `Invalid`, with file, line, what was found and what to write instead.
    pub fn from_toml(text: &str, file: &Path) -> Result<Self> {
        let name = file.display().to_string();
        let mut spec: Self = read_toml(text, &name)?;
        spec.folder = file.parent().unwrap_or(Path::new("")).to_path_buf();
        spec.check(&TomlText { text, file: &name })?;
        Ok(spec)
    }

    /// The calendar that the spec states.
    ///
    /// # Errors
    /// `Invalid` for an unknown zone or weekday.
    pub fn calendar(&self) -> Result<Calendar> {
        let partition = &self.dataset.partition;
        calendar_of(partition.every, &partition.timezone, partition.week_start.as_deref())
    }

    /// The instant that `$as_of` stands for.
    ///
    /// # Errors
    /// `Invalid` when it is written without an offset.
    pub fn as_of(&self) -> Result<Option<DateTime<Utc>>> {
        let Some(value) = &self.transform.as_of else { return Ok(None) };
        let at = DateTime::parse_from_rfc3339(&value.to_string()).map_err(|_| {
            Error::invalid(format!("transform.as_of = {value} is no instant"))
                .hint("write it with its offset: 2013-04-01T00:00:00Z")
        })?;
        Ok(Some(at.with_timezone(&Utc)))
    }

    fn check(&self, at: &TomlText<'_>) -> Result<()> {
        let calendar =
            self.calendar().map_err(|error| at.locate(error, &["dataset", "partition"]))?;
        if let Some(range) = &self.range {
            calendar.partitions(range).map_err(|error| at.locate(error, &["range"]))?;
        }
        self.as_of().map_err(|error| at.locate(error, &["transform", "as_of"]))?;
        let filled = [
            (&self.change.reason, ["change", "reason"], "say why, with a ticket if there is one"),
            (&self.change.owner, ["change", "owner"], "say who answers for the result"),
        ];
        for (value, path, fix) in filled {
            if value.trim().is_empty() {
                let error = Error::invalid(format!("{} is empty", path.join("."))).hint(fix);
                return Err(at.locate(error, &path));
            }
        }
        self.check_lists(at)?;
        for (name, source) in &self.sources {
            check_source(name, source).map_err(|error| at.locate(error, &["sources", name]))?;
        }
        if let Some(name) = self.parameters.keys().find(|name| RESERVED.contains(&name.as_str())) {
            let error = Error::invalid(format!("${name} is given to every query already"))
                .hint("call the parameter something else");
            return Err(at.locate(error, &["parameters", name]));
        }
        self.checks.check().map_err(|error| at.locate(error, &["checks"]))?;
        self.expect.check().map_err(|error| at.locate(error, &["expect"]))?;
        self.check_batches(at)?;
        self.limits.check().map_err(|error| at.locate(error, &["limits"]))
    }

    /// What is said of the whole run is never looked at when its batches are published one by one.
    fn check_batches(&self, at: &TomlText<'_>) -> Result<()> {
        if self.publish.unit != Unit::Batch {
            return Ok(());
        }
        let whole =
            "is about the whole run, which is never there when batches are published one by one";
        if !self.expect.net_change.is_empty() {
            let error = Error::invalid(format!("expect.net_change {whole}"))
                .hint("publish the run at once, or bound a sum of each batch: [[checks.bound]] with per = \"batch\"");
            return Err(at.locate(error, &["expect", "net_change"]));
        }
        if self.checks.bound.iter().any(|bound| bound.per == Per::Range) {
            let error = Error::invalid(format!("a bound with per = \"range\" {whole}"))
                .hint("publish the run at once, or write per = \"batch\"");
            return Err(at.locate(error, &["checks", "bound"]));
        }
        Ok(())
    }

    fn check_lists(&self, at: &TomlText<'_>) -> Result<()> {
        let key = &self.dataset.key;
        if key.is_empty() {
            let error = Error::invalid("dataset.key names no column")
                .hint("name the columns that are unique within a partition");
            return Err(at.locate(error, &["dataset", "key"]));
        }
        let distinct: BTreeSet<&String> = key.iter().collect();
        if distinct.len() != key.len() {
            let error = Error::invalid("dataset.key names a column twice");
            return Err(at.locate(error, &["dataset", "key"]));
        }
        if self.change.columns.is_empty() {
            let error = Error::invalid("change.columns names no column, so nothing may change")
                .hint("name the columns that the correction is about");
            return Err(at.locate(error, &["change", "columns"]));
        }
        if let Some(column) = self.change.columns.iter().find(|column| key.contains(column)) {
            let error = Error::invalid(format!("change.columns names the key column {column:?}"))
                .hint("a row whose key changes is another row: allow it with expect.added_rows and expect.removed_rows");
            return Err(at.locate(error, &["change", "columns"]));
        }
        if self.sources.is_empty() {
            let error = Error::invalid("no source is declared")
                .hint("add a table [sources.NAME] for each table the SQL reads");
            return Err(at.locate(error, &["sources"]));
        }
        Ok(())
    }
}

/// Parameters that every query gets.
pub const RESERVED: [&str; 6] = ["start", "end", "start_at", "end_at", "partition", "as_of"];

fn check_source(name: &str, source: &Source) -> Result<()> {
    let plain = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if !plain || name.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(Error::invalid(format!("{name:?} cannot be a table's name"))
            .hint("use small letters, digits and _"));
    }
    if matches!(name, "production" | "candidate") {
        return Err(Error::invalid(format!("{name:?} means something else in checks"))
            .hint("call the source something else"));
    }
    if source.interval.is_none() && (source.lookback.amount > 0 || source.lookahead.amount > 0) {
        return Err(Error::invalid(format!("source {name:?} has a lookback but no interval"))
            .hint("name the column that tells a row's time: interval = \"…\""));
    }
    Ok(())
}

/// A calendar from its parts as people write them.
///
/// # Errors
/// `Invalid` for an unknown zone or weekday, or a week without its first day.
pub fn calendar_of(every: Every, timezone: &str, week_start: Option<&str>) -> Result<Calendar> {
    let timezone = timezone.parse().map_err(|_| {
        Error::invalid(format!("{timezone:?} is no IANA time zone"))
            .hint("write one such as \"America/New_York\" or \"UTC\"")
    })?;
    let week_start = match (every, week_start) {
        (Every::Week, None) => {
            return Err(Error::invalid("weeks need a first day").hint(
                "write week_start = \"monday\" (or another day); on the command line, --week-start",
            ));
        }
        (Every::Week, Some(day)) => Some(day.parse().map_err(|_| {
            Error::invalid(format!("{day:?} is no day of the week"))
                .hint("write \"monday\" or such")
        })?),
        (_, Some(_)) => {
            return Err(Error::invalid("week_start is for weeks only")
                .hint("leave it out, or write every = \"week\""));
        }
        (_, None) => None,
    };
    Ok(Calendar { every, timezone, week_start })
}

#[cfg(test)]
mod tests;
