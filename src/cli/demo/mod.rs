//! `demo`: a whole backfill on real flights, step by step, with what each step says.
//!
//! Each step is the real command, parsed from its words and run in this process.

mod lake;

use std::path::PathBuf;

use clap::{Args, Parser as _};

use super::answer::{Answer, error_text, write_err};
use super::context::Context;
use super::{Arguments, exit};
use crate::error::{Error, Result};

pub(super) use lake::{APPROVER, Lake, MAKER};

#[derive(Debug, Args)]
pub(super) struct DemoArguments {
    /// Where to work: a folder that does not exist yet; else a fresh temporary one
    #[arg(long)]
    folder: Option<PathBuf>,
    /// The flights; else testdata/nycflights13 of the project
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Only make the lake, the spec and the SQL, to play with by hand
    #[arg(long)]
    setup_only: bool,
}

pub(super) async fn run(context: &Context, arguments: DemoArguments) -> Result<Answer> {
    let folder = match arguments.folder {
        Some(folder) => folder,
        None => fresh_folder()?,
    };
    let data = match arguments.data {
        Some(data) => data,
        None => find_data(context)?,
    };
    write_err(&format!("making a lake of real flights in {} …\n", folder.display()));
    let lake = Lake::make(&folder, &data).await?;
    let here = lake.folder().display().to_string();
    if arguments.setup_only {
        let text = format!("the lake is ready in {here}\n");
        let value = serde_json::json!({ "folder": here });
        let next = format!(
            "cd {here} && reissue init lake/on_time --adopt --partition flight_date --timezone America/New_York --as {APPROVER}"
        );
        return Ok(Answer::new(text, &value)?.next(next));
    }
    let mut story = Story { context, lake, steps: Vec::new() };
    story.tell().await?;
    let text = format!("everything is still in {here}: look around, or delete it\n");
    Answer::new(text, &serde_json::json!({ "folder": here, "steps": story.steps }))
}

fn fresh_folder() -> Result<PathBuf> {
    let fail = |error: std::io::Error| Error::invalid("no fresh folder can be made").because(error);
    Ok(tempfile::Builder::new().prefix("reissue-demo-").tempdir().map_err(fail)?.keep())
}

fn find_data(context: &Context) -> Result<PathBuf> {
    let project = context.stores.environment().value("CARGO_MANIFEST_DIR").unwrap_or(".");
    let data = PathBuf::from(project).join("testdata/nycflights13");
    if data.is_dir() {
        return Ok(data);
    }
    Err(Error::invalid("the flights are not here")
        .with("looked for", data.display())
        .hint("run it in the project's folder (cargo run --release -- demo), or say --data FOLDER"))
}

/// The steps so far, and where they happen.
struct Story<'a> {
    context: &'a Context,
    lake: Lake,
    steps: Vec<serde_json::Value>,
}

