//! Live pipelines beside a backfill: those that know us, and those that do not.

use std::fs;

use crate::common::{Lab, OWNER};

const DATASET: [&str; 2] = ["--dataset", "lake/sales"];

fn with<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().copied().chain(DATASET).collect()
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
    let (lab, plan) = Lab::approved();
    commit(&lab, "2024-03-11", "2024-03-01", &["--logic", "v7"]).expect(0);
    let published = lab.run(&with(&["publish", &plan, "--json"])).expect(0).json();
    assert_eq!(published["version"], 3);
    // The publisher is told what the old logic may have made meanwhile.
    assert_eq!(published["committed_since"][0]["partition"], "2024-03-11");
    assert_eq!(published["committed_since"][0]["logic"], "v7");
    let files = lab.run(&with(&["files", "--partition", "2024-03-11"])).expect(0);
    assert_eq!(files.stdout.lines().count(), 1);
}

#[test]
fn a_day_replaced_meanwhile_is_a_conflict_named_with_its_logic() {
    let (lab, plan) = Lab::approved();
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
    let (lab, plan) = Lab::approved();
    commit(&lab, "2024-03-04", "2024-03-04", &["--base", "1"]).expect(0);
    lab.run_as(OWNER, &with(&["rollback", "--to", "1", "--expect", "2"])).expect(0);
    lab.run(&with(&["publish", &plan])).expect(0);
}

