//! Bad input gets a clear error and loses nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::common::Lab;

const DATASET: [&str; 2] = ["--dataset", "lake/sales"];

fn adopted() -> Lab {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    lab
}

/// Plans and requires an error of a code that says some words.
#[track_caller]
fn plan_fails(lab: &Lab, code: i32, words: &[&str]) {
    let said = lab.run(&["plan", "specs/sales.toml"]).expect(code).said();
    for word in words {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
}

#[test]
fn broken_specs_show_file_line_and_fix() {
    let lab = adopted();
    let spec = fs::read_to_string(lab.path("specs/sales.toml")).unwrap();
    for (from, to, words) in [
        ("owner   =", "owner   ==", ["line", "owner"]),
        ("[transform]", "[transforms]", ["unknown key", "line"]),
        ("key       = [\"id\"]", "key       = [\"idd\"]", ["\"idd\"", "the columns are id"]),
        ("columns = [\"amount\"]", "columns = [\"amuont\"]", ["change.columns", "amuont"]),
        ("timezone = \"UTC\"", "timezone = \"Europe/Paris\"", ["Europe/Paris", "UTC"]),
        (
            "url      = \"../lake/orders\"",
            "url      = \"../lake/oders\"",
            ["no Parquet file", "oders"],
        ),
        ("sql = \"sales.sql\"", "sql = \"sale.sql\"", ["sale.sql", "hint"]),
    ] {
        fs::write(lab.path("specs/sales.toml"), spec.replace(from, to)).unwrap();
        plan_fails(&lab, 2, &words);
    }
}

#[test]
fn sql_that_writes_or_does_not_fit_is_refused_with_what_to_write() {
    let lab = adopted();
    for (sql, words) in [
        ("DELETE FROM orders", ["no query", "SELECT"]),
        ("SELECT day, id, kind, rate FROM orders", ["\"amount\"", "select it"]),
        ("SELECT id, kind, rate, amount FROM orders", ["\"day\"", "proves"]),
        ("SELECT day, id, kind, rate, amount, 1 AS x FROM orders", ["\"x\"", "does not have"]),
        (
            "SELECT day, id, kind, rate, CAST(amount AS DOUBLE) AS amount FROM orders",
            ["Float64", "arrow_cast"],
        ),
        ("SELECT day, id, kind, rate, amuont AS amount FROM orders", ["amuont", "because"]),
        (
            "SELECT day, id, kind, rate, amount FROM orders WHERE day >= $start_at",
            ["compares", "$start"],
        ),
        (
            "SELECT day, id, kind, rate, amount FROM orders WHERE now() > $start_at",
            ["now()", "$as_of"],
        ),
    ] {
        fs::write(lab.path("specs/sales.sql"), sql).unwrap();
        plan_fails(&lab, 2, &words);
    }
}

#[test]
fn missing_empty_and_truncated_sources_are_named() {
    let lab = adopted();
    let file = lab.path("lake/orders/day=2024-03-03/orders.parquet");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, "").unwrap();
    plan_fails(&lab, 6, &["2024-03-03", "empty (0 bytes)"]);
    fs::write(&file, &whole[..whole.len() - 100]).unwrap();
    plan_fails(&lab, 6, &["2024-03-03", "PAR1"]);
    fs::write(&file, b"not a Parquet file at all, but long enough").unwrap();
    plan_fails(&lab, 6, &["2024-03-03", "PAR1"]);
    fs::write(&file, &whole).unwrap();
    lab.run(&["plan", "specs/sales.toml"]).expect(0);
}

#[test]
fn a_source_changed_after_the_plan_fails_its_partition_as_stale() {
    let lab = adopted();
    let plan = lab.plan("specs/sales.toml");
    let file = lab.path("lake/orders/day=2024-03-03/orders.parquet");
    // The same bytes length and modification time, one byte other.
    let mut bytes = fs::read(&file).unwrap();
    let modified = fs::metadata(&file).unwrap().modified().unwrap();
    bytes[100] ^= 1;
    fs::write(&file, bytes).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
    let run = lab.run(&["run", &plan, DATASET[0], DATASET[1], "--json"]).expect(7).json();
    assert_eq!(run["failed"][0]["partition"], "2024-03-03");
    assert!(
        run["failed"][0]["error"].as_str().unwrap().contains("changed since it was pinned"),
        "{run}"
    );
}

#[test]
fn a_read_only_control_prefix_is_said_and_nothing_is_lost() {
    let lab = adopted();
    let plan = lab.plan("specs/sales.toml");
    let before = lab.hashes("lake");
    // The tests may run as root, whom modes do not stop: a file in the way stops everybody.
    fs::write(lab.path("lake/sales.reissue/data"), "in the way").unwrap();
    let run = lab.run(&["run", &plan, DATASET[0], DATASET[1]]);
    assert_ne!(run.code, 0);
    assert!(run.said().contains("cannot create the folder"), "{}", run.said());
    fs::remove_file(lab.path("lake/sales.reissue/data")).unwrap();
    lab.run(&["run", &plan, DATASET[0], DATASET[1]]).expect(0);
    let after = lab.hashes("lake");
    assert!(before.iter().all(|(path, hash)| after.get(path) == Some(hash)));
}

