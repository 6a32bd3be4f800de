//! A ready view definition of a version.

use std::fmt::Write as _;

use super::{Dataset, Partitions, Placement, TimeKind, Version};

/// SQL for DuckDB that shows exactly one version.
pub fn duckdb_view(dataset: &Dataset, version: &Version, partitions: &Partitions) -> String {
    let column = &version.manifest.definition.partition;
    let mut files = String::new();
    for file in partitions.present().flat_map(|partition| &partition.files) {
        let path = dataset.public_path(file).replace('\'', "''");
        // Writing to a string cannot fail.
        let _ = write!(files, "{}\n    '{path}'", if files.is_empty() { "" } else { "," });
    }
    let options = match column.placement {
        Placement::File => "hive_partitioning = false".to_owned(),
        Placement::Path => {
            let kind = if column.time == TimeKind::Date { "DATE" } else { "VARCHAR" };
            format!("hive_partitioning = true, hive_types = {{'{}': {kind}}}", column.column)
        }
    };
    format!(
        "-- {} as of version {} ({})\nCREATE OR REPLACE VIEW \"{}\" AS\nSELECT * FROM read_parquet([{files}\n], {options});\n",
        dataset.root(),
        version.number(),
        version.manifest.created_at.to_rfc3339(),
        dataset.root().name().replace('"', "\"\""),
    )
}
