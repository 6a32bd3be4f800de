//! Every path of the control prefix, built and read here.
//!
//! ```text
//! policy/<digest>.json                      the owner's rules, named by a version manifest
//! versions/00000000000000000042.json        version manifests: create-only, never deleted
//! segments/<digest>.parquet                 partitions of a version, about 1,000 each
//! intents/<commit id>.json                  written before a commit is tried
//! views/00000000000000000042.sql            a ready view definition of a version
//! plans/<plan id>.json                      immutable plans
//! runs/<plan id>/attempts/<partition>/…     claims and their endings
//! runs/<plan id>/records/<partition>.<number>.<recipe>.json   the one result of a partition
//! runs/<plan id>/{candidates,reports,approvals}/<digest>.json
//! runs/<plan id>/{events,terms}/<time>-<id>.json
//! changes/<change>/dispositions/<digest>.json  what was said of discrepancies
//! metrics/<partition identity>.d2.json      numbers of files that somebody has measured
//! data/<attempt>/<hive suffix>/part-00000.parquet
//! retained/<hash>/<hive suffix>/<name>      copies of superseded adopted files
//! ```

use chrono::{DateTime, Utc};

use crate::identity::Digest;

/// The folder of version manifests.
pub const VERSIONS: &str = "versions";

/// The folder of view definitions.
pub const VIEWS: &str = "views";

/// The folder of plans.
pub const PLANS: &str = "plans";

/// The folder of runs.
pub const RUNS: &str = "runs";

/// A version manifest.
pub fn version(number: u64) -> String {
    format!("{VERSIONS}/{number:020}.json")
}

/// The number of a version manifest's path; `None` for any other path.
pub fn version_number(path: &str) -> Option<u64> {
    let digits = path.strip_prefix(VERSIONS)?.strip_prefix('/')?.strip_suffix(".json")?;
    (digits.len() == 20).then(|| digits.parse().ok()).flatten()
}

/// A policy.
pub fn policy(digest: &Digest) -> String {
    format!("policy/{digest}.json")
}

/// A segment.
pub fn segment(digest: &Digest) -> String {
    format!("segments/{digest}.parquet")
}

/// The intent of a commit.
pub fn intent(commit_id: &Digest) -> String {
    format!("intents/{commit_id}.json")
}

/// The view definition of a version.
pub fn view(number: u64) -> String {
    format!("{VIEWS}/{number:020}.sql")
}

/// The version number of a view's path; `None` for any other path.
pub fn view_number(path: &str) -> Option<u64> {
    path.strip_prefix(VIEWS)?.strip_prefix('/')?.strip_suffix(".sql")?.parse().ok()
}

/// A plan.
pub fn plan(id: &Digest) -> String {
    format!("{PLANS}/{id}.json")
}

/// The plan id of a plan's path; `None` for any other path.
pub fn plan_id(path: &str) -> Option<Digest> {
    Digest::parse(path.strip_prefix(PLANS)?.strip_prefix('/')?.strip_suffix(".json")?)
}

/// A run's folder of one kind: `attempts`, `records`, `candidates`, `reports`, `approvals`,
/// `events`.
pub fn run_folder(plan: &Digest, kind: &str) -> String {
    format!("{RUNS}/{plan}/{kind}")
}

/// A run's frozen object of one kind, named by its digest.
pub fn run_object(plan: &Digest, kind: &str, digest: &Digest) -> String {
    format!("{RUNS}/{plan}/{kind}/{digest}.json")
}

/// The one record of a partition's result in a run; its recipe is in the name, so that a listing
/// finds equal ones.
///
/// A record whose files were lost is followed by the next number; the greatest counts.
pub fn record(plan: &Digest, partition: &str, recipe: &Digest, number: usize) -> String {
    format!("{RUNS}/{plan}/records/{partition}.{number:04}.{recipe}.json")
}

/// The plan and the recipe of a record's path; `None` for any other path.
pub fn record_parts(path: &str) -> Option<(Digest, Digest)> {
    let (plan, rest) = path.strip_prefix(RUNS)?.strip_prefix('/')?.split_once('/')?;
    let (_, recipe) = rest.strip_prefix("records/")?.strip_suffix(".json")?.rsplit_once('.')?;
    Some((Digest::parse(plan)?, Digest::parse(recipe)?))
}

/// One step of an attempt: `started` or `failed`.
pub fn attempt(plan: &Digest, partition: &str, attempt: &str, step: &str) -> String {
    format!("{RUNS}/{plan}/attempts/{partition}/{attempt}.{step}.json")
}

/// One object of a run that is sorted by time: of kind `events` or `terms`.
pub fn timed(plan: &Digest, kind: &str, at: DateTime<Utc>, id: &str) -> String {
    format!("{RUNS}/{plan}/{kind}/{}-{id}.json", at.format("%Y%m%dT%H%M%S%6fZ"))
}

/// The folder of what was said about a change.
pub fn dispositions(change: &Digest) -> String {
    format!("changes/{change}/dispositions")
}

/// One disposition.
pub fn disposition(change: &Digest, digest: &Digest) -> String {
    format!("{}/{digest}.json", dispositions(change))
}

/// The metrics of the files of a partition, by their identity; `kind`: the content digest's version
/// and, with profiles, their columns.
pub fn metrics(identity: &Digest, kind: &str) -> String {
    format!("metrics/{identity}.{kind}.json")
}

/// A candidate's data file.
pub fn data(attempt: &str, hive: &str, number: usize) -> String {
    format!("data/{attempt}/{hive}/part-{number:05}.parquet")
}

/// The kept copy of an adopted file, found by its hash alone.
pub fn retained(hash: &str, path: &str) -> String {
    format!("retained/{hash}/{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_paths_sort_by_number_and_read_back() {
        assert!(version(9) < version(10));
        assert_eq!(version_number(&version(42)), Some(42));
        assert_eq!(version_number("versions/42.json"), None);
        assert_eq!(version_number("versions/0000000000000000004x.json"), None);
    }
}
