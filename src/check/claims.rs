//! What a spec claims of each difference: proved, or refuted row by row.
//!
//! A changed value is *explained* when its column is one that the change names, and every claim
//! about it holds in its row. A row on one side only is explained when the spec expects such rows.
//! The others are gathered into clusters of their own: they become discrepancies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::BooleanArray;
use arrow::buffer::BooleanBuffer;
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;

use crate::compare::{Changed, ChangedColumn, Piece, is_of, paired_example, paths};
use crate::error::{Error, ErrorKind, Result, from_arrow};
use crate::explain::{Explained, Explainer};
use crate::parquet_file::viewed;
use crate::query::{RowCondition, Session, SessionOptions};
use crate::spec::{Count, Expect};

/// Examples kept of a refuted claim.
const EXAMPLES: usize = 3;

/// The claims of a spec, ready to be held against rows.
#[derive(Debug, Clone)]
pub struct Claims {
    named: BTreeSet<String>,
    values: BTreeMap<String, RowCondition>,
    rows: Option<RowCondition>,
    rows_may_come: bool,
    rows_may_go: bool,
}

/// What became of one claim in one partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimTally {
    /// What must be true.
    pub sql: String,
    /// Values, or rows, that it is about.
    pub all: u64,
    /// Those of which it is not true.
    pub refuted: u64,
    /// Some of them, in words.
    pub examples: Vec<String>,
}

/// What became of the claims in one partition: by column; about whole rows under the empty name.
pub type ClaimTallies = BTreeMap<String, ClaimTally>;

impl Claims {
    /// From the spec's expectations, the columns that the change names, and the columns of rows.
    ///
    /// # Errors
    /// `Invalid` for a condition that cannot be understood, or about an unknown column.
    pub fn new(expect: &Expect, named: &BTreeSet<String>, schema: &SchemaRef) -> Result<Self> {
        let session = Session::new(&SessionOptions::default())?;
        let schema = viewed(schema);
        let condition = |place: &str, sql: &str| {
            RowCondition::new(&session, sql, &schema).map_err(|error| error.with("in", place))
        };
        let paths = paths(&schema)?;
        let mut values = BTreeMap::new();
        for (column, sql) in &expect.changed_values {
            let place = format!("expect.changed_values.{column}");
            if !paths.contains(column) {
                let known: Vec<&str> = paths.iter().map(String::as_str).collect();
                return Err(Error::invalid(format!("{place} is about no column of the dataset"))
                    .hint(format!("the columns are {}", known.join(", "))));
            }
            values.insert(column.clone(), condition(&place, sql)?);
        }
        let rows = expect.changed_rows_where.as_deref();
        let rows = rows.map(|sql| condition("expect.changed_rows_where", sql)).transpose()?;
        let some = |count: Option<Count>| count.is_some_and(|count| count.max != Some(0));
        Ok(Self {
            named: named.clone(),
            values,
            rows,
            rows_may_come: some(expect.added_rows),
            rows_may_go: some(expect.removed_rows),
        })
    }
}

/// Holds claims against the differences of one partition.
#[derive(Debug)]
pub struct ClaimMeter {
    claims: Arc<Claims>,
    key: Vec<String>,
    tallies: ClaimTallies,
    unexplained: Explainer,
}

impl ClaimMeter {
    /// For one partition.
    pub fn new(claims: &Arc<Claims>, partition: &str, key: &[String]) -> Self {
        let about_values = claims.values.iter().map(|(name, one)| (name.clone(), one.sql()));
        let about_rows = claims.rows.iter().map(|one| (String::new(), one.sql()));
        let tally = |sql: &str| ClaimTally { sql: sql.to_owned(), ..ClaimTally::default() };
        Self {
            claims: Arc::clone(claims),
            key: key.to_vec(),
            tallies: about_values.chain(about_rows).map(|(name, sql)| (name, tally(sql))).collect(),
            unexplained: Explainer::new(partition, key).identifying(),
        }
    }

