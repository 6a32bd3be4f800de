//! Commits of a live pipeline that knows us.

use std::path::PathBuf;

use super::manifest::{Cause, Kind};
use super::proofread::proofread;
use super::{
    Change, CommitOutcome, DataFile, Dataset, Definition, Partition, Partitions, Place, State,
    Version, layout,
};
use crate::calendar::Interval;
use crate::env::Env;
use crate::error::{Error, ErrorKind, Result};
use crate::identity::Digest;
use crate::parquet_file::read_footer;
use crate::storage::{Object, Root, Stores};

/// A live pipeline's new state of one partition.
#[derive(Debug, Clone)]
pub struct LiveCommit {
    /// The partition's name.
    pub partition: String,
    /// Finished Parquet files, anywhere; they are copied.
    pub files: Vec<String>,
    /// The version whose partition is replaced; needed exactly when there is one.
    pub base: Option<u64>,
    /// The name of the logic that made the files.
    pub logic: Option<String>,
    /// Who commits.
    pub actor: String,
    /// Why.
    pub reason: String,
}

/// What became of a live commit.
#[derive(Debug)]
#[must_use]
pub enum LiveOutcome {
    /// The version that holds it.
    Committed(Version),
    /// This very content is what the current version says already.
    Already(Version),
    /// Production is not what the commit was based on.
    Conflict {
        /// What was observed, in words.
        reason: String,
        /// The current version.
        head: u64,
    },
}

impl Dataset {
    /// Commits a live pipeline's files as one partition.
    ///
    /// # Errors
    /// `Invalid` when the files are not of this dataset, or a replacement names no base.
    pub async fn commit_live(
        &self,
        stores: &Stores,
        live: &LiveCommit,
        env: &Env,
    ) -> Result<LiveOutcome> {
        let head = self.head().await?;
        let column = &head.manifest.definition.partition;
        let interval = column.calendar.named(&live.partition)?;
        let folder = column.folder(&interval.name);
        let attempt = env.id();
        let mut files = Vec::new();
        for (number, url) in live.files.iter().enumerate() {
            let path = layout::data(&attempt, &folder, number);
            files.push(
                self.copy_in(stores, url, &path, &head.manifest.definition, &interval).await?,
            );
        }
        let mut partition = Partition::of(&interval, files, 0);
        partition.logic.clone_from(&live.logic);
        self.commit_partition(head, live, partition, env).await
    }

    async fn copy_in(
        &self,
        stores: &Stores,
        url: &str,
        path: &str,
        definition: &Definition,
        interval: &Interval,
    ) -> Result<DataFile> {
        let (folder, name) = url.rsplit_once('/').unwrap_or((".", url));
        let here = PathBuf::from(".");
        let root = stores.root(if folder.is_empty() { "/" } else { folder }, &here)?;
        let object = root
            .find(name)
            .await?
            .ok_or_else(|| Error::invalid("there is no such file").with("file", url))?;
        let reader = root.store().open(&root.absolute(&object))?;
        let footer = read_footer(&reader).await.map_err(bad_file)?;
        let column = &definition.partition;
        let mut wrong = super::adopt::difference(&definition.columns, &footer.columns());
        if wrong.is_none() {
            let read = proofread(&reader, &footer, &column.column, column, interval, true).await;
            wrong = read.map_err(bad_file)?;
        }
        if let Some(what) = wrong {
            return Err(Error::invalid(format!("the file is not of this partition: {what}"))
                .with("file", url));
        }
        let (copied, hash) = copy(&root, &object, self.control(), path)
            .await?
            .ok_or_else(|| Error::internal("an attempt's path was taken").with("object", path))?;
        Ok(DataFile::new(Place::Control, &copied, footer.rows(), hash))
    }

