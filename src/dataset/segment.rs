//! Segments: partitions of a version as small Parquet files, named by their content.
//!
//! # Schema
//! One row per partition, in order of time:
//! ```text
//! partition: string            start, end: timestamp[us, UTC]
//! state: string                present | empty | removed
//! rows, bytes: uint64          content, recipe, logic: string?
//! changed_in: uint64
//! files: list<struct<place: string, path: string, size: uint64, rows: uint64, hash: string,
//!                    e_tag: string?, version: string?, modified_at: timestamp[us, UTC]>>
//! superseded: the same type as files
//! ```

use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, ListArray, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray, UInt64Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{Field, TimestampMicrosecondType, UInt64Type};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::manifest::SegmentRef;
use super::partition::{DataFile, Partition, Place, State};
use crate::error::{Error, Result};
use crate::identity::Digest;

/// How many partitions a segment describes at most.
const PARTITIONS_PER_SEGMENT: usize = 1_000;

/// A segment ready to be stored.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) reference: SegmentRef,
    pub(super) bytes: Bytes,
}

/// Cuts partitions, sorted by time, into segments along the boundaries that are there already, so
/// that a segment none of whose partitions changed comes out the same, and is not stored again.
pub(super) fn encode_all(partitions: &[Partition], old: &[SegmentRef]) -> Result<Vec<Encoded>> {
    let mut groups: Vec<Vec<Partition>> = vec![Vec::new(); old.len().max(1)];
    for partition in partitions {
        // The last segment that begins at or before it; the first one for what is older than all.
        let begun = old.partition_point(|segment| segment.start <= partition.start);
        if let Some(group) = groups.get_mut(begun.saturating_sub(1)) {
            group.push(partition.clone());
        }
    }
    groups.iter().flat_map(|group| group.chunks(PARTITIONS_PER_SEGMENT)).map(encode).collect()
}

fn encode(partitions: &[Partition]) -> Result<Encoded> {
    let wrong = |error: &dyn std::fmt::Display| {
        Error::internal("encode a segment").because(error.to_string())
    };
    let batch = to_batch(partitions).map_err(|error| wrong(&error))?;
    let properties = WriterProperties::builder()
        .set_created_by("reissue segment 1".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties))
        .map_err(|error| wrong(&error))?;
    writer.write(&batch).map_err(|error| wrong(&error))?;
    writer.close().map_err(|error| wrong(&error))?;
    let (Some(first), Some(last)) = (partitions.first(), partitions.last()) else {
        return Err(Error::internal("a segment without partitions"));
    };
    let reference = SegmentRef {
        digest: Digest::of_bytes(&bytes),
        start: first.start,
        end: last.end,
        partitions: partitions.len() as u64,
    };
    Ok(Encoded { reference, bytes: bytes.into() })
}

fn texts<'a>(values: impl IntoIterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

fn optional<'a>(values: impl IntoIterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<StringArray>())
}

fn numbers(values: impl IntoIterator<Item = u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(values))
}

fn instants(values: impl IntoIterator<Item = DateTime<Utc>>) -> ArrayRef {
    let micros = values.into_iter().map(|at| at.timestamp_micros());
    Arc::new(TimestampMicrosecondArray::from_iter_values(micros).with_timezone("UTC"))
}

fn to_batch(partitions: &[Partition]) -> Result<RecordBatch, arrow::error::ArrowError> {
    let rows = || partitions.iter();
    RecordBatch::try_from_iter_with_nullable([
        ("partition", texts(rows().map(|p| p.name.as_str())), false),
        ("start", instants(rows().map(|p| p.start)), false),
        ("end", instants(rows().map(|p| p.end)), false),
        ("state", texts(rows().map(|p| state_name(p.state))), false),
        ("rows", numbers(rows().map(|p| p.rows)), false),
        ("bytes", numbers(rows().map(|p| p.bytes)), false),
        ("content", optional(rows().map(|p| p.content.as_deref())), true),
        ("recipe", optional(rows().map(|p| p.recipe.as_ref().map(Digest::as_str))), true),
        ("logic", optional(rows().map(|p| p.logic.as_deref())), true),
        ("changed_in", numbers(rows().map(|p| p.changed_in)), false),
        ("files", files_array(rows().map(|p| &p.files))?, false),
        ("superseded", files_array(rows().map(|p| &p.superseded))?, false),
    ])
}

fn files_array<'a>(
    lists: impl Iterator<Item = &'a Vec<DataFile>> + Clone,
) -> Result<ArrayRef, arrow::error::ArrowError> {
    let all: Vec<&DataFile> = lists.clone().flatten().collect();
    let files = || all.iter();
    let columns = RecordBatch::try_from_iter_with_nullable([
        ("place", texts(files().map(|f| place_name(f.place))), false),
        ("path", texts(files().map(|f| f.path.as_str())), false),
        ("size", numbers(files().map(|f| f.size)), false),
        ("rows", numbers(files().map(|f| f.rows)), false),
        ("hash", texts(files().map(|f| f.hash.as_str())), false),
        ("e_tag", optional(files().map(|f| f.e_tag.as_deref())), true),
        ("version", optional(files().map(|f| f.version.as_deref())), true),
        ("modified_at", instants(files().map(|f| f.modified_at)), false),
    ])?;
    let structs = StructArray::from(columns);
    let item = Arc::new(Field::new("item", structs.data_type().clone(), false));
    let offsets = OffsetBuffer::from_lengths(lists.clone().map(Vec::len));
    Ok(Arc::new(ListArray::try_new(item, offsets, Arc::new(structs), None)?))
}

