//! A dataset: what production is, version by version.
//!
//! The root holds what its writers put there. Everything of ours is in a sibling folder, the
//! *control prefix* `<root>.reissue/`, so that no wildcard below the root can meet it. A dataset
//! at a point is a [`Version`]: a small manifest under `versions/`, numbered without gaps,
//! create-only and never deleted, which names the segments that name the files.

mod adopt;
mod commit;
mod definition;
mod foreign;
mod history;
mod init;
pub mod layout;
mod live;
mod manifest;
mod partition;
mod policy;
mod proofread;
mod retain;
mod segment;
mod view;

use std::path::Path;

pub use adopt::{Adoption, RefusedObject};
pub(crate) use adopt::{check_refused, difference};
pub use commit::{Change, CommitOutcome};
pub use definition::{ColumnDef, Definition, PartitionColumn, Placement, TimeKind, plain};
pub use foreign::{ForeignChange, ForeignReport};
pub use history::Version;
pub use init::{InitOptions, InitOutcome, Probe};
pub use live::{LiveCommit, LiveOutcome};
pub use manifest::{Cause, Changed, Kind, Manifest, Partial, SegmentRef, Totals};
pub(crate) use partition::identity_of;
pub use partition::{DataFile, Partition, Partitions, Place, State};
pub use policy::{Limits as PolicyLimits, Policy, PolicyField};
pub use view::duckdb_view;

use crate::error::{Error, Result};
use crate::storage::{Object, Root, Stores};

/// The suffix of the control prefix.
pub const CONTROL_SUFFIX: &str = ".reissue";

/// Where a dataset and its control prefix are.
#[derive(Debug, Clone)]
pub struct Dataset {
    root: Root,
    control: Root,
}

impl Dataset {
    /// The dataset at a URL; nothing is read yet. A relative path is relative to `base`.
    ///
    /// # Errors
    /// `Invalid` for a URL of an unknown kind, or without credentials.
    pub fn at(stores: &Stores, url: &str, base: &Path) -> Result<Self> {
        let root = stores.root(url, base)?;
        if root.name().is_empty() {
            return Err(Error::invalid("a dataset needs a folder of its own, not a whole bucket")
                .with("url", url)
                .hint("the control prefix lies beside the folder, where no wildcard meets it"));
        }
        let control = root.sibling(CONTROL_SUFFIX);
        Ok(Self { root, control })
    }

    /// Where production's own files are.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Where everything of ours is.
    pub fn control(&self) -> &Root {
        &self.control
    }

    /// The root or the control prefix.
    pub fn place(&self, place: Place) -> &Root {
        match place {
            Place::Root => &self.root,
            Place::Control => &self.control,
        }
    }

    /// A file as an object of its store.
    pub fn object_of(&self, file: &DataFile) -> Object {
        let root = self.place(file.place);
        Object { path: root.full(&file.path), ..file.object() }
    }

    /// A file's path or URL, as other tools want it.
    pub fn public_path(&self, file: &DataFile) -> String {
        self.place(file.place).public(&file.path)
    }
}

#[cfg(test)]
mod tests;
