//! Files of others, decoded before they count: their pages are whole, and where they carry the
//! partition column, each row belongs to its partition.

use std::collections::BTreeMap;

use futures::TryStreamExt as _;

use super::PartitionColumn;
use crate::calendar::Interval;
use crate::check::ValueMeter;
use crate::error::Result;
use crate::parquet_file::{DECODED_ROWS, Footer, Scan, scan};
use crate::storage::ObjectReader;

/// Decodes a file and says why its rows are not the partition's; `None` when they are.
///
/// With `whole`, every column is decoded; else only a partition column inside the file.
///
/// # Errors
/// `Corrupt` when pages cannot be decoded, `Stale` when the file changes meanwhile.
pub(super) async fn proofread(
    reader: &ObjectReader,
    footer: &Footer,
    column: &str,
    partition: &PartitionColumn,
    interval: &Interval,
    whole: bool,
) -> Result<Option<String>> {
    let inside = footer.schema().index_of(column).ok();
    if inside.is_none() && !whole {
        return Ok(None);
    }
    let columns = if whole { None } else { inside.map(|index| vec![index]) };
    let wish = Scan { columns, row_groups: None, batch_rows: DECODED_ROWS, views: false };
    let (_, mut batches) = scan(reader.clone(), footer, wish)?;
    let mut values = ValueMeter::new(partition, interval, &BTreeMap::new())?;
    while let Some(batch) = batches.try_next().await? {
        if inside.is_some() {
            values.see_interval(&batch)?;
        }
    }
    Ok((values.outside.rows > 0).then(|| {
        format!(
            "{} of its rows are outside of {}, such as {}",
            values.outside.rows,
            interval.name,
            values.outside.examples.join(", ")
        )
    }))
}
