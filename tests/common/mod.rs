//! What tests share: a lab folder, the built program, and Python as the referee.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use serde_json::Value;

/// The built program.
pub(crate) const REISSUE: &str = env!("CARGO_BIN_EXE_reissue");
/// Who plans and runs.
pub(crate) const MAKER: &str = "analyst@example.com";
/// Who approves.
pub(crate) const OWNER: &str = "owner@example.com";

/// A folder with a lake in it; gone when dropped.
pub(crate) struct Lab {
    folder: tempfile::TempDir,
}

/// What a command answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Answer {
    fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The answer's JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Everything said, for looking for words.
    pub(crate) fn said(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// Requires an exit code.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.stdout, self.stderr);
        self
    }
}

impl Lab {
    /// An empty folder.
    pub(crate) fn empty() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// The demo's lake: real flights, not adopted yet.
    pub(crate) fn flights() -> Self {
        let lab = Self::empty();
        let folder = lab.path("lab");
        lab.run_with(&["demo", "--setup-only", "--folder", folder.to_str().unwrap()], &[])
            .expect(0);
        for part in ["lake", "specs", "sql"] {
            fs::rename(folder.join(part), lab.path(part)).unwrap();
        }
        lab
    }

    /// Ten daily partitions of 1,000, 1,020, … 1,180 generated rows, and a production of them made
    /// by logic that forgot a tax.
    pub(crate) fn ten_days() -> Self {
        let lab = Self::empty();
        for day in 0..10 {
            let rows = 1_000 + 20 * day;
            let name = day_name(day);
            write(
                &lab.path(&format!("lake/orders/day={name}/orders.parquet")),
                &orders(day, rows, true),
            );
            write(
                &lab.path(&format!("lake/sales/day={name}/sales.parquet")),
                &orders(day, rows, false),
            );
        }
        fs::create_dir_all(lab.path("specs")).unwrap();
        fs::write(lab.path("specs/sales.toml"), SALES_SPEC).unwrap();
        fs::write(lab.path("specs/sales.sql"), SALES_SQL).unwrap();
        lab
    }

    /// Those ten days adopted, with a candidate for all of them, checked and approved.
    pub(crate) fn approved() -> (Self, String) {
        let lab = Self::ten_days();
        lab.adopt("lake/sales", "day", "UTC").expect(0);
        let plan = lab.plan("specs/sales.toml");
        let with = |verb| [verb, plan.as_str(), "--dataset", "lake/sales"];
        lab.run(&with("run")).expect(0);
        lab.run(&with("check")).expect(0);
        lab.run_as(OWNER, &with("approve")).expect(0);
        (lab, plan)
    }

    /// A whole copy, in a folder of its own.
    pub(crate) fn copied(&self) -> Self {
        let copy = Self::empty();
        copy_tree(self.folder.path(), copy.folder.path());
        copy
    }

