//! Footers: where a file's columns are, read with suspicion.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::Type as PhysicalType;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use crate::dataset::ColumnDef;
use crate::error::{Error, Result};
use crate::storage::ObjectReader;

/// No footer of a sane file is larger; a hostile one can ask for anything.
const MAX_FOOTER_BYTES: u64 = 256 << 20;

const MAGIC: &[u8] = b"PAR1";
const ENCRYPTED: &[u8] = b"PARE";

/// What a footer says about a file's layout.
#[derive(Debug, Clone)]
pub struct Footer {
    pub(super) arrow: ArrowReaderMetadata,
}

impl Footer {
    /// How many rows the file holds.
    pub fn rows(&self) -> u64 {
        let rows = self.metadata().file_metadata().num_rows();
        u64::try_from(rows).unwrap_or_default()
    }

    /// The layout.
    pub fn metadata(&self) -> &Arc<ParquetMetaData> {
        self.arrow.metadata()
    }

    /// The columns, dictionaries and views as what they hold.
    pub fn schema(&self) -> &SchemaRef {
        self.arrow.schema()
    }

    /// The columns in stored form.
    pub fn columns(&self) -> Vec<ColumnDef> {
        self.schema().fields().iter().map(|field| ColumnDef::of(field)).collect()
    }

    /// The compressed bytes of some top-level columns in one row group.
    pub fn column_bytes(&self, row_group: usize, wanted: impl Fn(&str) -> bool) -> u64 {
        let group = self.metadata().row_group(row_group);
        let bytes = group
            .columns()
            .iter()
            .filter(|column| column.column_path().parts().first().is_some_and(|name| wanted(name)));
        bytes.map(|column| column.byte_range().1).sum()
    }
}

/// Reads a file's footer.
///
/// # Errors
/// `Corrupt` for what is no whole Parquet file, `Unsupported` for an encrypted one, `Stale` when
/// the object is no longer the pinned one.
pub async fn read_footer(reader: &ObjectReader) -> Result<Footer> {
    let object = reader.object();
    let wrong = |what: String| {
        Error::corrupt(format!("this is no whole Parquet file: {what}"))
            .with("file", &object.path)
            .with("size", format!("{} bytes", object.size))
            .hint("write the file again at its source, or take it away")
    };
    if object.size == 0 {
        return Err(wrong("it is empty (0 bytes)".into()));
    }
    if object.size < 12 {
        return Err(wrong("it is shorter than any Parquet file".into()));
    }
    let tail = reader.read(object.size - 8..object.size).await?;
    let (length, magic) = tail.split_at(4);
    if magic == ENCRYPTED {
        return Err(Error::new(
            crate::error::ErrorKind::Unsupported,
            "the file's footer is encrypted; encrypted Parquet is not supported",
        )
        .with("file", &object.path));
    }
    if magic != MAGIC {
        return Err(wrong(
            "it does not end with PAR1, so it was cut short or is something else".into(),
        ));
    }
    if reader.read(0..4).await? != MAGIC {
        return Err(wrong("it does not begin with PAR1".into()));
    }
    let length = u64::from(u32::from_le_bytes(length.try_into().unwrap_or_default()));
    if length > MAX_FOOTER_BYTES || length + 12 > object.size {
        return Err(wrong(format!("its footer claims {length} bytes")));
    }
    let bytes = reader.read(object.size - 8 - length..object.size - 8).await?;
    // Parsers of untrusted bytes have panicked before; a panic here is an error about this file.
    let parsed = catch_unwind(AssertUnwindSafe(|| parse(&bytes)));
    parsed.unwrap_or_else(|_| Err("its footer cannot be parsed".to_owned())).map_err(wrong)
}

fn parse(bytes: &[u8]) -> std::result::Result<Footer, String> {
    let text = |error: parquet::errors::ParquetError| error.to_string();
    let metadata = Arc::new(ParquetMetaDataReader::decode_metadata(bytes).map_err(text)?);
    let options = ArrowReaderOptions::new();
    let found =
        ArrowReaderMetadata::try_new(Arc::clone(&metadata), options.clone()).map_err(text)?;
    check_names(found.schema())?;
    let plain = plain_schema(found.schema(), &metadata);
    let arrow = if &plain == found.schema() {
        found
    } else {
        ArrowReaderMetadata::try_new(metadata, options.with_schema(plain)).map_err(text)?
    };
    Ok(Footer { arrow })
}

/// Names that differ only in case are one name to some readers.
fn check_names(schema: &Schema) -> std::result::Result<(), String> {
    let mut names: Vec<String> =
        schema.fields().iter().map(|field| field.name().to_lowercase()).collect();
    names.sort();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("two of its columns are called {:?}, up to case", pair[0])),
        None => Ok(()),
    }
}

/// Dictionaries and views decoded, and INT96 timestamps in microseconds: in nanoseconds, years
/// before 1677 and after 2262 wrap around silently.
fn plain_schema(schema: &SchemaRef, metadata: &ParquetMetaData) -> SchemaRef {
    let descriptor = metadata.file_metadata().schema_descr();
    let is_int96 = |name: &str| {
        descriptor.columns().iter().any(|column| {
            column.physical_type() == PhysicalType::INT96 && column.path().parts() == [name]
        })
    };
    let fields = schema.fields().iter().map(|field| {
        let data_type = if is_int96(field.name()) {
            DataType::Timestamp(TimeUnit::Microsecond, None)
        } else {
            crate::dataset::plain(field.data_type())
        };
        Field::new(field.name(), data_type, field.is_nullable())
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
