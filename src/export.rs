//! Tables written for other tools: Parquet or CSV, by the file's ending.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array as _, RecordBatch};
use arrow::datatypes::Schema;
use parquet::arrow::ArrowWriter;

use crate::error::{Error, Result};
use crate::metrics::value_text;

/// A new file that rows are written to.
pub struct Export {
    file: String,
    form: Form,
}

enum Form {
    /// The file, until the first rows tell the columns.
    ParquetBegun(Option<File>),
    Parquet(Box<ArrowWriter<File>>),
    Csv {
        writer: Box<csv::Writer<File>>,
        has_headings: bool,
    },
}

impl std::fmt::Debug for Export {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.file)
    }
}

impl Export {
    /// Begins a file.
    ///
    /// # Errors
    /// `Invalid` for another ending, or a file that exists or cannot be written.
    pub fn create(file: &Path) -> Result<Self> {
        let name = file.display().to_string();
        let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if !matches!(ending, "parquet" | "csv") {
            return Err(Error::invalid("an export ends in .parquet or .csv").with("file", name));
        }
        let out = File::create_new(file).map_err(|error| cannot(&name, &error))?;
        let form = match ending {
            "parquet" => Form::ParquetBegun(Some(out)),
            _ => Form::Csv { writer: Box::new(csv::Writer::from_writer(out)), has_headings: false },
        };
        Ok(Self { file: name, form })
    }

    /// Writes rows, always with the same columns. In CSV a null is nothing.
    ///
    /// # Errors
    /// `Invalid` when the file cannot be written.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        if let Form::ParquetBegun(out) = &mut self.form
            && let Some(out) = out.take()
        {
            let writer = ArrowWriter::try_new(out, rows.schema(), None)
                .map_err(|error| cannot(&self.file, &error))?;
            self.form = Form::Parquet(Box::new(writer));
        }
        match &mut self.form {
            Form::Parquet(writer) => writer.write(rows).map_err(|error| cannot(&self.file, &error)),
            Form::Csv { writer, has_headings } => {
                let written = write_csv(writer, has_headings, rows);
                written.map_err(|error| cannot(&self.file, &error))
            }
            Form::ParquetBegun(_) => Err(Error::internal("an export was begun twice")),
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// `Invalid` when the file cannot be written.
    pub fn close(mut self) -> Result<()> {
        if let Form::ParquetBegun(_) = &self.form {
            // No rows, so nobody knows the columns.
            self.write(&RecordBatch::new_empty(Arc::new(Schema::empty())))?;
        }
        let fail = |error: &dyn std::fmt::Display| cannot(&self.file, error);
        match self.form {
            Form::Parquet(writer) => writer.close().map(drop).map_err(|error| fail(&error)),
            Form::Csv { mut writer, .. } => writer.flush().map_err(|error| fail(&error)),
            Form::ParquetBegun(_) => Err(Error::internal("an export was not begun")),
        }
    }
}

fn cannot(file: &str, error: &dyn std::fmt::Display) -> Error {
    Error::invalid("the export cannot be written")
        .with("file", file)
        .because(error.to_string())
        .hint("name a new file in a folder that can be written")
}

fn write_csv(
    writer: &mut csv::Writer<File>,
    has_headings: &mut bool,
    rows: &RecordBatch,
) -> std::result::Result<(), csv::Error> {
    if !*has_headings {
        writer.write_record(rows.schema().fields().iter().map(|field| field.name().as_str()))?;
        *has_headings = true;
    }
    for row in 0..rows.num_rows() {
        let cell = |array: &arrow::array::ArrayRef| {
            if array.is_null(row) { String::new() } else { value_text(array, row) }
        };
        writer.write_record(rows.columns().iter().map(cell))?;
    }
    Ok(())
}
