//! The patterns of one column, found and recognised as changed values come.

use std::collections::BTreeMap;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{concat, take_record_batch};

use super::cluster::{Cluster, Tally};
use super::pairs::{ByNulls, Pairs};
use super::pattern::Pattern;
use super::rows::{Rows, values_at};
use super::segment::Varied;
use crate::compare::{ChangedColumn, Example};
use crate::error::{ErrorKind, Result, from_arrow};
use crate::metrics::value_text;

/// Values that nothing explains yet, until they are looked at together.
const ENOUGH: usize = 8_192;

/// A pattern must explain this many of them, and one in so many.
const LEAST_VALUES: usize = 8;
const LEAST_SHARE_OF: usize = 100;

/// Where there are few values, fewer make a pattern.
const LEAST_OF_FEW: usize = 3;

/// Patterns of one column of one partition at most.
const MOST_PATTERNS: usize = 64;

/// Unexplained values that are kept to be tried again with what other partitions know.
const KEPT: usize = 8_192;

/// Explains one column.
#[derive(Debug)]
pub(super) struct ColumnExplainer {
    name: String,
    identifies: bool,
    known: Vec<Pattern>,
    tallies: BTreeMap<Pattern, Tally>,
    waiting: Vec<Values>,
    waiting_values: usize,
    waiting_bytes: usize,
    /// Values that stay unclassified, with their rows while they are few.
    kept: Vec<Values>,
    kept_values: usize,
}

/// Values of one column side by side, with what is kept of their rows.
#[derive(Debug, Clone)]
struct Values {
    before: ArrayRef,
    after: ArrayRef,
    rows: Rows,
}

impl Values {
    /// Copies of some.
    fn at(&self, places: &[u32]) -> Result<Self> {
        let places = UInt32Array::from(places.to_vec());
        Ok(Self {
            before: values_at(&self.before, &places)?,
            after: values_at(&self.after, &places)?,
            rows: self.rows.at(&places)?,
        })
    }

    fn together(parts: &[Self]) -> Result<Option<Self>> {
        if parts.is_empty() {
            return Ok(None);
        }
        let fail = |error| from_arrow(ErrorKind::Internal, "gather values to explain", error);
        let arrays = |side: fn(&Self) -> &ArrayRef| {
            let arrays: Vec<&dyn Array> = parts.iter().map(|part| side(part).as_ref()).collect();
            concat(&arrays)
        };
        Ok(Some(Self {
            before: arrays(|part| &part.before).map_err(fail)?,
            after: arrays(|part| &part.after).map_err(fail)?,
            rows: Rows::together(parts.iter().map(|part| &part.rows))?,
        }))
    }

    fn bytes(&self) -> usize {
        self.before.get_array_memory_size() + self.after.get_array_memory_size() + self.rows.bytes()
    }

    /// The keys and values of some rows, by which they are known again.
    fn identities(&self, rows: &[u32]) -> Result<RecordBatch> {
        let keys = &self.rows.keys;
        let fields = keys.schema_ref().fields().iter().zip(keys.columns());
        let keys = fields.map(|(field, array)| (field.name().clone(), ArrayRef::clone(array)));
        // No column of a table is called like this: the names are only for this hash.
        let values = [("\u{1}before", &self.before), ("\u{1}after", &self.after)];
        let values = values.map(|(name, array)| (name.to_owned(), ArrayRef::clone(array)));
        let fail = |error| from_arrow(ErrorKind::Internal, "know rows again", error);
        let all = RecordBatch::try_from_iter_with_nullable(
            keys.chain(values).map(|(name, array)| (name, array, true)),
        );
        take_record_batch(&all.map_err(fail)?, &UInt32Array::from(rows.to_vec())).map_err(fail)
    }