    async fn commit_partition(
        &self,
        mut head: Version,
        live: &LiveCommit,
        mut partition: Partition,
        env: &Env,
    ) -> Result<LiveOutcome> {
        loop {
            if let Some(base) = live.base.filter(|base| *base > head.number()) {
                return Err(Error::invalid(format!(
                    "there is no version {base}: the newest is {}",
                    head.number()
                )));
            }
            let current = self.partitions(&head).await?;
            let looked = current.at(partition.start).cloned();
            let looked =
                looked.unwrap_or_else(|| Partition { files: Vec::new(), ..partition.clone() });
            let foreign = self.foreign_changes([&looked]).await?;
            if let Some(change) = foreign.changes.first() {
                let reason = format!("changed outside reissue: {} {}", change.path, change.what);
                return Ok(LiveOutcome::Conflict { reason, head: head.number() });
            }
            if let Some(now) = current.at(partition.start) {
                if has_same_bytes(now, &partition) {
                    return Ok(LiveOutcome::Already(head));
                }
                if let Some(reason) = self.stale_reason(live, now, &head).await? {
                    return Ok(LiveOutcome::Conflict { reason, head: head.number() });
                }
                partition.superseded = now.root_files().cloned().collect();
                if self.policy(&head).await?.retain_superseded {
                    for file in &partition.superseded {
                        self.retain(file).await?;
                    }
                }
            }
            let change = live_change(live, &head, &partition, &current, env)?;
            match self.commit(&head, &change, env).await? {
                CommitOutcome::Committed(version) => return Ok(LiveOutcome::Committed(version)),
                // Somebody else's commit of another partition is no conflict: look again.
                CommitOutcome::Lost(_) => head = self.head().await?,
                CommitOutcome::Unknown(error) => return Err(error),
            }
        }
    }

    /// Why a replacement is refused: no base, or one whose partition is not the current one.
    async fn stale_reason(
        &self,
        live: &LiveCommit,
        now: &Partition,
        head: &Version,
    ) -> Result<Option<String>> {
        let Some(base) = live.base else {
            return Err(Error::invalid(format!(
                "partition {} is in production already (since version {})",
                now.name, now.changed_in
            ))
            .hint(format!("to replace it, say which version you saw: --base {}", head.number())));
        };
        let based_on = self.partitions(&self.version(base).await?).await?;
        let was = based_on.at(now.start).map(Partition::identity).transpose()?;
        if was == Some(now.identity()?) {
            return Ok(None);
        }
        Ok(Some(format!(
            "partition {} was changed by version {} since version {base}",
            now.name, now.changed_in
        )))
    }
}

/// A damaged file is bad input here, not damaged history.
fn bad_file(error: Error) -> Error {
    if error.kind() != ErrorKind::Corrupt {
        return error;
    }
    let mut ours = Error::invalid(error.message());
    for (name, value) in error.context() {
        ours = ours.with(name, value);
    }
    ours.hint("write the file again")
}

fn has_same_bytes(one: &Partition, two: &Partition) -> bool {
    let bytes = |partition: &Partition| {
        let mut rows: Vec<_> =
            partition.files.iter().map(|file| (file.hash.clone(), file.size)).collect();
        rows.sort();
        rows
    };
    one.state != State::Removed && bytes(one) == bytes(two)
}

fn live_change(
    live: &LiveCommit,
    head: &Version,
    partition: &Partition,
    current: &Partitions,
    env: &Env,
) -> Result<Change> {
    let before = current.at(partition.start).map(Partition::identity).transpose()?;
    let cause = Cause {
        reason: live.reason.clone(),
        base: live.base.unwrap_or(head.number()),
        logic: live.logic.clone(),
        ..Cause::default()
    };
    Ok(Change {
        kind: Kind::Commit,
        cause,
        commit_id: Digest::of_json(&(
            "live",
            &head.manifest.dataset,
            before,
            partition.identity()?,
        ))?,
        partitions: vec![partition.clone()],
        actor: live.actor.clone(),
        at: env.now(),
        policy: None,
    })
}

/// Copies an object, piece by piece, to a new path; its hash comes with it. `None` when somebody
/// else has written the path meanwhile.
pub(super) async fn copy(
    from: &Root,
    object: &Object,
    to: &Root,
    path: &str,
) -> Result<Option<(Object, String)>> {
    const PIECE: u64 = 8 << 20;
    let reader = from.store().open(&from.absolute(object))?;
    let mut writer = to.writer(path).await?;
    let mut at = 0;
    while at < object.size {
        let end = (at + PIECE).min(object.size);
        let bytes = reader.read(at..end).await?;
        writer.write(&bytes).await?;
        at = end;
    }
    reader.finish()?;
    let written = writer.finish_unless_exists().await?;
    Ok(written.map(|written| (Object { path: path.to_owned(), ..written.object }, written.hash)))
}
