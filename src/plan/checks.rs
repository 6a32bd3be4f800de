//! Whether a spec's own checks and claims can be held at all: found out before anything runs.

use std::collections::BTreeMap;

use arrow::datatypes::DataType;

use super::build::read_text;
use crate::calendar::Interval;
use crate::check::Claims;
use crate::dataset::Definition;
use crate::error::{Error, Result};
use crate::query::{Parameters, PinnedTable, Prepared, Query};
use crate::spec::{Rules, Spec};

/// Checks everything that a spec declares about its candidate and the difference.
///
/// # Errors
/// `Invalid` for what cannot be understood or is about something unknown.
pub(super) async fn check_checks(
    spec: &Spec,
    rules: &Rules,
    tables: &BTreeMap<String, PinnedTable>,
    (definition, intervals): (&Definition, &[Interval]),
    parameters: &Parameters,
) -> Result<()> {
    check_balances(spec, tables, definition, parameters).await?;
    check_rules(rules, spec, tables, definition, parameters).await?;
    let schema = definition.file_schema()?;
    Claims::new(&spec.expect, &spec.change.columns, &schema)?;
    spec.compare.check_schema(&schema)?;
    check_identical(spec, intervals)
}

async fn check_balances(
    spec: &Spec,
    tables: &BTreeMap<String, PinnedTable>,
    definition: &Definition,
    parameters: &Parameters,
) -> Result<()> {
    let candidate = PinnedTable::new(definition.table_schema()?, Vec::new(), None);
    let candidate = BTreeMap::from([("candidate".to_owned(), candidate)]);
    for balance in &spec.checks.balance {
        for (sql, tables) in [(&balance.source, tables), (&balance.candidate, &candidate)] {
            let name = format!("checks.balance {:?}", balance.name);
            let query = Query::parse(sql, &name)?;
            let prepared = Prepared::new(&query, tables, parameters).await?;
            if prepared.output.fields().len() != 1 {
                return Err(Error::invalid(format!("{name} must give one value"))
                    .hint("select one aggregate, such as count(*)"));
            }
        }
    }
    Ok(())
}

/// The rules, with the text of those that lie in files.
pub(super) fn read_rules(spec: &Spec) -> Result<Rules> {
    let mut rules = spec.checks.rules.clone();
    for rule in &mut rules.violations {
        if rule.sql.trim_end().ends_with(".sql") {
            rule.sql = read_text(&spec.folder.join(rule.sql.trim()))
                .map_err(|error| error.with("check", &rule.name))?;
        }
    }
    Ok(rules)
}

/// Each rule must be a query that can be run.
async fn check_rules(
    rules: &Rules,
    spec: &Spec,
    tables: &BTreeMap<String, PinnedTable>,
    definition: &Definition,
    parameters: &Parameters,
) -> Result<()> {
    if let Some((source, columns)) = rules
        .contains
        .iter()
        .find(|(source, columns)| !tables.contains_key(*source) || columns.is_empty())
    {
        return Err(Error::invalid(format!(
            "checks.rules.contains.{source} must name a declared source, and {} columns",
            if columns.is_empty() { "some" } else { "its" }
        ))
        .hint("write contains.orders = { id = \"order_id\" }: the candidate's column and the source's"));
    }
    if let Some((column, reference)) =
        rules.references.iter().find(|(_, one)| !tables.contains_key(&one.source))
    {
        return Err(Error::invalid(format!(
            "checks.rules.references.{column} names the source {:?}, which is not declared",
            reference.source
        )));
    }
    if let Some(sample) =
        spec.checks.sample.as_ref().filter(|one| !tables.contains_key(&one.source))
    {
        return Err(Error::invalid(format!(
            "checks.sample names the source {:?}, which is not declared",
            sample.source
        )));
    }
    let mut tables = tables.clone();
    for name in ["candidate", "production"] {
        let table = PinnedTable::new(definition.table_schema()?, Vec::new(), None);
        tables.insert(name.to_owned(), table);
    }
    for rule in rules.queries(&spec.dataset.key)? {
        let query = Query::parse(&rule.sql, &rule.name)?;
        let prepared = Prepared::new(&query, &tables, parameters).await;
        prepared.map_err(|error| error.with("check", &rule.name))?;
    }
    if let Some(sample) = &spec.checks.sample {
        let query = Query::parse(&sample.query(&spec.dataset.key), "checks.sample")?;
        let prepared = Prepared::new(&query, &tables, parameters).await;
        let prepared = prepared.map_err(|error| error.with("check", "checks.sample"))?;
        let answer = prepared.output.fields().last().map(|field| field.data_type());
        if let Some(other) = answer.filter(|of| **of != DataType::Boolean) {
            return Err(Error::invalid(format!(
                "checks.sample.expect is neither true nor false, it gives {other}"
            ))
            .with("expect", &sample.expect)
            .hint("write a condition: expect = \"candidate.amount = source.amount\""));
        }
    }
    Ok(())
}

/// Partitions that must stay as they are must be partitions of the range.
fn check_identical(spec: &Spec, intervals: &[Interval]) -> Result<()> {
    let named = |name: &&String| !intervals.iter().any(|interval| &&interval.name == name);
    match spec.expect.identical_partitions.iter().find(named) {
        None => Ok(()),
        Some(name) => Err(Error::invalid(format!(
            "expect.identical_partitions names {name:?}, which is no partition of the range"
        ))),
    }
}