    fn example(&self, row: u32, name: &str) -> Example {
        let row = row as usize;
        let one = |array: &ArrayRef| BTreeMap::from([(name.to_owned(), value_text(array, row))]);
        let keys = &self.rows.keys;
        let key = keys.schema_ref().fields().iter().zip(keys.columns());
        Example {
            key: key.map(|(field, array)| (field.name().clone(), value_text(array, row))).collect(),
            production: Some(one(&self.before)),
            candidate: Some(one(&self.after)),
        }
    }
}

/// The places of pairs out of rows.
fn of_rows(rows: &[u32], places: &[usize]) -> Vec<u32> {
    places.iter().filter_map(|place| rows.get(*place).copied()).collect()
}

impl ColumnExplainer {
    /// `identifies`: whether rows must be known again.
    pub(super) fn new(name: &str, identifies: bool) -> Self {
        Self {
            name: name.to_owned(),
            identifies,
            known: Vec::new(),
            tallies: BTreeMap::new(),
            waiting: Vec::new(),
            waiting_values: 0,
            waiting_bytes: 0,
            kept: Vec::new(),
            kept_values: 0,
        }
    }

    /// Bytes of values that wait to be looked at.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Sees a column of paired rows. `room`: bytes that may still be kept of what stays unclassified.
    pub(super) fn see(
        &mut self,
        rows: &Rows,
        column: &ChangedColumn,
        room: &mut usize,
    ) -> Result<()> {
        let values = Values {
            before: ArrayRef::clone(&column.before),
            after: ArrayRef::clone(&column.after),
            rows: rows.clone(),
        };
        let rows = ByNulls::of(column);
        self.count(Pattern::WasNull, &values, &rows.was_null, None)?;
        self.count(Pattern::BecameNull, &values, &rows.became_null, None)?;
        if rows.values.is_empty() {
            return Ok(());
        }
        self.recognise(&values, &rows.values)?;
        if self.waiting_values >= ENOUGH { self.look(room) } else { Ok(()) }
    }

    /// Counts rows of a pattern.
    fn count(
        &mut self,
        pattern: Pattern,
        values: &Values,
        rows: &[u32],
        changes: Option<(&Pairs, &[usize])>,
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let changes = changes.map(|(pairs, places)| pairs.changes(places)).unwrap_or_default();
        let example = |at: usize| values.example(rows[at], &self.name);
        let identified = self.identifies && !pattern.decides();
        let tally = self.tallies.entry(pattern).or_default();
        if identified {
            tally.identify(&values.identities(rows)?)?;
        }
        tally.add(&values.rows.segments, rows, &changes, example)
    }

    /// Values, by the patterns that are known; the others wait.
    fn recognise(&mut self, values: &Values, rows: &[u32]) -> Result<()> {
        let chosen = if rows.len() == values.before.len() {
            (ArrayRef::clone(&values.before), ArrayRef::clone(&values.after))
        } else {
            let places = UInt32Array::from(rows.to_vec());
            (values_at(&values.before, &places)?, values_at(&values.after, &places)?)
        };
        let pairs = Pairs::of(&chosen.0, &chosen.1);
        let mut open: Vec<usize> = (0..pairs.len()).collect();
        let known = self.known.clone();
        for (taken, pattern) in pairs.sort_into(&known, &mut open).iter().zip(known) {
            self.count(pattern, values, &of_rows(rows, taken), Some((&pairs, taken)))?;
        }
        if !open.is_empty() {
            self.waiting_values += open.len();
            let waiting = values.at(&of_rows(rows, &open))?;
            self.waiting_bytes += waiting.bytes();
            self.waiting.push(waiting);
        }
        Ok(())
    }

