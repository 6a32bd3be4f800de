//! Bounds on numbers of partitions, batches and the range; samples reconciled with a source; profiles.

use std::fs;

use serde_json::Value;

use crate::common::Lab;

const DATASET: [&str; 2] = ["--dataset", "lake/sales"];

/// Five of the ten days; the five before are history.
fn lab() -> Lab {
    let lab = Lab::ten_days();
    lab.edit("specs/sales.toml", "2024-03-01", "2024-03-06");
    lab.edit(
        "specs/sales.toml",
        "columns = [\"amount\"]",
        "columns = [\"amount\", \"rate\", \"kind\"]",
    );
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    lab
}

/// The columns of the transform, where those of one day are others, and a condition.
fn sql(column: &str, odd: &str, condition: &str) -> String {
    let each = ["kind", "rate", "amount"].map(|name| {
        if name == column {
            format!("CASE WHEN day = DATE '2024-03-07' THEN {odd} ELSE {name} END AS {name}")
        } else {
            name.to_owned()
        }
    });
    format!("SELECT day, id, {} FROM orders WHERE {condition}\n", each.join(", "))
}

fn plan(lab: &Lab, sql: &str, checks: &str) -> String {
    fs::write(lab.path("specs/sales.sql"), sql).unwrap();
    let spec = fs::read_to_string(lab.path("specs/sales.toml")).unwrap();
    let spec = spec.split("[expect]").next().unwrap();
    let expect = "[expect]\nremoved_rows = { max_fraction = 0.5 }\n";
    fs::write(lab.path("specs/sales.toml"), format!("{spec}{expect}{checks}")).unwrap();
    lab.plan("specs/sales.toml")
}

fn report(lab: &Lab, sql: &str, checks: &str) -> Value {
    let plan = plan(lab, sql, checks);
    let words = |verb| [verb, plan.as_str(), DATASET[0], DATASET[1], "--json"];
    lab.run(&words("run")).expect(0);
    lab.run(&words("check")).json()
}

/// The findings of a check, by verdict.
fn findings(report: &Value, check: &str, basis: &str, verdict: &str) -> Vec<Value> {
    let all = report["findings"].as_array().unwrap_or_else(|| panic!("{report}"));
    let is_it =
        |one: &&Value| one["check"] == check && one["basis"] == basis && one["verdict"] == verdict;
    all.iter().filter(is_it).cloned().collect()
}

/// A bound with a transform that breaks it, on what it rests, where it breaks, and what is seen.
type Broken = (&'static str, String, &'static str, &'static str, &'static str);

fn broken_rows() -> Vec<Broken> {
    let dropped = sql("", "", "NOT (day = DATE '2024-03-07' AND id % 10 = 3)");
    vec![
        ("of = \"rows\", to = \"plan\", within = 0", dropped.clone(), "plan", "2024-03-07", "1008"),
        (
            "of = \"rows\", to = \"production\", within = 0.01, per = \"batch\"",
            dropped.clone(),
            "production",
            "batch 1",
            "2108",
        ),
        ("of = \"rows\", min = 5700, per = \"range\"", dropped, "declared", "range", "5588"),
        (
            "of = \"rows\", to = \"history\", within = 0.2, history = 3",
            sql("", "", "NOT (day = DATE '2024-03-07' AND id % 3 > 0)"),
            "history",
            "2024-03-07",
            "374",
        ),
    ]
}

fn broken_columns() -> Vec<Broken> {
    let fewer_kinds = sql("kind", "nullif(kind, 'kind 3')", "true");
    let more_kinds = sql("kind", "kind || (id % 2)", "true");
    vec![
        (
            "of = \"sum rate\", to = \"production\", within = 0.01",
            sql("rate", "rate * 1.02", "true"),
            "production",
            "2024-03-07",
            "",
        ),
        (
            "of = \"mean rate\", to = \"history\", within = 0.05",
            sql("rate", "rate * 1.2", "true"),
            "history",
            "2024-03-07",
            "",
        ),
        (
            "of = \"null-rate kind\", to = \"history\", within = 0.02",
            fewer_kinds.clone(),
            "history",
            "2024-03-07",
            "",
        ),
        (
            "of = \"null-rate kind\", to = \"production\", within = 0.001, per = \"range\"",
            fewer_kinds,
            "production",
            "range",
            "",
        ),
        (
            "of = \"min rate\", min = 0",
            sql("rate", "rate - 1", "true"),
            "declared",
            "2024-03-07",
            "-1",
        ),
        (
            "of = \"max rate\", max = 14.2",
            sql("rate", "rate + 1", "true"),
            "declared",
            "2024-03-07",
            "15.14",
        ),
        (
            "of = \"distinct kind\", min = 5, max = 5",
            more_kinds.clone(),
            "declared",
            "2024-03-07",
            "about 10",
        ),
        (
            "of = \"distinct kind\", to = \"history\", within = 0.1",
            more_kinds,
            "history",
            "2024-03-07",
            "about 10",
        ),
    ]
}

