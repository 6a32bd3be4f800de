//! Two tables cut into partitions, compared partition by partition, several at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use futures::{StreamExt as _, TryStreamExt as _};
use serde::Serialize;

use super::{DiffOptions, Rows, Witness, compare_rows};
use crate::compare::{Diff, Origin, Piece};
use crate::error::{Error, Result};
use crate::explain::{Cluster, Explained, Explainer, explain_all};
use crate::query::{PinnedFile, PinnedTable};
use crate::task::Task;

/// A table to compare: files by partition.
#[derive(Debug, Clone)]
pub struct Tables {
    /// What it was called.
    pub name: String,
    /// Its columns.
    pub schema: SchemaRef,
    /// Its partitions, by name.
    pub partitions: BTreeMap<String, TablePartition>,
}

/// One partition of a table.
#[derive(Debug, Clone, Default)]
pub struct TablePartition {
    /// Its files.
    pub files: Vec<PinnedFile>,
    /// What its content is known by; equal: no need to look.
    pub content: Option<String>,
    /// Its rows, where they are known by more than a footer.
    pub rows: Option<u64>,
}

/// A column that is not the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SchemaDifference {
    /// The column.
    pub column: String,
    /// Its type in production; none: it has no such column.
    pub production: Option<String>,
    /// Its type in the candidate; none: it has no such column.
    pub candidate: Option<String>,
    /// Whether its values are compared all the same.
    pub compared: bool,
}

/// How two tables differ.
#[derive(Debug, Clone, Serialize)]
pub struct TablesDiff {
    /// Columns that are not the same.
    pub schema: Vec<SchemaDifference>,
    /// The difference over all partitions.
    pub total: Diff,
    /// The differences by what happened, the most frequent first.
    pub clusters: Vec<Cluster>,
    /// Each partition's.
    pub partitions: BTreeMap<String, Diff>,
    /// Partitions known to be equal by their content, without being read.
    pub skipped: usize,
}

/// Explains while rows are compared.
struct Explaining {
    partition: String,
    order: Vec<String>,
    explainer: Explainer,
}

impl Explaining {
    fn new(partition: &str, order: Vec<String>) -> Self {
        let explainer = Explainer::new(partition, &order);
        Self { partition: partition.to_owned(), order, explainer }
    }
}

impl Witness for Explaining {
    fn restart(&mut self, _sorted: Origin) -> Result<()> {
        self.explainer = Explainer::new(&self.partition, &self.order);
        Ok(())
    }

    fn piece(&mut self, piece: &Piece) -> Result<()> {
        self.explainer.see(piece)
    }
}

/// Called with each partition's name when it is done.
pub type DiffProgress<'a> = &'a (dyn Fn(&str) + Sync);

/// Compares two tables, `at_once` partitions at a time.
///
/// # Errors
/// `Invalid` when the sides cannot be compared by this key, else as reading does.
pub async fn compare_all(
    production: &Tables,
    candidate: &Tables,
    options: &DiffOptions,
    at_once: usize,
    progress: DiffProgress<'_>,
) -> Result<TablesDiff> {
    let (common, schema) = common_schema(production, candidate, &options.key)?;
    let same_schema = schema.is_empty();
    let names: BTreeSet<&String> =
        production.partitions.keys().chain(candidate.partitions.keys()).collect();
    let mut skipped = 0;
    let mut partitions = BTreeMap::new();
    let mut waiting = Vec::new();
    for name in names {
        let sides = (production.partitions.get(name), candidate.partitions.get(name));
        if let (Some(TablePartition { content: Some(one), rows: Some(rows), .. }), Some(other)) =
            sides
            && same_schema
            && other.content.as_ref() == Some(one)
        {
            skipped += 1;
            partitions.insert(name.clone(), Diff::none(*rows));
            continue;
        }
        let rows = |side: Option<&TablePartition>| {
            let files = side.map(|side| side.files.clone()).unwrap_or_default();
            let table = PinnedTable::new(Arc::clone(&common), files, None);
            Rows::new(table, !options.key.is_empty())
        };
        let (left, right) = (rows(sides.0), rows(sides.1));
        let (options, name) = (options.clone(), name.clone());
        waiting.push(async move {
            let mut explaining = Explaining::new(&name, options.order());
            let compared = compare_rows(&left, &right, &options, &mut explaining).await;
            let diff = compared.map_err(|error| error.with("partition", &name))?;
            Ok((name, diff, explaining.explainer.finish()?))
        });
    }
    let tasks = waiting.into_iter().map(|work| async { Task::start(work).join().await });
    let done: Vec<(String, Diff, Explained)> = futures::stream::iter(tasks)
        .buffered(at_once.max(1))
        .inspect_ok(|(name, _, _)| progress(name))
        .try_collect()
        .await?;
    let mut explained = Vec::new();
    for (name, diff, one) in done {
        partitions.insert(name, diff);
        explained.push(one);
    }
    let mut total = Diff::default();
    partitions.values().for_each(|diff| total.merge(diff));
    let mut clusters = explain_all(explained)?;
    if options.key.is_empty() {
        let examples = clusters.iter_mut().flat_map(|cluster| &mut cluster.examples);
        examples.for_each(|example| example.row.key.clear());
    }
    Ok(TablesDiff { schema, total, clusters, partitions, skipped })
}