    /// Looks for patterns among the values that nothing explains yet: they have been tried with
    /// every known one, and only this makes more of them known.
    pub(super) fn look(&mut self, room: &mut usize) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_values = 0;
        self.waiting_bytes = 0;
        let Some(all) = Values::together(&waiting)? else { return Ok(()) };
        let pairs = Pairs::of(&all.before, &all.after);
        let mut open: Vec<usize> = (0..pairs.len()).collect();
        let least = match open.len() {
            ..ENOUGH => LEAST_OF_FEW.max(open.len() / LEAST_SHARE_OF),
            many => LEAST_VALUES.max(many / LEAST_SHARE_OF),
        };
        while self.known.len() < MOST_PATTERNS && open.len() >= least {
            let Some((pattern, _)) = pairs.best(&open) else { break };
            // What a test recognises is what counts, not what a guess promised.
            let mut rest = open.clone();
            let taken = pairs.take(&pattern, &mut rest);
            if taken.len() < least {
                break;
            }
            open = rest;
            self.known.push(pattern.clone());
            self.count(pattern, &all, &as_rows(&taken), Some((&pairs, &taken)))?;
        }
        self.keep(&all, &pairs, &open, room)
    }

    /// Values that stay unclassified: kept while there is room, else counted.
    fn keep(
        &mut self,
        all: &Values,
        pairs: &Pairs,
        open: &[usize],
        room: &mut usize,
    ) -> Result<()> {
        if open.is_empty() {
            return Ok(());
        }
        let values = all.at(&as_rows(open))?;
        if self.kept_values + open.len() > KEPT || values.bytes() > *room {
            return self.count_rest(all, pairs, open.to_vec());
        }
        *room -= values.bytes();
        self.kept_values += open.len();
        self.kept.push(values);
        Ok(())
    }

    /// Values that stay unclassified, but for what a single value says.
    fn count_rest(&mut self, values: &Values, pairs: &Pairs, mut open: Vec<usize>) -> Result<()> {
        for (pattern, taken) in pairs.last_resort(&mut open) {
            self.count(pattern, values, &as_rows(&taken), Some((pairs, &taken)))?;
        }
        self.count(Pattern::Unclassified, values, &as_rows(&open), Some((pairs, &open)))
    }

    /// The clusters, and what may still be explained by what other partitions know.
    pub(super) fn finish(
        mut self,
        partition: &str,
        varied: &Varied,
        room: &mut usize,
    ) -> Result<(Vec<Cluster>, Option<Leftover>)> {
        self.look(room)?;
        let kept = Values::together(&self.kept)?;
        let leftover = kept.map(|values| Leftover {
            name: self.name.clone(),
            identifies: self.identifies,
            values,
            partition: partition.to_owned(),
            varied: varied.clone(),
        });
        Ok((self.into_clusters(partition, varied), leftover))
    }

    fn into_clusters(self, partition: &str, varied: &Varied) -> Vec<Cluster> {
        let name = self.name;
        let place = (partition, self.identifies);
        let each = self.tallies.into_iter();
        each.map(|(pattern, tally)| tally.cluster(Some(&name), pattern, place, varied)).collect()
    }
}

fn as_rows(places: &[usize]) -> Vec<u32> {
    places.iter().map(|place| u32::try_from(*place).unwrap_or(u32::MAX)).collect()
}

/// What one partition could not explain.
#[derive(Debug)]
pub(super) struct Leftover {
    pub(super) name: String,
    identifies: bool,
    values: Values,
    partition: String,
    varied: Varied,
}

impl Leftover {
    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.values.bytes()
    }

    /// Explained by patterns that are known of the column, in their order.
    pub(super) fn explained_by(self, patterns: &[(Pattern, u64)]) -> Result<Vec<Cluster>> {
        let mut column = ColumnExplainer::new(&self.name, self.identifies);
        let pairs = Pairs::of(&self.values.before, &self.values.after);
        let mut open: Vec<usize> = (0..pairs.len()).collect();
        for (pattern, _) in patterns {
            let taken = pairs.take(pattern, &mut open);
            let rows = as_rows(&taken);
            column.count(pattern.clone(), &self.values, &rows, Some((&pairs, &taken)))?;
        }
        column.count_rest(&self.values, &pairs, open)?;
        Ok(column.into_clusters(&self.partition, &self.varied))
    }
}