#[test]
fn bounds_hold_for_partitions_batches_and_the_range_against_what_they_name() {
    let lab = lab();
    let good = sql("", "", "true");
    let place = |one: &Value| match (&one["partition"], &one["batch"]) {
        (Value::String(name), _) => name.clone(),
        (_, Value::Number(batch)) => format!("batch {batch}"),
        _ => "range".to_owned(),
    };
    for (bound, bad, basis, where_, observed) in broken_rows().into_iter().chain(broken_columns()) {
        let bad = &bad;
        let check = bound.split('"').nth(1).unwrap().split(' ').next().unwrap();
        let declared = format!("[checks]\nbound = [{{ {bound} }}]\n");
        let right = report(&lab, &good, &declared);
        assert_eq!(findings(&right, check, basis, "fail"), Vec::<Value>::new(), "{bound}");
        assert!(!findings(&right, check, basis, "pass").is_empty(), "{bound}: {right}");
        let wrong = findings(&report(&lab, bad, &declared), check, basis, "fail");
        assert_eq!(wrong.iter().map(place).collect::<Vec<_>>(), [where_], "{bound}: {wrong:?}");
        assert!(wrong[0]["observed"].as_str().unwrap().starts_with(observed), "{bound}: {wrong:?}");
        assert!(wrong[0]["bound"].is_string(), "{wrong:?}");
        let soft = declared.replace(" }]", ", severity = \"warn\" }]");
        let soft = report(&lab, bad, &soft);
        assert_eq!(findings(&soft, check, basis, "fail"), Vec::<Value>::new(), "{bound}");
        assert_eq!(findings(&soft, check, basis, "warn").len(), 1, "{bound}");
    }
}

#[test]
fn bounds_and_warnings_that_mean_nothing_are_refused() {
    let lab = lab();
    for (checks, needle) in [
        ("bound = [{ of = \"rows\" }]", "nothing is bounded"),
        ("bound = [{ of = \"rows\", to = \"production\" }]", "belong together"),
        ("bound = [{ of = \"sum rate\", to = \"plan\", within = 0.1 }]", "the plan expects rows"),
        ("bound = [{ of = \"rows\", min = 2, max = 1 }]", "greater"),
        ("bound = [{ of = \"median rate\", min = 2 }]", "null-rate COLUMN"),
        ("bound = [{ of = \"sum nowhere\", min = 2 }]", "nowhere"),
        (
            "bound = [{ of = \"distinct kind\", to = \"history\", within = 0.1, per = \"range\" }]",
            "cannot be added up",
        ),
        ("warn = [\"unique-key\"]", "no declared check"),
        ("bound = [{ of = \"sum kind\", min = 2 }]", "no number"),
        ("bound = [{ of = \"rows\", min = nan }]", "no number"),
        ("rules.violations = [{ name = \"unique-key\", sql = \"select 1\" }]", "always runs"),
        ("profile = [\"nowhere\"]", "nowhere"),
        ("sample = { source = \"nobody\", key = { id = \"id\" }, expect = \"true\" }", "nobody"),
        (
            "sample = { source = \"orders\", key = { id = \"nowhere\" }, expect = \"true\" }",
            "nowhere",
        ),
        ("sample = { source = \"orders\", key = {}, expect = \"true\" }", "names no column"),
        (
            "sample = { source = \"orders\", key = { id = \"id\" }, expect = \"candidate.lost = 1\" }",
            "lost",
        ),
        (
            "sample = { source = \"orders\", key = { id = \"id\" }, expect = \"1\" }",
            "neither true nor false",
        ),
        ("rules = { contains = { nobody = { id = \"id\" } } }", "nobody"),
    ] {
        let spec = fs::read_to_string(lab.path("specs/sales.toml")).unwrap();
        let spec = spec.split("[checks]").next().unwrap();
        fs::write(lab.path("specs/sales.toml"), format!("{spec}[checks]\n{checks}\n")).unwrap();
        let said = lab.run(&["plan", "specs/sales.toml"]).expect(2).said();
        assert!(said.contains(needle), "{checks}: {said}");
    }
}

