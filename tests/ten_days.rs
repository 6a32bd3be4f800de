//! The small exercise: ten days, batches of at most two, a dry run that touches nothing.

use crate::common::{Lab, OWNER};

#[test]
fn the_dry_run_of_ten_days_says_what_it_would_do_and_touches_nothing() {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    let mut before = lab.hashes("lake");
    let dry = lab.run(&["plan", "specs/sales.toml", "--json"]).expect(0).json();
    assert_eq!(dry["dry_run_only"], true);
    assert_eq!(dry["partitions"].as_array().unwrap().len(), 10);
    assert_eq!(dry["batches"].as_array().unwrap().len(), 5);
    assert_eq!(dry["maximum_partitions_per_batch"], 2);
    assert_eq!(dry["total_estimated_rows"], 10_900);
    for key in
        ["total_estimated_bytes", "limits", "pins", "transform", "publish", "rollback", "plan_id"]
    {
        assert!(!dry[key].is_null(), "{key} is there");
    }
    // Every object but the plan's own is byte for byte what it was.
    let mut after = lab.hashes("lake");
    let own = |path: &String| path.contains("/sales.reissue/plans/") || path.contains("/events/");
    after.retain(|path, _| !own(path));
    before.retain(|path, _| !own(path));
    assert_eq!(before, after);
    assert!(!lab.path("lake/sales.reissue/data").exists());
}

#[test]
fn planning_twice_gives_the_same_id_and_other_limits_do_not_change_it() {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    let one = lab.plan("specs/sales.toml");
    assert_eq!(one, lab.plan("specs/sales.toml"));
    lab.edit("specs/sales.toml", "partitions_per_batch = 2", "partitions_per_batch = 5");
    let dry = lab.run(&["plan", "specs/sales.toml", "--json"]).expect(0).json();
    assert_eq!(dry["plan_id"], one.as_str());
    assert_eq!(dry["batches"].as_array().unwrap().len(), 2);
    // The amended terms are the ones that count from now on.
    let status = lab.run(&["status", &one, "--dataset", "lake/sales", "--json"]).expect(0).json();
    assert_eq!(status["terms"]["limits"]["partitions_per_batch"], 5);
    // Other SQL is another plan.
    lab.edit("specs/sales.sql", "rate, amount FROM", "rate, amount + 0 AS amount FROM");
    assert_ne!(lab.plan("specs/sales.toml"), one);
}

#[test]
fn a_range_can_be_given_with_its_end_left_out() {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    let words =
        ["plan", "specs/sales.toml", "--start", "2024-03-02", "--end", "2024-03-05", "--json"];
    let dry = lab.run(&words).expect(0).json();
    assert_eq!(dry["first"], "2024-03-02");
    assert_eq!(dry["last"], "2024-03-04");
    let refused =
        lab.run(&["plan", "specs/sales.toml", "--first", "2024-03-05", "--last", "2024-03-02"]);
    assert!(refused.expect(2).stderr.contains("holds no partition"));
}

#[test]
fn a_plan_can_be_written_to_a_file_by_somebody_who_may_only_read() {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    let before = lab.hashes("lake");
    lab.run(&["plan", "specs/sales.toml", "-o", "plan.json"]).expect(0);
    assert_eq!(before, lab.hashes("lake"));
    let plan: serde_json::Value =
        serde_json::from_slice(&std::fs::read(lab.path("plan.json")).unwrap()).unwrap();
    assert_eq!(plan["decides"]["partitions"].as_array().unwrap().len(), 10);
}

#[test]
fn a_candidate_equal_to_production_is_flagged() {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    lab.edit(
        "specs/sales.toml",
        "[sources.orders]\nurl      = \"../lake/orders\"",
        "[sources.orders]\nurl      = \"../lake/sales\"",
    );
    let plan = lab.plan("specs/sales.toml");
    let with = ["--dataset", "lake/sales"];
    lab.run(&["run", &plan, with[0], with[1]]).expect(0);
    let report = lab.run(&["check", &plan, with[0], with[1], "--json"]).expect(0).json();
    assert_eq!(report["verdict"], "warn");
    let flagged = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .any(|finding| finding["check"] == "any-difference" && finding["verdict"] == "warn");
    assert!(flagged);
}

#[test]
fn trying_says_what_plan_and_check_would_refuse() {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    let trial = ["try", "specs/sales.toml", "--partition", "2024-03-02"];
    let before = lab.hashes("lake");
    lab.run(&trial).expect(0);
    assert_eq!(before, lab.hashes("lake"), "nothing is written");
    lab.edit("specs/sales.sql", "kind, rate, amount FROM", "kind, rate * 2 AS rate, amount FROM");
    assert!(lab.run(&trial).expect(3).stdout.contains("FAILED changed-columns rate"));
    lab.edit("specs/sales.sql", "rate * 2 AS rate", "rate");
    lab.edit("specs/sales.sql", "day < $end", "day < $end AND id % 2 = 0");
    assert!(lab.run(&trial).expect(3).stdout.contains("FAILED removed-rows"));
    lab.edit("specs/sales.toml", "timezone = \"UTC\"", "timezone = \"Europe/Berlin\"");
    assert!(lab.run(&trial).expect(2).stderr.contains("Europe/Berlin"));
}

#[test]
fn only_the_columns_that_the_change_names_may_differ() {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    lab.edit("specs/sales.sql", "kind, rate, amount FROM", "kind, rate * 2 AS rate, amount FROM");
    let plan = lab.plan("specs/sales.toml");
    let with = ["--dataset", "lake/sales"];
    lab.run(&["run", &plan, with[0], with[1]]).expect(0);
    let answer = lab.run(&["check", &plan, with[0], with[1]]).expect(3);
    assert!(answer.stdout.contains("FAILED changed-columns rate"), "{}", answer.stdout);
    let refused = lab.run_as(OWNER, &["approve", &plan, with[0], with[1]]).expect(3);
    assert!(refused.stdout.contains("checks failed"));
}
