//! Local disk: durable, create-only writes and listings that survive odd entries.
//!
//! `object_store`'s own local store never syncs, so a power loss may leave a named but empty
//! object, and it has no tag that a same-size edit with a restored mtime would change. Here a
//! file is written under a temporary name, synced, linked to its name (which fails if the name
//! exists), and the folder is synced; the tag includes the inode's change time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind as Io, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use chrono::DateTime;

use super::{Created, Listing, Object};
use crate::error::{Error, ErrorKind, Result};

/// Temporary files begin with this; listings leave them out.
const UNFINISHED: &str = ".reissue-unfinished-";

/// How deep a listing follows folders.
const MAX_DEPTH: usize = 64;

/// A younger unfinished file may belong to a process that has not locked it yet.
const SWEEP_AFTER: Duration = Duration::from_secs(60);

/// The file of a path: paths have no leading slash.
pub(super) fn file_of(path: &str) -> PathBuf {
    Path::new("/").join(path)
}

pub(super) fn io_error(verb: &str, path: &Path, error: io::Error) -> Error {
    let kind = match error.kind() {
        Io::StorageFull | Io::QuotaExceeded | Io::FileTooLarge => ErrorKind::Exhausted,
        Io::PermissionDenied | Io::ReadOnlyFilesystem | Io::NotADirectory | Io::IsADirectory => {
            ErrorKind::Invalid
        }
        _ => ErrorKind::Unavailable,
    };
    let ours = Error::new(kind, format!("cannot {verb}")).with("file", path.display());
    let ours = match kind {
        ErrorKind::Exhausted => {
            ours.hint("free space on this disk and run again; nothing half-written is visible")
        }
        ErrorKind::Invalid => ours.hint("check who owns the folder and whether it may be written"),
        _ => ours,
    };
    ours.because(error)
}

/// Describes an open or named file.
pub(super) fn describe(path: &str, meta: &fs::Metadata) -> Object {
    // Same size and restored mtime are easily made; the change time is the kernel's own.
    let tag = format!(
        "{:x}-{:x}.{:x}-{:x}.{:x}-{:x}",
        meta.ino(),
        meta.mtime(),
        meta.mtime_nsec(),
        meta.ctime(),
        meta.ctime_nsec(),
        meta.len()
    );
    let modified_at = DateTime::from_timestamp(meta.mtime(), 0).unwrap_or(DateTime::UNIX_EPOCH);
    Object { path: path.to_owned(), size: meta.len(), e_tag: Some(tag), version: None, modified_at }
}

#[expect(clippy::disallowed_methods, reason = "storage reads files")]
pub(super) fn read(path: &str) -> Result<Option<Bytes>> {
    let file = file_of(path);
    match fs::read(&file) {
        Ok(bytes) => Ok(Some(bytes.into())),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(io_error("read", &file, error)),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), Io::NotFound | Io::NotADirectory)
}

pub(super) fn find(path: &str) -> Result<Option<Object>> {
    let file = file_of(path);
    match fs::metadata(&file) {
        Ok(meta) if meta.is_file() => Ok(Some(describe(path, &meta))),
        Ok(_) => Ok(None),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(io_error("look at", &file, error)),
    }
}

pub(super) fn list(folder: &str) -> Result<Listing> {
    let mut listing = Listing::default();
    list_into(&file_of(folder), folder, 0, &mut listing)?;
    Ok(listing)
}

fn list_into(folder: &Path, path: &str, depth: usize, listing: &mut Listing) -> Result<()> {
    if depth > MAX_DEPTH {
        listing
            .refused
            .push((path.to_owned(), "folders nested too deeply: a loop of links?".into()));
        return Ok(());
    }
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if is_absent(&error) => return Ok(()),
        Err(error) => return Err(io_error("list", folder, error)),
    };
    for entry in entries {
        let entry = entry.map_err(|error| io_error("list", folder, error))?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            let shown = format!("{path}/{}", name.to_string_lossy());
            listing.refused.push((shown, "the name is not UTF-8".into()));
            continue;
        };
        if name.starts_with(UNFINISHED) {
            continue;
        }
        let child = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
        match fs::metadata(entry.path()) {
            // Followed, a link to a folder could loop, or lead out of the root.
            Ok(meta) if meta.is_dir() && is_link(&entry) => {
                listing.refused.push((child, "a link to a folder; links to files are read".into()));
            }
            Ok(meta) if meta.is_dir() => list_into(&entry.path(), &child, depth + 1, listing)?,
            Ok(meta) if meta.is_file() => listing.objects.push(describe(&child, &meta)),
            Ok(_) => listing.refused.push((child, "neither a file nor a folder".into())),
            // A link to nothing, or a file removed since the folder was read.
            Err(error) if is_absent(&error) => {
                listing.refused.push((child, "a link to nothing".into()));
            }
            Err(error) => return Err(io_error("look at", &entry.path(), error)),
        }
    }
    Ok(())
}

