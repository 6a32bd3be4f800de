//! Live pipelines beside a backfill: those that know us, and those that do not.

use std::fs;

use crate::common::{Lab, OWNER};

const DATASET: [&str; 2] = ["--dataset", "lake/sales"];

fn with<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().copied().chain(DATASET).collect()
}

/// A dataset with a candidate for all ten days, checked and approved.
fn approved() -> (Lab, String) {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    let plan = lab.plan("specs/sales.toml");
    lab.run(&with(&["run", &plan])).expect(0);
    lab.run(&with(&["check", &plan])).expect(0);
    lab.run_as(OWNER, &with(&["approve", &plan])).expect(0);
    (lab, plan)
}

/// Commits another day's file as one day, as a live pipeline would.
fn commit(lab: &Lab, day: &str, like: &str, base: &[&str]) -> crate::common::Answer {
    let file = format!("lake/orders/day={like}/orders.parquet");
    let words: Vec<&str> =
        ["commit", "--partition", day, &file].into_iter().chain(base.iter().copied()).collect();
    lab.run_as("pipeline@example.com", &with(&words))
}

#[test]
fn a_new_day_committed_meanwhile_is_no_conflict_and_stays() {
    let (lab, plan) = approved();
    commit(&lab, "2024-03-11", "2024-03-01", &[]).expect(0);
    let published = lab.run(&with(&["publish", &plan, "--json"])).expect(0).json();
    assert_eq!(published["version"], 3);
    let files = lab.run(&with(&["files", "--partition", "2024-03-11"])).expect(0);
    assert_eq!(files.stdout.lines().count(), 1);
}

#[test]
fn a_day_replaced_meanwhile_is_a_conflict_named_with_its_logic() {
    let (lab, plan) = approved();
    commit(&lab, "2024-03-04", "2024-03-04", &["--base", "1", "--logic", "v8"]).expect(0);
    let refused = lab.run(&with(&["publish", &plan])).expect(4);
    assert!(
        refused.stdout.contains("2024-03-04") && refused.stdout.contains("logic v8"),
        "{}",
        refused.stdout
    );
    assert_eq!(refused.stdout.matches("2024-03-0").count(), 1, "only that day is in conflict");
    // Nothing was published; checking again compares with what production is now.
    let log = lab.run(&with(&["log", "--json"])).expect(0).json();
    assert_eq!(log["versions"].as_array().unwrap().len(), 2);
    lab.run(&with(&["check", &plan])).expect(0);
    lab.run(&with(&["publish", &plan])).expect(3);
    lab.run_as(OWNER, &with(&["approve", &plan])).expect(0);
    lab.run(&with(&["publish", &plan])).expect(0);
}

#[test]
fn a_change_that_was_rolled_back_again_is_no_conflict() {
    let (lab, plan) = approved();
    commit(&lab, "2024-03-04", "2024-03-04", &["--base", "1"]).expect(0);
    lab.run_as(OWNER, &with(&["rollback", "--to", "1", "--expect", "2"])).expect(0);
    lab.run(&with(&["publish", &plan])).expect(0);
}

#[test]
fn rolling_back_never_loses_what_somebody_published_since() {
    let (lab, plan) = approved();
    lab.run(&with(&["publish", &plan])).expect(0);
    commit(&lab, "2024-03-04", "2024-03-05", &["--base", "2"]).expect(0);
    let refused = lab.run(&with(&["rollback", "--of", &plan, "--expect", "3"])).expect(4);
    assert!(
        refused.stdout.contains("2024-03-04") && refused.stdout.contains("version 3"),
        "{}",
        refused.stdout
    );
}

#[test]
fn a_foreign_job_that_overwrites_the_root_is_a_conflict_until_its_change_is_taken_in() {
    let (lab, plan) = approved();
    let file = lab.path("lake/sales/day=2024-03-04/sales.parquet");
    fs::copy(lab.path("lake/orders/day=2024-03-05/orders.parquet"), &file).unwrap();
    let refused = lab.run(&with(&["publish", &plan])).expect(4);
    assert!(
        refused.stdout.contains("changed outside reissue") && refused.stdout.contains("2024-03-04")
    );
    let looked = lab.run(&with(&["files", "--check", "--json"])).expect(4).json();
    assert_eq!(looked["check"]["changes"][0]["partition"], "2024-03-04");
    lab.run_as(OWNER, &["adopt", "--again", "lake/sales"]).expect(0);
    lab.run(&with(&["files", "--check"])).expect(0);
    // The candidate was compared with what is gone now: a conflict, by content.
    lab.run(&with(&["publish", &plan])).expect(4);
}

#[test]
fn a_file_that_joins_a_superseded_folder_is_seen_before_a_rollback() {
    let (lab, plan) = approved();
    lab.run(&with(&["publish", &plan])).expect(0);
    let late = lab.path("lake/sales/day=2024-03-04/late.parquet");
    fs::copy(lab.path("lake/orders/day=2024-03-05/orders.parquet"), &late).unwrap();
    let refused = lab.run(&with(&["rollback", "--of", &plan, "--expect", "2"])).expect(4);
    assert!(refused.stdout.contains("late.parquet added"), "{}", refused.stdout);
    let allowed = ["rollback", "--of", &plan, "--expect", "2", "--allow-changed-root"];
    lab.run(&with(&allowed)).expect(0);
    assert!(lab.run(&with(&["log"])).stdout.contains("allow-changed-root"));
}

#[test]
fn superseded_files_that_are_gone_are_restored_from_the_kept_copies() {
    let (lab, plan) = approved();
    lab.run(&with(&["publish", &plan])).expect(0);
    fs::remove_dir_all(lab.path("lake/sales/day=2024-03-04")).unwrap();
    let words = ["rollback", "--of", &plan, "--expect", "2", "--allow-changed-root"];
    lab.run(&with(&words)).expect(0);
    let files = lab.run(&with(&["files", "--partition", "2024-03-04"])).expect(0);
    assert!(files.stdout.contains("sales.reissue/retained/"), "{}", files.stdout);
    let rows =
        lab.run(&with(&["query", "SELECT count(*) AS n FROM sales", "--json"])).expect(0).json();
    assert_eq!(rows["rows"][0]["n"], 10_900);
}

#[test]
fn two_approvals_are_needed_from_two_people_when_the_owner_says_so() {
    let (lab, plan) = approved();
    fs::write(
        lab.path("policy.toml"),
        "approvals = 2\napprovers = [\"owner@example.com\", \"second@example.com\"]\n",
    )
    .unwrap();
    lab.run_as(OWNER, &["policy", "lake/sales", "--set", "policy.toml"]).expect(0);
    lab.run(&with(&["publish", &plan])).expect(3);
    lab.run_as(OWNER, &with(&["approve", &plan])).expect(0);
    let refused = lab.run(&with(&["publish", &plan])).expect(3);
    assert!(refused.stdout.contains("1 of 2"), "the same person twice is one: {}", refused.stdout);
    lab.run_as("stranger@example.com", &with(&["approve", &plan])).expect(3);
    lab.run_as("second@example.com", &with(&["approve", &plan])).expect(0);
    lab.run(&with(&["publish", &plan])).expect(0);
}
