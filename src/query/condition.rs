//! A condition on a pair of rows: SQL over `production.*` and `candidate.*`.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray as _, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, ExprSchemable as _, Volatility};
use datafusion::physical_expr::PhysicalExpr;

use super::Session;
use crate::error::{Error, ErrorKind, Result, from_arrow, from_engine};

/// Longer conditions are refused: they are parsed by recursion.
const LONGEST: usize = 10_000;

/// A condition that is true or not of each pair of rows.
#[derive(Debug, Clone)]
pub struct RowCondition {
    sql: String,
    expression: Arc<dyn PhysicalExpr>,
    columns: SchemaRef,
}

impl RowCondition {
    /// From SQL over the columns of both sides, which have the same schema.
    ///
    /// # Errors
    /// `Invalid` for what is no boolean expression of their columns alone.
    pub fn new(session: &Session, sql: &str, schema: &SchemaRef) -> Result<Self> {
        let refuse = |error| {
            from_engine(ErrorKind::Invalid, "the condition cannot be understood", error)
                .with("condition", sql)
                .hint("write a boolean expression over production.<column> and candidate.<column>")
        };
        if sql.len() > LONGEST {
            return Err(Error::invalid("the condition is too long").with("bytes", sql.len()));
        }
        let side = |name: &str| DFSchema::try_from_qualified_schema(name, schema);
        let both = side("production").and_then(|one| one.join(&side("candidate")?));
        let both = both.map_err(refuse)?;
        let expression = session.expression(sql, &both).map_err(refuse)?;
        check_functions(&expression, sql)?;
        let data_type = expression.get_type(&both).map_err(refuse)?;
        if data_type != DataType::Boolean {
            return Err(Error::invalid(format!(
                "the condition gives {data_type}, not true or false"
            ))
            .with("condition", sql));
        }
        let physical = session.physical(expression, &both).map_err(refuse)?;
        let columns = Arc::new(both.as_arrow().clone());
        Ok(Self { sql: sql.to_owned(), expression: physical, columns })
    }

    /// The SQL.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// Where it is true of paired rows; null counts as not true.
    ///
    /// # Errors
    /// `Failed` when it cannot be computed, such as for a division by zero.
    pub fn holds(&self, production: &RecordBatch, candidate: &RecordBatch) -> Result<BooleanArray> {
        let columns: Vec<ArrayRef> =
            production.columns().iter().chain(candidate.columns()).cloned().collect();
        let options = RecordBatchOptions::new().with_row_count(Some(production.num_rows()));
        let schema = Arc::clone(&self.columns);
        let both = RecordBatch::try_new_with_options(schema, columns, &options)
            .map_err(|error| from_arrow(ErrorKind::Internal, "put both sides together", error))?;
        let fail = |error| {
            from_engine(ErrorKind::Failed, "a condition cannot be computed", error)
                .with("condition", &self.sql)
        };
        let value = self.expression.evaluate(&both).map_err(fail)?;
        let array = value.into_array(both.num_rows()).map_err(fail)?;
        let holds = array.as_boolean();
        Ok(holds.iter().map(|value| Some(value == Some(true))).collect())
    }
}

fn check_functions(expression: &Expr, sql: &str) -> Result<()> {
    let mut found = None;
    let walked = expression.apply(|one| {
        if let Expr::ScalarFunction(call) = one
            && call.func.signature().volatility != Volatility::Immutable
        {
            found = Some(call.func.name().to_owned());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(|error| from_engine(ErrorKind::Internal, "walk the condition", error))?;
    match found {
        None => Ok(()),
        Some(name) => Err(Error::invalid(format!(
            "the condition calls {name}(), whose answer is not the rows' alone"
        ))
        .with("condition", sql)),
    }
}
