//! Dispositions as objects of a change.

use serde::Deserialize;

use super::words::may_say;
use super::{Discrepancy, Disposition, FORMAT, Seen, State};
use crate::approval::person;
use crate::dataset::{Dataset, Policy, layout};
use crate::env::Env;
use crate::error::{Error, ErrorKind, Result};
use crate::identity::{Digest, from_json, to_json};
use crate::plan::Plan;
use crate::storage::Created;

/// What is read first.
#[derive(Deserialize)]
struct Stored {
    format: u32,
}

/// What became of a disposition.
#[derive(Debug)]
#[must_use]
pub enum DisposeOutcome {
    /// They are stored.
    Disposed(Vec<Disposition>),
    /// This person may not say that.
    NotAllowed(String),
}

/// The change that a plan belongs to: plans of one dataset for one reason and owner are tries at
/// the same change.
///
/// # Errors
/// `Internal` only.
fn change_of(plan: &Plan) -> Result<Digest> {
    Digest::of_json(&("change 1", &plan.decides.dataset, &plan.terms.reason, &plan.terms.owner))
}

/// Everything that was said about a change, in any order.
///
/// # Errors
/// `Corrupt` when one was changed after it was made.
pub async fn load_dispositions(dataset: &Dataset, plan: &Plan) -> Result<Vec<Disposition>> {
    let folder = layout::dispositions(&change_of(plan)?);
    let mut found = Vec::new();
    for object in dataset.control().list(&folder).await?.objects {
        let Some(bytes) = dataset.control().read(&object.path).await? else { continue };
        let Stored { format } = from_json(&bytes, &object.path)?;
        if format != FORMAT {
            return Err(Error::new(ErrorKind::Unsupported, "a disposition has another format")
                .with("object", &object.path)
                .with("format", format)
                .with("read here", FORMAT)
                .hint("say it again with this version, under a new reason of the change"));
        }
        let disposition: Disposition = from_json(&bytes, &object.path)?;
        if !object.path.contains(Digest::of_json(&disposition)?.as_str()) {
            return Err(Error::corrupt("a disposition's content does not match its name")
                .with("object", &object.path));
        }
        found.push(disposition);
    }
    Ok(found)
}

/// Says something of discrepancies. What lets a publish go ahead is for the dataset's owners.
///
/// # Errors
/// `Invalid` for an empty reason.
pub async fn dispose(
    dataset: &Dataset,
    plan: &Plan,
    policy: &Policy,
    (discrepancies, state, reason): (&[Discrepancy], State, &str),
    actor: &str,
    env: &Env,
) -> Result<DisposeOutcome> {
    if reason.trim().is_empty() {
        return Err(Error::invalid("a disposition needs a reason")
            .hint("say --reason, in words that somebody understands a year from now"));
    }
    let may = |one: &&Discrepancy| may_say(policy, &one.fixers, state, actor);
    if let Some(refused) = discrepancies.iter().find(|one| !may(one)) {
        let owners: Vec<&str> = policy.owners.iter().map(String::as_str).collect();
        let before = refused.disposition.as_ref().map_or(State::Open, |said| said.state);
        return Ok(DisposeOutcome::NotAllowed(format!(
            "only the dataset's owners ({}) can call discrepancy {}, which is {}, {}; not {actor}",
            owners.join(", "),
            refused.id,
            before.name(),
            state.name()
        )));
    }
    let change = change_of(plan)?;
    let mut stored = Vec::new();
    for one in discrepancies {
        let disposition = Disposition {
            format: FORMAT,
            change: change.clone(),
            discrepancy: one.id.clone(),
            state,
            reason: reason.trim().to_owned(),
            actor: person(actor),
            at: env.now(),
            plan: plan.id.clone(),
            after: one.heads.clone(),
            seen: Seen::of(&one.cluster),
        };
        let path = layout::disposition(&change, &Digest::of_json(&disposition)?);
        let (Created::New(_) | Created::Exists) =
            dataset.control().create(&path, to_json(&disposition)?).await?;
        stored.push(disposition);
    }
    Ok(DisposeOutcome::Disposed(stored))
}