#[test]
fn a_declared_check_may_only_warn() {
    let lab = lab();
    let checks = "[checks]\nrows = { max = 10 }\ndomain = { kind = [\"kind 1\"] }\nrange = { rate = { max = 1 } }\n";
    let good = sql("", "", "true");
    let plan = plan(&lab, &good, checks);
    lab.run(&["run", &plan, DATASET[0], DATASET[1]]).expect(3);
    let soft = format!("{checks}warn = [\"rows\", \"domain kind\", \"range\"]\n");
    let report = report(&lab, &good, &soft);
    assert_eq!(report["verdict"], "warn");
    for check in ["rows", "domain", "range"] {
        assert_eq!(findings(&report, check, "declared", "warn").len(), 5, "{check}");
    }
}

#[test]
fn a_sample_is_reconciled_with_its_source_and_is_the_same_each_time() {
    let lab = lab();
    let sample = |seed: u32| {
        format!(
            "[checks.sample]\nsource = \"orders\"\nkey = {{ id = \"id\" }}\nrows = 20\nby = [\"kind\"]\nseed = {seed}\n\
             expect = \"candidate.amount = source.amount AND candidate.rate = source.rate\"\n"
        )
    };
    let right = report(&lab, &sql("", "", "true"), &sample(1));
    let all = findings(&right, "sample", "sources", "pass");
    // Five kinds and null.
    assert!(
        all.len() == 5 && all.iter().all(|one| one["observed"] == "true of all 120 rows"),
        "{all:?}"
    );
    let bad = sql("rate", "CASE WHEN id % 2 = 0 THEN rate + 1 ELSE rate END", "true");
    let told = |seed| {
        let wrong = findings(&report(&lab, &bad, &sample(seed)), "sample", "sources", "fail");
        assert_eq!(wrong.len(), 1);
        assert_eq!(wrong[0]["partition"], "2024-03-07");
        wrong[0]["observed"].as_str().unwrap().to_owned()
    };
    let first = told(1);
    assert!(
        first.starts_with("of 120 rows 0 not in the source and ") && first.contains("id=6"),
        "{first}"
    );
    let wrong: u64 = first.split(' ').nth(9).unwrap().parse().unwrap();
    assert!((30..=90).contains(&wrong), "{first}");
    assert_eq!(told(1), first);
    assert_ne!(told(2), first);
    // Rows that the source does not have.
    let spec = sample(1)
        .replace("id = \"id\"", "amount = \"id\"")
        .replace("candidate.amount = source.amount AND", "");
    let lost = findings(&report(&lab, &sql("", "", "true"), &spec), "sample", "sources", "fail");
    assert_eq!(lost.len(), 5);
    assert!(lost[0]["observed"].as_str().unwrap().contains("is not in the source"), "{lost:?}");
}

#[test]
fn every_row_of_a_source_must_be_in_the_candidate_where_that_is_declared() {
    let lab = lab();
    let rule = "[checks.rules.contains]\norders = { id = \"id\" }\n";
    let right = report(&lab, &sql("", "", "true"), rule);
    assert_eq!(findings(&right, "contains orders", "declared", "pass").len(), 5);
    let dropped = report(&lab, &sql("", "", "id <> 60007"), rule);
    let wrong = findings(&dropped, "contains orders", "declared", "fail");
    assert_eq!(wrong.len(), 1);
    assert_eq!(
        (&wrong[0]["partition"], &wrong[0]["observed"]),
        (&"2024-03-07".into(), &"1, such as id=60007".into())
    );
}

#[test]
fn profiles_are_measured_on_request_on_both_sides() {
    let lab = lab();
    let spec = "[checks]\nprofile = [\"kind\", \"rate\"]\n";
    let found = report(&lab, &sql("kind", "'other'", "true"), spec);
    let kind = |side: &Value| side["metrics"]["columns"]["kind"]["profile"]["top"].clone();
    let day = &found["partitions"]["2024-03-07"];
    assert_eq!(kind(day), serde_json::json!([["other", 1120]]));
    assert_eq!(kind(&day["base"]).as_array().unwrap().len(), 5);
    assert!(day["metrics"]["columns"]["amount"].get("profile").is_none());
    assert_eq!(findings(&found, "writer-agrees", "writer", "fail"), Vec::<Value>::new());
    let plan = plan(&lab, &sql("kind", "'other'", "true"), spec);
    let said = lab.run(&["check", &plan, DATASET[0], DATASET[1]]).stdout;
    let line = |side: &str| {
        said.lines().find(|line| line.trim_start().starts_with(&format!("kind    {side}"))).unwrap()
    };
    assert!(
        line("candidate").contains("about 6") && line("candidate").contains("other (1,120)"),
        "{said}"
    );
    assert!(line("production").contains("about 5"), "{said}");
}

