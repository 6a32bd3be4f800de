//! The comparison itself: two streams of batches in key order, in; pieces of difference, out.
//!
//! It never holds more than two batches of a side, and rows of one key that go on. It does no I/O:
//! whoever drives it asks for the next [`Step`] and does what it says.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow::compute::kernels::boolean::and_not;
use arrow::compute::{filter, or, take_record_batch};
use arrow::datatypes::SchemaRef;

use super::columns::ChangeMeter;
use super::equality::{Equality, differing};
use super::examples::Examples;
use super::leaves::Leaves;
use super::side::Side;
use super::walk::{Run, Walk, walk, walk_alone};
use super::{Diff, Origin};
use crate::error::{Error, ErrorKind, Result, from_arrow};
use crate::key::KeyEncoder;
use crate::metrics::RowHasher;

/// What is to be done next.
#[derive(Debug)]
pub enum Step {
    /// Feed the next batch of this side, or its end.
    Feed(Origin),
    /// This side's rows are not in key order: sort them and begin again.
    Unordered(Origin),
    /// Some rows are compared.
    Compared(Piece),
    /// Everything is compared.
    Done,
}

/// What came out of some rows.
#[derive(Debug, Default)]
pub struct Piece {
    /// Paired rows of which some differ; none: all that were paired are equal.
    pub changed: Vec<Changed>,
    /// Production's rows without a pair.
    pub only_production: Option<RecordBatch>,
    /// The candidate's rows without a pair.
    pub only_candidate: Option<RecordBatch>,
}

/// Paired rows side by side, of which some differ.
#[derive(Debug)]
pub struct Changed {
    /// Production's rows.
    pub production: RecordBatch,
    /// The candidate's, in the same order.
    pub candidate: RecordBatch,
    /// The columns that differ somewhere.
    pub columns: Vec<ChangedColumn>,
    /// Where any column differs; never null.
    pub any: BooleanArray,
}

/// One column of paired rows.
#[derive(Debug)]
pub struct ChangedColumn {
    /// Its name; a struct's field by its path.
    pub name: String,
    /// Production's values.
    pub before: ArrayRef,
    /// The candidate's.
    pub after: ArrayRef,
    /// Where they differ; never null.
    pub differs: BooleanArray,
}

/// Pairs in shorter runs than this are gathered before they are compared.
const SHORT_RUN: usize = 512;

/// Compares two sides of the same columns by key.
#[derive(Debug)]
pub struct Comparer {
    key: Vec<String>,
    leaves: Leaves,
    equality: Equality,
    production: Side,
    candidate: Side,
    hasher: RowHasher,
    meters: Vec<ChangeMeter>,
    unordered: Option<Origin>,
    examples: Examples,
    diff: Diff,
}

impl Comparer {
    /// For two sides of one schema.
    ///
    /// # Errors
    /// `Invalid` for a key that the schema lacks or that has no order, and for a rule that does
    /// not fit its column; `Unsupported` for a column that cannot be compared.
    pub fn new(schema: &SchemaRef, key: &[String], equality: &Equality) -> Result<Self> {
        let encoder = Arc::new(KeyEncoder::new(schema, key)?);
        let leaves = Leaves::of(schema, key)?;
        equality.check(&leaves.types(schema))?;
        Ok(Self {
            key: key.to_vec(),
            meters: (0..leaves.len()).map(|_| ChangeMeter::default()).collect(),
            leaves,
            equality: equality.clone(),
            production: Side::new(Arc::clone(&encoder)),
            candidate: Side::new(encoder),
            hasher: RowHasher::new(schema)?,
            unordered: None,
            examples: Examples::default(),
            diff: Diff::default(),
        })
    }