    /// Sees a piece of the comparison.
    ///
    /// # Errors
    /// `Failed` when a condition cannot be computed.
    pub fn see(&mut self, piece: &Piece) -> Result<()> {
        let rest = self.unexplained(piece)?;
        self.unexplained.see(&rest)
    }

    /// The part of a piece that no claim explains.
    ///
    /// # Errors
    /// `Failed` when a condition cannot be computed.
    pub fn unexplained(&mut self, piece: &Piece) -> Result<Piece> {
        let mut rest = Piece::default();
        for changed in &piece.changed {
            rest.changed.extend(self.see_changed(changed)?);
        }
        if !self.claims.rows_may_go {
            rest.only_production.clone_from(&piece.only_production);
        }
        if !self.claims.rows_may_come {
            rest.only_candidate.clone_from(&piece.only_candidate);
        }
        Ok(rest)
    }

    /// The part of changed rows that no claim explains.
    fn see_changed(&mut self, changed: &Changed) -> Result<Option<Changed>> {
        let rows = match self.claims.rows.clone() {
            Some(claim) => Some(self.hold(&claim, "", changed, &changed.any)?),
            None => None,
        };
        let claims = Arc::clone(&self.claims);
        let mut columns = Vec::new();
        for column in &changed.columns {
            // A claim about a struct is about each of its fields.
            let mut values = None;
            for (name, claim) in &claims.values {
                if is_of(&column.name, name) {
                    let held = self.hold(claim, name, changed, &column.differs)?;
                    values = Some(values.map_or(held.clone(), |before| &before & &held));
                }
            }
            let differs = column.differs.values();
            let is_named = claims.named.iter().any(|named| is_of(&column.name, named));
            let mut explained = if is_named {
                BooleanBuffer::new_set(differs.len())
            } else {
                BooleanBuffer::new_unset(differs.len())
            };
            for held in [&rows, &values].into_iter().flatten() {
                explained = &explained & held;
            }
            let open = differs & &!&explained;
            if open.count_set_bits() > 0 {
                columns.push(ChangedColumn {
                    name: column.name.clone(),
                    before: Arc::clone(&column.before),
                    after: Arc::clone(&column.after),
                    differs: BooleanArray::new(open, None),
                });
            }
        }
        let any = columns.iter().map(|column| column.differs.values().clone());
        let any = any.reduce(|one, two| &one | &two);
        Ok(any.map(|any| Changed {
            production: changed.production.clone(),
            candidate: changed.candidate.clone(),
            columns,
            any: BooleanArray::new(any, None),
        }))
    }

    /// Where a claim is true, or is not about the row. It is computed for the rows that it is
    /// about, and for no others.
    fn hold(
        &mut self,
        claim: &RowCondition,
        name: &str,
        changed: &Changed,
        about: &BooleanArray,
    ) -> Result<BooleanBuffer> {
        let fail = |error| from_arrow(ErrorKind::Internal, "take changed rows", error);
        let production = filter_record_batch(&changed.production, about).map_err(fail)?;
        let candidate = filter_record_batch(&changed.candidate, about).map_err(fail)?;
        let holds = claim.holds(&production, &candidate)?;
        let mut whole = vec![true; about.len()];
        let tally = self.tallies.entry(name.to_owned()).or_default();
        tally.all += holds.len() as u64;
        for (row, place) in about.values().set_indices().enumerate() {
            if holds.value(row) {
                continue;
            }
            whole[place] = false;
            tally.refuted += 1;
            if tally.examples.len() < EXAMPLES {
                tally.examples.push(paired_example(changed, place, &self.key).line());
            }
        }
        Ok(BooleanBuffer::from(whole))
    }

    /// What became of the claims, and what none of them explains.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn finish(self) -> Result<(ClaimTallies, Explained)> {
        Ok((self.tallies, self.unexplained.finish()?))
    }
}