fn state_name(state: State) -> &'static str {
    match state {
        State::Present => "present",
        State::Empty => "empty",
        State::Removed => "removed",
    }
}

fn place_name(place: Place) -> &'static str {
    match place {
        Place::Root => "root",
        Place::Control => "control",
    }
}

/// Reads a segment whose bytes must be the ones its name promises.
pub(super) fn decode(reference: &SegmentRef, bytes: Bytes) -> Result<Vec<Partition>> {
    let wrong = |what: String| {
        Error::corrupt("a segment is not what its manifest names")
            .with("segment", &reference.digest)
            .because(what)
            .hint("stored history was changed; restore the object from a backup")
    };
    if Digest::of_bytes(&bytes) != reference.digest {
        return Err(wrong("its bytes have another digest".to_owned()));
    }
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes)
        .and_then(ParquetRecordBatchReaderBuilder::build)
        .map_err(|error| wrong(error.to_string()))?;
    let mut partitions = Vec::new();
    for batch in reader {
        let batch = batch.map_err(|error| wrong(error.to_string()))?;
        let decoded = from_batch(&batch).ok_or_else(|| wrong("a column is missing".to_owned()))?;
        partitions.extend(decoded);
    }
    Ok(partitions)
}

/// Typed access to the columns of a batch or struct.
struct Columns<'a>(Vec<(&'a str, &'a ArrayRef)>);

impl<'a> Columns<'a> {
    fn column(&self, name: &str) -> Option<&'a ArrayRef> {
        self.0.iter().find(|(column, _)| *column == name).map(|(_, array)| *array)
    }

    fn text(&self, name: &str, row: usize) -> Option<&'a str> {
        let array = self.column(name)?.as_string_opt::<i32>()?;
        (!array.is_null(row)).then(|| array.value(row))
    }

    fn number(&self, name: &str, row: usize) -> Option<u64> {
        Some(self.column(name)?.as_primitive_opt::<UInt64Type>()?.value(row))
    }

    fn instant(&self, name: &str, row: usize) -> Option<DateTime<Utc>> {
        let array = self.column(name)?.as_primitive_opt::<TimestampMicrosecondType>()?;
        DateTime::from_timestamp_micros(array.value(row))
    }

    fn digest(&self, name: &str, row: usize) -> Option<Digest> {
        Digest::parse(self.text(name, row)?)
    }
}

fn from_batch(batch: &RecordBatch) -> Option<Vec<Partition>> {
    let schema = batch.schema_ref();
    let columns =
        Columns(schema.fields().iter().map(|f| f.name().as_str()).zip(batch.columns()).collect());
    let files = columns.column("files")?.as_list_opt::<i32>()?;
    let superseded = columns.column("superseded")?.as_list_opt::<i32>()?;
    (0..batch.num_rows())
        .map(|row| {
            let state = match columns.text("state", row)? {
                "present" => State::Present,
                "empty" => State::Empty,
                "removed" => State::Removed,
                _ => return None,
            };
            Some(Partition {
                name: columns.text("partition", row)?.to_owned(),
                start: columns.instant("start", row)?,
                end: columns.instant("end", row)?,
                state,
                rows: columns.number("rows", row)?,
                bytes: columns.number("bytes", row)?,
                content: columns.text("content", row).map(str::to_owned),
                files: from_struct(files.value(row).as_struct_opt()?)?,
                superseded: from_struct(superseded.value(row).as_struct_opt()?)?,
                recipe: columns.digest("recipe", row),
                logic: columns.text("logic", row).map(str::to_owned),
                changed_in: columns.number("changed_in", row)?,
            })
        })
        .collect()
}

fn from_struct(files: &StructArray) -> Option<Vec<DataFile>> {
    let columns = Columns(files.column_names().into_iter().zip(files.columns()).collect());
    (0..files.len())
        .map(|row| {
            let place = match columns.text("place", row)? {
                "root" => Place::Root,
                "control" => Place::Control,
                _ => return None,
            };
            Some(DataFile {
                place,
                path: columns.text("path", row)?.to_owned(),
                size: columns.number("size", row)?,
                rows: columns.number("rows", row)?,
                hash: columns.text("hash", row)?.to_owned(),
                e_tag: columns.text("e_tag", row).map(str::to_owned),
                version: columns.text("version", row).map(str::to_owned),
                modified_at: columns.instant("modified_at", row)?,
            })
        })
        .collect()
}
