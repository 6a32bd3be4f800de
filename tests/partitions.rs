//! Partitions of other lengths and places: hours, months, a column inside the files, an empty
//! dataset.

use std::fs;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray};
use chrono::{TimeZone as _, Utc};

use crate::common::{Lab, MAKER, OWNER, write};

/// Readings every ten minutes around the end of summer time in New York, as instants.
fn readings() -> RecordBatch {
    let start = Utc.with_ymd_and_hms(2013, 11, 3, 4, 0, 0).unwrap().timestamp_micros();
    let at: Vec<i64> = (0..30).map(|n| start + n * 600_000_000).collect();
    RecordBatch::try_from_iter([
        ("at", Arc::new(TimestampMicrosecondArray::from(at).with_timezone("UTC")) as ArrayRef),
        ("value", Arc::new(Int64Array::from_iter_values(0..30))),
    ])
    .unwrap()
}

fn spec(every: &str, zone: &str, first: &str, last: &str) -> String {
    format!(
        r#"[dataset]
url       = "lake/readings"
partition = {{ column = "at", every = "{every}", timezone = "{zone}" }}
key       = ["at"]

[range]
first = "{first}"
last  = "{last}"

[change]
reason  = "first load"
owner   = "lab"
columns = ["value"]

[transform]
sql = "readings.sql"

[sources.raw]
url      = "lake/raw"
interval = "at"

[expect]
added_rows = {{ min = 0 }}
"#
    )
}

fn empty_dataset(every: &str, zone: &str) -> Lab {
    let lab = Lab::empty();
    write(&lab.path("lake/raw/all.parquet"), &readings());
    let schema = "[[columns]]\nname = \"at\"\ntype = 'Timestamp(µs, \"UTC\")'\nnullable = false\n\n[[columns]]\nname = \"value\"\ntype = \"Int64\"\nnullable = true\n";
    fs::write(lab.path("schema.toml"), schema).unwrap();
    fs::write(
        lab.path("readings.sql"),
        "SELECT at, value FROM raw WHERE at >= $start AND at < $end\n",
    )
    .unwrap();
    let words = [
        "init",
        "lake/readings",
        "--schema",
        "schema.toml",
        "--partition",
        "at",
        "--every",
        every,
        "--timezone",
        zone,
    ];
    lab.run_as(OWNER, &words).expect(0);
    lab
}

/// Plans, runs, checks, approves and publishes; gives each partition's rows.
fn publish(lab: &Lab, spec: &str) -> Vec<(String, u64)> {
    fs::write(lab.path("spec.toml"), spec).unwrap();
    let plan = lab.plan("spec.toml");
    let with = ["--dataset", "lake/readings"];
    for (actor, verb) in [(MAKER, "run"), (MAKER, "check"), (OWNER, "approve"), (MAKER, "publish")]
    {
        lab.run_as(actor, &[verb, &plan, with[0], with[1]]).expect(0);
    }
    let files = lab.run(&["files", "lake/readings", "--json"]).expect(0).json();
    let each = files["files"].as_array().unwrap().iter();
    each.map(|file| {
        (file["partition"].as_str().unwrap().to_owned(), file["rows"].as_u64().unwrap())
    })
    .collect()
}

#[test]
fn hours_of_the_doubled_hour_are_two_partitions_with_their_own_rows() {
    let lab = empty_dataset("hour", "America/New_York");
    let spec = spec("hour", "America/New_York", "2013-11-03T00-0400", "2013-11-03T02-0500");
    let rows = publish(&lab, &spec);
    let expected =
        ["2013-11-03T00-0400", "2013-11-03T01-0400", "2013-11-03T01-0500", "2013-11-03T02-0500"];
    assert_eq!(rows, expected.map(|name| (name.to_owned(), 6)));
}

#[test]
fn a_local_day_of_instants_and_a_month_have_exactly_their_rows() {
    let lab = empty_dataset("day", "America/New_York");
    let rows = publish(&lab, &spec("day", "America/New_York", "2013-11-02", "2013-11-03"));
    // The day before has no reading: it is empty, and has no file.
    assert_eq!(rows, [("2013-11-03".to_owned(), 30)]);
    let lab = empty_dataset("month", "UTC");
    assert_eq!(
        publish(&lab, &spec("month", "UTC", "2013-11", "2013-11")),
        [("2013-11".to_owned(), 30)]
    );
}

#[test]
fn a_row_outside_its_interval_is_refused_where_the_column_is_in_the_file() {
    let lab = empty_dataset("day", "UTC");
    fs::write(lab.path("readings.sql"), "SELECT at + INTERVAL '1 day' AS at, value FROM raw\n")
        .unwrap();
    fs::write(lab.path("spec.toml"), spec("day", "UTC", "2013-11-03", "2013-11-03")).unwrap();
    let plan = lab.plan("spec.toml");
    let run = lab.run(&["run", &plan, "--dataset", "lake/readings"]).expect(3);
    assert!(
        run.stdout.contains("interval in 2013-11-03") && run.stdout.contains("30 rows"),
        "{}",
        run.stdout
    );
}

