//! `diff` of any two tables, against DuckDB's full outer join of the same files.

use serde_json::Value;

use crate::common::{Lab, OWNER};

fn lab() -> Lab {
    let lab = Lab::empty();
    let folder = lab.path("").display().to_string();
    lab.python("folders.py", &["make", &folder]);
    lab
}

fn expected(lab: &Lab, one: &str, two: &str) -> Value {
    let folder = lab.path("").display().to_string();
    serde_json::from_str(&lab.python("folders.py", &["say", &folder, one, two])).unwrap()
}

fn diff(lab: &Lab, words: &[&str]) -> Value {
    lab.run(&[&["diff"], words, &["--json"]].concat()).expect(0).json()
}

fn assert_agree(found: &Value, expected: &Value) {
    let total = &found["total"];
    for count in
        ["rows_production", "rows_candidate", "only_production", "only_candidate", "changed"]
    {
        assert_eq!(total[count], expected[count], "{count}");
    }
    for (column, counts) in expected["columns"].as_object().unwrap() {
        for (count, value) in counts.as_object().unwrap() {
            assert_eq!(&total["columns"][column][count], value, "{column} {count}");
        }
    }
    for (column, net) in [("price", "net_price"), ("amount", "net_amount")] {
        let told: f64 =
            total["columns"][column]["net_change"].to_string().trim_matches('"').parse().unwrap();
        assert!((told - expected[net].as_f64().unwrap()).abs() < 1e-6, "{column}");
    }
}

#[test]
fn two_folders_differ_as_duckdb_says_in_order_or_not_and_with_little_memory() {
    let lab = lab();
    let folders = expected(&lab, "one", "two");
    assert_agree(&diff(&lab, &["one", "two", "--key", "id,line"]), &folders);
    assert_agree(&diff(&lab, &["flat_one", "flat_two", "--key", "id,line"]), &folders);
    let shuffled = diff(&lab, &["flat_one", "shuffled", "--key", "id,line"]);
    assert_agree(&shuffled, &folders);
    // Too little to sort in memory: the engine sorts.
    let words = ["flat_one", "shuffled", "--key", "id,line", "--threads", "1", "--memory", "12MiB"];
    let spilled = diff(&lab, &words);
    assert_eq!(spilled["total"], shuffled["total"]);
    let words = ["flat_one", "shuffled", "--key", "line,id"];
    assert_agree(&diff(&lab, &words), &folders);
}

#[test]
fn a_key_that_does_not_tell_rows_apart_is_said() {
    let lab = lab();
    let said =
        |how: &[&str]| lab.run(&[&["diff", "flat_one", "flat_two"], how].concat()).expect(0).said();
    let line = said(&["--key", "line"]);
    assert!(line.contains("keys occur more than once on a side: their rows"), "{line}");
    for how in [&["--key", "id,line"][..], &["--keyless"]] {
        assert!(!said(how).contains("more than once"), "{}", said(how));
    }
}

#[test]
fn tables_without_a_key_are_compared_as_multisets() {
    let lab = lab();
    let expected = expected(&lab, "flat_one", "shuffled");
    for words in [["flat_one", "shuffled"], ["one", "two"]] {
        let found = diff(&lab, &[&words[..], &["--keyless"]].concat());
        let total = &found["total"];
        let alone = serde_json::json!([total["only_production"], total["only_candidate"]]);
        assert_eq!(alone, expected["keyless"]);
        assert_eq!(total["changed"], 0);
    }
    let same = diff(&lab, &["flat_two", "shuffled", "--keyless"]);
    assert_eq!(same["is_equal"], true);
}

#[test]
fn tolerances_make_small_changes_equal() {
    let lab = lab();
    let exact = diff(&lab, &["one", "two", "--key", "id,line"]);
    let words =
        ["one", "two", "--key", "id,line", "--absolute", "amount=1.25", "--truncate", "seen=day"];
    let tolerant = diff(&lab, &words);
    let values = |diff: &Value, column: &str| {
        diff["total"]["columns"][column]["changed"].as_u64().unwrap_or(0)
    };
    let amount = &exact["total"]["columns"]["amount"];
    assert_eq!(values(&tolerant, "amount"), amount["null_only_candidate"].as_u64().unwrap());
    assert!(values(&tolerant, "seen") < values(&exact, "seen") && values(&tolerant, "seen") > 0);
    assert_eq!(values(&tolerant, "price"), values(&exact, "price"));
}

#[test]
fn versions_and_runs_are_compared_without_a_check_and_equal_partitions_unread() {
    let (lab, plan) = Lab::approved();
    let dataset = ["--dataset", "lake/sales"];
    let run = diff(&lab, &["lake/sales@1", &plan, dataset[0], dataset[1]]);
    assert!(run["total"]["changed"].as_u64().unwrap() > 0);
    lab.run_as(OWNER, &["publish", &plan, dataset[0], dataset[1]]).expect(0);
    let versions = diff(&lab, &["lake/sales@1", "lake/sales@2", "--key", "id"]);
    assert_eq!(versions["total"]["changed"], run["total"]["changed"]);
    let same = diff(&lab, &["lake/sales@2", &plan, dataset[0], dataset[1]]);
    assert_eq!(same["is_equal"], true);
    assert_eq!(same["skipped"], same["partitions"].as_object().unwrap().len());
}

#[test]
fn what_cannot_be_compared_is_said_plainly() {
    let lab = lab();
    let refused = |words: &[&str], needle: &str| {
        let said = lab.run(&[&["diff"], words].concat()).expect(2).said();
        assert!(said.contains(needle), "{said}");
    };
    refused(&["one", "two"], "--keyless");
    refused(&["one", "two", "--key", "id,nowhere"], "nowhere");
    refused(&["one", "empty", "--key", "id"], "no Parquet file");
    refused(
        &["one", "two", "--key", "id,line", "--absolute", "status=1"],
        "tolerances are for numbers",
    );
    refused(&["one", "two", "--key", "id,line", "--truncate", "seen=year"], "millisecond");
    refused(&["one", "two", "--key", "id,line", "--partition", "m9"], "m9");
}
