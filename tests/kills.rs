//! `kill -9` at every point between two writes, at least ten times each, and then going on.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::common::{Lab, MAKER};

const DATASET: [&str; 2] = ["--dataset", "lake/sales"];

/// Starts a command that halts at a point, kills it there, and says whether it got so far.
fn killed_at(lab: &Lab, words: &[&str], point: &str) -> bool {
    let mut command = lab.command(words);
    command.args(["--as", MAKER]).env("REISSUE_HALT_AT", point);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let halted = stderr.lines().map_while(Result::ok).any(|line| line.starts_with("halted at"));
    // SIGKILL: nothing of the process runs any more.
    child.kill().unwrap();
    child.wait().unwrap();
    halted
}

fn with<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().copied().chain(DATASET).collect()
}

fn recorded(lab: &Lab, plan: &str) -> BTreeMap<String, String> {
    let status = lab.run(&with(&["status", plan, "--json"])).expect(0).json();
    let records = status["records"].as_array().unwrap().iter();
    let pair = |record: &serde_json::Value| {
        let hash = record["files"][0]["hash"].as_str().unwrap().to_owned();
        (record["partition"].as_str().unwrap().to_owned(), hash)
    };
    records.map(pair).collect()
}

#[test]
fn a_run_killed_at_any_point_and_run_again_ends_with_the_same_bytes() {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    let plan = lab.plan("specs/sales.toml");
    let undisturbed = lab.copied();
    undisturbed.plan("specs/sales.toml");
    let own_plan = undisturbed.plan("specs/sales.toml");
    undisturbed.run(&with(&["run", &own_plan])).expect(0);
    let expected = recorded(&undisturbed, &own_plan);
    for point in ["claim", "write", "record", "recorded"] {
        let lab = lab.copied();
        let plan = lab.plan("specs/sales.toml");
        let mut kills = 0;
        let mut done_before = 0;
        // Each time a bit further; every result recorded before the kill is kept.
        while kills < 10 {
            let nth = format!("{point}:{}", 1 + kills % 2);
            if !killed_at(&lab, &with(&["run", &plan]), &nth) {
                break;
            }
            kills += 1;
            let records = recorded(&lab, &plan);
            assert!(records.len() >= done_before, "no result is lost");
            assert!(records.iter().all(|(name, hash)| expected[name] == *hash));
            done_before = records.len();
            if done_before >= 9 {
                // Start over on a fresh copy, so that ten kills are possible at late points too.
                std::fs::remove_dir_all(lab.path("lake/sales.reissue/runs")).unwrap();
                std::fs::remove_dir_all(lab.path("lake/sales.reissue/data")).unwrap();
                done_before = 0;
            }
        }
        assert_eq!(kills, 10, "{point}");
        let run = lab.run(&with(&["run", &plan, "--json"])).expect(0).json();
        let before = run["done_before"].as_u64().unwrap();
        assert_eq!(before + run["computed"].as_u64().unwrap(), 10, "only what was missing");
        assert_eq!(recorded(&lab, &plan), expected, "{point}");
        println!("killed {kills} times at {point}, then the same bytes");
        // Leftovers of the killed are hidden at once, and swept when they are a minute old.
        let files = lab.run(&with(&["files", "--check"])).expect(0);
        assert!(!files.stdout.contains("unfinished"));
    }
    lab.run(&with(&["run", &plan])).expect(0);
}

#[test]
fn a_publish_killed_at_any_point_and_run_again_publishes_once() {
    let (lab, plan) = Lab::approved();
    for point in ["intent", "commit", "published"] {
        for _ in 0..10 {
            let lab = lab.copied();
            assert!(killed_at(&lab, &with(&["publish", &plan]), &format!("{point}:1")), "{point}");
            // A reader meanwhile sees version 1 or 2, whole.
            let rows = lab
                .run(&with(&["query", "SELECT count(*) AS n FROM sales", "--json"]))
                .expect(0)
                .json();
            assert_eq!(rows["rows"][0]["n"], 10_900);
            let again = lab.run(&with(&["publish", &plan, "--json"])).expect(0).json();
            let outcome = if point == "intent" { "published" } else { "already-published" };
            assert_eq!((&again["outcome"], &again["version"]), (&outcome.into(), &2.into()));
            let log = lab.run(&with(&["log", "--json"])).expect(0).json();
            assert_eq!(log["versions"].as_array().unwrap().len(), 2);
        }
        println!("killed 10 times at {point}, then published once");
    }
}

const FLIGHTS: [&str; 2] = ["--dataset", "lake/on_time"];

/// A run of 73 days that is in the middle: some results are recorded, most are not.
fn running() -> (Lab, String, std::process::Child) {
    let lab = Lab::flights();
    lab.adopt("lake/on_time", "flight_date", "America/New_York").expect(0);
    let range =
        ["plan", "specs/on_time.toml", "--first", "2013-01-18", "--last", "2013-03-31", "--json"];
    let plan = lab.run(&range).expect(0).json()["plan_id"].as_str().unwrap().to_owned();
    let mut child = lab
        .command(&["run", &plan, FLIGHTS[0], FLIGHTS[1], "--as", MAKER])
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let records = lab.path(&format!("lake/on_time.reissue/runs/{plan}/records"));
    let is_record = |name: &std::ffi::OsStr| !name.to_string_lossy().starts_with('.');
    let recorded = || {
        let names = std::fs::read_dir(&records).into_iter().flatten().flatten();
        names.filter(|entry| is_record(&entry.file_name())).count()
    };
    while recorded() < 3 {
        assert!(child.try_wait().unwrap().is_none(), "it was over before it could be stopped");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    (lab, plan, child)
}

/// Runs again, and requires that only what was missing is computed.
fn resume(lab: &Lab, plan: &str) {
    let run = lab.run(&["run", plan, FLIGHTS[0], FLIGHTS[1], "--json"]).expect(0).json();
    assert_eq!(run["complete"], true);
    assert!(run["done_before"].as_u64().unwrap() >= 3);
    assert!(run["computed"].as_u64().unwrap() >= 1);
}

#[test]
fn a_terminated_run_stops_within_ten_seconds_and_resumes() {
    let (lab, plan, mut child) = running();
    let begun = std::time::Instant::now();
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let code = child.wait().unwrap().code();
    assert!(begun.elapsed().as_secs() < 10);
    assert_eq!(code, Some(143));
    resume(&lab, &plan);
}

#[test]
fn a_paused_run_starts_no_further_batch_and_resumes() {
    let (lab, plan, mut child) = running();
    lab.run(&["pause", &plan, FLIGHTS[0], FLIGHTS[1]]).expect(0);
    assert_eq!(child.wait().unwrap().code(), Some(8));
    resume(&lab, &plan);
}
