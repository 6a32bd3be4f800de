//! Comparisons of different kinds of time, refused by name.
//!
//! The engine compares a local date with an instant by turning the date into midnight UTC:
//! silently a day off for everybody west of Greenwich. A text next to an instant is read in the
//! column's own zone. Neither is what was meant, so neither is let through.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::logical_expr::expr::{Between, InList, InSubquery};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable as _, LogicalPlan, Operator};

use crate::dataset::TimeKind;
use crate::error::{Error, ErrorKind, Result, from_engine};

/// Refuses a plan that compares different kinds of time.
pub(super) fn check(plan: &LogicalPlan) -> Result<()> {
    let mut found = None;
    plan.apply_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        if let LogicalPlan::Join(join) = node {
            found = found
                .take()
                .or_else(|| join.on.iter().find_map(|(left, right)| mixed(left, right, &schema)));
        }
        node.apply_expressions(|expression| {
            expression.apply(|expression| {
                found = found.take().or_else(|| mixed_in(expression, &schema));
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })
    .map_err(|error| from_engine(ErrorKind::Invalid, "the SQL cannot be planned", error))?;
    found.map_or(Ok(()), Err)
}

fn mixed_in(expression: &Expr, schema: &DFSchema) -> Option<Error> {
    match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(*op) => {
            mixed(left, right, schema)
        }
        Expr::Between(Between { expr, low, high, .. }) => {
            mixed(expr, low, schema).or_else(|| mixed(expr, high, schema))
        }
        Expr::InSubquery(InSubquery { expr, subquery, .. }) => {
            let inner = subquery.subquery.schema();
            let column = inner.columns().into_iter().next()?;
            let one = kind(expr, schema)?;
            let two = kind(&Expr::Column(column.clone()), inner)?;
            is_mixed(&one, &two).then(|| refusal(expr, &one, &Expr::Column(column), &two))
        }
        Expr::InList(InList { expr, list, .. }) => {
            list.iter().find_map(|item| mixed(expr, item, schema))
        }
        _ => None,
    }
}

fn compares(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

fn mixed(left: &Expr, right: &Expr, schema: &DFSchema) -> Option<Error> {
    let (one, two) = (kind(left, schema)?, kind(right, schema)?);
    is_mixed(&one, &two).then(|| refusal(left, &one, right, &two))
}

fn is_mixed(one: &TimeKind, two: &TimeKind) -> bool {
    match (one, two) {
        // A text next to a date can only be that date.
        (TimeKind::Name, TimeKind::Name | TimeKind::Date) | (TimeKind::Date, TimeKind::Name) => {
            false
        }
        (TimeKind::Date, TimeKind::Date)
        | (TimeKind::Instant { .. }, TimeKind::Instant { .. })
        | (TimeKind::Wall { .. }, TimeKind::Wall { .. }) => false,
        // A text that spells a wall-clock time next to one is that time.
        (TimeKind::Name, TimeKind::Wall { .. }) | (TimeKind::Wall { .. }, TimeKind::Name) => false,
        _ => true,
    }
}

fn refusal(left: &Expr, one: &TimeKind, right: &Expr, two: &TimeKind) -> Error {
    Error::invalid(format!(
        "the SQL compares {left}, {}, with {right}, {}",
        one.words(),
        two.words()
    ))
    .hint(advice(one, two))
}

fn kind(expression: &Expr, schema: &DFSchema) -> Option<TimeKind> {
    let data_type = expression.get_type(schema).ok()?;
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(TimeKind::Name),
        other => TimeKind::of(&other),
    }
}

fn advice(one: &TimeKind, two: &TimeKind) -> &'static str {
    match (one, two) {
        (TimeKind::Date, TimeKind::Instant { .. }) | (TimeKind::Instant { .. }, TimeKind::Date) => {
            "compare dates with $start and $end, instants with $start_at and $end_at; or cast the instant to a date of the right zone first"
        }
        (TimeKind::Name, _) | (_, TimeKind::Name) => {
            "a text has no zone of its own: compare the instant with $start_at, $end_at or a declared parameter such as since = 2013-01-01T00:00:00Z"
        }
        _ => "cast one side, saying which zone the wall clock is of: AT TIME ZONE '…'",
    }
}
