//! Disk space for what does not fit into memory: one folder a run, gone when the run is.

use std::fs::{self, File};
use std::path::PathBuf;

use crate::error::{Error, ErrorKind, Result};

/// A folder that a run alone uses; removed at the end, or by the next run of the plan.
#[derive(Debug)]
pub(super) struct SpillFolder {
    path: PathBuf,
    bytes: u64,
    _lock: File,
}

impl SpillFolder {
    /// Makes the folder, after removing those that dead runs of the plan left.
    pub(super) fn new(plan: &str, bytes: u64) -> Result<Self> {
        let base = std::env::temp_dir();
        let fail = |error: std::io::Error| {
            Error::new(ErrorKind::Exhausted, "cannot make the spill folder")
                .with("folder", base.display())
                .because(error)
        };
        // Several processes may run one plan: each takes the first number that is free.
        for number in 0.. {
            let path = base.join(format!("reissue-spill-{plan}-{number}"));
            fs::create_dir_all(&path).map_err(fail)?;
            #[expect(clippy::disallowed_methods, reason = "the spill folder is no store")]
            let lock = File::create(path.join("lock")).map_err(fail)?;
            if lock.try_lock().is_ok() {
                let spilled = path.join("data");
                if spilled.exists() {
                    fs::remove_dir_all(&spilled).map_err(fail)?;
                }
                fs::create_dir_all(&spilled).map_err(fail)?;
                return Ok(Self { path, bytes, _lock: lock });
            }
        }
        Err(Error::internal("no number is free"))
    }

    /// Where to spill, and how much.
    pub(super) fn folder(&self) -> (PathBuf, u64) {
        (self.path.join("data"), self.bytes)
    }
}

impl Drop for SpillFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::debug!(%error, "the spill folder stays until the next run");
        }
    }
}
