//! Making a dataset: version 1.

use std::collections::BTreeMap;

use super::manifest::{Cause, Kind};
use super::{Adoption, RefusedObject};
use super::{
    Change, CommitOutcome, DataFile, Dataset, Definition, Partition, Place, Policy, State, Version,
    layout,
};
use crate::env::Env;
use crate::error::{Error, ErrorKind, Result};
use crate::identity::{Digest, to_json};
use crate::storage::Created;

/// How a dataset begins.
#[derive(Debug, Clone)]
pub struct InitOptions {
    /// Partitioning and columns.
    pub definition: Definition,
    /// The partitions it begins with.
    pub partitions: Vec<Partition>,
    /// The owner's rules.
    pub policy: Policy,
    /// Who makes it.
    pub actor: String,
    /// Why.
    pub reason: String,
}

/// What a store was found to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Probe {
    /// A second create of the same path was refused, as publishing needs.
    pub create_only: bool,
    /// A written object was readable at once.
    pub read_after_write: bool,
}

/// What became of an `init`.
#[derive(Debug)]
#[must_use]
pub enum InitOutcome {
    /// Version 1 exists now.
    Made(Version),
    /// It was a dataset already.
    Already(Version),
}

impl Dataset {
    /// Tries, under the control prefix, whether the store has what publishing needs.
    ///
    /// # Errors
    /// `Unsupported` when it has not, `Invalid` when it may not be written.
    pub async fn probe(&self, env: &Env) -> Result<Probe> {
        let path = format!("probe/{}", env.id());
        let first = self.control().create(&path, "1\n").await?;
        let second = self.control().create(&path, "2\n").await?;
        let read = self.control().read(&path).await?;
        let probe = Probe {
            create_only: matches!((first, second), (Created::New(_), Created::Exists)),
            read_after_write: read.is_some_and(|bytes| bytes == "1\n"),
        };
        if probe.create_only && probe.read_after_write {
            return Ok(probe);
        }
        Err(Error::new(
            ErrorKind::Unsupported,
            "the store lets a second writer overwrite an object that it was told to create",
        )
        .with("control prefix", self.control())
        .hint("publishing needs conditional writes (If-None-Match); this store accepts the header and ignores it"))
    }

    /// Makes version 1.
    ///
    /// # Guarantees
    /// Of two processes that do this at once, one makes the dataset and the other finds it.
    ///
    /// # Errors
    /// `Unsupported` or `Invalid` when the control prefix cannot be written as needed.
    pub async fn init(&self, options: InitOptions, env: &Env) -> Result<InitOutcome> {
        if let Some(version) = self.find_head().await? {
            return Ok(InitOutcome::Already(version));
        }
        let bytes = to_json(&options.policy)?;
        let policy = Digest::of_json(&options.policy)?;
        let (Created::New(_) | Created::Exists) =
            self.control().create(&layout::policy(&policy), bytes).await?;
        let id = env.id();
        let change = Change {
            kind: Kind::Adopt,
            cause: Cause { reason: options.reason, ..Cause::default() },
            partitions: options.partitions,
            commit_id: Digest::of_json(&("init", &id))?,
            actor: options.actor,
            at: env.now(),
            policy: None,
        };
        match self.commit_first(id, options.definition, policy, &change, env).await? {
            CommitOutcome::Committed(version) => Ok(InitOutcome::Made(version)),
            CommitOutcome::Lost(version) => Ok(InitOutcome::Already(version)),
            CommitOutcome::Unknown(error) => Err(error),
        }
    }

