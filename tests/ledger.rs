//! Claims about differences, and the ledger of what no claim explains.

use std::fs;

use serde_json::Value;

use crate::common::{Lab, OWNER};

const DATASET: [&str; 2] = ["--dataset", "lake/sales"];
/// Approves; the owner of the dataset's rules is who may call a discrepancy acceptable.
const APPROVER: &str = "approver@example.com";

fn with<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().copied().chain(DATASET).collect()
}

/// The ten days with SQL of the test's own, and more lines for the spec.
fn lab(sql: &str, more: &str) -> Lab {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    change(&lab, sql, more);
    lab
}

fn change(lab: &Lab, sql: &str, more: &str) {
    fs::write(lab.path("specs/sales.sql"), sql).unwrap();
    let spec = fs::read_to_string(lab.path("specs/sales.toml")).unwrap();
    let spec = spec.split("[expect]").next().unwrap().split("[compare]").next().unwrap();
    fs::write(lab.path("specs/sales.toml"), format!("{spec}{more}")).unwrap();
}

fn run(lab: &Lab) -> String {
    let plan = lab.plan("specs/sales.toml");
    lab.run(&with(&["run", &plan])).expect(0);
    plan
}

fn check(lab: &Lab, plan: &str, code: i32) -> Value {
    lab.run(&with(&["check", plan, "--json"])).expect(code).json()
}

/// Also turns the sign of the rate in a few rows, which nobody announced.
const TWO_CHANGES: &str = "SELECT day, id, kind, CASE WHEN id % 10 = 3 THEN -rate ELSE rate END AS rate, amount \
    FROM orders WHERE day >= $start AND day < $end\n";
const PLAIN: &str =
    "SELECT day, id, kind, rate, amount FROM orders WHERE day >= $start AND day < $end\n";

fn finding<'a>(report: &'a Value, check: &str) -> &'a Value {
    let findings = report["findings"].as_array().unwrap();
    findings
        .iter()
        .find(|one| one["check"] == check)
        .unwrap_or_else(|| panic!("no {check}: {report}"))
}

#[test]
fn a_claim_about_every_changed_value_is_proved_or_refuted_with_the_rows_that_refute_it() {
    let claim = "[expect.changed_values]\namount = \"candidate.amount > production.amount\"\n";
    let lab =
        lab(PLAIN, &format!("[expect]\nchanged_rows_where = \"candidate.id % 3 < 3\"\n{claim}"));
    let plan = run(&lab);
    let report = check(&lab, &plan, 0);
    let observed = finding(&report, "changed-values")["observed"].as_str().unwrap();
    assert!(observed.starts_with("true of all"), "{observed}");
    assert_eq!(report["discrepancies"], serde_json::json!([]));
    // Nothing but the amounts of every third order may change: proved too. Then a claim that fails.
    let claim =
        "[expect.changed_values]\namount = \"candidate.amount < production.amount * 1.19\"\n";
    change(&lab, PLAIN, &format!("[expect]\n{claim}"));
    let plan = run(&lab);
    let report = check(&lab, &plan, 3);
    let finding = finding(&report, "changed-values");
    assert_eq!(finding["verdict"], "fail");
    let observed = finding["observed"].as_str().unwrap();
    assert!(observed.contains("not true of") && observed.contains("amount"), "{observed}");
    let open = report["discrepancies"].as_array().unwrap();
    assert!(open.iter().all(|one| one["cluster"]["column"] == "amount" && one["blocks"] == true));
    let values: u64 = open.iter().map(|one| one["cluster"]["values"].as_u64().unwrap()).sum();
    assert!(observed.contains(&format!("not true of {values} of")), "{observed} {values}");
}

#[test]
fn claims_that_cannot_be_understood_are_refused_by_the_plan() {
    let lab = lab(PLAIN, "");
    for (claim, needle) in [
        ("changed_rows_where = \"candidate.nowhere = 1\"", "nowhere"),
        ("changed_rows_where = \"candidate.id + 1\"", "true or false"),
        ("changed_rows_where = \"random() < 0.5\"", "random"),
        ("changed_rows_where = \"candidate.id IN (SELECT 1)\"", "condition"),
        ("changed_values = { nowhere = \"true\" }", "nowhere"),
        ("identical_partitions = [\"2023-01-01\"]", "2023-01-01"),
        ("net_change = { amount = { min = 2, max = 1 } }", "net_change"),
    ] {
        change(&lab, PLAIN, &format!("[expect]\n{claim}\n"));
        let said = lab.run(&["plan", "specs/sales.toml"]).expect(2).said();
        assert!(said.contains(needle), "{claim}: {said}");
    }
}

