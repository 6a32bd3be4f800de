//! A query checked against its sources: what it reads, uses, gives, and depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};

use super::{
    Parameters, PinnedTable, Query, Session, SessionOptions, order, parameters, time_kinds,
};
use crate::error::{Error, ErrorKind, Result, from_engine};

/// Which columns of which sources a query reads.
pub type SourceColumns = BTreeMap<String, BTreeSet<String>>;

/// What is known of a query before it runs.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The columns that it gives.
    pub output: SchemaRef,
    /// The columns that it reads.
    pub reads: SourceColumns,
    /// The parameters that it uses.
    pub parameters: Vec<String>,
    /// What in it depends on the order of rows, in words.
    pub order_sensitive: Vec<String>,
    /// Sums that the engine lets wrap around silently, in words.
    pub wrapping: Vec<String>,
}

impl Prepared {
    /// Checks a query against tables and parameters. Nothing runs.
    ///
    /// # Errors
    /// `Invalid`: unknown tables, columns or parameters, clocks or chance, different kinds of time
    /// compared, a `LIMIT` without an `ORDER BY`.
    pub async fn new(
        query: &Query,
        tables: &BTreeMap<String, PinnedTable>,
        parameters: &Parameters,
    ) -> Result<Self> {
        let session = Session::new(&SessionOptions::default())?;
        for (name, table) in tables {
            session.register(name, table.clone())?;
        }
        let plan = session.plan(query).await.map_err(|error| with_tables(error, tables))?;
        check_plan(&plan)?;
        let mut used = Vec::new();
        let typed = parameters::type_placeholders(plan.clone(), &parameters.types(), &mut used)?;
        check_functions(&typed)?;
        time_kinds::check(&typed)?;
        let order_sensitive = order::order_sensitive(&typed)?;
        let wrapping = order::wrapping_sums(&typed)?;
        let bound = parameters.bind(plan)?;
        let optimized = session.optimize(&bound)?;
        let output = Arc::new(optimized.schema().as_arrow().clone());
        check_distinct_names(&output)?;
        // ORDER: a table that these parameters fold away may be needed with others, so every table
        // named counts as read, and the optimized plan only says which columns.
        let mut reads = tables_of(&typed)?;
        for (table, columns) in reads_of(&optimized)? {
            reads.entry(table).or_default().extend(columns);
        }
        Ok(Self { output, reads, parameters: used, order_sensitive, wrapping })
    }
}

fn with_tables(error: Error, tables: &BTreeMap<String, PinnedTable>) -> Error {
    let names: Vec<&str> = tables.keys().map(String::as_str).collect();
    error.hint(format!("the tables are the declared sources: {}", names.join(", ")))
}

fn check_plan(plan: &LogicalPlan) -> Result<()> {
    SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false)
        .verify_plan(plan)
        .map_err(|error| from_engine(ErrorKind::Invalid, "the SQL does more than read", error))
}

/// Refuses what gives another answer at another time. `now()` counts as stable in the engine,
/// which folds it to a literal while planning; so both volatile and stable functions are refused.
fn check_functions(plan: &LogicalPlan) -> Result<()> {
    let mut found = None;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|expression| {
                if let Expr::ScalarFunction(call) = expression
                    && call.func.signature().volatility != Volatility::Immutable
                {
                    found = Some((call.func.name().to_owned(), call.func.signature().volatility));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })
    .map_err(|error| from_engine(ErrorKind::Invalid, "the SQL cannot be planned", error))?;
    match found {
        None => Ok(()),
        Some((name, Volatility::Volatile)) => {
            Err(Error::invalid(format!("the SQL calls {name}(), which answers by chance"))
                .hint("derive the value from the rows themselves, so that the same inputs give the same bytes"))
        }
        Some((name, _)) => {
            Err(Error::invalid(format!("the SQL calls {name}(), which depends on when it runs"))
                .hint("use $as_of, the instant that the plan fixes, or $start and $end"))
        }
    }
}

fn check_distinct_names(output: &Schema) -> Result<()> {
    let mut names = BTreeSet::new();
    for field in output.fields() {
        if !names.insert(field.name()) {
            return Err(Error::invalid(format!(
                "the SQL gives two columns called {:?}",
                field.name()
            ))
            .hint("name one of them with AS"));
        }
    }
    Ok(())
}

/// Every table that a plan names, without columns.
fn tables_of(plan: &LogicalPlan) -> Result<SourceColumns> {
    let mut tables = SourceColumns::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            tables.entry(scan.table_name.table().to_owned()).or_default();
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map_err(|error| from_engine(ErrorKind::Internal, "walk the plan", error))?;
    Ok(tables)
}

/// The columns that an optimized plan's scans keep.
fn reads_of(plan: &LogicalPlan) -> Result<SourceColumns> {
    let mut reads = SourceColumns::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            let columns = reads.entry(scan.table_name.table().to_owned()).or_default();
            let schema = scan.source.schema();
            let all: Vec<usize> = (0..schema.fields().len()).collect();
            let kept = scan.projection.as_ref().unwrap_or(&all);
            columns.extend(kept.iter().map(|index| schema.field(*index).name().clone()));
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map_err(|error| from_engine(ErrorKind::Internal, "walk the plan", error))?;
    Ok(reads)
}