#[test]
fn a_root_that_cannot_be_listed_is_an_error_with_its_path() {
    let lab = Lab::ten_days();
    let folder = lab.path("lake/sales/day=2024-03-01");
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "a file where a folder was").unwrap();
    let refused = lab.adopt("lake/sales", "day", "UTC").expect(0).json();
    assert_eq!(refused["refused"][0]["path"], "day=2024-03-01");
    let mode = fs::metadata(lab.path("lake")).unwrap().permissions().mode();
    assert_ne!(mode, 0);
}

#[test]
fn a_full_disk_fails_the_run_as_exhausted_and_it_resumes() {
    let lab = adopted();
    let plan = lab.plan("specs/sales.toml");
    // A limit on the size of files is the disk that is full, for this process.
    let words = format!(
        "ulimit -f 4; trap '' XFSZ; exec {} run {plan} --dataset lake/sales --as a@example.com",
        crate::common::REISSUE
    );
    let output = std::process::Command::new("bash")
        .args(["-c", &words])
        .current_dir(lab.path("."))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(10), "{said}");
    lab.run(&["run", &plan, DATASET[0], DATASET[1]]).expect(0);
}

#[test]
fn a_plan_or_version_that_is_not_there_says_where_to_look() {
    let lab = adopted();
    assert!(
        lab.run(&["run", "abcdef", DATASET[0], DATASET[1]]).expect(2).stderr.contains("abcdef")
    );
    assert!(
        lab.run(&["files", "lake/sales", "--version", "9"])
            .expect(2)
            .stderr
            .contains("no version 9")
    );
    assert!(lab.run(&["log", "lake/nothing"]).expect(2).stderr.contains("reissue init"));
    assert!(lab.run(&["status"]).expect(2).stderr.contains("--dataset"));
}

#[test]
fn a_candidate_changed_after_it_was_checked_cannot_be_published() {
    let lab = adopted();
    let plan = lab.plan("specs/sales.toml");
    lab.run(&["run", &plan, DATASET[0], DATASET[1]]).expect(0);
    lab.run(&["check", &plan, DATASET[0], DATASET[1]]).expect(0);
    lab.run_as(crate::common::OWNER, &["approve", &plan, DATASET[0], DATASET[1]]).expect(0);
    let files = lab.hashes("lake/sales.reissue/data");
    let file = files.keys().next().unwrap();
    let mut bytes = fs::read(file).unwrap();
    let modified = fs::metadata(file).unwrap().modified().unwrap();
    bytes[50] ^= 1;
    fs::write(file, bytes).unwrap();
    fs::File::options().write(true).open(file).unwrap().set_modified(modified).unwrap();
    let refused = lab.run(&["publish", &plan, DATASET[0], DATASET[1]]).expect(6);
    assert!(refused.stderr.contains("other bytes"), "{}", refused.stderr);
    lab.run(&["check", &plan, DATASET[0], DATASET[1]]).expect(6);
}

#[test]
fn a_candidate_of_a_release_with_another_content_digest_is_refused_in_those_words() {
    let lab = adopted();
    let plan = lab.plan("specs/sales.toml");
    lab.run(&["run", &plan, DATASET[0], DATASET[1]]).expect(0);
    let records = lab.path("lake/sales.reissue/runs").join(&plan).join("records");
    for record in fs::read_dir(records).unwrap() {
        let record = record.unwrap().path();
        let text = fs::read_to_string(&record).unwrap();
        assert!(text.contains("\"d2:"), "{text}");
        fs::write(&record, text.replace("\"d2:", "\"d1:")).unwrap();
    }
    let said = lab.run(&["check", &plan, DATASET[0], DATASET[1]]).expect(3).said();
    assert!(said.contains("another release wrote this candidate; plan and run again"), "{said}");
}

#[test]
fn a_plan_of_a_release_with_other_rules_is_not_run() {
    let lab = adopted();
    let plan = lab.plan("specs/sales.toml");
    let plans = lab.path("lake/sales.reissue/plans");
    let text = fs::read(plans.join(format!("{plan}.json"))).unwrap();
    let mut older: reissue::plan::Plan = serde_json::from_slice(&text).unwrap();
    assert!(older.decides.rules.contains("content d2"), "{}", older.decides.rules);
    older.decides.rules.clear();
    older.id = reissue::identity::Digest::of_json(&older.decides).unwrap();
    let file = plans.join(format!("{}.json", older.id));
    fs::write(file, serde_json::to_vec(&older).unwrap()).unwrap();
    let said = lab.run(&["run", older.id.as_str(), DATASET[0], DATASET[1]]).expect(7).said();
    assert!(said.contains("another release of reissue made the plan"), "{said}");
    assert!(said.contains("plan again"), "{said}");
}
