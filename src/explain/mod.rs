//! Why rows differ: ten million differences as a few explanations.
//!
//! Each changed value is put into a [`Cluster`]: by column, and by what happened to it ([`Pattern`]).
//! Patterns are not given, they are found: where enough of the values that nothing explains yet
//! share one, it becomes known, the one that explains most first. What no pattern explains often
//! enough is in a cluster that says so. It is done while rows are compared. What nothing explains
//! is kept with its rows, up to a bound for each column and partition; see [`Explainer`].

mod cluster;
mod column;
mod numbers;
mod pairs;
mod pattern;
mod segment;
mod texts;

use std::collections::BTreeMap;

use arrow::array::UInt32Array;
use arrow::compute::take;

use crate::compare::{Changed, ChangedColumn, Origin, Piece};
use crate::error::{ErrorKind, Result, from_arrow};

pub use cluster::Cluster;
pub use pattern::Pattern;

use cluster::{Tally, merge_clusters};
use column::{ColumnExplainer, Leftover};
use pairs::{ByNulls, Pairs};
use segment::Varied;

/// Explains the differences of one partition.
#[derive(Debug)]
pub struct Explainer {
    partition: String,
    key: Vec<String>,
    columns: BTreeMap<String, ColumnExplainer>,
    alone: BTreeMap<Origin, Tally>,
    varied: Varied,
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
        }
    }

    /// Sees a piece of the comparison.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn see(&mut self, piece: &Piece) -> Result<()> {
        for changed in &piece.changed {
            self.varied.see(&changed.production)?;
            for column in &changed.columns {
                self.see_column(changed, column)?;
            }
        }
        let sides = [
            (Origin::Production, &piece.only_production),
            (Origin::Candidate, &piece.only_candidate),
        ];
        for (origin, rows) in sides {
            let Some(rows) = rows else { continue };
            self.varied.see(rows)?;
            let tally = self.alone.entry(origin).or_default();
            tally.add_alone(origin, rows, &self.key)?;
        }
        Ok(())
    }

    fn see_column(&mut self, changed: &Changed, column: &ChangedColumn) -> Result<()> {
        let explainer = self
            .columns
            .entry(column.name.clone())
            .or_insert_with(|| ColumnExplainer::new(&column.name, &self.key));
        explainer.see(changed, column)
    }

    /// The end of the partition.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn finish(self) -> Result<Explained> {
        let mut explained = Explained::default();
        for (origin, tally) in self.alone {
            let pattern = match origin {
                Origin::Production => Pattern::OnlyProduction,
                Origin::Candidate => Pattern::OnlyCandidate,
            };
            explained.clusters.push(tally.cluster(None, pattern, &self.partition, &self.varied));
        }
        for explainer in self.columns.into_values() {
            let (clusters, leftover) = explainer.finish(&self.partition, &self.varied)?;
            explained.clusters.extend(clusters);
            explained.leftovers.extend(leftover);
        }
        Ok(explained)
    }
}

/// The clusters of all partitions, the largest first.
///
/// What one partition alone could not explain is tried once more with what all the others know.
///
/// # Errors
/// `Internal` only.
pub fn explain_all(partitions: Vec<Explained>) -> Result<Vec<Cluster>> {
    let mut known: BTreeMap<String, Vec<(Pattern, u64)>> = BTreeMap::new();
    let mut clusters = Vec::new();
    let mut leftovers = Vec::new();
    for explained in partitions {
        for cluster in &explained.clusters {
            if let Some(column) = &cluster.column {
                let patterns = known.entry(column.clone()).or_default();
                match patterns.iter_mut().find(|(pattern, _)| pattern == &cluster.pattern) {
                    Some((_, values)) => *values += cluster.values,
                    None => patterns.push((cluster.pattern.clone(), cluster.values)),
                }
            }
        }
        clusters.extend(explained.clusters);
        leftovers.extend(explained.leftovers);
    }
    for patterns in known.values_mut() {
        patterns.sort_by(|one, two| two.1.cmp(&one.1).then_with(|| one.0.cmp(&two.0)));
    }
    for leftover in leftovers {
        let patterns = known.get(&leftover.name).map(Vec::as_slice).unwrap_or_default();
        clusters.extend(leftover.explained_by(patterns)?);
    }
    Ok(merge_clusters(clusters))
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
