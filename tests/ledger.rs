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
fn the_ledger_names_approval_next_only_when_nothing_else_failed() {
    let lab = lab(TWO_CHANGES, "[checks]\nbound = [{ of = \"max rate\", min = 1000000 }]\n");
    let plan = run(&lab);
    check(&lab, &plan, 3);
    let list = || lab.run(&with(&["ledger", "list", &plan])).expect(0).said();
    assert!(list().contains("reissue ledger explain"), "{}", list());
    let accept = ["ledger", "dispose", &plan, "all", "--state", "accepted", "--reason", "seen"];
    lab.run_as(OWNER, &with(&accept)).expect(0);
    check(&lab, &plan, 3);
    let said = list();
    assert!(said.contains("reissue check") && !said.contains("reissue approve"), "{said}");
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
    let plan = run(&lab);
    let report = check(&lab, &plan, 0);
    // The change does not name the column, so whoever approves is told what the rule hides.
    let rate = &report["total"]["columns"]["rate"];
    assert_eq!((&rate["changed"], &rate["tolerated"]), (&0.into(), &10_900.into()));
    let told = finding(&report, "tolerated");
    assert_eq!((&told["verdict"], &told["column"]), (&"warn".into(), &"rate".into()));
    let observed = told["observed"].as_str().unwrap();
    assert!(observed.starts_with("10900 values") && observed.contains("e-12"), "{observed}");
    let said = lab.run_as(APPROVER, &with(&["approve", &plan])).expect(0).said();
    assert!(said.contains("warning tolerated rate"), "{said}");
    change(&lab, &slightly, "[compare]\nkind = { absolute = 1e-9 }\n");
    let said = lab.run(&["plan", "specs/sales.toml"]).expect(2).said();
    assert!(said.contains("tolerances are for numbers"), "{said}");
}

/// Amounts of a few rows become anything, which differs by the number given.
fn anything(seed: u64) -> String {
    PLAIN.replace(
        "amount FROM",
        &format!(
            "arrow_cast(CASE WHEN id % 50 = 7 THEN amount + cast((id * {seed} * 7919) % 40013 AS DECIMAL(12, 2)) / 100 \
             ELSE amount END, 'Decimal128(12, 2)') AS amount FROM"
        ),
    )
}

