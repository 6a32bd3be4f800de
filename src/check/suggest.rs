//! Bounds that production's own history would have held: a first spec's checks.

use std::collections::{BTreeMap, BTreeSet};

use crate::dataset::Definition;
use crate::error::Result;
use crate::identity::Real;
use crate::metrics::Metrics;
use crate::spec::{Bounds, Checks, NullRate, RowBounds, Rules};

/// Proposes checks from the numbers of production's partitions.
///
/// Each proposal holds for all of them, with room: half as many rows and twice as many, twice the
/// worst share of nulls, a tenth of the range of values on both sides. Columns that never had a
/// null must have none. Of columns that the change is about nothing is proposed: they are to change.
///
/// # Errors
/// `Corrupt` when a stored type is none.
pub fn suggest(
    definition: &Definition,
    changed: &BTreeSet<String>,
    production: &[&Metrics],
) -> Result<Checks> {
    let with_rows: Vec<&&Metrics> = production.iter().filter(|metrics| metrics.rows > 0).collect();
    let rows = || with_rows.iter().map(|metrics| metrics.rows);
    let rows = rows().min().zip(rows().max()).map(|(least, most)| RowBounds {
        min: Some(least / 2),
        max: Some(most.saturating_mul(2)),
        max_relative_change: None,
    });
    let mut null_rate = BTreeMap::new();
    let mut range = BTreeMap::new();
    let mut rules = Rules::default();
    for column in definition.columns.iter().filter(|column| !changed.contains(&column.name)) {
        let name = &column.name;
        let each = || with_rows.iter().filter_map(|one| Some((one.rows, one.columns.get(name)?)));
        let worst = each().map(|(rows, one)| one.nulls as f64 / rows as f64).fold(0.0, f64::max);
        if with_rows.is_empty() {
            continue;
        }
        if worst > 0.0 {
            let max = Real(((2.0 * worst).min(1.0) * 1_000.0).ceil() / 1_000.0);
            null_rate.insert(name.clone(), NullRate { max: Some(max), max_change: None });
        } else {
            rules.not_null.push(name.clone());
        }
        if column.field()?.data_type().is_numeric() {
            let number = |text: &Option<String>| text.as_ref().and_then(|text| text.parse().ok());
            let least =
                each().filter_map(|(_, one)| number(&one.min)).fold(f64::INFINITY, f64::min);
            let most =
                each().filter_map(|(_, one)| number(&one.max)).fold(f64::NEG_INFINITY, f64::max);
            if least.is_finite() && most.is_finite() {
                let room = ((most - least) / 10.0).ceil();
                let (min, max) = (Some(Real(least - room)), Some(Real(most + room)));
                range.insert(name.clone(), Bounds { min, max });
            }
        }
    }
    Ok(Checks { rows, null_rate, range, rules, ..Checks::default() })
}
