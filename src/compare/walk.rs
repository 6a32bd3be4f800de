//! Which rows belong together: both sides in key order, walked once.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::row::{RowConverter, Rows, SortField};

use crate::error::{Error, ErrorKind, Result, from_arrow};

/// Which rows are pairs, and which are alone.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// Production's rows of each pair.
    pub(super) paired_production: Vec<u32>,
    /// The candidate's rows of each pair, in the same order.
    pub(super) paired_candidate: Vec<u32>,
    /// Production's rows without a pair.
    pub(super) only_production: Vec<usize>,
    /// The candidate's rows without a pair.
    pub(super) only_candidate: Vec<usize>,
    /// Rows of repeated keys that are the same on both sides.
    pub(super) cancelled: u64,
    /// Keys that occur more than once on a side.
    pub(super) repeated_keys: u64,
}

/// One side: its keys as comparable bytes, and its rows in their order.
struct Side {
    keys: Rows,
    order: Vec<usize>,
}

impl Side {
    fn new(keys: Rows) -> Self {
        let mut order: Vec<usize> = (0..keys.num_rows()).collect();
        let sorted = (1..keys.num_rows()).all(|row| keys.row(row - 1) <= keys.row(row));
        if !sorted {
            order.sort_by(|one, two| keys.row(*one).cmp(&keys.row(*two)));
        }
        Self { keys, order }
    }

    /// Where the rows with the same key as the one at `from` end.
    fn group_end(&self, from: usize) -> usize {
        let first = self.keys.row(self.order[from]);
        let same = |place: &&usize| self.keys.row(**place) == first;
        from + self.order[from..].iter().take_while(same).count()
    }
}

pub(super) fn walk(
    production: &RecordBatch,
    candidate: &RecordBatch,
    key: &[String],
) -> Result<Walk> {
    let converter = converter(candidate, key)?;
    let left = Side::new(rows(&converter, production, key)?);
    let right = Side::new(rows(&converter, candidate, key)?);
    let mut whole = WholeRows::new(production, candidate);
    let mut walk = Walk::default();
    let (mut i, mut j) = (0, 0);
    while i < left.order.len() || j < right.order.len() {
        let order = match (left.order.get(i), right.order.get(j)) {
            (Some(one), Some(two)) => left.keys.row(*one).cmp(&right.keys.row(*two)),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        let end_left = if order.is_le() { left.group_end(i) } else { i };
        let end_right = if order.is_ge() { right.group_end(j) } else { j };
        let (group_left, group_right) = (&left.order[i..end_left], &right.order[j..end_right]);
        walk.repeated_keys += u64::from(group_left.len() > 1 || group_right.len() > 1);
        match (group_left, group_right) {
            ([one], [two]) => {
                walk.paired_production.push(place(*one)?);
                walk.paired_candidate.push(place(*two)?);
            }
            (_, []) => walk.only_production.extend(group_left),
            ([], _) => walk.only_candidate.extend(group_right),
            _ => whole.cancel(group_left, group_right, &mut walk)?,
        }
        (i, j) = (end_left, end_right);
    }
    Ok(walk)
}

fn place(row: usize) -> Result<u32> {
    u32::try_from(row).map_err(|_| {
        Error::new(ErrorKind::Exhausted, "a partition has more rows than can be compared (2^32)")
    })
}

fn converter(batch: &RecordBatch, key: &[String]) -> Result<RowConverter> {
    let schema = batch.schema();
    let fields = key
        .iter()
        .map(|name| {
            let field = schema.field_with_name(name).map_err(|_| {
                Error::invalid(format!("the key column {name:?} is not among the columns compared"))
            })?;
            Ok(SortField::new(field.data_type().clone()))
        })
        .collect::<Result<Vec<_>>>()?;
    RowConverter::new(fields)
        .map_err(|error| from_arrow(ErrorKind::Invalid, "the key's columns have no order", error))
}

fn rows(converter: &RowConverter, batch: &RecordBatch, key: &[String]) -> Result<Rows> {
    let columns: Vec<_> =
        key.iter().filter_map(|name| batch.column_by_name(name).cloned()).collect();
    converter
        .convert_columns(&columns)
        .map_err(|error| from_arrow(ErrorKind::Invalid, "compare keys", error))
}

/// Whole rows as comparable bytes, made only when a repeated key needs them.
struct WholeRows<'a> {
    production: &'a RecordBatch,
    candidate: &'a RecordBatch,
    made: Option<(Rows, Rows)>,
}

impl<'a> WholeRows<'a> {
    fn new(production: &'a RecordBatch, candidate: &'a RecordBatch) -> Self {
        Self { production, candidate, made: None }
    }

    fn make(&mut self) -> Result<&(Rows, Rows)> {
        if self.made.is_none() {
            let schema = self.candidate.schema();
            let all: Vec<String> =
                schema.fields().iter().map(|field| field.name().clone()).collect();
            let converter = converter(self.candidate, &all)?;
            let pair =
                (rows(&converter, self.production, &all)?, rows(&converter, self.candidate, &all)?);
            self.made = Some(pair);
        }
        self.made.as_ref().ok_or_else(|| Error::internal("whole rows were not made"))
    }

    /// Rows of one key that are the same on both sides cancel, by multiplicity.
    fn cancel(&mut self, left: &[usize], right: &[usize], walk: &mut Walk) -> Result<()> {
        let (production, candidate) = self.make()?;
        let mut waiting: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
        for row in right {
            waiting.entry(candidate.row(*row).data()).or_default().push(*row);
        }
        for row in left {
            match waiting.get_mut(production.row(*row).data()).and_then(Vec::pop) {
                Some(_) => walk.cancelled += 1,
                None => walk.only_production.push(*row),
            }
        }
        walk.only_candidate.extend(waiting.into_values().flatten());
        Ok(())
    }
}
