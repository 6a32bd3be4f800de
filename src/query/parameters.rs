//! Parameters: typed values, never spliced text.

use std::collections::{BTreeMap, HashMap};

use arrow::datatypes::{DataType, Field};
use chrono::{DateTime, Utc};
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan};
use std::sync::Arc;

use crate::calendar::Interval;
use crate::dataset::PartitionColumn;
use crate::error::{Error, ErrorKind, Result, from_engine};
use crate::spec::Parameter;

/// The parameters of one partition's query.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters(BTreeMap<String, ScalarValue>);

impl Parameters {
    /// `$start`, `$end` in the partition column's type; `$start_at`, `$end_at` as instants;
    /// `$partition`; `$as_of`; and the spec's own.
    ///
    /// # Errors
    /// `Invalid` when a boundary or a declared value cannot be represented.
    pub fn of(
        interval: &Interval,
        column: &PartitionColumn,
        as_of: DateTime<Utc>,
        declared: &BTreeMap<String, Parameter>,
    ) -> Result<Self> {
        let mut values = BTreeMap::new();
        for (name, parameter) in declared {
            values.insert(name.clone(), parameter.value()?);
        }
        values.insert("start".to_owned(), column.start_value(interval)?);
        values.insert("end".to_owned(), column.end_value(interval)?);
        values.insert("start_at".to_owned(), instant(interval.start));
        values.insert("end_at".to_owned(), instant(interval.end));
        values.insert("partition".to_owned(), ScalarValue::Utf8(Some(interval.name.clone())));
        values.insert("as_of".to_owned(), instant(as_of));
        Ok(Self(values))
    }

    /// None at all, for queries that no partition runs.
    pub fn none() -> Self {
        Self(BTreeMap::new())
    }

    /// The types, by name.
    pub fn types(&self) -> BTreeMap<String, DataType> {
        self.0.iter().map(|(name, value)| (name.clone(), value.data_type())).collect()
    }

    /// Those that a query uses, as text with their types: what enters its recipe.
    pub fn described(&self, used: &[String]) -> BTreeMap<String, String> {
        let used = self.0.iter().filter(|(name, _)| used.contains(name));
        used.map(|(name, value)| (name.clone(), format!("{} {value}", value.data_type()))).collect()
    }

    /// Puts the values into a plan.
    pub(super) fn bind(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let values: HashMap<_, _> =
            self.0.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        plan.with_param_values(ParamValues::Map(values)).map_err(|error| {
            from_engine(ErrorKind::Invalid, "the parameters do not fit into the SQL", error)
        })
    }
}

fn instant(at: DateTime<Utc>) -> ScalarValue {
    ScalarValue::TimestampMicrosecond(Some(at.timestamp_micros()), Some("UTC".into()))
}

/// Gives each placeholder of a plan its parameter's type, and collects the names used.
///
/// # Errors
/// `Invalid` for a placeholder without a parameter.
pub(super) fn type_placeholders(
    plan: LogicalPlan,
    types: &BTreeMap<String, DataType>,
    used: &mut Vec<String>,
) -> Result<LogicalPlan> {
    let mut unknown = None;
    let typed = plan
        .transform_up_with_subqueries(|node| {
            node.map_expressions(|expression| {
                expression.transform_up(|expression| {
                    let Expr::Placeholder(mut placeholder) = expression else {
                        return Ok(Transformed::no(expression));
                    };
                    let name = placeholder.id.trim_start_matches('$').to_owned();
                    match types.get(&name) {
                        Some(data_type) => {
                            let field = Field::new(&placeholder.id, data_type.clone(), false);
                            placeholder.field = Some(Arc::new(field));
                            used.push(name);
                        }
                        None => unknown = Some(placeholder.id.clone()),
                    }
                    Ok(Transformed::yes(Expr::Placeholder(placeholder)))
                })
            })
        })
        .map_err(|error| from_engine(ErrorKind::Invalid, "the SQL cannot be planned", error))?;
    used.sort();
    used.dedup();
    match unknown {
        None => Ok(typed.data),
        Some(name) => {
            let known: Vec<String> = types.keys().map(|name| format!("${name}")).collect();
            Err(Error::invalid(format!("the SQL uses {name}, which is no parameter"))
                .hint(format!("use one of {}, or declare it under [parameters]", known.join(", "))))
        }
    }
}
