//! Checks that are queries for rows that should not be there, each with a violation planted.

use std::fs;

use serde_json::Value;

use crate::common::Lab;

const DATASET: [&str; 2] = ["--dataset", "lake/sales"];

fn lab() -> Lab {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    lab.python("make_kinds.py", &["kinds.parquet"]);
    lab
}

/// Rewrites SQL and checks; gives the failed findings of the rules.
fn failed(lab: &Lab, columns: &str, rules: &str) -> Vec<Value> {
    let sql = format!("SELECT day, id, {columns} FROM orders\n");
    fs::write(lab.path("specs/sales.sql"), sql).unwrap();
    let spec = fs::read_to_string(lab.path("specs/sales.toml")).unwrap();
    let spec = spec.split("[sources.kinds]").next().unwrap();
    let spec = spec.replace("columns = [\"amount\"]", "columns = [\"amount\", \"kind\", \"rate\"]");
    let kinds = "[sources.kinds]\nurl = \"../kinds.parquet\"\n";
    fs::write(lab.path("specs/sales.toml"), format!("{spec}{kinds}{rules}")).unwrap();
    let plan = lab.plan("specs/sales.toml");
    let words = |verb| [verb, plan.as_str(), DATASET[0], DATASET[1], "--json"];
    lab.run(&words("run")).expect(0);
    let report = lab.run(&words("check")).json();
    let findings = report["findings"].as_array().unwrap_or_else(|| panic!("{report}"));
    findings.iter().filter(|one| one["verdict"] == "fail").cloned().collect()
}

const GOOD: &str = "kind, rate, amount";

#[test]
fn every_rule_passes_where_it_holds_and_names_the_rows_where_it_does_not() {
    let lab = lab();
    let third = "CASE WHEN day = DATE '2024-03-03' AND id % 10000 = 5 THEN";
    for (rule, holds, violated, observed) in [
        ("not_null = [\"rate\"]", GOOD, format!("kind, {third} NULL ELSE rate END AS rate, amount"), "1, such as id=20005"),
        ("pattern = { kind = \"^kind [0-4]$\" }", GOOD, format!("{third} 'kind 7' ELSE kind END AS kind, rate, amount"), "kind=kind 7"),
        ("references = { kind = { source = \"kinds\", column = \"name\" } }", GOOD, format!("{third} 'sort 1' ELSE kind END AS kind, rate, amount"), "1, such as kind=sort 1"),
        ("distinct = { kind = { min = 5, max = 5 } }", GOOD, format!("{third} 'kind 9' ELSE kind END AS kind, rate, amount"), "different=6"),
        ("ordered = { rate = \"ascending\" }", "kind, CAST(id AS DOUBLE) AS rate, amount", format!("kind, {third} 0.0 ELSE CAST(id AS DOUBLE) END AS rate, amount"), "id=20005 rate=0.0 before=20004.0"),
        ("drift = { kind = { max = 0.1 } }", GOOD, "CASE WHEN day = DATE '2024-03-03' AND id % 2 = 0 THEN 'kind 0' ELSE kind END AS kind, rate, amount".to_owned(), "stability_index="),
        ("violations = [{ name = \"rates are shares\", sql = \"SELECT id, rate FROM candidate WHERE rate > 15\" }]", GOOD, format!("kind, {third} 99.5 ELSE rate END AS rate, amount"), "1, such as id=20005 rate=99.5"),
    ] {
        let rules = format!("[checks.rules]\n{rule}\n");
        assert_eq!(failed(&lab, holds, &rules), Vec::<Value>::new(), "{rule}");
        let found = failed(&lab, &violated, &rules);
        let about = |one: &&Value| one["expected"] == "no violating row";
        let found: Vec<&Value> = found.iter().filter(about).collect();
        assert_eq!(found.len(), 1, "{rule}: {found:?}");
        assert_eq!(found[0]["partition"], "2024-03-03", "{rule}");
        assert!(found[0]["observed"].as_str().unwrap().contains(observed), "{rule}: {found:?}");
    }
}

#[test]
fn a_rule_in_a_file_may_only_warn_and_one_that_cannot_run_is_refused_by_the_plan() {
    let lab = lab();
    fs::write(lab.path("specs/odd.sql"), "SELECT id FROM candidate WHERE id % 10000 = 7").unwrap();
    let rules =
        "[[checks.rules.violations]]\nname = \"odd\"\nsql = \"odd.sql\"\nseverity = \"warn\"\n";
    assert_eq!(failed(&lab, GOOD, rules), Vec::<Value>::new());
    for (rule, needle) in [
        ("not_null = [\"nowhere\"]", "nowhere"),
        ("references = { kind = { source = \"nobody\" } }", "nobody"),
        ("freshness = { rate = \"soon\" }", "no span of time"),
        ("violations = [{ name = \"x\", sql = \"DELETE FROM candidate\" }]", "SELECT"),
        ("violations = [{ name = \"x\", sql = \"lost.sql\" }]", "lost.sql"),
        ("pattern = { rate = 1 }", "string"),
    ] {
        let spec = fs::read_to_string(lab.path("specs/sales.toml")).unwrap();
        let spec = spec.split("[checks.rules]").next().unwrap().split("[[checks").next().unwrap();
        fs::write(lab.path("specs/sales.toml"), format!("{spec}[checks.rules]\n{rule}\n")).unwrap();
        let said = lab.run(&["plan", "specs/sales.toml"]).expect(2).said();
        assert!(said.contains(needle), "{rule}: {said}");
    }
}

#[test]
fn suggested_checks_can_be_pasted_and_hold_for_production() {
    let lab = lab();
    let plan = lab.plan("specs/sales.toml");
    let words = |verb| [verb, plan.as_str(), DATASET[0], DATASET[1]];
    lab.run(&words("run")).expect(0);
    let said = lab.run(&[&words("check")[..], &["--suggest"]].concat()).expect(0).stdout;
    let (_, toml) = said.split_once("for the spec:\n\n").unwrap_or_else(|| panic!("{said}"));
    assert!(toml.contains("[checks.null_rate.kind]") && toml.contains("not_null = ["), "{toml}");
    let spec = fs::read_to_string(lab.path("specs/sales.toml")).unwrap();
    fs::write(lab.path("specs/sales.toml"), format!("{spec}\n{toml}")).unwrap();
    let plan = lab.plan("specs/sales.toml");
    let words = |verb| [verb, plan.as_str(), DATASET[0], DATASET[1]];
    lab.run(&words("run")).expect(0);
    lab.run(&words("check")).expect(0);
}
