//! `demo`.
use clap::Args;

use super::answer::Answer;
use super::context::Context;
use crate::error::Result;

#[derive(Debug, Args)]
pub(super) struct DemoArguments {
    /// Where to work; else a fresh folder
    #[arg(long)]
    folder: Option<std::path::PathBuf>,
}

pub(super) async fn run(_context: &Context, _arguments: DemoArguments) -> Result<Answer> {
    Answer::new("", &())
}