impl Story<'_> {
    async fn tell(&mut self) -> Result<()> {
        let dataset = self.lake.path("lake/on_time");
        let spec = self.lake.path("specs/on_time.toml");
        let plan = self.prepare(&dataset, &spec).await?;
        self.fail(&dataset, &plan).await?;
        let plan = self.resume(&dataset, &spec).await?;
        self.release(&dataset, &plan).await?;
        self.undo(&dataset, &plan).await
    }

    async fn prepare(&mut self, dataset: &str, spec: &str) -> Result<String> {
        self.say("An owner adopts the folder that is in production. No file of it is touched.");
        let adopt = [
            "init",
            dataset,
            "--adopt",
            "--partition",
            "flight_date",
            "--timezone",
            "America/New_York",
        ];
        self.step(APPROVER, &adopt, exit::DONE).await?;
        self.say("An analyst tries her corrected SQL on one day. Nothing is written.");
        let trial = ["try", spec, "--partition", "2013-02-09", "--rows", "3"];
        self.step(MAKER, &trial, exit::DONE).await?;
        self.say("She plans 90 days: a dry run, with every input pinned.");
        self.plan(spec).await
    }

    async fn fail(&mut self, dataset: &str, plan: &str) -> Result<()> {
        self.say("She runs it. The corrections file of day 17 has doubled and shifted rows.");
        self.step(MAKER, &["run", plan, "--dataset", dataset], exit::FAILED).await?;
        self.step(MAKER, &["status", plan, "--dataset", dataset], exit::DONE).await?;
        self.say("The other days do not depend on it. Nothing can be published meanwhile.");
        self.step(MAKER, &["run", plan, "--keep-going", "--dataset", dataset], exit::FAILED)
            .await?;
        self.step(MAKER, &["publish", plan, "--dataset", dataset], exit::FAILED).await.map(drop)
    }

    async fn resume(&mut self, dataset: &str, spec: &str) -> Result<String> {
        self.say("The file is replaced. Planning again keeps 89 results; one is computed.");
        self.lake.mend_corrections()?;
        let plan = self.plan(spec).await?;
        self.step(MAKER, &["run", &plan, "--dataset", dataset], exit::DONE).await?;
        self.say("The stored bytes are decoded again, checked, and compared with production.");
        self.step(MAKER, &["check", &plan, "--dataset", dataset], exit::DONE).await?;
        let day = ["diff", &plan, "--partition", "2013-02-09", "--dataset", dataset];
        self.step(MAKER, &day, exit::DONE).await?;
        Ok(plan)
    }

    async fn release(&mut self, dataset: &str, plan: &str) -> Result<()> {
        self.say("Whoever made it cannot approve it; the owner can, for exactly what was seen.");
        self.step(MAKER, &["approve", plan, "--dataset", dataset], exit::FAILED).await?;
        let approve = ["approve", plan, "--comment", "as expected", "--dataset", dataset];
        self.step(APPROVER, &approve, exit::DONE).await?;
        self.say("Publishing is one atomic commit. Readers see all 90 days, or none.");
        self.step(MAKER, &["publish", plan, "--dataset", dataset], exit::DONE).await?;
        self.say("Readers of the new version, and of the one before.");
        let question = "SELECT on_time, count(*) AS flights FROM on_time WHERE flight_date < DATE '2013-04-01' GROUP BY on_time ORDER BY on_time";
        self.step(MAKER, &["query", question, "--dataset", dataset], exit::DONE).await?;
        let before = ["query", question, "--version", "1", "--dataset", dataset];
        self.step(MAKER, &before, exit::DONE).await.map(drop)
    }

    async fn undo(&mut self, dataset: &str, plan: &str) -> Result<()> {
        self.say("Rolling back shows first what it would do, and never deletes anything.");
        self.step(APPROVER, &["rollback", "--of", plan, "--dataset", dataset], exit::DONE).await?;
        let undo = [
            "rollback",
            "--of",
            plan,
            "--expect",
            "2",
            "--reason",
            "the report needs a day",
            "--dataset",
            dataset,
        ];
        self.step(APPROVER, &undo, exit::DONE).await?;
        self.say("A scheduler that tries again does not republish what a person undid.");
        self.step(MAKER, &["publish", plan, "--dataset", dataset], exit::FAILED).await?;
        self.step(MAKER, &["log", dataset], exit::DONE).await.map(drop)
    }

    fn say(&self, text: &str) {
        if !self.context.json {
            super::answer::write_out(&format!("\n# {text}\n"));
        }
    }

    /// Plans and gives the plan's short id.
    async fn plan(&mut self, spec: &str) -> Result<String> {
        let answer = self.step(MAKER, &["plan", spec], exit::DONE).await?;
        let id = answer.json().get("plan_id").and_then(serde_json::Value::as_str);
        let id = id.and_then(|id| id.get(..12)).unwrap_or_default();
        Ok(id.to_owned())
    }

    /// Runs a command as somebody, shows it with its answer, and stops at a surprise.
    async fn step(&mut self, actor: &str, words: &[&str], expected: u8) -> Result<Answer> {
        let quoted: Vec<String> = words.iter().map(|word| super::context::quoted(word)).collect();
        let line = format!("reissue {} --as {actor}", quoted.join(" "));
        let all = std::iter::once("reissue").chain(words.iter().copied()).chain(["--as", actor]);
        let arguments = Arguments::try_parse_from(all).map_err(|error| {
            Error::internal("the demo's own command").because(error.to_string())
        })?;
        let answered = Box::pin(super::answer(arguments)).await;
        let (code, text) = match &answered {
            Ok(answer) => (answer.code(), answer.text().to_owned()),
            Err(error) => (exit::code(error.kind()), error_text(error)),
        };
        if !self.context.json {
            super::answer::write_out(&format!("\n$ {line}\n{text}"));
            if code != exit::DONE {
                super::answer::write_out(&format!("(exit code {code})\n"));
            }
        }
        self.steps.push(serde_json::json!({ "command": line, "exit_code": code }));
        let answer = answered?;
        if code == expected {
            return Ok(answer);
        }
        Err(Error::internal(format!("the demo expected exit code {expected}, and saw {code}"))
            .with("command", line))
    }
}
