//! Keeping superseded adopted files: copies in the control prefix, found by their hash.

use super::{DataFile, Dataset, Place, layout};
use crate::error::{Error, Result};

impl Dataset {
    /// Copies a file of the root into the control prefix, unless a copy is there.
    ///
    /// # Errors
    /// `Conflict` when the file is no longer the recorded one.
    pub async fn retain(&self, file: &DataFile) -> Result<()> {
        let path = layout::retained(&file.hash, &file.path);
        if self.control().find(&path).await?.is_some() {
            return Ok(());
        }
        let object = self.root().find(&file.path).await?.ok_or_else(|| changed(self, file))?;
        // The copy's path is made from the hash, so only the recorded bytes may get there.
        if !self.is_same(file, &object).await? {
            return Err(changed(self, file));
        }
        super::live::copy(self.root(), &object, self.control(), &path).await.map(drop)
    }

    /// The kept copy of a file, if there is one.
    ///
    /// # Errors
    /// As the store's.
    pub async fn find_retained(&self, file: &DataFile) -> Result<Option<DataFile>> {
        let path = layout::retained(&file.hash, &file.path);
        let Some(found) = self.control().find(&path).await? else { return Ok(None) };
        let reader = self.control().store().open(&self.control().absolute(&found))?;
        let is_whole = reader.hash().await? == file.hash;
        Ok(is_whole.then(|| DataFile::new(Place::Control, &found, file.rows, file.hash.clone())))
    }
}

fn changed(dataset: &Dataset, file: &DataFile) -> Error {
    Error::new(crate::error::ErrorKind::Conflict, "production was changed outside reissue")
        .with("file", dataset.public_path(file))
        .hint(format!(
            "take the change in: reissue adopt --again {}; then plan again",
            dataset.root()
        ))
}
