//! Traps in the engines below us, each with the right behaviour. Those that need no program are
//! tested beside their code: P2 (caches that trust size and time), P16 and P17 (statistics that lie,
//! NaN) in `query`; P21 (sums that wrap) in `metrics`; P41 (a retried commit) in `dataset`.

use std::fs;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use parquet::data_type::{Int96, Int96Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::common::{Lab, write};

const DATASET: [&str; 2] = ["--dataset", "lake/sales"];

/// P36: a query that fails late leaves nothing that anything would believe.
#[test]
fn a_query_that_fails_at_its_last_rows_leaves_no_file_and_no_record() {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    lab.edit(
        "specs/sales.sql",
        "rate, amount FROM",
        "rate / 0 * CAST(100 / (id - 10999) AS DOUBLE) AS rate, amount FROM",
    );
    lab.edit("specs/sales.toml", "[sources.orders]", "[checks.rows]\nmin = 1\n\n[sources.orders]");
    let plan = lab.plan("specs/sales.toml");
    let run = lab.run(&["run", &plan, DATASET[0], DATASET[1], "--json"]).expect(3).json();
    assert_eq!(run["failed"][0]["partition"], "2024-03-02");
    assert!(
        run["failed"][0]["causes"][0].as_str().unwrap().to_lowercase().contains("divide by zero"),
        "{run}"
    );
    let failed_attempt = run["failed"][0]["attempt"].as_str().unwrap();
    let data = lab.hashes("lake/sales.reissue/data");
    assert!(data.keys().all(|path| !path.contains(failed_attempt)), "no file of the attempt");
}

/// P6: rows without a partition value are refused by name, never merged into another partition.
#[test]
fn rows_without_a_partition_value_are_a_finding_with_their_number() {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    lab.edit(
        "specs/sales.sql",
        "SELECT day, id",
        "SELECT CASE WHEN id % 100 = 0 THEN NULL ELSE day END AS day, id",
    );
    let plan = lab.plan("specs/sales.toml");
    let run = lab.run(&["run", &plan, DATASET[0], DATASET[1], "--json"]).expect(3).json();
    let finding = &run["failed"][0]["findings"][0];
    assert_eq!(finding["check"], "interval");
    assert!(finding["observed"].as_str().unwrap().contains("10 rows, such as null"), "{finding}");
}

/// P57: on a column of instants, `$start` of a date column is refused; `$start_at` is the day.
#[test]
fn the_short_day_of_new_york_is_exactly_its_own_rows() {
    let lab = Lab::flights();
    lab.adopt("lake/on_time", "flight_date", "America/New_York").expect(0);
    let sql = fs::read_to_string(lab.path("sql/on_time.sql")).unwrap();
    let by = |condition: &str| {
        sql.replace("flights.flight_date >= $start\n  AND flights.flight_date < $end", condition)
    };
    let spec = fs::read_to_string(lab.path("specs/on_time.toml")).unwrap();
    fs::write(
        lab.path("specs/on_time.toml"),
        spec.replace("url      = \"../lake/flights\"\ninterval = \"flight_date\"", "url      = \"../lake/flights\"\ninterval = \"flight_date\"\nlookback = \"1 day\"\nlookahead = \"1 day\""),
    )
    .unwrap();
    let trial = ["try", "specs/on_time.toml", "--partition", "2013-03-10", "--json"];
    fs::write(
        lab.path("sql/on_time.sql"),
        by("flights.time_hour >= $start AND flights.time_hour < $end"),
    )
    .unwrap();
    assert!(lab.run(&trial).expect(2).stdout.contains("compares flights.time_hour"));
    fs::write(
        lab.path("sql/on_time.sql"),
        by("flights.time_hour >= $start_at AND flights.time_hour < $end_at"),
    )
    .unwrap();
    let tried = lab.run(&trial).expect(0).json();
    assert_eq!(tried["metrics"]["rows"], 908);
}

/// P12: INT96 timestamps outside of what nanoseconds hold are read right.
#[test]
fn int96_timestamps_of_any_year_are_read_right() {
    let lab = Lab::ten_days();
    for day in 1..=2 {
        // Julian days of 9999-12-31 and 0001-01-01, at midnight.
        for (name, julian) in [("a", 5_373_484_u32), ("b", 1_721_426)] {
            let folder = lab.path(&format!("lake/old/day=2024-03-0{day}"));
            fs::create_dir_all(&folder).unwrap();
            let schema = Arc::new(parse_message_type("message m { REQUIRED INT96 at; }").unwrap());
            let file = fs::File::create(folder.join(format!("{name}.parquet"))).unwrap();
            let properties = Arc::new(WriterProperties::builder().build());
            let mut writer = SerializedFileWriter::new(file, schema, properties).unwrap();
            let mut group = writer.next_row_group().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            let mut value = Int96::new();
            value.set_data(0, 0, julian);
            column.typed::<Int96Type>().write_batch(&[value], None, None).unwrap();
            column.close().unwrap();
            group.close().unwrap();
            writer.close().unwrap();
        }
    }
    lab.adopt("lake/old", "day", "UTC").expect(0);
    let query = "SELECT CAST(min(at) AS VARCHAR) AS low, CAST(max(at) AS VARCHAR) AS high FROM old";
    let rows = lab.run(&["query", query, "--dataset", "lake/old", "--json"]).expect(0).json();
    assert_eq!(rows["rows"][0]["low"], "0001-01-01T00:00:00");
    assert_eq!(rows["rows"][0]["high"], "9999-12-31T00:00:00");
}

/// P47: leftovers of a killed process are not data, and the next run removes them.
#[test]
fn unfinished_files_of_a_dead_process_are_never_data_and_are_swept() {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    let plan = lab.plan("specs/sales.toml");
    let left = lab.path("lake/sales.reissue/data/old/day=2024-03-01/.reissue-unfinished-1-0");
    fs::create_dir_all(left.parent().unwrap()).unwrap();
    fs::write(&left, "half a file").unwrap();
    let long_ago = std::time::SystemTime::UNIX_EPOCH;
    fs::File::options().write(true).open(&left).unwrap().set_modified(long_ago).unwrap();
    lab.run(&["run", &plan, DATASET[0], DATASET[1]]).expect(0);
    assert!(!left.exists());
}

/// P7: a column that changed its type in one file is a decision for a person.
#[test]
fn a_source_file_with_another_type_is_refused_by_name() {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
    write(&lab.path("lake/orders/day=2024-03-03/more.parquet"), &batch);
    let said = lab.run(&["plan", "specs/sales.toml"]).expect(2).stderr;
    assert!(said.contains("not one table") && said.contains("more.parquet"), "{said}");
}
