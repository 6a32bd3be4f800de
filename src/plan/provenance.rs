//! Where the logic came from: the file, its commit, its authors, and who planned.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// Where a plan's logic came from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// The SQL file, as named in the spec.
    pub sql_file: String,
    /// The commit of the repository that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether the file has changes that the commit does not hold; none: no repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_since_commit: Option<bool>,
    /// Who wrote the file's last commit.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub sql_authors: BTreeSet<String>,
    /// Who planned first.
    pub planned_by: String,
}

impl Provenance {
    /// Asks git about a file. Without git or a repository, only the file's name is known.
    pub fn of(file: &Path, planned_by: &str) -> Self {
        let mut provenance = Self {
            sql_file: file.display().to_string(),
            planned_by: planned_by.to_owned(),
            ..Self::default()
        };
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let Some(name) = file.file_name().and_then(|name| name.to_str()) else { return provenance };
        let Some(commit) = git(folder, &["rev-parse", "HEAD"]) else { return provenance };
        let status = git(folder, &["status", "--porcelain", "--", name]);
        let tracked =
            git(folder, &["ls-files", "--", name]).is_some_and(|listed| !listed.is_empty());
        provenance.changed_since_commit = Some(!tracked || status.is_none_or(|s| !s.is_empty()));
        let author = git(folder, &["log", "-1", "--format=%ae", "--", name]);
        provenance.sql_authors = author.into_iter().filter(|author| !author.is_empty()).collect();
        provenance.commit = Some(commit);
        provenance
    }
}

/// Who git thinks is at work in a folder.
pub fn git_identity(folder: &Path) -> Option<String> {
    git(folder, &["config", "user.email"]).filter(|identity| !identity.is_empty())
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
