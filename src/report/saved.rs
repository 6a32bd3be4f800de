//! Finding reports.

use super::{FORMAT, Report};
use crate::dataset::{Dataset, Partition, Partitions, layout};
use crate::error::{Error, ErrorKind, Result};
use crate::identity::{Digest, from_json};
use crate::plan::Plan;

/// A report by its digest.
///
/// # Errors
/// `Corrupt` when it is gone or changed.
pub async fn find_report(dataset: &Dataset, plan: &Digest, digest: &Digest) -> Result<Report> {
    let path = layout::run_object(plan, "reports", digest);
    let bytes = dataset
        .control()
        .read(&path)
        .await?
        .ok_or_else(|| Error::corrupt("a report is gone").with("object", &path))?;
    let report: Report = from_json(&bytes, &path)?;
    if report.format > FORMAT {
        return Err(Error::new(ErrorKind::Unsupported, "the report uses a newer format"));
    }
    if &Digest::of_json(&report)? != digest {
        return Err(
            Error::corrupt("a report's content does not match its name").with("object", &path)
        );
    }
    Ok(report)
}

/// The report about a candidate and about production as it is now; the newest version's first.
///
/// # Errors
/// `Corrupt` when one is unreadable.
pub async fn current_report(
    dataset: &Dataset,
    plan: &Plan,
    candidate: &Digest,
    production: &Partitions,
) -> Result<Option<(Report, Digest)>> {
    let listing = dataset.control().list(&layout::run_folder(&plan.id, "reports")).await?;
    let mut found: Option<(Report, Digest)> = None;
    for object in &listing.objects {
        let name = object.path.rsplit('/').next().unwrap_or_default();
        let Some(digest) = name.strip_suffix(".json").and_then(Digest::parse) else { continue };
        let report = find_report(dataset, &plan.id, &digest).await?;
        let newer = found.as_ref().is_none_or(|(held, _)| held.base_version < report.base_version);
        if &report.candidate == candidate && newer && is_current(&report, plan, production)? {
            found = Some((report, digest));
        }
    }
    Ok(found)
}

/// Whether production has, in every partition of a report, what it was compared with.
fn is_current(report: &Report, plan: &Plan, production: &Partitions) -> Result<bool> {
    for (name, partition) in &report.partitions {
        let Some((_, planned)) = plan.partition(name) else { return Ok(false) };
        let now = production.at(planned.interval.start).map(Partition::identity).transpose()?;
        if now.as_ref() != partition.base.as_ref().map(|base| &base.identity) {
            return Ok(false);
        }
    }
    Ok(true)
}
