//! Two tables brought under one cut into partitions, so that rows that belong together meet.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::common::ScalarValue;

use super::hive;
use super::tables::{TablePartition, Tables};

/// Two tables whose partitions are called alike.
#[derive(Debug, Clone)]
pub struct Aligned {
    /// What is there now.
    pub production: Tables,
    /// What would take its place.
    pub candidate: Tables,
    /// What had to be done for it, or could not be.
    pub layout: Option<String>,
}

/// Brings two tables under one cut. Where their folders are of different columns, each becomes one
/// partition; where one side writes `month=1` and the other `month=01`, both become `month=1`.
pub fn align(mut production: Tables, mut candidate: Tables) -> Aligned {
    let mut layout = None;
    let (left, right) = (columns(&production), columns(&candidate));
    if left != right {
        let told = |columns: &BTreeSet<String>| match columns.len() {
            0 => "no folders".to_owned(),
            _ => columns.iter().map(|column| format!("{column}=")).collect::<Vec<_>>().join("/"),
        };
        layout = Some(format!(
            "the sides are cut in different ways (production: {}, candidate: {}), so each is compared as a whole",
            told(&left),
            told(&right)
        ));
        [&mut production, &mut candidate].into_iter().for_each(unite);
    } else if !production.partitions.keys().eq(candidate.partitions.keys()) {
        let whole_numbers: BTreeSet<String> = left
            .into_iter()
            .filter(|column| has_numbers(&production, column) && has_numbers(&candidate, column))
            .collect();
        [&mut production, &mut candidate].into_iter().for_each(|side| plain(side, &whole_numbers));
        let shared =
            production.partitions.keys().any(|name| candidate.partitions.contains_key(name));
        if !shared && !production.partitions.is_empty() && !candidate.partitions.is_empty() {
            layout = Some(
                "no partition is on both sides: all rows are told as removed and added".to_owned(),
            );
        }
    }
    Aligned { production, candidate, layout }
}

/// The Hive columns of a table's partitions.
fn columns(side: &Tables) -> BTreeSet<String> {
    let names = side.partitions.keys().flat_map(|name| hive::columns(name));
    names.map(str::to_owned).collect()
}

fn unite(side: &mut Tables) {
    let parts = std::mem::take(&mut side.partitions);
    let files = parts.into_values().flat_map(|part| part.files).collect();
    side.partitions.insert(String::new(), TablePartition { files, content: None, rows: None });
}

/// A whole number without what does not count: `01` is `1`.
fn whole_number(text: &str) -> Option<String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let trimmed = text.trim_start_matches('0');
    digits.then(|| if trimmed.is_empty() { "0" } else { trimmed }.to_owned())
}

fn has_numbers(side: &Tables, column: &str) -> bool {
    let parts = side.partitions.keys().flat_map(|name| name.split('/'));
    let mut values = parts.filter_map(|part| part.split_once('=')).filter(|part| part.0 == column);
    values.all(|(_, value)| whole_number(value).is_some() || value == hive::NULL)
}

/// Writes the numbers in folders' names without leading zeros.
fn plain(side: &mut Tables, columns: &BTreeSet<String>) {
    let mut renamed: BTreeMap<String, TablePartition> = BTreeMap::new();
    for (name, mut part) in std::mem::take(&mut side.partitions) {
        let parts = name.split('/').map(|one| match one.split_once('=') {
            Some((column, value)) if columns.contains(column) => {
                format!("{column}={}", whole_number(value).unwrap_or_else(|| value.to_owned()))
            }
            _ => one.to_owned(),
        });
        let new: String = parts.collect::<Vec<_>>().join("/");
        for (column, value) in part.files.iter_mut().flat_map(|file| &mut file.path_values) {
            if let ScalarValue::Utf8(Some(text)) = value
                && columns.contains(column)
                && let Some(number) = whole_number(text)
            {
                *text = number;
            }
        }
        match renamed.get_mut(&new) {
            Some(held) => {
                *held = TablePartition {
                    files: held.files.drain(..).chain(part.files).collect(),
                    content: None,
                    rows: None,
                };
            }
            None => {
                renamed.insert(new, part);
            }
        }
    }
    side.partitions = renamed;
}
