//! `policy`.

use std::path::PathBuf;

use clap::Args;

use super::answer::Answer;
use super::context::{Context, read_text};
use crate::dataset::Policy;
use crate::error::{Error, Result};

#[derive(Debug, Args)]
pub(super) struct PolicyArguments {
    /// The dataset's root; else --dataset
    url: Option<String>,
    /// Put these rules in force
    #[arg(long, value_name = "FILE")]
    set: Option<PathBuf>,
    /// Why, for the log
    #[arg(long, default_value = "new rules")]
    reason: String,
}

pub(super) async fn run(context: &Context, arguments: PolicyArguments) -> Result<Answer> {
    let dataset = context.dataset(arguments.url.as_deref())?;
    let (version, policy) = match &arguments.set {
        None => {
            let version = dataset.head().await?;
            let policy = dataset.policy(&version).await?;
            (version, policy)
        }
        Some(file) => {
            let policy = Policy::from_toml(&read_text(file)?, &file.display().to_string())?;
            let version = dataset
                .set_policy(&policy, &context.actor()?, &arguments.reason, &context.env)
                .await?;
            let policy = dataset.policy(&version).await?;
            (version, policy)
        }
    };
    let rules = toml::to_string(&policy)
        .map_err(|error| Error::internal("write the rules as TOML").because(error))?;
    let told =
        if arguments.set.is_some() { "; what the file leaves out is at its default" } else { "" };
    let text = format!("# the owner's rules in version {}{told}\n{rules}", version.number());
    Answer::new(text, &serde_json::json!({ "version": version.number(), "policy": policy }))
}