fn is_without_links(error: &io::Error) -> bool {
    // EPERM, EOPNOTSUPP: what FAT and some network file systems answer to link(2).
    matches!(error.raw_os_error(), Some(1 | 95))
}

fn is_link(entry: &fs::DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_symlink())
}

pub(super) fn create(path: &str, bytes: &[u8]) -> Result<Created> {
    let mut unfinished = Unfinished::begin(path)?;
    unfinished.write(bytes)?;
    unfinished.finish()
}

/// A file being written under a temporary name; removed if it is dropped before it is finished.
#[derive(Debug)]
pub(super) struct Unfinished {
    path: String,
    file: File,
    temporary: PathBuf,
}

impl Unfinished {
    pub(super) fn begin(path: &str) -> Result<Self> {
        let target = file_of(path);
        let folder = target.parent().unwrap_or(Path::new("/")).to_path_buf();
        make_folders(&folder)?;
        let temporary = folder.join(unfinished_name()?);
        let file = open_new(&temporary).map_err(|error| io_error("create", &temporary, error))?;
        // The lock tells a sweep that this file's process is alive; it goes with the process.
        file.lock().map_err(|error| io_error("lock", &temporary, error))?;
        Ok(Self { path: path.to_owned(), file, temporary })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| io_error("write", &self.temporary, error))
    }

    /// Syncs, links to the final name, syncs the folder, and only then answers.
    pub(super) fn finish(self) -> Result<Created> {
        let target = file_of(&self.path);
        let synced = self.file.sync_all();
        synced.map_err(|error| io_error("sync", &self.temporary, error))?;
        match fs::hard_link(&self.temporary, &target) {
            Ok(()) => {}
            Err(error) if error.kind() == Io::AlreadyExists => {
                // Whoever reads the object now may rely on it: its name must be durable too.
                sync_folder(target.parent().unwrap_or(Path::new("/")))?;
                return Ok(Created::Exists);
            }
            Err(error) if is_without_links(&error) => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    "the file system has no hard links",
                )
                .with("file", target.display())
                .because(error));
            }
            Err(error) => {
                let error = io_error("link", &target, error);
                return Err(error);
            }
        }
        remove(&self.temporary)?;
        sync_folder(target.parent().unwrap_or(Path::new("/")))?;
        let meta = self.file.metadata().map_err(|error| io_error("look at", &target, error))?;
        Ok(Created::New(describe(&self.path, &meta)))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Best effort: what stays is swept once this process is gone.
        if let Err(error) = remove(&self.temporary) {
            tracing::debug!(%error, "an unfinished file stays until it is swept");
        }
    }
}

/// Random, because process numbers repeat between containers that share a disk.
fn unfinished_name() -> Result<String> {
    let mut bytes = [0; 12];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::internal("no random bytes").because(error.to_string()))?;
    Ok(format!("{UNFINISHED}{}", hex::encode(bytes)))
}

fn open_new(file: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(file)
}

fn remove(file: &Path) -> Result<()> {
    #[expect(clippy::disallowed_methods, reason = "removes only unfinished files, never an object")]
    match fs::remove_file(file) {
        Err(error) if error.kind() != Io::NotFound => Err(io_error("remove", file, error)),
        _ => Ok(()),
    }
}

/// Creates folders so that they survive a power loss: each new one's parent is synced.
fn make_folders(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let Some(parent) = folder.parent() else { return Ok(()) };
    make_folders(parent)?;
    match fs::create_dir(folder) {
        Ok(()) => sync_folder(parent),
        Err(error) if error.kind() == Io::AlreadyExists => Ok(()),
        Err(error) => Err(io_error("create the folder", folder, error)),
    }
}

fn sync_folder(folder: &Path) -> Result<()> {
    #[expect(clippy::disallowed_methods, reason = "storage opens folders to sync them")]
    File::open(folder)
        .and_then(|handle| handle.sync_all())
        .map_err(|error| io_error("sync the folder", folder, error))
}

fn is_abandoned(file: &Path) -> bool {
    let is_old = fs::metadata(file)
        .and_then(|meta| meta.modified())
        .is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= SWEEP_AFTER));
    if !is_old {
        return false;
    }
    #[expect(clippy::disallowed_methods, reason = "storage looks at locks")]
    File::open(file).is_ok_and(|handle| handle.try_lock().is_ok())
}

/// Removes unfinished files whose process is gone.
pub(super) fn sweep(folder: &str) -> Result<usize> {
    let mut swept = 0;
    let mut folders = vec![(file_of(folder), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if is_absent(&error) => continue,
            Err(error) => return Err(io_error("list", &folder, error)),
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let is_ours = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
            if is_folder && depth < MAX_DEPTH {
                folders.push((path, depth + 1));
            } else if is_ours && is_abandoned(&path) {
                remove(&path)?;
                swept += 1;
            }
        }
    }
    Ok(swept)
}