#[test]
fn a_declared_check_of_a_built_in_name_weakens_nothing_that_always_runs() {
    let lab = lab();
    // A column's own bound may be called as a check that always runs is; it is not that check.
    let checks = "[checks]\nnull_rate = { kind = { max = 0 } }\nwarn = [\"null-rate\"]\n";
    let doubled = "SELECT day, id, kind, rate, amount FROM (SELECT * FROM orders UNION ALL SELECT * FROM orders WHERE id = 60007) WHERE day >= $start AND day < $end\n";
    let plan = plan(&lab, doubled, checks);
    let said = lab.run(&["run", &plan, DATASET[0], DATASET[1]]).expect(3).said();
    assert!(said.contains("unique-key in 2024-03-07"), "{said}");
}

#[test]
fn a_number_that_is_not_there_is_not_within_bounds_and_means_are_of_numbers() {
    let lab = lab();
    let none = sql("rate", "nullif(rate, rate)", "true");
    let bound = "[checks]\nbound = [{ of = \"max rate\", min = 0 }, { of = \"mean rate\", min = 0, max = 20 }]\n";
    let found = report(&lab, &none, bound);
    for check in ["max", "mean"] {
        let wrong = findings(&found, check, "declared", "fail");
        assert_eq!(wrong.len(), 1, "{check}: {wrong:?}");
        assert_eq!(wrong[0]["observed"], "no number");
    }
    // Half of a day is no number: the mean of the others is what it was.
    let strange =
        sql("rate", "CASE WHEN id % 2 = 0 THEN arrow_cast('NaN', 'Float64') ELSE 4.0 END", "true");
    let found = report(&lab, &strange, "[checks]\nbound = [{ of = \"mean rate\", min = 3.9 }]\n");
    let means = findings(&found, "mean", "declared", "pass");
    let day = means.iter().find(|one| one["partition"] == "2024-03-07").unwrap();
    assert_eq!(day["observed"], "4");
    // What is no number lies within no bounds.
    let found = report(&lab, &strange, "[checks]\nbound = [{ of = \"max rate\", max = 100 }]\n");
    assert_eq!(findings(&found, "max", "declared", "fail").len(), 1);
}

#[test]
fn history_is_the_middle_of_what_was_and_sums_are_compared_digit_by_digit() {
    let lab = lab();
    let good = sql("", "", "true");
    let two = "[checks]\nbound = [{ of = \"rows\", to = \"history\", within = 1, history = 2 }]\n";
    let found = findings(&report(&lab, &good, two), "rows", "history", "pass");
    // Before 2024-03-06 there are days of 1,060 and 1,080 rows.
    assert!(found[0]["expected"].as_str().unwrap().contains("1070"), "{found:?}");
    let exact = "[checks]\nbound = [{ of = \"sum amount\", to = \"production\", within = 0 }]\n";
    assert_eq!(findings(&report(&lab, &good, exact), "sum", "production", "fail").len(), 5);
}

#[test]
fn what_is_about_the_whole_run_is_refused_where_batches_are_published_one_by_one() {
    let lab = lab();
    for (whole, needle) in [
        ("[expect.net_change.amount]\nmax = 1\n", "net_change is about the whole run"),
        ("[[checks.bound]]\nof = \"rows\"\nmin = 1\nper = \"range\"\n", "about the whole run"),
    ] {
        let spec = fs::read_to_string(lab.path("specs/sales.toml")).unwrap();
        let spec = spec.split("[publish]").next().unwrap();
        let spec = format!("{spec}[publish]\nunit = \"batch\"\n{whole}");
        fs::write(lab.path("specs/sales.toml"), spec).unwrap();
        let said = lab.run(&["plan", "specs/sales.toml"]).expect(2).said();
        assert!(said.contains(needle), "{said}");
    }
}

#[test]
fn different_values_of_several_partitions_are_compared_as_those_of_all_together() {
    let lab = lab();
    // Every day has its own ids; a candidate whose days had all the same would have a fifth of them.
    let bound = "[checks]\nbound = [{ of = \"distinct id\", to = \"production\", within = 0.1, per = \"range\" }]\n";
    let found = report(&lab, &sql("", "", "true"), bound);
    let found = findings(&found, "distinct", "production", "pass");
    assert_eq!(found.len(), 1);
    let observed: f64 =
        found[0]["observed"].as_str().unwrap().trim_start_matches("about ").parse().unwrap();
    assert!((5_300.0..6_100.0).contains(&observed), "{found:?}");
}
