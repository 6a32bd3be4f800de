//! Why rows differ: ten million differences as a few explanations.
//!
//! Each changed value is put into a [`Cluster`]: by column, and by what happened to it ([`Pattern`]).
//! Patterns are not given, they are found: where enough of the values that nothing explains yet
//! share one, it becomes known, the one that explains most first. What no pattern explains often
//! enough is in a cluster that says so. It is done while rows are compared. What nothing explains
//! is kept for a second look, with the keys and some columns of its rows: 32 MiB of a partition
//! and 64 MiB of all at most; what is over that is counted as unclassified at once.

mod cluster;
mod column;
mod factor;
mod fixed_tests;
mod nearly;
mod numbers;
mod pairs;
mod pattern;
mod rows;
mod segment;
mod texts;

use std::collections::BTreeMap;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take;

use crate::compare::{ChangedColumn, Origin, Piece};
use crate::error::{ErrorKind, Result, from_arrow};

pub use cluster::Cluster;
pub use pattern::Pattern;

use cluster::{Tally, merge_clusters};
use column::{ColumnExplainer, Leftover};
use pairs::{ByNulls, Pairs};
use rows::{Projection, Rows};
use segment::Varied;

/// Bytes of values of one partition that wait to be looked at together, and that are kept of what
/// stays unclassified.
const WAITING_BYTES: usize = 16 << 20;
const KEPT_BYTES: usize = 16 << 20;

/// Bytes kept, over all partitions, of what stays unclassified.
const LEFTOVER_BYTES: usize = 64 << 20;

/// Explains the differences of one partition.
#[derive(Debug)]
pub struct Explainer {
    partition: String,
    key: Vec<String>,
    columns: BTreeMap<String, ColumnExplainer>,
    alone: BTreeMap<Origin, Tally>,
    varied: Varied,
    projection: Option<Projection>,
    /// Bytes that may still be kept.
    room: usize,
    /// Bytes of all columns that wait.
    waiting: usize,
    /// Whether rows must be known again.
    identifies: bool,
}

/// One partition, explained.
#[derive(Debug, Default)]
pub struct Explained {
    clusters: Vec<Cluster>,
    leftovers: Vec<Leftover>,
}

impl Explainer {
    /// For a partition whose rows have this key.
    pub fn new(partition: &str, key: &[String]) -> Self {
        Self {
            partition: partition.to_owned(),
            key: key.to_vec(),
            columns: BTreeMap::new(),
            alone: BTreeMap::new(),
            varied: Varied::default(),
            projection: None,
            room: KEPT_BYTES,
            waiting: 0,
            identifies: false,
        }
    }

    /// With the hash of rows whose pattern does not say what became of them: [`Cluster::rows`].
    #[must_use]
    pub fn identifying(self) -> Self {
        Self { identifies: true, ..self }
    }

    fn projection(&mut self, rows: &RecordBatch) -> Projection {
        let key = &self.key;
        let of = || Projection::of(rows.schema_ref(), key);
        self.projection.get_or_insert_with(of).clone()
    }

    /// Sees a piece of the comparison.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn see(&mut self, piece: &Piece) -> Result<()> {
        for changed in &piece.changed {
            let projection = self.projection(&changed.production);
            let rows = projection.rows(&changed.production, &changed.candidate)?;
            self.varied.see(&rows.segments)?;
            for column in &changed.columns {
                self.see_column(&rows, column)?;
            }
        }
        let sides = [
            (Origin::Production, &piece.only_production),
            (Origin::Candidate, &piece.only_candidate),
        ];
        for (origin, rows) in sides {
            let Some(rows) = rows else { continue };
            let segments = self.projection(rows).segments(rows)?;
            self.varied.see(&segments)?;
            let tally = self.alone.entry(origin).or_default();
            if self.identifies {
                tally.identify(rows)?;
            }
            tally.add_alone(origin, rows, &segments, &self.key)?;
        }
        Ok(())
    }

    /// What waits is looked at together, once it is much.
    fn look(&mut self) -> Result<()> {
        if self.waiting <= WAITING_BYTES {
            return Ok(());
        }
        for column in self.columns.values_mut() {
            column.look(&mut self.room)?;
        }
        self.waiting = 0;
        Ok(())
    }

    fn see_column(&mut self, rows: &Rows, column: &ChangedColumn) -> Result<()> {
        if !self.columns.contains_key(&column.name) {
            self.columns
                .insert(column.name.clone(), ColumnExplainer::new(&column.name, self.identifies));
        }
        if let Some(explainer) = self.columns.get_mut(&column.name) {
            let before = explainer.waiting_bytes();
            explainer.see(rows, column, &mut self.room)?;
            self.waiting = self.waiting + explainer.waiting_bytes() - before;
        }
        self.look()
    }

    /// The end of the partition.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn finish(mut self) -> Result<Explained> {
        let mut explained = Explained::default();
        for (origin, tally) in self.alone {
            let place = (self.partition.as_str(), self.identifies);
            let pattern = match origin {
                Origin::Production => Pattern::OnlyProduction,
                Origin::Candidate => Pattern::OnlyCandidate,
            };
            explained.clusters.push(tally.cluster(None, pattern, place, &self.varied));
        }
        for explainer in self.columns.into_values() {
            let (clusters, leftover) =
                explainer.finish(&self.partition, &self.varied, &mut self.room)?;
            explained.clusters.extend(clusters);
            explained.leftovers.extend(leftover);
        }
        Ok(explained)
    }
}

