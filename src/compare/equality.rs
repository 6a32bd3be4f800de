//! When two values are equal: exactly, unless a rule says otherwise.
//!
//! Exactly: both null, or of the same canonical value: every NaN is the same, −0.0 is not 0.0,
//! decimals are compared in one scale, maps whatever the order of their entries.
//!
//! With a tolerance: both numbers, and `|candidate − production|` is at most `absolute`, or at
//! most `relative · |production|`; then −0.0 and 0.0 are equal, NaN only NaN, an infinity only
//! itself. Decimals and integers are compared with a tolerance as doubles. With a truncation:
//! both times, in the same second, minute, hour or day (of UTC).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, BooleanArray, Int64Array, make_comparator};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{DataType, Float64Type, Int64Type, Schema, TimeUnit};
use serde::{Deserialize, Serialize};

use super::leaves::Leaves;

use crate::error::{Error, ErrorKind, Result, from_arrow};
use crate::identity::Real;
use crate::key::with_one_nan;
use crate::metrics::words_of_rows;
use crate::text_views;

/// Rules by column; a column without one is compared exactly.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Equality(pub BTreeMap<String, Rule>);

/// One column's rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// Numbers may differ by this much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absolute: Option<Real>,
    /// Numbers may differ by this share of production's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<Real>,
    /// Times are equal within the same of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncate: Option<Truncation>,
}

/// How far times are truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Truncation {
    /// To the millisecond.
    Millisecond,
    /// To the second.
    Second,
    /// To the minute.
    Minute,
    /// To the hour.
    Hour,
    /// To the day of UTC.
    Day,
}

impl Truncation {
    fn name(self) -> &'static str {
        match self {
            Self::Millisecond => "millisecond",
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }

    fn nanoseconds(self) -> i64 {
        match self {
            Self::Millisecond => 1_000_000,
            Self::Second => 1_000_000_000,
            Self::Minute => 60_000_000_000,
            Self::Hour => 3_600_000_000_000,
            Self::Day => 86_400_000_000_000,
        }
    }
}

impl Equality {
    /// Checks that each rule fits its column.
    ///
    /// # Errors
    /// `Invalid` with the column.
    pub(super) fn check(&self, types: &BTreeMap<String, DataType>) -> Result<()> {
        for (column, rule) in &self.0 {
            let Some(data_type) = types.get(column) else {
                let known: Vec<&str> = types.keys().map(String::as_str).collect();
                return Err(Error::invalid(format!("there is no column {column:?} to compare"))
                    .hint(format!("the columns are {}", known.join(", "))));
            };
            rule.check(column, data_type)?;
        }
        Ok(())
    }