#[test]
fn partitions_and_sums_that_must_hold_are_held() {
    let lab = lab(
        PLAIN,
        "[expect]\nidentical_partitions = [\"2024-03-04\"]\nnet_change = { amount = { max = 0 } }\n",
    );
    let plan = run(&lab);
    let report = check(&lab, &plan, 3);
    assert_eq!(finding(&report, "identical")["partition"], "2024-03-04");
    assert_eq!(finding(&report, "identical")["verdict"], "fail");
    assert_eq!(finding(&report, "net-change")["verdict"], "fail");
}

#[test]
fn an_unexplained_difference_blocks_until_an_owner_accepts_it_and_carries_over_while_it_does_not_grow()
 {
    let lab = lab(TWO_CHANGES, "");
    let plan = run(&lab);
    let report = check(&lab, &plan, 3);
    let discrepancies = report["discrepancies"].as_array().unwrap();
    assert_eq!(discrepancies.len(), 1, "{discrepancies:?}");
    let id = discrepancies[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(discrepancies[0]["cluster"]["pattern"]["kind"], "sign-turned");
    let said = lab.run_as(APPROVER, &with(&["approve", &plan])).expect(3).said();
    assert!(said.contains("discrepancies are open") && said.contains(&id), "{said}");
    // Rows side by side.
    let shown = lab.run(&with(&["ledger", "explain", &id, &plan])).expect(0).said();
    assert!(shown.contains("rate: sign turned") && shown.contains("2024-03-10"), "{shown}");
    // Only an owner, and only with a reason.
    let accept = [
        "ledger",
        "dispose",
        &plan,
        &id,
        "--state",
        "accepted",
        "--reason",
        "the old sign was wrong too",
    ];
    lab.run_as("somebody@example.com", &with(&accept)).expect(3);
    let empty = ["ledger", "dispose", &plan, "all", "--state", "accepted", "--reason", " "];
    lab.run_as(OWNER, &with(&empty)).expect(2);
    lab.run_as(OWNER, &with(&accept)).expect(0);
    assert_eq!(check(&lab, &plan, 0)["is_clear"], true);
    for file in ["ledger.csv", "ledger.parquet"] {
        lab.run(&with(&["ledger", "list", &plan, "--export", file])).expect(0);
    }
    let csv = fs::read_to_string(lab.path("ledger.csv")).unwrap();
    assert!(csv.lines().count() == 2 && csv.contains(&id) && csv.contains("accepted"), "{csv}");
    let read = lab.python("sum_of.py", &["ledger.parquet", "values"]);
    assert_eq!(read.trim(), discrepancies[0]["cluster"]["values"].to_string());
    // Who disposed of it does not approve.
    let said = lab.run_as(OWNER, &with(&["approve", &plan])).expect(3).said();
    assert!(said.contains("disposed"), "{said}");
    // The next candidate of the same change, with fewer such rows: the word still holds.
    change(&lab, &TWO_CHANGES.replace("id % 10 = 3", "id % 20 = 3"), "");
    let fewer = run(&lab);
    assert_ne!(fewer, plan);
    let report = check(&lab, &fewer, 0);
    assert_eq!(report["discrepancies"][0]["id"], id.as_str());
    assert_eq!(report["discrepancies"][0]["state"], "accepted");
    // With more, it is open again.
    change(&lab, &TWO_CHANGES.replace("id % 10 = 3", "id % 5 = 3"), "");
    let more = run(&lab);
    let report = check(&lab, &more, 3);
    assert_eq!(report["discrepancies"][0]["state"], "open");
    assert!(report["discrepancies"][0]["reopened"].as_str().unwrap().contains("then"), "{report}");
    // The one with fewer is published once somebody else approves.
    lab.run_as(APPROVER, &with(&["approve", &fewer])).expect(0);
    // A word taken back after the approval blocks the publish.
    let back =
        ["ledger", "dispose", &fewer, &id, "--state", "to-fix", "--reason", "no, it must go"];
    lab.run_as("somebody@example.com", &with(&back)).expect(0);
    lab.run_as(APPROVER, &with(&["publish", &fewer])).expect(3);
    let again = [
        "ledger",
        "dispose",
        &fewer,
        "column=rate",
        "--state",
        "expected",
        "--reason",
        "looked at again",
    ];
    lab.run_as(OWNER, &with(&again)).expect(0);
    lab.run_as(APPROVER, &with(&["publish", &fewer])).expect(0);
}

#[test]
fn values_within_a_declared_tolerance_are_not_changed() {
    let slightly = PLAIN.replace("rate, amount", "rate + 1e-12 AS rate, amount");
    let lab = lab(&slightly, "");
    check(&lab, &run(&lab), 3);
    change(&lab, &slightly, "[compare]\nrate = { absolute = 1e-9 }\n");
    let report = check(&lab, &run(&lab), 0);
    assert!(report["total"]["columns"].get("rate").is_none(), "{report}");
    change(&lab, &slightly, "[compare]\nkind = { absolute = 1e-9 }\n");
    let said = lab.run(&["plan", "specs/sales.toml"]).expect(2).said();
    assert!(said.contains("tolerances are for numbers"), "{said}");
}
