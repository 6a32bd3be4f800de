//! The ledger as a table, for other tools.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};

use super::Discrepancy;
use crate::error::{ErrorKind, Result, from_arrow};
use crate::export::Export;

/// Writes a ledger as Parquet or CSV, by the file's ending.
///
/// # Columns
/// `id`, `column` (text, null: whole rows), `explanation`, `values` (unsigned), `partitions`
/// (unsigned), `first`, `last`, `net_change`, `largest_change` (doubles), `state`, `blocks` (text:
/// yes, no), `reason`, `actor`, `at` (text).
///
/// # Errors
/// `Invalid` for another ending, or a file that cannot be written or exists.
pub fn export(ledger: &[Discrepancy], file: &Path) -> Result<()> {
    let mut out = Export::create(file)?;
    out.write(&table(ledger)?)?;
    out.close()
}

const HEADINGS: [&str; 14] = [
    "id",
    "column",
    "explanation",
    "values",
    "partitions",
    "first",
    "last",
    "net_change",
    "largest_change",
    "state",
    "blocks",
    "reason",
    "actor",
    "at",
];

fn cells(one: &Discrepancy) -> [String; 14] {
    let cluster = &one.cluster;
    let said = one.disposition.as_ref();
    let number =
        |value: Option<crate::identity::Real>| value.map(|v| v.to_string()).unwrap_or_default();
    [
        one.id.clone(),
        cluster.column.clone().unwrap_or_default(),
        cluster.line(),
        cluster.values.to_string(),
        cluster.partitions.to_string(),
        cluster.first.clone(),
        cluster.last.clone(),
        number(cluster.net_change),
        number(cluster.largest_change),
        one.state.name().to_owned(),
        if one.blocks { "yes" } else { "no" }.to_owned(),
        said.map(|said| said.reason.clone()).unwrap_or_default(),
        said.map(|said| said.actor.clone()).unwrap_or_default(),
        said.map(|said| said.at.to_rfc3339()).unwrap_or_default(),
    ]
}

fn table(ledger: &[Discrepancy]) -> Result<RecordBatch> {
    let rows: Vec<[String; 14]> = ledger.iter().map(cells).collect();
    let columns = HEADINGS.iter().enumerate().map(|(at, name)| {
        let array: ArrayRef = match *name {
            "values" => {
                Arc::new(UInt64Array::from_iter_values(ledger.iter().map(|one| one.cluster.values)))
            }
            "partitions" => Arc::new(UInt64Array::from_iter_values(
                ledger.iter().map(|one| one.cluster.partitions),
            )),
            "net_change" => Arc::new(Float64Array::from_iter(
                ledger.iter().map(|one| one.cluster.net_change.map(|change| change.0)),
            )),
            "largest_change" => Arc::new(Float64Array::from_iter(
                ledger.iter().map(|one| one.cluster.largest_change.map(|change| change.0)),
            )),
            _ => Arc::new(StringArray::from_iter(
                rows.iter().map(|row| Some(row[at].as_str()).filter(|text| !text.is_empty())),
            )),
        };
        (*name, array, true)
    });
    RecordBatch::try_from_iter_with_nullable(columns)
        .map_err(|error| from_arrow(ErrorKind::Internal, "make the export", error))
}