/// All partitions explained so far.
#[derive(Debug, Default)]
pub struct Explanations {
    clusters: Vec<Cluster>,
    leftovers: Vec<Leftover>,
    leftover_bytes: usize,
}

impl Explanations {
    /// Adds a partition; always in the same order, or what is kept may be other rows.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn add(&mut self, explained: Explained) -> Result<()> {
        self.clusters.extend(explained.clusters);
        for leftover in explained.leftovers {
            if self.leftover_bytes + leftover.bytes() > LEFTOVER_BYTES {
                self.clusters.extend(leftover.explained_by(&[])?);
            } else {
                self.leftover_bytes += leftover.bytes();
                self.leftovers.push(leftover);
            }
        }
        Ok(())
    }

    /// The clusters of all partitions, the largest first.
    ///
    /// What one partition alone could not explain is tried once more with what all the others know.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn finish(self) -> Result<Vec<Cluster>> {
        let known = known_patterns(&self.clusters);
        let mut clusters = self.clusters;
        for leftover in self.leftovers {
            let patterns = known.get(&leftover.name).map(Vec::as_slice).unwrap_or_default();
            clusters.extend(leftover.explained_by(patterns)?);
        }
        Ok(merge_clusters(clusters))
    }
}

/// Each column's patterns, the most frequent first.
fn known_patterns(clusters: &[Cluster]) -> BTreeMap<String, Vec<(Pattern, u64)>> {
    let mut counts: BTreeMap<(String, Pattern), u64> = BTreeMap::new();
    for cluster in clusters {
        if let Some(column) = &cluster.column {
            *counts.entry((column.clone(), cluster.pattern.clone())).or_default() += cluster.values;
        }
    }
    let mut known: BTreeMap<String, Vec<(Pattern, u64)>> = BTreeMap::new();
    for ((column, pattern), values) in counts {
        known.entry(column).or_default().push((pattern, values));
    }
    for patterns in known.values_mut() {
        patterns.sort_by(|one, two| two.1.cmp(&one.1).then_with(|| one.0.cmp(&two.0)));
    }
    known
}

/// Which of the clusters each changed value of a column belongs to, in the order of its changed
/// rows: by its place among the clusters. The first that fits counts.
///
/// # Errors
/// `Internal` only.
pub fn assign(clusters: &[Cluster], column: &ChangedColumn) -> Result<Vec<Option<usize>>> {
    let of_column = || {
        let here = clusters.iter().enumerate();
        here.filter(|(_, cluster)| cluster.column.as_deref() == Some(column.name.as_str()))
    };
    let place =
        |wanted: &Pattern| of_column().find(|(_, one)| &one.pattern == wanted).map(|at| at.0);
    let rows = ByNulls::of(column);
    let chosen = UInt32Array::from(rows.values.clone());
    let fail = |error| from_arrow(ErrorKind::Internal, "take changed values", error);
    let before = take(&column.before, &chosen, None).map_err(fail)?;
    let after = take(&column.after, &chosen, None).map_err(fail)?;
    let mut assigned = BTreeMap::new();
    let mut put = |rows: Vec<u32>, cluster: Option<usize>| {
        assigned.extend(rows.into_iter().map(|row| (row, cluster)));
    };
    put(rows.was_null, place(&Pattern::WasNull));
    put(rows.became_null, place(&Pattern::BecameNull));
    put(rows.values.clone(), place(&Pattern::Unclassified));
    let (numbers, patterns): (Vec<usize>, Vec<Pattern>) =
        of_column().map(|(number, cluster)| (number, cluster.pattern.clone())).unzip();
    let mut open: Vec<usize> = (0..rows.values.len()).collect();
    let taken = Pairs::of(&before, &after).sort_into(&patterns, &mut open);
    for (places, number) in taken.into_iter().zip(numbers) {
        put(places.into_iter().map(|place| rows.values[place]).collect(), Some(number));
    }
    Ok(assigned.into_values().collect())
}