    /// A path in the folder.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Changes a text file.
    #[track_caller]
    pub(crate) fn edit(&self, path: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(path)).unwrap();
        assert!(text.contains(from), "{path} has no {from:?}");
        fs::write(self.path(path), text.replace(from, to)).unwrap();
    }

    /// A command in the folder, not started yet.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(REISSUE);
        command
            .args(words)
            .current_dir(self.folder.path())
            .env("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"));
        command.env_remove("REISSUE_DATASET").env_remove("REISSUE_HALT_AT");
        command
    }

    /// Runs a command with environment variables.
    pub(crate) fn run_with(&self, words: &[&str], variables: &[(&str, &str)]) -> Answer {
        let mut command = self.command(words);
        command.envs(variables.iter().copied());
        Answer::of(&command.output().unwrap())
    }

    /// Runs a command as somebody.
    pub(crate) fn run_as(&self, actor: &str, words: &[&str]) -> Answer {
        let words: Vec<&str> = words.iter().copied().chain(["--as", actor]).collect();
        self.run_with(&words, &[])
    }

    /// Runs a command as the maker.
    pub(crate) fn run(&self, words: &[&str]) -> Answer {
        self.run_as(MAKER, words)
    }

    /// Adopts a folder by day.
    pub(crate) fn adopt(&self, url: &str, column: &str, zone: &str) -> Answer {
        self.run_as(
            OWNER,
            &["init", url, "--adopt", "--partition", column, "--timezone", zone, "--json"],
        )
    }

    /// Plans a spec; gives the plan's id.
    #[track_caller]
    pub(crate) fn plan(&self, spec: &str) -> String {
        let dry = self.run(&["plan", spec, "--json"]).expect(0).json();
        dry["plan_id"].as_str().unwrap().to_owned()
    }

    /// The path of every object below a folder, with a hash of its bytes.
    pub(crate) fn hashes(&self, folder: &str) -> BTreeMap<String, String> {
        let mut hashes = BTreeMap::new();
        collect_hashes(&self.path(folder), &mut hashes);
        hashes
    }

    /// Runs Python code in the folder; fails when a package is missing.
    #[track_caller]
    pub(crate) fn python(&self, script: &str, words: &[&str]) -> String {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/referee").join(script);
        let python = std::env::var("REISSUE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let mut command = Command::new(python);
        let output =
            command.arg(script).args(words).current_dir(self.folder.path()).output().unwrap();
        let answer = Answer::of(&output);
        assert_eq!(answer.code, 0, "{}\n{}", answer.stdout, answer.stderr);
        answer.stdout
    }
}

/// A small generator of numbers (splitmix64), so that a seed says everything.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }

    pub(crate) fn among<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.index(all.len())]
    }
}

/// The n-th day of the ten.
pub(crate) fn day_name(day: i64) -> String {
    format!("2024-03-{:02}", day + 1)
}

const SALES_SPEC: &str = r#"[dataset]
url       = "../lake/sales"
partition = { column = "day", every = "day", timezone = "UTC" }
key       = ["id"]

[range]
first = "2024-03-01"
last  = "2024-03-10"

[change]
reason  = "the tax was left out"
owner   = "sales"
columns = ["amount"]

[transform]
sql = "sales.sql"

[sources.orders]
url      = "../lake/orders"
interval = "day"

[limits]
partitions_per_batch = 2
"#;

const SALES_SQL: &str =
    "SELECT day, id, kind, rate, amount FROM orders WHERE day >= $start AND day < $end\n";

/// Rows of a day: `id, kind, rate, amount`; with the tax, or without.
fn orders(day: i64, rows: i64, taxed: bool) -> RecordBatch {
    let ids = (0..rows).map(|row| day * 10_000 + row);
    let kinds = (0..rows).map(|row| (row % 7 != 0).then(|| format!("kind {}", row % 5)));
    let rates = (0..rows).map(|row| f64::from(u32::try_from(row % 100).unwrap()) / 7.0);
    let amount = move |row: i64| i128::from(1_000 + row * 37 % 5_000);
    let amounts = (0..rows)
        .map(|row| if taxed && row % 3 == 0 { amount(row) * 119 / 100 } else { amount(row) });
    RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(Int64Array::from_iter_values(ids)) as ArrayRef, false),
        ("kind", Arc::new(StringArray::from_iter(kinds)), true),
        ("rate", Arc::new(Float64Array::from_iter_values(rates)), true),
        (
            "amount",
            Arc::new(
                Decimal128Array::from_iter_values(amounts).with_precision_and_scale(12, 2).unwrap(),
            ),
            true,
        ),
    ])
    .unwrap()
}

/// Writes a Parquet file, as somebody else's program would.
pub(crate) fn write(file: &Path, batch: &RecordBatch) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let target = fs::File::create(file).unwrap();
    let mut writer = ArrowWriter::try_new(target, batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

fn collect_hashes(folder: &Path, hashes: &mut BTreeMap<String, String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_hashes(&path, hashes);
        } else {
            let hash = blake3::hash(&fs::read(&path).unwrap()).to_hex().to_string();
            hashes.insert(path.display().to_string(), hash);
        }
    }
}
