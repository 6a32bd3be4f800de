//! What history says of a plan: published, undone, or neither. Pure.

use crate::candidate::Scope;
use crate::dataset::{Kind, Version};
use crate::identity::Digest;

/// One publish of a plan.
#[derive(Debug, Clone)]
pub struct PublishedVersion {
    /// Which part of the run.
    pub scope: Scope,
    /// The version.
    pub version: Version,
    /// The rollback that undid it.
    pub undone_by: Option<Version>,
}

/// All publishes of a plan, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Past(Vec<PublishedVersion>);

impl Past {
    /// From the whole history.
    pub fn of(plan: &Digest, history: &[Version]) -> Self {
        let mut published: Vec<PublishedVersion> = Vec::new();
        for version in history {
            let cause = &version.manifest.cause;
            match version.manifest.kind {
                Kind::Publish if cause.plan.as_ref() == Some(plan) => {
                    let scope =
                        cause.partial.as_ref().map_or(Scope::Run, |part| Scope::Batch(part.batch));
                    published.push(PublishedVersion {
                        scope,
                        version: version.clone(),
                        undone_by: None,
                    });
                }
                Kind::Rollback => {
                    for one in &mut published {
                        // Undoing a rollback brings back what that one undid.
                        let undid = one.undone_by.as_ref().map(Version::number);
                        if undid.is_some_and(|number| cause.undoes.contains(&number)) {
                            one.undone_by = None;
                        }
                        if cause.undoes.contains(&one.version.number()) {
                            one.undone_by = Some(version.clone());
                        }
                    }
                }
                _ => {}
            }
        }
        Self(published)
    }

    /// All publishes.
    pub fn all(&self) -> &[PublishedVersion] {
        &self.0
    }

    /// Those that no rollback has undone.
    pub fn standing_versions(&self) -> impl Iterator<Item = &PublishedVersion> {
        self.0.iter().filter(|one| one.undone_by.is_none())
    }

    /// The version by which a scope is in production.
    pub fn standing(&self, scope: Scope) -> Option<&Version> {
        self.standing_versions().find(|one| one.scope == scope).map(|one| &one.version)
    }

    /// The newest publish of a scope that was undone, and by which version.
    pub fn undone(&self, scope: Scope) -> Option<(u64, &Version)> {
        let mut newest = self.0.iter().rev().filter(|one| one.scope == scope);
        newest.find_map(|one| Some((one.version.number(), one.undone_by.as_ref()?)))
    }

    /// How many of the run's partitions are in production.
    pub fn standing_partitions(&self) -> usize {
        let each = self.standing_versions().map(|one| {
            let changed = one.version.manifest.changed;
            usize::try_from(changed.added + changed.replaced).unwrap_or(usize::MAX)
        });
        each.sum()
    }
}