/// The columns that can be compared, and how the sides' columns differ.
fn common_schema(
    production: &Tables,
    candidate: &Tables,
    key: &[String],
) -> Result<(SchemaRef, Vec<SchemaDifference>)> {
    let mut fields = Vec::new();
    let mut differences = Vec::new();
    for field in candidate.schema.fields() {
        let ours = field.data_type();
        let Ok(other) = production.schema.field_with_name(field.name()) else {
            differences.push(difference(field.name(), None, Some(ours), false));
            continue;
        };
        let theirs = other.data_type();
        let common = common_type(theirs, ours);
        if ours != theirs {
            differences.push(difference(field.name(), Some(theirs), Some(ours), common.is_some()));
        }
        let nullable = field.is_nullable() || other.is_nullable();
        fields.extend(common.map(|common| Field::new(field.name(), common, nullable)));
    }
    for field in production.schema.fields() {
        if candidate.schema.field_with_name(field.name()).is_err() {
            differences.push(difference(field.name(), Some(field.data_type()), None, false));
        }
    }
    if let Some(lost) = key.iter().find(|name| !fields.iter().any(|field| field.name() == *name)) {
        let known: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        return Err(Error::invalid(format!("the key column {lost:?} is not on both sides"))
            .with("production", &production.name)
            .with("candidate", &candidate.name)
            .hint(format!("the columns of both are {}", known.join(", "))));
    }
    if fields.is_empty() {
        return Err(Error::invalid("the two sides have no column in common")
            .with("production", &production.name)
            .with("candidate", &candidate.name));
    }
    Ok((Arc::new(Schema::new(fields)), differences))
}

fn difference(
    column: &str,
    production: Option<&DataType>,
    candidate: Option<&DataType>,
    compared: bool,
) -> SchemaDifference {
    SchemaDifference {
        column: column.to_owned(),
        production: production.map(ToString::to_string),
        candidate: candidate.map(ToString::to_string),
        compared,
    }
}

/// A type that holds every value of both, so that equal values stay equal and others other.
fn common_type(one: &DataType, two: &DataType) -> Option<DataType> {
    use DataType as T;
    if one == two {
        return Some(one.clone());
    }
    let either = |a: &T, b: &T| (one == a && two == b) || (one == b && two == a);
    match (one, two) {
        (T::Decimal128(p, s), T::Decimal128(q, r)) => {
            // Both keep all their digits on both sides of the point.
            let scale = *s.max(r);
            let whole = (i16::from(*p) - i16::from(*s)).max(i16::from(*q) - i16::from(*r));
            let digits = u8::try_from(whole + i16::from(scale)).ok()?;
            match digits {
                0..=38 => Some(T::Decimal128(digits.max(1), scale)),
                39..=76 => Some(T::Decimal256(digits, scale)),
                _ => None,
            }
        }
        (T::Timestamp(a, x), T::Timestamp(b, y)) if x == y => {
            Some(T::Timestamp(finer(*a, *b), x.clone()))
        }
        _ if one.is_integer() && two.is_integer() => common_integer(one, two),
        _ if either(&T::Float32, &T::Float64) => Some(T::Float64),
        _ if either(&T::Utf8, &T::LargeUtf8) => Some(T::LargeUtf8),
        _ if either(&T::Binary, &T::LargeBinary) => Some(T::LargeBinary),
        _ => None,
    }
}

fn finer(one: TimeUnit, two: TimeUnit) -> TimeUnit {
    let rank = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    };
    if rank(&one) >= rank(&two) { one } else { two }
}

fn common_integer(one: &DataType, two: &DataType) -> Option<DataType> {
    let width = |data_type: &DataType| data_type.primitive_width();
    match (one.is_unsigned_integer(), two.is_unsigned_integer()) {
        (a, b) if a == b => Some(if width(one)? >= width(two)? { one } else { two }.clone()),
        _ => match width(if one.is_unsigned_integer() { one } else { two })? {
            1..=4 => Some(DataType::Int64),
            _ => Some(DataType::Decimal128(20, 0)),
        },
    }
}
