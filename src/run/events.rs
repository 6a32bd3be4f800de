//! What happened to a plan, one object each.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::dataset::{Dataset, layout};
use crate::env::Env;
use crate::error::Result;
use crate::identity::{Digest, from_json, to_json};
use crate::storage::Created;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// `planned`, `run-started`, `run-stopped`, `run-finished`, `pause`, …
    pub event: String,
    /// Who.
    pub actor: String,
    /// More, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// When.
    pub at: DateTime<Utc>,
}

/// Stores an event.
///
/// # Errors
/// As the store's.
pub async fn store_event(
    dataset: &Dataset,
    plan: &Digest,
    event: &str,
    actor: &str,
    detail: &str,
    env: &Env,
) -> Result<()> {
    let at = env.now();
    let event =
        Event { event: event.to_owned(), actor: actor.to_owned(), detail: detail.to_owned(), at };
    let path = layout::timed(plan, "events", at, &env.id());
    let (Created::New(_) | Created::Exists) =
        dataset.control().create(&path, to_json(&event)?).await?;
    Ok(())
}

/// All events of a plan, oldest first.
///
/// # Errors
/// As the store's.
pub async fn load_events(dataset: &Dataset, plan: &Digest) -> Result<Vec<Event>> {
    let listing = dataset.control().list(&layout::run_folder(plan, "events")).await?;
    let mut events = Vec::new();
    for object in listing.objects {
        if let Some(bytes) = dataset.control().read(&object.path).await? {
            events.push(from_json(&bytes, &object.path)?);
        }
    }
    Ok(events)
}

/// Whether somebody asked for a pause since.
///
/// # Errors
/// As the store's.
pub async fn pause_requested(
    dataset: &Dataset,
    plan: &Digest,
    since: DateTime<Utc>,
) -> Result<bool> {
    // Event names begin with their time, so older ones are not read.
    let earliest = layout::timed(plan, "events", since, "");
    let listing = dataset.control().list(&layout::run_folder(plan, "events")).await?;
    for object in listing
        .objects
        .iter()
        .filter(|object| object.path.as_str() >= earliest.trim_end_matches("-.json"))
    {
        let Some(bytes) = dataset.control().read(&object.path).await? else { continue };
        let event: Event = from_json(&bytes, &object.path)?;
        if event.event == "pause" && event.at >= since {
            return Ok(true);
        }
    }
    Ok(false)
}
