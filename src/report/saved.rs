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

/// The reports about a candidate, the oldest version compared with first.
///
/// # Errors
/// `Corrupt` when one is unreadable.
pub(crate) async fn reports_about(
    dataset: &Dataset,
    plan: &Plan,
    candidate: &Digest,
) -> Result<Vec<(Report, Digest)>> {
    let listing = dataset.control().list(&layout::run_folder(&plan.id, "reports")).await?;
    let mut found = Vec::new();
    for object in &listing.objects {
        let name = object.path.rsplit('/').next().unwrap_or_default();
        let Some(digest) = name.strip_suffix(".json").and_then(Digest::parse) else { continue };
        let report = find_report(dataset, &plan.id, &digest).await?;
        if &report.candidate == candidate {
            found.push((report, digest));
        }
    }
    found.sort_by_key(|(report, _)| report.base_version);
    Ok(found)
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
    for (report, digest) in reports_about(dataset, plan, candidate).await?.into_iter().rev() {
        if moved(&report, plan, production)?.is_empty() {
            return Ok(Some((report, digest)));
        }
    }
    Ok(None)
}

/// The partitions of a report in which production is no longer what it was compared with, each
/// with what production has there now.
pub(crate) fn moved<'a>(
    report: &Report,
    plan: &Plan,
    production: &'a Partitions,
) -> Result<Vec<(String, Option<&'a Partition>)>> {
    let mut found = Vec::new();
    for (name, compared) in &report.partitions {
        let start = plan.partition(name).map(|(_, planned)| planned.interval.start);
        let now = start.and_then(|start| production.at(start));
        let identity = now.map(Partition::identity).transpose()?;
        let is_same = identity.as_ref() == compared.base.as_ref().map(|base| &base.identity);
        if start.is_none() || !is_same {
            found.push((name.clone(), now));
        }
    }
    Ok(found)
}
