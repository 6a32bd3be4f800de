//! Two tables cut into partitions, compared partition by partition, several at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use futures::{StreamExt as _, TryStreamExt as _};
use serde::Serialize;

use super::align::Aligned;
use super::common::{SchemaDifference, common_schema};
use super::{DiffOptions, Rows, Witness, compare_rows};
use crate::compare::{Diff, Origin, Piece};
use crate::error::Result;
use crate::explain::{Cluster, Explained, Explainer, Explanations};
use crate::query::{PinnedFile, PinnedTable};
use crate::task::Task;

/// A table to compare: files by partition.
#[derive(Debug, Clone)]
pub struct Tables {
    /// What it was called.
    pub name: String,
    /// Its columns.
    pub schema: SchemaRef,
    /// Columns whose values are in the folders' names, as text.
    pub path_columns: BTreeSet<String>,
    /// Columns that some files lack, and how many do: their values are null there.
    pub lacking: BTreeMap<String, usize>,
    /// Its partitions, by name.
    pub partitions: BTreeMap<String, TablePartition>,
}

impl Tables {
    /// A table whose files all have its columns.
    pub fn new(
        name: String,
        schema: SchemaRef,
        partitions: BTreeMap<String, TablePartition>,
    ) -> Self {
        let (path_columns, lacking) = (BTreeSet::new(), BTreeMap::new());
        Self { name, schema, path_columns, lacking, partitions }
    }

    /// How many files it has.
    pub fn files(&self) -> usize {
        self.partitions.values().map(|partition| partition.files.len()).sum()
    }
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

/// How two tables differ.
#[derive(Debug, Clone, Serialize)]
pub struct TablesDiff {
    /// Columns that are not the same.
    pub schema: Vec<SchemaDifference>,
    /// How the sides' folders differ, where they do.
    pub layout: Option<String>,
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

impl TablesDiff {
    /// Whether all rows are equal, in columns that both sides have and that were all compared.
    pub fn is_equal(&self) -> bool {
        self.total.is_empty() && self.schema.iter().all(|column| column.compared)
    }
}

/// Called with each partition's name when it is done.
pub type DiffProgress<'a> = &'a (dyn Fn(&str) + Sync);

/// Compares two tables, `at_once` partitions at a time.
///
/// # Errors
/// `Invalid` when the sides cannot be compared by this key, else as reading does.
pub async fn compare_all(
    sides: &Aligned,
    options: &DiffOptions,
    at_once: usize,
    progress: DiffProgress<'_>,
) -> Result<TablesDiff> {
    let Aligned { production, candidate, layout } = sides;
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
            let diff = compared.map_err(|error| match name.as_str() {
                "" => error,
                name => error.with("partition", name),
            })?;
            Ok((name, diff, explaining.explainer.finish()?))
        });
    }
    let tasks = waiting.into_iter().map(|work| async { Task::start(work).join().await });
    let mut done = std::pin::pin!(futures::stream::iter(tasks).buffered(at_once.max(1)));
    let mut explanations = Explanations::default();
    while let Some((name, diff, explained)) = done.try_next().await? {
        let explained: Explained = explained;
        progress(&name);
        partitions.insert(name, diff);
        explanations.add(explained)?;
    }
    let mut total = Diff::default();
    partitions.values().for_each(|diff| total.merge(diff));
    let mut clusters = explanations.finish()?;
    if options.key.is_empty() {
        let examples = clusters.iter_mut().flat_map(|cluster| &mut cluster.examples);
        examples.for_each(|example| example.row.key.clear());
    }
    Ok(TablesDiff { schema, layout: layout.clone(), total, clusters, partitions, skipped })
}
