//! What somebody calls a table: a folder, a dataset, a version of one, or a run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::ScalarValue;

use super::open_folder;
use super::tables::{TablePartition, Tables};
use crate::calendar::Interval;
use crate::dataset::{DataFile, Dataset, Definition, Placement, Version};
use crate::error::{Error, Result};
use crate::plan::{Plan, find_plan};
use crate::query::PinnedFile;
use crate::run::RunState;
use crate::storage::Stores;

/// A table to compare, with the key it is known to have.
#[derive(Debug)]
pub struct OpenedSide {
    /// The table.
    pub tables: Tables,
    /// The key of the plan that it comes from.
    pub key: Option<Vec<String>>,
}

/// Opens a side:
///
/// * `URL@N`: version N of the dataset at the URL;
/// * the beginning of a plan's id, when `dataset` is given: what its run has computed so far;
/// * the URL of a dataset: its current version;
/// * any other URL or path: the Parquet files below.
///
/// # Errors
/// `Invalid` when it is nothing of these.
pub async fn open_side(
    stores: &Stores,
    text: &str,
    dataset: Option<&Dataset>,
    base: &Path,
) -> Result<OpenedSide> {
    let is_id = text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if let Some(dataset) = dataset.filter(|_| is_id) {
        return run(dataset, &find_plan(dataset, text).await?).await;
    }
    if let Some((url, number)) = text.rsplit_once('@')
        && let Ok(number) = number.parse::<u64>()
        && let Ok(dataset) = Dataset::at(stores, url, base)
        // Else it is a folder that happens to be called so.
        && dataset.find_head().await?.is_some()
    {
        let version = dataset.version(number).await?;
        return Ok(OpenedSide { tables: of_version(&dataset, &version).await?, key: None });
    }
    let managed = Dataset::at(stores, text, base).ok();
    if let Some(dataset) = &managed
        && let Some(head) = dataset.find_head().await?
    {
        return Ok(OpenedSide { tables: of_version(dataset, &head).await?, key: None });
    }
    Ok(OpenedSide { tables: open_folder(stores, text, base).await?, key: None })
}

async fn of_version(dataset: &Dataset, version: &Version) -> Result<Tables> {
    let definition = &version.manifest.definition;
    let mut partitions = BTreeMap::new();
    for partition in dataset.partitions(version).await?.present() {
        let interval = definition.partition.calendar.named(&partition.name)?;
        let opened = TablePartition {
            files: pinned_files(dataset, definition, &interval, &partition.files).await?,
            content: partition.content.clone(),
            rows: Some(partition.rows),
        };
        partitions.insert(definition.partition.folder(&partition.name), opened);
    }
    let schema = nullable(&definition.table_schema()?);
    let name = format!("{}@{}", dataset.root().url(), version.number());
    Ok(Tables::new(name, schema, partitions))
}

async fn run(dataset: &Dataset, plan: &Plan) -> Result<OpenedSide> {
    let state = RunState::load(dataset, plan).await?;
    let definition = &plan.decides.definition;
    let mut partitions = BTreeMap::new();
    for planned in &plan.decides.partitions {
        let Some(record) = state.records.get(&planned.interval.name) else { continue };
        let opened = TablePartition {
            files: pinned_files(dataset, definition, &planned.interval, &record.files).await?,
            content: Some(record.metrics.content.clone()),
            rows: Some(record.metrics.rows),
        };
        partitions.insert(definition.partition.folder(&planned.interval.name), opened);
    }
    if partitions.is_empty() {
        return Err(Error::invalid("the run has computed nothing yet")
            .with("plan", &plan.id)
            .hint(format!("compute it: reissue run {}", plan.id.short())));
    }
    let schema = nullable(&definition.table_schema()?);
    let tables = Tables::new(format!("run {}", plan.id.short()), schema, partitions);
    Ok(OpenedSide { tables, key: Some(plan.decides.key.clone()) })
}

/// A partition's files as they are now, with the partition column where only the path has it.
///
/// # Errors
/// `Corrupt` when a file is not what was recorded.
pub(crate) async fn pinned_files(
    dataset: &Dataset,
    definition: &Definition,
    interval: &Interval,
    files: &[DataFile],
) -> Result<Vec<PinnedFile>> {
    let mut path_values: BTreeMap<String, ScalarValue> = BTreeMap::new();
    if definition.partition.placement == Placement::Path {
        let value = definition.partition.start_value(interval)?;
        path_values.insert(definition.partition.column.clone(), value);
    }
    let mut pinned = Vec::new();
    for file in files {
        pinned.push(PinnedFile {
            object: dataset.current_object(file).await?,
            store: Arc::clone(dataset.place(file.place).store()),
            footer: None,
            path_values: path_values.clone(),
        });
    }
    Ok(pinned)
}

fn nullable(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
