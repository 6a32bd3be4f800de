//! What in a query depends on the order in which rows happen to come.

use std::collections::BTreeSet;

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable as _, LogicalPlan, WindowFrameUnits};

use crate::error::{Error, ErrorKind, Result, from_engine};

/// Aggregates whose answer follows the order of rows unless they say `ORDER BY`.
const BY_ORDER: [&str; 5] = ["first_value", "last_value", "nth_value", "array_agg", "string_agg"];

/// Aggregates that add floats, whose sum follows the order of addition.
const BY_SUM: [&str; 13] = [
    "sum",
    "avg",
    "mean",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "var",
    "var_pop",
    "var_samp",
    "var_sample",
    "corr",
    "covar_pop",
    "covar_samp",
];

/// Window functions that number or pick rows, and so follow the order of ties.
const BY_TIES: [&str; 8] =
    ["row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value", "cume_dist"];

/// Names every construct whose answer may follow the order of rows, in words.
///
/// # Errors
/// `Invalid` for a `LIMIT` without an `ORDER BY`: no order makes it meaningful.
pub(super) fn order_sensitive(plan: &LogicalPlan) -> Result<Vec<String>> {
    let mut found = BTreeSet::new();
    let mut refused = None;
    plan.apply_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        if let LogicalPlan::Limit(limit) = node {
            match sort_below(&limit.input) {
                Some(keys) => {
                    found.insert(format!("LIMIT after ORDER BY {keys}, if rows are equal in it"));
                }
                None => refused = Some(limit_without_order()),
            }
        }
        if let LogicalPlan::Distinct(Distinct::On(_)) = node {
            found.insert("DISTINCT ON keeps one of several rows".to_owned());
        }
        node.apply_expressions(|expression| {
            expression.apply(|expression| {
                found.extend(sensitive(expression, &schema));
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })
    .map_err(|error| from_engine(ErrorKind::Invalid, "the SQL cannot be planned", error))?;
    refused.map_or_else(|| Ok(found.into_iter().collect()), Err)
}

/// Names the sums that can exceed their type: the engine lets them wrap around without an error.
pub(super) fn wrapping_sums(plan: &LogicalPlan) -> Result<Vec<String>> {
    let mut found = BTreeSet::new();
    plan.apply_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|expression| {
            expression.apply(|expression| {
                let (name, arguments) = match expression {
                    Expr::AggregateFunction(call) => (call.func.name(), &call.params.args),
                    Expr::WindowFunction(call) => (call.fun.name(), &call.params.args),
                    _ => return Ok(TreeNodeRecursion::Continue),
                };
                let wide = |argument: &Expr| {
                    matches!(
                        argument.get_type(&schema),
                        Ok(DataType::Int64 | DataType::UInt64 | DataType::Decimal128(29.., _))
                    )
                };
                if name.eq_ignore_ascii_case("sum") && arguments.iter().any(wide) {
                    found.insert(expression.to_string());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })
    .map_err(|error| from_engine(ErrorKind::Invalid, "the SQL cannot be planned", error))?;
    Ok(found.into_iter().collect())
}

fn limit_without_order() -> Error {
    Error::invalid("the SQL has a LIMIT without an ORDER BY, so which rows it keeps is chance")
        .hint("order by columns that together are unique, or leave the LIMIT out")
}

fn sort_below(plan: &LogicalPlan) -> Option<String> {
    match plan {
        LogicalPlan::Sort(sort) => {
            let keys: Vec<String> = sort.expr.iter().map(ToString::to_string).collect();
            Some(keys.join(", "))
        }
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
            plan.inputs().first().and_then(|input| sort_below(input))
        }
        _ => None,
    }
}

fn sensitive(expression: &Expr, schema: &DFSchema) -> Option<String> {
    match expression {
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            let name = func.name().to_ascii_lowercase();
            if BY_ORDER.contains(&name.as_str()) && params.order_by.is_empty() {
                return Some(format!("{expression} has no ORDER BY"));
            }
            if BY_ORDER.contains(&name.as_str()) {
                return Some(format!("{expression}, if rows are equal in its ORDER BY"));
            }
            if name.starts_with("approx_") {
                return Some(format!("{expression} is approximate"));
            }
            let floats = params.args.iter().any(|argument| is_float(argument, schema));
            (adds(&name) && floats).then(|| format!("{expression} adds floating-point values"))
        }
        Expr::WindowFunction(window) => windowed(window, expression, schema),
        _ => None,
    }
}

fn windowed(window: &WindowFunction, expression: &Expr, schema: &DFSchema) -> Option<String> {
    let name = window.fun.name().to_ascii_lowercase();
    let by_rows = window.params.window_frame.units == WindowFrameUnits::Rows
        && !window.params.order_by.is_empty();
    if BY_TIES.contains(&name.as_str()) || BY_ORDER.contains(&name.as_str()) || by_rows {
        return Some(format!("{expression}, if rows are equal in its ORDER BY"));
    }
    let floats = window.params.args.iter().any(|argument| is_float(argument, schema));
    (adds(&name) && floats).then(|| format!("{expression} adds floating-point values"))
}

fn adds(name: &str) -> bool {
    BY_SUM.contains(&name) || name.starts_with("regr_")
}

fn is_float(argument: &Expr, schema: &DFSchema) -> bool {
    matches!(
        argument.get_type(schema),
        Ok(DataType::Float16 | DataType::Float32 | DataType::Float64)
    )
}
