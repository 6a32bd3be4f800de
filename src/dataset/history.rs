//! Reading versions, and noticing when somebody removed history.

use super::manifest::{self, Manifest};
use super::{CONTROL_SUFFIX, Dataset, Partitions, layout, segment};
use crate::error::{Error, Result};
use crate::identity::Digest;

/// A version with the digest of its manifest's bytes.
#[derive(Debug, Clone)]
pub struct Version {
    /// What the version says.
    pub manifest: Manifest,
    /// SHA-256 of the manifest as stored.
    pub digest: Digest,
}

impl Version {
    /// The version's number.
    pub fn number(&self) -> u64 {
        self.manifest.number
    }
}

impl Dataset {
    /// The current version; `None` for a folder that is no dataset yet.
    ///
    /// # Errors
    /// `Corrupt` when history has a gap or a wrong parent, `Unavailable` when it cannot be read.
    pub async fn find_head(&self) -> Result<Option<Version>> {
        let numbers = self.version_numbers().await?;
        let Some(&last) = numbers.last() else { return Ok(None) };
        let head = self.version(last).await?;
        if last > 1 {
            let previous = self.version(last - 1).await?;
            if head.manifest.parent.as_ref() != Some(&previous.digest) {
                return Err(Error::corrupt(format!(
                    "version {last} does not follow from version {}: its parent has another digest",
                    last - 1
                ))
                .with("dataset", self.root())
                .hint("somebody changed or restored part of the history; nothing may be published until a person has looked"));
            }
        }
        Ok(Some(head))
    }

    /// A view of a version above the newest one: somebody removed versions.
    async fn check_views(&self, last: u64) -> Result<()> {
        let views = self.control().list(layout::VIEWS).await?;
        let above =
            views.objects.iter().filter_map(|object| layout::view_number(&object.path)).max();
        match above.filter(|number| *number > last) {
            None => Ok(()),
            Some(number) => Err(Error::corrupt(format!(
                "version {number} was published, and the newest one is {last}: history was removed"
            ))
            .with("dataset", self.root())
            .hint("restore the version manifests from a backup")),
        }
    }

    /// The current version of what must be a dataset.
    ///
    /// # Errors
    /// `Invalid` when it is none; else as [`Dataset::find_head`].
    pub async fn head(&self) -> Result<Version> {
        self.find_head().await?.ok_or_else(|| {
            Error::invalid("this is no reissue dataset")
                .with("dataset", self.root())
                .with("looked for", self.control().public(layout::VERSIONS))
                .hint(format!(
                    "make one: reissue init {} --adopt --partition <COLUMN> --timezone <ZONE>",
                    self.root()
                ))
        })
    }

    /// The numbers of all versions: 1, 2, … without gaps.
    async fn version_numbers(&self) -> Result<Vec<u64>> {
        let listing = self.control().list(layout::VERSIONS).await?;
        let mut numbers = Vec::new();
        for object in &listing.objects {
            let number = layout::version_number(&object.path).ok_or_else(|| {
                Error::corrupt("an object that is no version manifest lies among them")
                    .with("object", self.control().public(&object.path))
            })?;
            numbers.push(number);
        }
        numbers.sort_unstable();
        let gap = (1..).zip(&numbers).find(|(expected, found)| expected != *found);
        if let Some((expected, found)) = gap {
            return Err(Error::corrupt(format!(
                "history has a gap: version {expected} is missing, {found} is there"
            ))
            .with("dataset", self.root())
            .hint(format!(
                "restore the objects under {CONTROL_SUFFIX}/{}/ from a backup",
                layout::VERSIONS
            )));
        }
        self.check_views(numbers.last().copied().unwrap_or_default()).await?;
        Ok(numbers)
    }

    /// One version.
    ///
    /// # Errors
    /// `Invalid` when there is none of this number, `Corrupt` when it is unreadable.
    pub async fn version(&self, number: u64) -> Result<Version> {
        self.find_version(number).await?.ok_or_else(|| {
            Error::invalid(format!("there is no version {number}"))
                .with("dataset", self.root())
                .hint(format!("list them: reissue log {}", self.root()))
        })
    }

    /// One version, or `None`.
    ///
    /// # Errors
    /// `Corrupt` when it is unreadable, `Unavailable` when the store does not answer.
    pub async fn find_version(&self, number: u64) -> Result<Option<Version>> {
        let path = layout::version(number);
        let Some(bytes) = self.control().read(&path).await? else { return Ok(None) };
        let manifest = manifest::read(&bytes, &path)?;
        if manifest.number != number {
            return Err(Error::corrupt(format!(
                "the manifest of version {number} says that it is version {}",
                manifest.number
            ))
            .with("object", &path));
        }
        Ok(Some(Version { manifest, digest: Digest::of_bytes(&bytes) }))
    }

    /// All versions, oldest first, each checked against its parent.
    ///
    /// # Errors
    /// As [`Dataset::find_head`].
    pub async fn history(&self) -> Result<Vec<Version>> {
        let mut versions: Vec<Version> = Vec::new();
        for number in self.version_numbers().await? {
            let version = self.version(number).await?;
            let parent = versions.last().map(|previous| &previous.digest);
            if version.manifest.parent.as_ref() != parent {
                return Err(Error::corrupt(format!(
                    "version {number} does not follow from the one before it"
                ))
                .with("dataset", self.root()));
            }
            versions.push(version);
        }
        Ok(versions)
    }

    /// All partitions of a version.
    ///
    /// # Errors
    /// `Corrupt` when a segment is gone or changed.
    pub async fn partitions(&self, version: &Version) -> Result<Partitions> {
        let mut partitions = Vec::new();
        for reference in &version.manifest.segments {
            let path = layout::segment(&reference.digest);
            let bytes = self.control().read(&path).await?.ok_or_else(|| {
                Error::corrupt(format!("version {} names a segment that is gone", version.number()))
                    .with("object", self.control().public(&path))
            })?;
            partitions.extend(segment::decode(reference, bytes)?);
        }
        Ok(Partitions::new(partitions))
    }
}
