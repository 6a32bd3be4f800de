//! What will be done: an immutable dry run, whose id is a digest of what decides results and
//! verdicts.
//!
//! Planning twice gives the same id. *Terms* (limits, window, expiry, whom to tell) decide nothing
//! about results and are in no id; each amendment of them is an object of its own, and the newest
//! counts.

mod batches;
mod build;
mod checks;
mod dry_run;
mod pin;
mod provenance;
mod recipe;
mod saved;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::calendar::{Calendar, Interval, Span};
use crate::compare::Equality;
use crate::dataset::{ColumnDef, Definition, TimeKind};
use crate::error::Result;
use crate::identity::Digest;
use crate::query::{Parameters, PinnedTable};
use crate::spec::{Checks, Expect, Limits, Parameter, StoredParameter, Unit, Window};
use crate::storage::{Object, Stores};

pub use build::{PlanOptions, Planned, build};
pub(crate) use build::{agree, empty_tables, find_kept, read_sql};
pub use dry_run::{DryRun, DryRunBatch, DryRunPartition};
pub use pin::{PinnedSource, pin_source};
pub use provenance::{Provenance, git_identity};
pub(crate) use recipe::rules;
pub use recipe::{Kept, source_table};
pub(crate) use saved::read_plan;
pub use saved::{find_plan, load_plan};

/// The format this program writes.
pub const FORMAT: u32 = 1;

/// A plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The format of this object.
    pub format: u32,
    /// The digest of `decides`.
    pub id: Digest,
    /// What decides results and verdicts.
    pub decides: Decides,
    /// What does not; as first planned.
    pub terms: Terms,
    /// Where the logic came from, and who planned first.
    pub provenance: Provenance,
    /// Each partition's estimates, in the order of `decides.partitions`.
    pub estimates: Vec<Estimate>,
    /// When it was first planned.
    pub created_at: DateTime<Utc>,
    /// The version that was current then.
    pub base_version: u64,
    /// The dataset's URL then.
    pub dataset_url: String,
}

/// Everything that decides results and verdicts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decides {
    /// The dataset's id.
    pub dataset: String,
    /// Its partitioning and columns.
    pub definition: Definition,
    /// Columns unique within a partition; also the order of rows.
    pub key: Vec<String>,
    /// The only columns that may differ from production.
    pub changed_columns: BTreeSet<String>,
    /// The SQL as written, so that it can be read later.
    pub sql: String,
    /// The SQL without comments, in one spelling: what recipes contain.
    pub canonical_sql: String,
    /// What in it depends on the order of rows, in words.
    pub order_sensitive: Vec<String>,
    /// The spec's own parameters.
    pub parameters: BTreeMap<String, StoredParameter>,
    /// The value of `$as_of`, when the SQL uses it.
    pub as_of: Option<DateTime<Utc>>,
    /// The inputs, pinned.
    pub sources: BTreeMap<String, SourcePin>,
    /// What will be computed, in order of time.
    pub partitions: Vec<PlannedPartition>,
    /// Declared checks.
    pub checks: Checks,
    /// Declared expectations.
    pub expect: Expect,
    /// When values are equal, by column; exactly unless said otherwise.
    #[serde(default, skip_serializing_if = "Equality::is_exact")]
    pub compare: Equality,
    /// Whole run or batch by batch.
    pub publish_unit: Unit,
    /// What of the planning program decides results; a program with others does not run the plan.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rules: String,
}

/// One pinned input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourcePin {
    /// The resolved URL or path.
    pub url: String,
    /// The version, when it is a reissue dataset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// How its rows tell time; none: reference data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<SourceInterval>,
    /// The columns inside the files.
    pub columns: Vec<ColumnDef>,
    /// The columns that only paths carry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path_columns: Vec<ColumnDef>,
    /// The objects, sorted by path.
    pub files: Vec<FilePin>,
    /// The digest of all of the above.
    pub pin: Digest,
}

/// How a source's rows tell time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceInterval {
    /// The column.
    pub column: String,
    /// Whether only paths carry it.
    pub in_path: bool,
    /// How long a folder is, where only paths carry it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folders: Option<Calendar>,
    /// Its kind of time.
    pub time: TimeKind,
    /// The zone of a wall-clock column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// How much before a partition its query sees.
    pub lookback: Span,
    /// How much after.
    pub lookahead: Span,
}

