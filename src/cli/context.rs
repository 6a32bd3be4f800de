//! What every command needs: who acts, on which dataset, with which stores.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::dataset::Dataset;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::plan::{Plan, find_plan, git_identity};
use crate::spec::Spec;
use crate::storage::{Environment, Stores};

/// The surroundings of one command.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) stores: Arc<Stores>,
    pub(super) env: Env,
    pub(super) json: bool,
    actor: Option<String>,
    dataset: Option<String>,
}

impl Context {
    pub(super) fn new(actor: Option<String>, dataset: Option<String>, json: bool) -> Self {
        let environment = Environment::new(std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }));
        let dataset = dataset.or_else(|| environment.value("REISSUE_DATASET").map(str::to_owned));
        let env = match environment
            .value("REISSUE_HALT_AT")
            .filter(|_| cfg!(debug_assertions))
            .and_then(Halt::parse)
        {
            Some(halt) => Env::system().watched(move |point| halt.reached(point)),
            None => Env::system(),
        };
        Self { stores: Arc::new(Stores::new(environment)), env, json, actor, dataset }
    }

    /// Who acts.
    pub(super) fn actor(&self) -> Result<String> {
        let given = self.actor.clone().filter(|actor| !actor.trim().is_empty());
        given.or_else(|| git_identity(Path::new("."))).ok_or_else(|| {
            Error::invalid("nobody is named as acting")
                .hint("say --as you@example.com, or set git's user.email")
        })
    }

    /// The dataset of a URL, or of `--dataset`.
    pub(super) fn dataset(&self, url: Option<&str>) -> Result<Dataset> {
        let url = url.or(self.dataset.as_deref()).ok_or_else(|| {
            Error::invalid("no dataset is named")
                .hint("say --dataset <URL>, or set REISSUE_DATASET")
        })?;
        Dataset::at(&self.stores, url, Path::new("."))
    }

    /// A plan by the beginning of its id, with its dataset.
    pub(super) async fn plan(&self, id: &str) -> Result<(Dataset, Plan)> {
        let dataset = self.dataset(None)?;
        let plan = find_plan(&dataset, id).await?;
        Ok((dataset, plan))
    }

    /// A spec from its file.
    pub(super) fn spec(path: &Path) -> Result<Spec> {
        Spec::from_toml(&read_text(path)?, path)
    }

    /// A command for a plan, as it can be pasted by the same person.
    pub(super) fn command(&self, verb: &str, plan: &Plan, dataset: &Dataset) -> String {
        let dataset = quoted(dataset.root().url());
        format!("reissue {verb} {} --dataset {dataset}{}", plan.id.short(), self.as_before())
    }

    /// The same, for somebody else.
    pub(super) fn command_for(
        &self,
        who: &str,
        verb: &str,
        plan: &Plan,
        dataset: &Dataset,
    ) -> String {
        let dataset = quoted(dataset.root().url());
        format!("reissue {verb} {} --dataset {dataset} --as {who}", plan.id.short())
    }

    /// `--as`, when it was said.
    pub(super) fn as_before(&self) -> String {
        self.actor.as_ref().map(|actor| format!(" --as {}", quoted(actor))).unwrap_or_default()
    }

    /// Whether a person is watching.
    pub(super) fn on_terminal(&self) -> bool {
        !self.json && std::io::stderr().is_terminal()
    }
}

/// Halts the process for good at the n-th time that it reaches a point, so that a test can kill it
/// exactly there: `REISSUE_HALT_AT=record:3`. Only in builds with debug assertions.
struct Halt {
    point: String,
    left: AtomicUsize,
}

impl Halt {
    fn parse(text: &str) -> Option<Self> {
        let (point, times) = text.split_once(':')?;
        Some(Self { point: point.to_owned(), left: AtomicUsize::new(times.parse().ok()?) })
    }

    fn reached(&self, point: &str) {
        if point == self.point && self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            super::answer::write_err(&format!("halted at {point}\n"));
            loop {
                std::thread::park();
            }
        }
    }
}

/// A text file that the user names.
pub(super) fn read_text(path: &Path) -> Result<String> {
    #[expect(clippy::disallowed_methods, reason = "a file that the user names on this machine")]
    std::fs::read_to_string(path).map_err(|error| {
        Error::invalid("the file cannot be read")
            .with("file", PathBuf::from(path).display())
            .because(error)
    })
}

/// A word as the shell needs it.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=@+%".contains(c);
    if word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