    /// Takes in what the dataset's own writers changed below its root since.
    ///
    /// Partitions whose files are ours stay as they are, unless their folder in the root has other
    /// files than those they superseded: then the writers' files count. A folder that is gone takes
    /// nothing from them: what it held was superseded.
    ///
    /// # Errors
    /// `Conflict` when another commit came first; `Invalid` when files that look like data are
    /// refused, because then taking the rest in would take rows away.
    pub async fn adopt_again(
        &self,
        actor: &str,
        reason: &str,
        replace_ours: bool,
        env: &Env,
    ) -> Result<(Version, Vec<String>, Vec<RefusedObject>)> {
        let head = self.head().await?;
        let definition = &head.manifest.definition;
        let column = &definition.partition;
        let known = Some(definition.columns.as_slice());
        let found = self.survey(&column.column, &column.calendar, known).await?;
        super::adopt::check_refused(&found.refused)?;
        let changed = self.changes(&head, &found).await?;
        if changed.is_empty() {
            return Ok((head, Vec::new(), found.refused));
        }
        let overrides = self.replaced_ours(&head, &changed, replace_ours).await?;
        let names = changed.iter().map(|partition| partition.name.clone()).collect();
        let identities: Vec<Digest> =
            changed.iter().map(Partition::identity).collect::<Result<_>>()?;
        let change = Change {
            kind: Kind::Adopt,
            cause: Cause {
                reason: reason.to_owned(),
                base: head.number(),
                overrides,
                ..Cause::default()
            },
            commit_id: Digest::of_json(&("adopt", &head.digest, identities))?,
            partitions: changed,
            actor: actor.to_owned(),
            at: env.now(),
            policy: None,
        };
        match self.commit(&head, &change, env).await? {
            CommitOutcome::Committed(version) => Ok((version, names, found.refused)),
            CommitOutcome::Lost(version) => Err(Error::new(
                ErrorKind::Conflict,
                format!("another commit became version {} meanwhile", version.number()),
            )
            .hint("run the same command again")),
            CommitOutcome::Unknown(error) => Err(error),
        }
    }

    /// Taking the root's files in would replace what was published or committed: a guard of its own.
    async fn replaced_ours(
        &self,
        head: &Version,
        changed: &[Partition],
        allowed: bool,
    ) -> Result<Vec<String>> {
        let current = self.partitions(head).await?;
        let ours: Vec<&str> = changed
            .iter()
            .filter(|partition| partition.files.iter().any(|file| file.place == Place::Root))
            .filter_map(|partition| current.at(partition.start))
            .filter(|now| now.files.iter().any(|file| file.place == Place::Control))
            .map(|now| now.name.as_str())
            .collect();
        match (ours.first(), allowed) {
            (None, _) => Ok(Vec::new()),
            (Some(_), true) => Ok(vec!["allow-replace-published".to_owned()]),
            (Some(first), false) => Err(Error::invalid(format!(
                "taking the root's files in would replace {} partitions that were published or committed, first {first}",
                ours.len()
            ))
            .hint("move the new files out of the way, or say --allow-replace-published")),
        }
    }

    async fn changes(&self, head: &Version, found: &Adoption) -> Result<Vec<Partition>> {
        let current = self.partitions(head).await?;
        let mut surveyed: BTreeMap<_, &Partition> =
            found.partitions.iter().map(|partition| (partition.start, partition)).collect();
        let mut changed = Vec::new();
        for partition in current.present() {
            let in_root = surveyed.remove(&partition.start);
            if !is_changed(partition, in_root) {
                continue;
            }
            let is_ours = partition.files.iter().all(|file| file.place == Place::Control);
            changed.push(match in_root {
                Some(found) => found.clone(),
                None if is_ours => Partition { superseded: Vec::new(), ..partition.clone() },
                None => Partition {
                    state: State::Removed,
                    files: Vec::new(),
                    superseded: Vec::new(),
                    rows: 0,
                    bytes: 0,
                    content: None,
                    recipe: None,
                    logic: None,
                    ..partition.clone()
                },
            });
        }
        changed.extend(surveyed.into_values().cloned());
        Ok(changed)
    }
}

/// Whether the root's folder of a partition holds other files than expected.
fn is_changed(partition: &Partition, in_root: Option<&Partition>) -> bool {
    let known: Vec<_> =
        partition.root_files().map(|file| (&file.path, file.size, &file.hash)).collect();
    let found: Vec<&DataFile> =
        in_root.map(|partition| partition.root_files().collect()).unwrap_or_default();
    known.len() != found.len()
        || !found.iter().all(|file| known.contains(&(&file.path, file.size, &file.hash)))
}