/// One pinned object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilePin {
    /// The object.
    pub object: Object,
    /// Its rows, by its footer.
    pub rows: u64,
    /// The bytes of the columns that the query reads, by its footer.
    pub read_bytes: u64,
    /// The values of its path: column and text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub path_values: BTreeMap<String, String>,
    /// BLAKE3, when the source keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

/// One partition to be computed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedPartition {
    /// Its place in time.
    pub interval: Interval,
    /// The digest of everything that decides its rows and bytes.
    pub recipe: Digest,
    /// The typed parameters that its query uses.
    pub parameters: BTreeMap<String, String>,
    /// Which files of which source it reads, by number.
    pub reads: BTreeMap<String, Vec<usize>>,
    /// What production has there; none: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<BasePartition>,
}

/// What production has in a partition's place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BasePartition {
    /// The identity of its files.
    pub identity: Digest,
    /// Its rows.
    pub rows: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// What a partition will cost, by the footers of what it reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// Rows of the sources with an interval.
    pub rows: u64,
    /// Bytes of the columns that the query reads, of all sources.
    pub bytes: u64,
}

/// What decides nothing about results, and may be amended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// Why.
    pub reason: String,
    /// Who answers for the result.
    pub owner: String,
    /// Why the range covers everything that is wrong.
    pub why_range: Option<String>,
    /// Jobs that read the dataset.
    pub downstream: Option<Vec<String>>,
    /// What else the change sets off.
    pub side_effects: Option<Vec<String>>,
    /// After this nothing of it may be run, approved or published.
    pub expires_at: Option<DateTime<Utc>>,
    /// When batches may start and a publish may happen.
    pub window: Option<Window>,
    /// How long a rollback must stay possible.
    pub rollback_window: Span,
    /// How much at once.
    pub limits: Limits,
}

impl Plan {
    /// The partitions of each batch, by number, under the terms' limits.
    ///
    /// # Errors
    /// `Invalid` when one partition alone is over a limit.
    pub fn batches(&self) -> Result<Vec<Vec<usize>>> {
        batches::group(&self.decides.partitions, &self.estimates, &self.terms.limits)
    }

    /// The planned partition of a name, and its number.
    pub fn partition(&self, name: &str) -> Option<(usize, &PlannedPartition)> {
        let mut all = self.decides.partitions.iter().enumerate();
        all.find(|(_, partition)| partition.interval.name == name)
    }

    /// The parameters of a partition's queries.
    ///
    /// # Errors
    /// `Corrupt` when a stored value is none, `Invalid` when a boundary cannot be represented.
    pub fn parameters_of(&self, interval: &Interval) -> Result<Parameters> {
        let as_of = self.decides.as_of.unwrap_or(DateTime::UNIX_EPOCH);
        let column = &self.decides.definition.partition;
        Parameters::of(interval, column, as_of, &self.parameters()?)
    }

    /// A source's pinned rows as a partition's query sees them; in checks, exactly the partition's
    /// own interval.
    ///
    /// # Errors
    /// `Invalid` when a boundary cannot be represented, or the store cannot be opened.
    pub fn source_table(
        &self,
        stores: &Stores,
        source: &SourcePin,
        interval: &Interval,
        own_interval_only: bool,
    ) -> Result<PinnedTable> {
        let root = stores.root(&source.url, Path::new("/"))?;
        let calendar = &self.decides.definition.partition.calendar;
        source_table(source, root.store(), calendar, interval, None, own_interval_only)
    }

    /// The spec's own parameters.
    ///
    /// # Errors
    /// `Corrupt` when a stored value is none.
    pub fn parameters(&self) -> Result<BTreeMap<String, Parameter>> {
        let stored = self.decides.parameters.iter();
        stored.map(|(name, value)| Ok((name.clone(), value.parameter()?))).collect()
    }

    /// Everybody whose work the candidate is: they cannot approve it.
    pub fn makers(&self) -> BTreeSet<String> {
        let mut makers = self.provenance.sql_authors.clone();
        makers.insert(self.provenance.planned_by.clone());
        makers
    }
}