    /// Takes a side's next batch; `None`: there is no more.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn feed(&mut self, origin: Origin, batch: Option<RecordBatch>) -> Result<()> {
        let side = match origin {
            Origin::Production => &mut self.production,
            Origin::Candidate => &mut self.candidate,
        };
        if !side.feed(batch)? {
            self.unordered = Some(origin);
        }
        Ok(())
    }

    /// Goes on as far as possible.
    ///
    /// # Errors
    /// `Unsupported` for columns that cannot be compared.
    pub fn step(&mut self) -> Result<Step> {
        if let Some(origin) = self.unordered {
            return Ok(Step::Unordered(origin));
        }
        self.production.advance();
        self.candidate.advance();
        if self.production.wants() {
            return Ok(Step::Feed(Origin::Production));
        }
        if self.candidate.wants() {
            return Ok(Step::Feed(Origin::Candidate));
        }
        let (rows, walk) = match (&mut self.production.ready, &mut self.candidate.ready) {
            (None, None) => return Ok(Step::Done),
            (Some(left), None) => {
                let walk = walk_alone(left, true);
                ((left.rows.clone(), left.rows.slice(0, 0)), walk)
            }
            (None, Some(right)) => {
                let walk = walk_alone(right, false);
                ((right.rows.slice(0, 0), right.rows.clone()), walk)
            }
            (Some(left), Some(right)) => {
                let walk = walk(left, right, &mut self.hasher)?;
                ((left.rows.clone(), right.rows.clone()), walk)
            }
        };
        self.piece(&rows.0, &rows.1, &walk).map(Step::Compared)
    }

    fn piece(&mut self, left: &RecordBatch, right: &RecordBatch, walk: &Walk) -> Result<Piece> {
        let pairs: usize = walk.runs.iter().map(|run| run.rows).sum();
        let mut piece = Piece {
            changed: Vec::new(),
            only_production: taken(left, &walk.only_production)?,
            only_candidate: taken(right, &walk.only_candidate)?,
        };
        let mut changed = 0;
        for (production, candidate) in paired(left, right, &walk.runs, pairs)? {
            if let Some(found) = self.compare(production, candidate)? {
                changed += found.any.true_count();
                self.examples.changed(&found, &self.key);
                piece.changed.push(found);
            }
        }
        self.diff.changed += changed as u64;
        self.diff.equal += (pairs - changed) as u64;
        self.diff.only_production += walk.only_production.len() as u64;
        self.diff.only_candidate += walk.only_candidate.len() as u64;
        self.diff.repeated_keys += walk.repeated_keys;
        self.examples.only(Origin::Production, piece.only_production.as_ref(), &self.key);
        self.examples.only(Origin::Candidate, piece.only_candidate.as_ref(), &self.key);
        Ok(piece)
    }

    /// Compares paired rows column by column.
    fn compare(
        &mut self,
        production: RecordBatch,
        candidate: RecordBatch,
    ) -> Result<Option<Changed>> {
        let leaves = &self.leaves;
        let equality = &self.equality;
        let look = |leaf: usize, meter: &mut ChangeMeter| -> Result<Option<ChangedColumn>> {
            let (before, after) = (leaves.array(&production, leaf), leaves.array(&candidate, leaf));
            let name = leaves.path(leaf);
            meter.both_null += both_null(&before, &after);
            let rule = equality.rule(name);
            let differs =
                differing(&before, &after, rule).map_err(|error| error.with("column", name))?;
            let fail = |error| from_arrow(ErrorKind::Internal, "take changed values", error);
            if rule.is_some()
                && let Some(others) = differing(&before, &after, None)?
            {
                let tolerated = match &differs {
                    None => others,
                    Some(differs) => and_not(&others, differs).map_err(fail)?,
                };
                meter.tolerate(
                    &filter(&before, &tolerated).map_err(fail)?,
                    &filter(&after, &tolerated).map_err(fail)?,
                );
            }
            let Some(differs) = differs else { return Ok(None) };
            let picked =
                (filter(&before, &differs).map_err(fail)?, filter(&after, &differs).map_err(fail)?);
            meter.see(&picked.0, &picked.1);
            Ok(Some(ChangedColumn { name: name.to_owned(), before, after, differs }))
        };
        let each = self.meters.iter_mut().enumerate();
        let found: Vec<Option<ChangedColumn>> =
            each.map(|(leaf, meter)| look(leaf, meter)).collect::<Result<_>>()?;
        let columns: Vec<ChangedColumn> = found.into_iter().flatten().collect();
        let mut any: Option<BooleanArray> = None;
        for column in &columns {
            any = Some(match any {
                None => column.differs.clone(),
                Some(before) => or(&before, &column.differs)
                    .map_err(|error| from_arrow(ErrorKind::Internal, "combine columns", error))?,
            });
        }
        Ok(any.map(|any| Changed { production, candidate, columns, any }))
    }

    /// Compares two sides whose batches are at hand, in key order.
    ///
    /// # Errors
    /// As the batches', as [`Comparer::step`]; `Internal` when a side is not in key order.
    pub fn run(
        mut self,
        mut production: impl Iterator<Item = Result<RecordBatch>>,
        mut candidate: impl Iterator<Item = Result<RecordBatch>>,
        mut see: impl FnMut(&Piece),
    ) -> Result<Diff> {
        loop {
            match self.step()? {
                Step::Feed(origin) => {
                    let batch = match origin {
                        Origin::Production => production.next(),
                        Origin::Candidate => candidate.next(),
                    };
                    self.feed(origin, batch.transpose()?)?;
                }
                Step::Compared(piece) => see(&piece),
                Step::Unordered(_) => return Err(Error::internal("rows are not in key order")),
                Step::Done => return Ok(self.finish()),
            }
        }
    }

    /// The whole difference, once everything is compared.
    pub fn finish(mut self) -> Diff {
        self.diff.rows_production = self.production.rows;
        self.diff.rows_candidate = self.candidate.rows;
        self.diff.null_keys_production = self.production.null_keys;
        self.diff.null_keys_candidate = self.candidate.null_keys;
        for (leaf, meter) in self.meters.iter().enumerate() {
            let column = meter.diff();
            if column.changed > 0 || column.tolerated > 0 {
                self.diff.columns.insert(self.leaves.path(leaf).to_owned(), column);
            }
        }
        self.diff.examples = self.examples.into_rows();
        self.diff
    }
}

