//! Readers that do not know us, and numbers by somebody else's decoder.

use std::fs;

use crate::common::{Lab, OWNER};

const DATASET: [&str; 2] = ["--dataset", "lake/on_time"];

fn with<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().copied().chain(DATASET).collect()
}

/// Lets DuckDB, Polars and pyarrow read the current version, and glob below the root.
fn read_everywhere(lab: &Lab, view: &[&str]) {
    let files = lab.run(&with(&["files", "--json"])).expect(0);
    fs::write(lab.path("files.json"), &files.stdout).unwrap();
    let root = lab.path("lake/on_time").display().to_string();
    let words = ["files.json", &root, "flight_date", "109119"];
    let said = lab.python("readers.py", &[&words[..], view].concat());
    assert!(said.contains("three readers agree"), "{said}");
}

#[test]
fn three_readers_see_old_and_new_days_alike_and_no_wildcard_meets_ours() {
    let lab = Lab::flights();
    lab.adopt("lake/on_time", "flight_date", "America/New_York").expect(0);
    read_everywhere(&lab, &[]);
    // One corrected day.
    let words =
        ["plan", "specs/on_time.toml", "--first", "2013-02-08", "--last", "2013-02-08", "--json"];
    let plan = lab.run(&words).expect(0).json()["plan_id"].as_str().unwrap().to_owned();
    lab.run(&with(&["run", &plan])).expect(0);
    read_everywhere(&lab, &[]);
    lab.edit("specs/on_time.toml", "max_fraction = 0.10", "max_fraction = 0.60");
    let plan = lab.run(&words).expect(0).json()["plan_id"].as_str().unwrap().to_owned();
    lab.run(&with(&["run", &plan])).expect(0);
    lab.run(&with(&["check", &plan])).expect(0);
    lab.run_as(OWNER, &with(&["approve", &plan])).expect(0);
    // The ready view says the same as the files.
    let published = lab.run(&with(&["publish", &plan, "--json"])).expect(0).json();
    read_everywhere(&lab, &[published["view"].as_str().unwrap()]);
}

#[test]
fn counts_nulls_sums_bounds_keys_and_differences_are_what_duckdb_computes() {
    let lab = Lab::flights();
    lab.adopt("lake/on_time", "flight_date", "America/New_York").expect(0);
    let before = lab.run(&with(&["files", "--json"])).expect(0);
    fs::write(lab.path("production.json"), &before.stdout).unwrap();
    // Without day 17, whose corrections are bad.
    let words =
        ["plan", "specs/on_time.toml", "--first", "2013-01-18", "--last", "2013-03-31", "--json"];
    let plan = lab.run(&words).expect(0).json()["plan_id"].as_str().unwrap().to_owned();
    lab.run(&with(&["run", &plan])).expect(0);
    let report = lab.run(&with(&["check", &plan, "--json"])).expect(0);
    fs::write(lab.path("report.json"), &report.stdout).unwrap();
    lab.run_as(OWNER, &with(&["approve", &plan])).expect(0);
    lab.run(&with(&["publish", &plan])).expect(0);
    let after = lab.run(&with(&["files", "--json"])).expect(0);
    fs::write(lab.path("candidate.json"), &after.stdout).unwrap();
    let said = lab.python("report.py", &["report.json", "candidate.json", "production.json"]);
    assert!(said.contains("agree"), "{said}");
}

#[test]
fn an_independent_reading_of_the_digest_gives_the_test_vectors() {
    let lab = Lab::empty();
    let folder = format!("{}/testdata/digest", env!("CARGO_MANIFEST_DIR"));
    assert!(lab.python("digest.py", &[&folder]).contains("agree"));
}

#[test]
fn the_demos_rule_holds_after_the_change_and_not_before() {
    let lab = Lab::flights();
    lab.adopt("lake/on_time", "flight_date", "America/New_York").expect(0);
    let check =
        format!("{}/sql/checks/cancelled_flights_have_no_delay.sql", env!("CARGO_MANIFEST_DIR"));
    let sql = fs::read_to_string(check).unwrap();
    let words =
        ["plan", "specs/on_time.toml", "--first", "2013-01-01", "--last", "2013-01-07", "--json"];
    let plan = lab.run(&words).expect(0).json()["plan_id"].as_str().unwrap().to_owned();
    for (verb, actor) in [("run", "a@x"), ("check", "a@x"), ("approve", OWNER), ("publish", "a@x")]
    {
        lab.run_as(actor, &with(&[verb, &plan])).expect(0);
    }
    let broken = lab.run(&with(&["query", &sql, "--json"])).expect(0).json();
    assert_eq!(broken["rows"].as_array().unwrap().len(), 0);
    let cancelled = "SELECT count(*) AS n FROM on_time WHERE on_time IS NULL";
    let now = lab.run(&with(&["query", cancelled, "--json"])).expect(0).json();
    assert!(now["rows"][0]["n"].as_i64().unwrap() > 0);
    let before = lab.run(&with(&["query", cancelled, "--version", "1", "--json"])).expect(0).json();
    assert_eq!(before["rows"][0]["n"], 0);
}