#[test]
fn rolling_back_never_loses_what_somebody_published_since() {
    let (lab, plan) = Lab::approved();
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
    let (lab, plan) = Lab::approved();
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
    let (lab, plan) = Lab::approved();
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
    let (lab, plan) = Lab::approved();
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
fn refused_files_that_were_allowed_do_not_block_publishing() {
    let lab = Lab::ten_days();
    fs::write(lab.path("lake/sales/day=2024-03-04/broken.parquet"), "PAR1 cut").unwrap();
    lab.adopt("lake/sales", "day", "UTC").expect(2);
    let words = [
        "init",
        "lake/sales",
        "--adopt",
        "--partition",
        "day",
        "--timezone",
        "UTC",
        "--allow-refused",
    ];
    lab.run_as(OWNER, &words).expect(0);
    lab.run(&with(&["files", "--check"])).expect(0);
    let plan = lab.plan("specs/sales.toml");
    lab.run(&with(&["run", &plan])).expect(0);
    lab.run(&with(&["check", &plan])).expect(0);
    lab.run_as(OWNER, &with(&["approve", &plan])).expect(0);
    lab.run(&with(&["publish", &plan])).expect(0);
}

#[test]
fn a_damaged_copy_is_never_restored() {
    let (lab, plan) = Lab::approved();
    lab.run(&with(&["publish", &plan])).expect(0);
    let kept = lab.hashes("lake/sales.reissue/retained");
    let copy = kept.keys().find(|path| path.contains("2024-03-04")).unwrap();
    let mut bytes = fs::read(copy).unwrap();
    bytes[100] ^= 1;
    fs::write(copy, bytes).unwrap();
    fs::remove_dir_all(lab.path("lake/sales/day=2024-03-04")).unwrap();
    let words = ["rollback", "--of", &plan, "--expect", "2", "--allow-changed-root"];
    lab.run(&with(&words)).expect(6);
    let log = lab.run(&with(&["log", "--json"])).expect(0).json();
    assert_eq!(log["versions"].as_array().unwrap().len(), 2);
}

#[test]
fn taking_in_the_root_never_takes_published_rows_away_unasked() {
    let (lab, plan) = Lab::approved();
    lab.run(&with(&["publish", &plan])).expect(0);
    // The superseded file is removed: what was published stays.
    fs::remove_dir_all(lab.path("lake/sales/day=2024-03-04")).unwrap();
    lab.run_as(OWNER, &["adopt", "--again", "lake/sales"]).expect(0);
    let rows =
        lab.run(&with(&["query", "SELECT count(*) AS n FROM sales", "--json"])).expect(0).json();
    assert_eq!(rows["rows"][0]["n"], 10_900);
    // Another file is put there: replacing what was published needs a word of its own.
    fs::create_dir_all(lab.path("lake/sales/day=2024-03-04")).unwrap();
    fs::copy(
        lab.path("lake/orders/day=2024-03-05/orders.parquet"),
        lab.path("lake/sales/day=2024-03-04/new.parquet"),
    )
    .unwrap();
    let refused = lab.run_as(OWNER, &["adopt", "--again", "lake/sales"]).expect(2);
    assert!(
        refused.stderr.contains("2024-03-04")
            && refused.stderr.contains("--allow-replace-published")
    );
    lab.run_as(OWNER, &["adopt", "--again", "lake/sales", "--allow-replace-published"]).expect(0);
    // A damaged file among those to be taken in stops everything.
    fs::write(lab.path("lake/sales/day=2024-03-05/half.parquet"), "PAR1 cut").unwrap();
    assert!(
        lab.run_as(OWNER, &["adopt", "--again", "lake/sales"])
            .expect(2)
            .stderr
            .contains("half.parquet")
    );
}

#[test]
fn a_live_commit_is_decoded_and_its_folder_looked_at() {
    let (lab, _) = Lab::approved();
    let file = lab.path("lake/orders/day=2024-03-01/orders.parquet");
    let mut bytes = fs::read(&file).unwrap();
    bytes[4..2_000].fill(0xff);
    fs::write(lab.path("damaged.parquet"), bytes).unwrap();
    let words = ["commit", "--partition", "2024-03-11", "damaged.parquet"];
    lab.run_as("pipeline@example.com", &with(&words)).expect(2);
    fs::create_dir_all(lab.path("lake/sales/day=2024-03-12")).unwrap();
    fs::copy(&file, lab.path("lake/sales/day=2024-03-12/unseen.parquet")).unwrap();
    let refused = commit(&lab, "2024-03-12", "2024-03-01", &[]).expect(4);
    assert!(refused.stdout.contains("unseen.parquet"), "{}", refused.stdout);
    assert!(
        commit(&lab, "2024-03-13", "2024-03-01", &["--base", "99"])
            .expect(2)
            .stderr
            .contains("no version 99")
    );
}

#[test]
fn rules_are_the_owners_and_count_when_publishing() {
    let (lab, plan) = Lab::approved();
    // Somebody else may not loosen them.
    fs::write(lab.path("loose.toml"), "publish_by_batch = true\n").unwrap();
    assert!(
        lab.run(&["policy", "lake/sales", "--set", "loose.toml"]).expect(2).stderr.contains(OWNER)
    );
    fs::write(lab.path("none.toml"), "approvals = 0\n").unwrap();
    lab.run_as(OWNER, &["policy", "lake/sales", "--set", "none.toml"]).expect(2);
    // An approval by somebody whom the rules no longer name does not count any more.
    fs::write(lab.path("strict.toml"), "approvers = [\"second@example.com\"]\n").unwrap();
    lab.run_as(OWNER, &["policy", "lake/sales", "--set", "strict.toml"]).expect(0);
    lab.run(&with(&["publish", &plan])).expect(3);
    // Rules changed behind the owner's back are noticed.
    let rules = lab.hashes("lake/sales.reissue/policy");
    for file in rules.keys() {
        let text =
            fs::read_to_string(file).unwrap().replace("second@example.com", "anybody@example.com");
        fs::write(file, text).unwrap();
    }
    lab.run(&with(&["publish", &plan])).expect(6);
}

#[test]
fn other_spellings_of_a_makers_name_are_the_maker() {
    let (lab, plan) = Lab::approved();
    for name in ["ANALYST@example.com", " analyst@example.com "] {
        lab.run_as(name, &with(&["approve", &plan])).expect(3);
    }
    // Whoever computed what another plan keeps is a maker of that plan's candidate too.
    let words =
        ["plan", "specs/sales.toml", "--first", "2024-03-01", "--last", "2024-03-09", "--json"];
    let other = lab.run_as("bob@example.com", &words).expect(0).json()["plan_id"]
        .as_str()
        .unwrap()
        .to_owned();
    lab.run_as("bob@example.com", &with(&["run", &other])).expect(0);
    lab.run_as("bob@example.com", &with(&["check", &other])).expect(0);
    lab.run(&with(&["approve", &other])).expect(3);
    lab.run_as(OWNER, &with(&["approve", &other])).expect(0);
}

#[test]
fn a_plan_and_approval_of_another_dataset_publish_nothing() {
    let (lab, plan) = Lab::approved();
    let other = Lab::ten_days();
    other.adopt("lake/sales", "day", "UTC").expect(0);
    for part in ["plans", "runs", "data"] {
        let from = lab.path(&format!("lake/sales.reissue/{part}"));
        let to = other.path(&format!("lake/sales.reissue/{part}"));
        assert!(
            std::process::Command::new("cp")
                .arg("-r")
                .arg(from)
                .arg(to)
                .status()
                .unwrap()
                .success()
        );
    }
    other.run(&with(&["publish", &plan])).expect(7);
    other.run_as(OWNER, &with(&["approve", &plan])).expect(7);
}

#[test]
fn rolling_back_to_a_version_twice_is_once_and_undoing_a_rollback_publishes_again() {
    let (lab, plan) = Lab::approved();
    lab.run(&with(&["publish", &plan])).expect(0);
    let back = ["rollback", "--to", "1", "--expect", "2", "--json"];
    assert_eq!(lab.run_as(OWNER, &with(&back)).expect(0).json()["version"], 3);
    let again = lab.run_as(OWNER, &with(&back)).expect(0).json();
    assert_eq!((&again["outcome"], &again["version"]), (&"already-rolled-back".into(), &3.into()));
    // Undoing the rollback brings the publish back: it stands, and can be undone by name.
    lab.run_as(OWNER, &with(&["rollback", "--to", "2", "--expect", "3"])).expect(0);
    let standing = lab.run(&with(&["publish", &plan, "--json"])).expect(0).json();
    assert_eq!(standing["outcome"], "already-published");
    let undone = lab
        .run_as(OWNER, &with(&["rollback", "--of", &plan, "--expect", "4", "--json"]))
        .expect(0)
        .json();
    assert_eq!(undone["outcome"], "rolled-back");
}

#[test]
fn a_removed_newest_version_is_noticed() {
    let (lab, plan) = Lab::approved();
    lab.run(&with(&["publish", &plan])).expect(0);
    fs::remove_file(lab.path("lake/sales.reissue/versions/00000000000000000002.json")).unwrap();
    let said = lab.run(&with(&["publish", &plan])).expect(6).stderr;
    assert!(said.contains("history was removed"), "{said}");
}

#[test]
fn a_lost_candidate_file_is_computed_again() {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    let plan = lab.plan("specs/sales.toml");
    lab.run(&with(&["run", &plan])).expect(0);
    let files = lab.hashes("lake/sales.reissue/data");
    let lost = files.keys().find(|path| path.contains("2024-03-04")).unwrap();
    fs::remove_file(lost).unwrap();
    lab.run(&with(&["check", &plan])).expect(6);
    let run = lab.run(&with(&["run", &plan, "--json"])).expect(0).json();
    assert_eq!((&run["done_before"], &run["computed"]), (&9.into(), &1.into()));
    lab.run(&with(&["check", &plan])).expect(0);
}

#[test]
fn two_approvals_are_needed_from_two_people_when_the_owner_says_so() {
    let (lab, plan) = Lab::approved();
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
