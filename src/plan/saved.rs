//! Plans as stored: create-only, found by the beginning of their id.

use super::{FORMAT, Plan, Terms};
use crate::dataset::{Dataset, layout};
use crate::env::Env;
use crate::error::{Error, ErrorKind, Result};
use crate::identity::{Digest, from_json, to_json};
use crate::spec::Unit;
use crate::storage::Created;

/// Reads a plan's bytes and checks that they are what its id promises.
///
/// # Errors
/// `Corrupt` when they are not, `Unsupported` for a newer format.
pub fn load_plan(bytes: &[u8], name: &str) -> Result<Plan> {
    let value: serde_json::Value = from_json(bytes, name)?;
    let format = value.get("format").and_then(serde_json::Value::as_u64).unwrap_or_default();
    if format > u64::from(FORMAT) {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("this plan uses format {format}, this program knows {FORMAT}"),
        ));
    }
    let plan: Plan = from_json(bytes, name)?;
    if Digest::of_json(&plan.decides)? != plan.id {
        return Err(Error::corrupt("the plan's content does not match its id")
            .with("plan", name)
            .hint("it was changed after it was made; plan again"));
    }
    Ok(plan)
}

/// The plan whose id begins with some digits, with the newest terms.
///
/// # Errors
/// `Invalid` when none or several begin so.
pub async fn find_plan(dataset: &Dataset, prefix: &str) -> Result<Plan> {
    let listing = dataset.control().list(layout::PLANS).await?;
    let ids: Vec<Digest> =
        listing.objects.iter().filter_map(|object| layout::plan_id(&object.path)).collect();
    let matching: Vec<&Digest> = ids.iter().filter(|id| id.as_str().starts_with(prefix)).collect();
    let id = match matching.as_slice() {
        [id] if prefix.len() >= 4 => *id,
        [] => {
            return Err(Error::invalid(format!("no plan's id begins with {prefix:?}"))
                .with("dataset", dataset.root())
                .hint("see the plans: reissue status --dataset <URL>"));
        }
        [_] => {
            return Err(Error::invalid("a plan's id needs at least 4 digits"));
        }
        several => {
            let ids: Vec<&str> = several.iter().map(|id| id.short()).collect();
            return Err(Error::invalid(format!("several plans begin with {prefix:?}"))
                .hint(format!("write more digits of one of {}", ids.join(", "))));
        }
    };
    read_plan(dataset, id).await
}

/// The plan of an id, with the newest terms.
pub(crate) async fn read_plan(dataset: &Dataset, id: &Digest) -> Result<Plan> {
    let path = layout::plan(id);
    let bytes = dataset
        .control()
        .read(&path)
        .await?
        .ok_or_else(|| Error::corrupt("a plan is gone").with("object", &path))?;
    let mut plan = load_plan(&bytes, &path)?;
    if let Some(terms) = newest_terms(dataset, id).await? {
        plan.terms = terms;
    }
    Ok(plan)
}

async fn newest_terms(dataset: &Dataset, id: &Digest) -> Result<Option<Terms>> {
    let listing = dataset.control().list(&layout::run_folder(id, "terms")).await?;
    let Some(newest) = listing.objects.last() else { return Ok(None) };
    let bytes = dataset.control().read(&newest.path).await?;
    bytes.map(|bytes| from_json(&bytes, &newest.path)).transpose()
}

/// Stores a plan, or amends the terms of the one that is there. Says whether it is new.
pub(super) async fn save(dataset: &Dataset, plan: &Plan, env: &Env) -> Result<bool> {
    match dataset.control().create(&layout::plan(&plan.id), to_json(plan)?).await? {
        Created::New(_) => Ok(true),
        Created::Exists => {
            let stored = read_plan(dataset, &plan.id).await?;
            if stored.terms != plan.terms {
                if plan.decides.publish_unit == Unit::Batch
                    && stored.batches()? != plan.batches()?
                {
                    return Err(Error::invalid(
                        "the batches of a plan that publishes batch by batch cannot be cut anew",
                    )
                    .with("plan", plan.id.short())
                    .hint("keep the limits that shape batches, or plan another range"));
                }
                let path = layout::timed(&plan.id, "terms", env.now(), &env.id());
                let (Created::New(_) | Created::Exists) =
                    dataset.control().create(&path, to_json(&plan.terms)?).await?;
            }
            Ok(false)
        }
    }
}