#[test]
fn folders_of_days_feed_weeks_and_months_and_coarser_ones_are_refused() {
    let lab = Lab::ten_days();
    let schema = "[[columns]]\nname = \"week\"\ntype = \"Date32\"\nnullable = false\n\n[[columns]]\nname = \"id\"\ntype = \"Int64\"\nnullable = false\n";
    fs::write(lab.path("schema.toml"), schema).unwrap();
    let init = |every: &str, more: &[&str]| {
        let url = format!("lake/{every}ly");
        let words = [
            "init",
            &url,
            "--schema",
            "schema.toml",
            "--partition",
            "week",
            "--every",
            every,
            "--timezone",
            "UTC",
        ];
        lab.run_as(OWNER, &[&words[..], more].concat()).expect(0);
    };
    init("week", &["--week-start", "monday"]);
    fs::write(lab.path("ids.sql"), "SELECT CAST($start AS DATE) AS week, id FROM orders\n")
        .unwrap();
    let spec = |every: &str, week_start: &str, first: &str, source: &str| {
        format!(
            "[dataset]\nurl = \"lake/{every}ly\"\npartition = {{ column = \"week\", every = \"{every}\", timezone = \"UTC\"{week_start} }}\nkey = [\"id\"]\n\
             [range]\nfirst = \"{first}\"\nlast = \"{first}\"\n[change]\nreason = \"first load\"\nowner = \"lab\"\ncolumns = [\"week\"]\n\
             [transform]\nsql = \"ids.sql\"\n[sources.orders]\nurl = \"{source}\"\ninterval = \"day\"\n"
        )
    };
    let monday = ", week_start = \"monday\"";
    fs::write(lab.path("spec.toml"), spec("week", monday, "2024-03-04", "lake/orders")).unwrap();
    // Days 4 to 10 of ten: 1,060 to 1,180 rows.
    let dry = lab.run(&["plan", "spec.toml", "--json"]).expect(0).json();
    assert_eq!(dry["total_estimated_rows"], (1_060..=1_180).step_by(20).sum::<u64>());
    let tried =
        lab.run(&["try", "spec.toml", "--partition", "2024-03-04", "--json"]).expect(0).json();
    assert_eq!(tried["metrics"]["rows"], 7_840);
    // Folders of months cannot be cut into weeks.
    fs::create_dir_all(lab.path("lake/months/day=2024-03")).unwrap();
    fs::copy(
        lab.path("lake/orders/day=2024-03-01/orders.parquet"),
        lab.path("lake/months/day=2024-03/a.parquet"),
    )
    .unwrap();
    fs::write(lab.path("spec.toml"), spec("week", monday, "2024-03-04", "lake/months")).unwrap();
    let refused = lab.run(&["plan", "spec.toml"]).expect(2).stderr;
    assert!(refused.contains("a folder cannot be cut"), "{refused}");
    // A dataset that is there already is not made over with other options.
    let words = [
        "init",
        "lake/weekly",
        "--schema",
        "schema.toml",
        "--partition",
        "week",
        "--timezone",
        "UTC",
    ];
    assert!(
        lab.run_as(OWNER, &words)
            .expect(2)
            .stderr
            .contains("partitioned otherwise: every week from Mon")
    );
}

#[test]
fn source_rows_without_a_time_are_told() {
    let lab = empty_dataset("day", "UTC");
    let at: ArrayRef = Arc::new(
        TimestampMicrosecondArray::from(vec![None, Some(1_383_480_000_000_000), None])
            .with_timezone("UTC"),
    );
    let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let batch =
        RecordBatch::try_from_iter_with_nullable([("at", at, true), ("value", values, false)])
            .unwrap();
    write(&lab.path("lake/raw/all.parquet"), &batch);
    fs::write(lab.path("spec.toml"), spec("day", "UTC", "2013-11-03", "2013-11-03")).unwrap();
    let dry = lab.run(&["plan", "spec.toml"]).expect(0);
    assert!(dry.stdout.contains("raw has 2 rows without a time"), "{}", dry.stdout);
}

#[test]
fn a_reissue_dataset_as_a_source_is_read_through_its_version() {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    lab.adopt("lake/orders", "day", "UTC").expect(0);
    // A file that joins the folder later is in no version, so it is no input.
    fs::copy(
        lab.path("lake/orders/day=2024-03-02/orders.parquet"),
        lab.path("lake/orders/day=2024-03-01/late.parquet"),
    )
    .unwrap();
    let dry = lab.run(&["plan", "specs/sales.toml", "--json"]).expect(0).json();
    assert_eq!(dry["pins"]["orders"]["version"], 1);
    assert_eq!(dry["total_estimated_rows"], 10_900);
}