/// Pairs of rows, as slices where they lie together and gathered where they don't.
fn paired(
    left: &RecordBatch,
    right: &RecordBatch,
    runs: &[Run],
    pairs: usize,
) -> Result<Vec<(RecordBatch, RecordBatch)>> {
    if pairs == 0 {
        return Ok(Vec::new());
    }
    if pairs / runs.len() >= SHORT_RUN || runs.len() == 1 {
        let slices = runs.iter().map(|run| {
            (left.slice(run.production, run.rows), right.slice(run.candidate, run.rows))
        });
        return Ok(slices.collect());
    }
    let rows = |start: fn(&Run) -> usize| -> Vec<u32> {
        let places = runs.iter().flat_map(|run| start(run)..start(run) + run.rows);
        places.map(|row| u32::try_from(row).unwrap_or(u32::MAX)).collect()
    };
    let left = taken(left, &rows(|run| run.production))?;
    let right = taken(right, &rows(|run| run.candidate))?;
    Ok(left.zip(right).into_iter().collect())
}

/// Rows of a batch by number; none when there are none.
fn taken(batch: &RecordBatch, rows: &[u32]) -> Result<Option<RecordBatch>> {
    if rows.is_empty() {
        return Ok(None);
    }
    let is_all = || rows.iter().enumerate().all(|(place, row)| place == *row as usize);
    if rows.len() == batch.num_rows() && is_all() {
        return Ok(Some(batch.clone()));
    }
    take_record_batch(batch, &UInt32Array::from(rows.to_vec()))
        .map(Some)
        .map_err(|error| from_arrow(ErrorKind::Internal, "take rows to compare", error))
}

fn both_null(before: &ArrayRef, after: &ArrayRef) -> u64 {
    match (before.logical_nulls(), after.logical_nulls()) {
        (Some(before), Some(after)) => {
            let either = before.inner() | after.inner();
            (either.len() - either.count_set_bits()) as u64
        }
        _ => 0,
    }
}