#[test]
fn a_word_on_unclassified_values_covers_those_rows_and_no_others() {
    // No third of the amounts is announced, so all changes are discrepancies.
    let only_kind = "[expect.changed_values]\namount = \"candidate.amount < 0\"\n";
    let lab = lab(&anything(1), &format!("[expect]\n{only_kind}"));
    let plan = run(&lab);
    let report = check(&lab, &plan, 3);
    let ids = |report: &Value| {
        let all = report["discrepancies"].as_array().unwrap().clone();
        let open = all.into_iter().filter(|one| one["blocks"] == true);
        open.map(|one| one["cluster"]["pattern"]["kind"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert!(ids(&report).contains(&"unclassified".to_owned()), "{:?}", ids(&report));
    let accept = ["ledger", "dispose", &plan, "all", "--state", "accepted", "--reason", "seen"];
    lab.run_as(OWNER, &with(&accept)).expect(0);
    assert_eq!(check(&lab, &plan, 0)["is_clear"], true);
    // As many rows of the same column in the same days, with other values.
    change(&lab, &anything(3), &format!("[expect]\n{only_kind}"));
    let other = run(&lab);
    let report = check(&lab, &other, 3);
    assert_eq!(ids(&report), ["unclassified"]);
    let reopened = report["discrepancies"].as_array().unwrap().iter();
    let why: Vec<&str> = reopened.filter_map(|one| one["reopened"].as_str()).collect();
    assert!(why.iter().all(|why| why.contains("then")), "{why:?}");
}

#[test]
fn a_word_on_one_batch_does_not_cover_another() {
    let lab = lab(TWO_CHANGES, "[publish]\nunit = \"batch\"\n");
    fs::write(lab.path("policy.toml"), "publish_by_batch = true\n").unwrap();
    lab.run_as(OWNER, &["policy", "lake/sales", "--set", "policy.toml"]).expect(0);
    let plan = run(&lab);
    let batch = |verb: &'static str, number: &'static str| [verb, "--batch", number];
    let words = |verb, number| {
        let [verb, flag, number] = batch(verb, number);
        with(&[verb, &plan, flag, number, "--json"])
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let checked = |number: &'static str, code| {
        let words = words("check", number);
        lab.run(&words.iter().map(String::as_str).collect::<Vec<_>>()).expect(code).json()
    };
    checked("1", 3);
    let accept = [
        "ledger", "dispose", &plan, "all", "--batch", "1", "--state", "accepted", "--reason",
        "seen",
    ];
    lab.run_as(OWNER, &with(&accept)).expect(0);
    assert_eq!(checked("1", 0)["is_clear"], true);
    let second = checked("2", 3);
    let why = second["discrepancies"][0]["reopened"].as_str().unwrap();
    assert!(why.contains("not in 2024-03-03 then"), "{why}");
    // A word on the second takes nothing from the first.
    let accept = [
        "ledger", "dispose", &plan, "all", "--batch", "2", "--state", "accepted", "--reason",
        "seen",
    ];
    lab.run_as(OWNER, &with(&accept)).expect(0);
    assert_eq!(checked("2", 0)["is_clear"], true);
    assert_eq!(checked("1", 0)["is_clear"], true);
}

#[test]
fn what_is_disposed_of_is_named_exactly_and_what_must_be_fixed_is_taken_back_by_an_owner() {
    let lab = lab(TWO_CHANGES, "");
    let plan = run(&lab);
    check(&lab, &plan, 3);
    let dispose = |which: &str, state: &str| {
        let words = ["ledger", "dispose", &plan, which, "--state", state, "--reason", "because"];
        words.map(str::to_owned).to_vec()
    };
    let say = |actor: &str, which: &str, state: &str| {
        let words = dispose(which, state);
        lab.run_as(actor, &with(&words.iter().map(String::as_str).collect::<Vec<_>>()))
    };
    for nothing in ["", "column=amount", "zz"] {
        let said = say(OWNER, nothing, "accepted").expect(2).said();
        assert!(said.contains("no discrepancy is called"), "{said}");
    }
    say(OWNER, "all", "to-fix").expect(0);
    let said = say("somebody@example.com", "all", "open").expect(3).said();
    assert!(said.contains("owners"), "{said}");
    assert_eq!(check(&lab, &plan, 3)["discrepancies"][0]["state"], "to-fix");
    say(OWNER, "all", "open").expect(0);
    assert_eq!(check(&lab, &plan, 3)["discrepancies"][0]["state"], "open");
}

/// A dataset whose rows have a struct, of which the change moves one field.
fn structs(more: &str) -> Lab {
    let lab = Lab::empty();
    let folder = lab.path("").display().to_string();
    lab.python("make_structs.py", &[&folder]);
    fs::create_dir_all(lab.path("specs")).unwrap();
    fs::write(
        lab.path("specs/people.toml"),
        format!(
            "[dataset]\nurl = \"../lake/people\"\npartition = {{ column = \"day\", every = \"day\", timezone = \"UTC\" }}\n\
             key = [\"id\"]\n[range]\nfirst = \"2024-03-01\"\nlast = \"2024-03-02\"\n[change]\nreason = \"towns were renamed\"\n\
             owner = \"people\"\ncolumns = [\"address\"]\n[transform]\nsql = \"people.sql\"\n[sources.raw]\nurl = \"../lake/raw\"\n\
             interval = \"day\"\n{more}"
        ),
    )
    .unwrap();
    let sql = "SELECT day, id, address, amount FROM raw WHERE day >= $start AND day < $end\n";
    fs::write(lab.path("specs/people.sql"), sql).unwrap();
    lab.adopt("lake/people", "day", "UTC").expect(0);
    lab
}

fn people(lab: &Lab, code: i32) -> Value {
    let plan = lab.plan("specs/people.toml");
    let words = |verb| [verb, plan.as_str(), "--dataset", "lake/people"];
    lab.run(&words("run")).expect(0);
    lab.run(&[&words("check")[..], &["--json"]].concat()).expect(code).json()
}

#[test]
fn a_change_of_a_structs_field_is_released_when_the_change_names_the_struct() {
    let lab = structs("");
    let report = people(&lab, 0);
    assert!(report["total"]["columns"]["address.city"]["changed"].as_u64().unwrap() > 0);
    assert_eq!(report["discrepancies"], serde_json::json!([]));
}

#[test]
fn a_claim_about_a_struct_is_held_against_each_of_its_fields() {
    for (column, claim, refuted) in [
        ("address", "candidate.id < 10", true),
        ("\"address.city\"", "candidate.id < 10", true),
        ("\"address.zip\"", "candidate.id < 10", false),
        ("address", "candidate.id >= 0", false),
    ] {
        let lab = structs(&format!("[expect.changed_values]\n{column} = \"{claim}\"\n"));
        let report = people(&lab, if refuted { 3 } else { 0 });
        let verdict = if refuted { "fail" } else { "pass" };
        assert_eq!(finding(&report, "changed-values")["verdict"], verdict, "{column}: {claim}");
    }
    let lab = structs("[expect.changed_values]\n\"address.ctiy\" = \"true\"\n");
    let said = lab.run(&["plan", "specs/people.toml"]).expect(2).said();
    assert!(said.contains("address.ctiy") && said.contains("address.city"), "{said}");
}

#[test]
fn a_sum_of_changes_with_nulls_in_it_is_not_proved() {
    let nulls = PLAIN.replace("amount FROM", "nullif(amount, amount) AS amount FROM");
    let lab = lab(&nulls, "[expect]\nnet_change = { amount = { min = 0, max = 0 } }\n");
    let report = check(&lab, &run(&lab), 3);
    let finding = finding(&report, "net-change");
    assert_eq!(finding["verdict"], "fail");
    assert!(finding["observed"].as_str().unwrap().contains("no number"), "{finding}");
}

#[test]
fn all_rows_of_a_discrepancy_are_read_again_as_many_as_were_counted() {
    let lab = lab(TWO_CHANGES, "");
    let plan = run(&lab);
    let report = check(&lab, &plan, 3);
    let discrepancies = report["discrepancies"].as_array().unwrap();
    let id = discrepancies[0]["id"].as_str().unwrap().to_owned();
    // All its rows, read again: as many as were counted, and each turned.
    let values = discrepancies[0]["cluster"]["values"].as_u64().unwrap();
    let words = ["ledger", "explain", &id, &plan, "--rows", "7", "--json"];
    let rows = lab.run(&with(&words)).expect(0).json()["rows"].as_array().unwrap().clone();
    assert_eq!(rows.len(), 7);
    for row in &rows {
        let number = |side: &str| row[side].as_str().unwrap().parse::<f64>().unwrap();
        assert!(number("production") == -number("candidate") && row["id"].is_string(), "{row}");
    }
    lab.run(&with(&["ledger", "explain", &id, &plan, "--export", "rows.parquet"])).expect(0);
    let turned = lab.python("count_turned.py", &["rows.parquet", "lake/sales"]);
    assert_eq!(turned.trim(), format!("{values} {values}"));
    lab.run(&with(&["ledger", "explain", &id, &plan, "--export", "rows.parquet"])).expect(2);
    lab.run(&with(&["ledger", "explain", &id, &plan, "--export", "rows.csv"])).expect(0);
    let csv = fs::read_to_string(lab.path("rows.csv")).unwrap();
    assert!(csv.starts_with("partition,id,production,candidate\n"), "{csv}");
    assert_eq!(csv.lines().count() as u64, values + 1);
}

/// Checks a candidate, accepts all its discrepancies, and gives what is open in the next one's report.
fn reopened(lab: &Lab, first: &str, second: &str) -> Vec<String> {
    change(lab, first, "");
    let plan = run(lab);
    check(lab, &plan, 3);
    let accept = ["ledger", "dispose", &plan, "all", "--state", "accepted", "--reason", "seen"];
    lab.run_as(OWNER, &with(&accept)).expect(0);
    check(lab, &plan, 0);
    change(lab, second, "");
    let plan = run(lab);
    let report = lab.run(&with(&["check", &plan, "--json"])).json();
    let open = report["discrepancies"].as_array().unwrap().iter();
    open.filter(|one| one["state"] == "open")
        .map(|one| one["reopened"].as_str().unwrap_or("new").to_owned())
        .collect()
}

#[test]
fn a_word_covers_the_partitions_and_rows_that_were_seen_and_no_others_between_them() {
    let rate = |expression: &str, condition: &str| {
        PLAIN.replace(
            "rate,",
            &format!("CASE WHEN {condition} THEN {expression} ELSE rate END AS rate,"),
        )
    };
    let days = |one: u32, two: u32| {
        format!("day IN (DATE '2024-03-{one:02}', DATE '2024-03-{two:02}') AND id % 100 < 20")
    };
    // The days between were not seen.
    let lab = lab(PLAIN, "");
    let open = reopened(&lab, &rate("rate + 1", &days(1, 5)), &rate("rate + 1", &days(2, 3)));
    assert_eq!(open, ["it was not in 2024-03-02 then, and is now"]);
    // Fewer of the same rows are covered.
    let lab = self::lab(PLAIN, "");
    let fewer = rate("rate + 1", &days(1, 5).replace("< 20", "< 10"));
    assert_eq!(reopened(&lab, &rate("rate + 1", &days(1, 5)), &fewer), Vec::<String>::new());
    // Where a value is lost, it must be the same rows.
    for lost in ["arrow_cast('NaN', 'Float64')", "NULL", "arrow_cast('inf', 'Float64')", "-1.0"] {
        let lab = self::lab(PLAIN, "");
        let at = |ids: &str| rate(lost, &format!("id IN ({ids})"));
        let open = reopened(&lab, &at("20005, 20006, 20009"), &at("20005, 20006, 20008"));
        assert_eq!(open.len(), 1, "{lost}: {open:?}");
        assert!(open[0].contains("then"), "{open:?}");
    }
}