    /// Whether all columns are compared exactly.
    pub fn is_exact(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that each rule fits its column of a schema.
    ///
    /// # Errors
    /// `Invalid` with the column.
    pub fn check_schema(&self, schema: &Schema) -> Result<()> {
        Leaves::paths(schema)?;
        self.check(&Leaves::of(schema, &[])?.types(schema))
    }

    pub(super) fn rule(&self, column: &str) -> Option<&Rule> {
        self.0.get(column)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rules = Vec::new();
        rules.extend(self.absolute.map(|bound| format!("absolute {bound}")));
        rules.extend(self.relative.map(|bound| format!("relative {bound}")));
        rules.extend(self.truncate.map(|unit| format!("the same {}", unit.name())));
        f.write_str(&rules.join(" or "))
    }
}

impl Rule {
    fn check(&self, column: &str, data_type: &DataType) -> Result<()> {
        let tolerant = self.absolute.is_some() || self.relative.is_some();
        if tolerant == self.truncate.is_some() {
            return Err(Error::invalid(format!(
                "the rule of {column:?} must be a tolerance or a truncation"
            ))
            .hint("write { absolute = 0.01 }, { relative = 1e-9 } or { truncate = \"second\" }"));
        }
        for bound in [self.absolute, self.relative].into_iter().flatten() {
            if !(bound.0 >= 0.0 && bound.0.is_finite()) {
                return Err(Error::invalid(format!("the tolerance of {column:?} is {bound}"))
                    .hint("a tolerance is a number of 0 or more"));
            }
        }
        let fits = if tolerant {
            data_type.is_numeric()
        } else {
            matches!(data_type, DataType::Timestamp(..))
        };
        if fits {
            Ok(())
        } else {
            Err(Error::invalid(format!(
                "column {column:?} is {data_type}, which the rule does not fit"
            ))
            .hint("tolerances are for numbers, truncations for timestamps"))
        }
    }
}

/// Where two arrays of the same type differ; never null. `None`: nowhere.
pub(super) fn differing(
    one: &ArrayRef,
    two: &ArrayRef,
    rule: Option<&Rule>,
) -> Result<Option<BooleanArray>> {
    // Most columns are equal bit for bit, which is the cheapest thing to find out.
    if are_equal(one, two) {
        return Ok(None);
    }
    let differs = match rule {
        Some(Rule { truncate: Some(unit), .. }) => truncated(one, two, *unit),
        Some(rule) => tolerant(one, two, rule),
        None => exactly(one, two),
    };
    let differs =
        differs.map_err(|error| from_arrow(ErrorKind::Unsupported, "compare a column", error))?;
    Ok((differs.true_count() > 0).then_some(differs))
}

fn are_equal(one: &ArrayRef, two: &ArrayRef) -> bool {
    if let (DataType::Utf8View, DataType::Utf8View) = (one.data_type(), two.data_type()) {
        let (one, two) = (one.as_string_view(), two.as_string_view());
        if let Some(views) = text_views::short(one)
            && two.null_count() == 0
        {
            // The views of longer texts are none of these.
            return views == two.views().as_ref();
        }
    }
    one.as_ref() == two.as_ref()
}

type Differs = std::result::Result<BooleanArray, arrow::error::ArrowError>;

fn exactly(one: &ArrayRef, two: &ArrayRef) -> Differs {
    if one.data_type().is_nested() && !matches!(one.data_type(), DataType::Dictionary(..)) {
        return nested(one, two);
    }
    distinct(&with_one_nan(one), &with_one_nan(two))
}

/// Nested values by their canonical words, as the content digest sees them; where those cannot be
/// had, value by value.
fn nested(one: &ArrayRef, two: &ArrayRef) -> Differs {
    if let (Ok(left), Ok(right)) = (words_of_rows(one), words_of_rows(two)) {
        let differs = BooleanBuffer::collect_bool(one.len(), |row| left[row] != right[row]);
        return Ok(BooleanArray::new(differs, None));
    }
    let compare = make_comparator(one, two, SortOptions::default())?;
    let differs = BooleanBuffer::collect_bool(one.len(), |row| compare(row, row).is_ne());
    Ok(BooleanArray::new(differs, None))
}

fn tolerant(one: &ArrayRef, two: &ArrayRef, rule: &Rule) -> Differs {
    let (one, two) = (cast(one, &DataType::Float64)?, cast(two, &DataType::Float64)?);
    let (one, two) = (one.as_primitive::<Float64Type>(), two.as_primitive::<Float64Type>());
    let absolute = rule.absolute.map_or(0.0, |bound| bound.0);
    let relative = rule.relative.map_or(0.0, |bound| bound.0);
    let differs =
        BooleanBuffer::collect_bool(one.len(), |row| match (one.is_null(row), two.is_null(row)) {
            (true, true) => false,
            (false, false) => {
                let (before, after) = (one.value(row), two.value(row));
                let is_same = before == after || (before.is_nan() && after.is_nan());
                let change = (after - before).abs();
                let allowed = absolute.max(relative * before.abs());
                !(is_same || (change.is_finite() && change <= allowed))
            }
            _ => true,
        });
    Ok(BooleanArray::new(differs, None))
}

fn truncated(one: &ArrayRef, two: &ArrayRef, unit: Truncation) -> Differs {
    let cut = |array: &ArrayRef| -> std::result::Result<ArrayRef, arrow::error::ArrowError> {
        let per_second = match array.data_type() {
            DataType::Timestamp(TimeUnit::Second, _) => 1,
            DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000,
            DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000_000,
            _ => 1_000_000_000_i128,
        };
        // In units of the column: at least one.
        let step = (i128::from(unit.nanoseconds()) * per_second / 1_000_000_000).max(1);
        let step = i64::try_from(step).unwrap_or(i64::MAX);
        let whole = cast(array, &DataType::Int64)?;
        let cut: Int64Array = whole.as_primitive::<Int64Type>().unary(|v| v.div_euclid(step));
        Ok(Arc::new(cut))
    };
    distinct(&cut(one)?, &cut(two)?)
}
