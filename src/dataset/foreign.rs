//! Writers that do not know us: did anybody change the files that a version names?

use std::collections::BTreeMap;

use serde::Serialize;

use super::{DataFile, Dataset, Partition, Place};
use crate::error::{Error, Result};
use crate::storage::{Listing, Object};

/// One object that is not what the version says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForeignChange {
    /// The partition.
    pub partition: String,
    /// The object, as other tools name it.
    pub path: String,
    /// `changed`, `gone` or `added`.
    pub what: &'static str,
}

/// What was looked at, and what is not as the version says.
#[derive(Debug, Default, Serialize)]
pub struct ForeignReport {
    /// Objects looked at.
    pub looked_at: usize,
    /// Objects changed outside reissue.
    pub changes: Vec<ForeignChange>,
}

impl Dataset {
    /// Looks at every object of some partitions, and at the root's folders of them.
    ///
    /// An object with another tag but the same size and hash is the same object: a restored or
    /// moved root changes every tag.
    ///
    /// # Errors
    /// `Unavailable` when the store does not answer.
    pub async fn foreign_changes<'a>(
        &self,
        partitions: impl IntoIterator<Item = &'a Partition>,
    ) -> Result<ForeignReport> {
        let listing = self.root().list("").await?;
        let mut report = ForeignReport::default();
        for partition in partitions {
            self.look_at_partition(partition, &listing, &mut report).await?;
        }
        Ok(report)
    }

    async fn look_at_partition(
        &self,
        partition: &Partition,
        listing: &Listing,
        report: &mut ForeignReport,
    ) -> Result<()> {
        let mut add = |path: String, what| {
            let partition = partition.name.clone();
            report.changes.push(ForeignChange { partition, path, what });
        };
        let expected: BTreeMap<&str, &DataFile> =
            partition.root_files().map(|file| (file.path.as_str(), file)).collect();
        let folder = format!("={}/", partition.name);
        let found: BTreeMap<&str, &Object> = listing
            .objects
            .iter()
            .filter(|object| object.path.contains(&folder) && is_data(&object.path))
            .map(|object| (object.path.as_str(), object))
            .collect();
        for (path, file) in &expected {
            report.looked_at += 1;
            match found.get(path) {
                None => add(self.public_path(file), "gone"),
                Some(object) if self.is_same(file, object).await? => {}
                Some(_) => add(self.public_path(file), "changed"),
            }
        }
        for path in found.keys().filter(|path| !expected.contains_key(*path)) {
            report.looked_at += 1;
            add(self.root().public(path), "added");
        }
        for file in partition.files.iter().filter(|file| file.place == Place::Control) {
            report.looked_at += 1;
            match self.control().find(&file.path).await? {
                None => add(self.public_path(file), "gone"),
                Some(object) if self.is_same(file, &object).await? => {}
                Some(_) => add(self.public_path(file), "changed"),
            }
        }
        Ok(())
    }

    /// Whether an object is the file, by its tag, or else by its hash.
    pub(super) async fn is_same(&self, file: &DataFile, found: &Object) -> Result<bool> {
        if file.object().is_same_as(found) {
            return Ok(true);
        }
        if file.size != found.size {
            return Ok(false);
        }
        let root = self.place(file.place);
        let reader = root.store().open(&root.absolute(found))?;
        Ok(reader.hash().await? == file.hash)
    }

    /// The object that a recorded file is now. With another tag but the same size and hash it is
    /// the same object: a restored or moved root changes every tag.
    ///
    /// # Errors
    /// `Corrupt` when it is gone or has other bytes.
    pub async fn current_object(&self, file: &DataFile) -> Result<Object> {
        let root = self.place(file.place);
        let Some(found) = root.find(&file.path).await? else {
            return Err(Error::corrupt("a file that is recorded is gone")
                .with("file", self.public_path(file))
                .hint("see what else changed: reissue files --check"));
        };
        let object = root.absolute(&found);
        if self.is_same(file, &found).await? {
            Ok(object)
        } else {
            Err(self.not_recorded(file, &object))
        }
    }

    /// A file is there, but is not what was recorded of it.
    pub(crate) fn not_recorded(&self, file: &DataFile, found: &Object) -> Error {
        Error::corrupt("a file has other bytes than were recorded")
            .with("file", self.public_path(file))
            .with("recorded", format!("{} bytes, BLAKE3 {}", file.size, file.hash))
            .with("found", format!("{} bytes", found.size))
            .hint("see what else changed: reissue files --check")
    }

    /// Whether a stored file is still what was recorded of it.
    ///
    /// # Errors
    /// `Unavailable` when the store does not answer.
    pub async fn is_intact(&self, file: &DataFile) -> Result<bool> {
        match self.place(file.place).find(&file.path).await? {
            Some(found) => self.is_same(file, &found).await,
            None => Ok(false),
        }
    }
}

fn is_data(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.ends_with(".parquet") && !name.starts_with(['.', '_'])
}
