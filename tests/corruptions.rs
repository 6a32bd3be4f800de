//! Fifty kinds of corruption, planted before anything is hashed or measured, on a spec that declares no
//! check at all: each is caught by a check of what the rows mean, in words that say where and what.

use std::fs;
use std::path::Path;

use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, RecordBatch};
use arrow::compute::concat_batches;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::{ParquetMetaDataReader, ParquetMetaDataWriter};
use parquet::file::statistics::Statistics;

use crate::common::{Lab, MAKER, write};

const DATASET: [&str; 2] = ["--dataset", "lake/sales"];

/// The day that is corrupted, the second of three.
const DAY: &str = "2024-03-03";

/// A corruption: what the SQL gives for a column instead, and what must be said of it.
struct Kind {
    name: &'static str,
    plant: Plant,
    said: &'static [&'static str],
}

enum Plant {
    /// Another expression for a column.
    Column(&'static str, &'static str),
    /// Another FROM and WHERE.
    Rows(&'static str),
    /// The source's files are changed before the plan.
    Source(fn(&Lab)),
}

use Plant::{Column, Rows, Source};

const WINDOW: &str = "orders WHERE day >= $start AND day < $end";

fn sql(plant: &Plant) -> String {
    let given = |column: &str| match plant {
        Column(name, sql) if *name == column => format!("{sql} AS {column}"),
        _ => column.to_owned(),
    };
    let from = match plant {
        Rows(from) => from,
        _ => WINDOW,
    };
    let columns = ["day", "id", "kind", "rate", "amount"].map(given).join(", ");
    format!("SELECT {columns} FROM {from}\n")
}

/// Plans, runs and checks; gives what the check says.
fn checked(kind: &Kind) -> String {
    let lab = Lab::ten_days();
    lab.edit("specs/sales.toml", "2024-03-01", "2024-03-02");
    lab.edit("specs/sales.toml", "2024-03-10", "2024-03-04");
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    if let Source(change) = kind.plant {
        change(&lab);
    }
    fs::write(lab.path("specs/sales.sql"), sql(&kind.plant)).unwrap();
    let plan = lab.plan("specs/sales.toml");
    let words = |verb| [verb, plan.as_str(), DATASET[0], DATASET[1]];
    // Some are found while rows are computed, which is as good.
    let run = lab.run_as(MAKER, &words("run")).said();
    let check = lab.run_as(MAKER, &words("check")).said();
    format!("{run}\n{check}")
}

fn assert_caught(kinds: &[Kind]) {
    for kind in kinds {
        let said = checked(kind);
        let missing: Vec<&&str> = kind.said.iter().filter(|word| !said.contains(**word)).collect();
        assert!(missing.is_empty(), "{}: {missing:?} not in\n{said}", kind.name);
    }
}

#[test]
fn rows_that_are_lost_doubled_or_moved_are_caught() {
    assert_caught(ROWS);
}

const ROWS: &[Kind] = &[
    Kind {
        name: "a row dropped",
        plant: Rows("orders WHERE day >= $start AND day < $end AND id <> 20007"),
        said: &["removed-rows", "row only in production", "2024-03-03"],
    },
    Kind {
        name: "a row doubled",
        plant: Rows(
            "(SELECT * FROM orders UNION ALL SELECT * FROM orders WHERE id = 20007) WHERE day >= $start AND day < $end",
        ),
        said: &["unique-key in 2024-03-03", "1 repeated keys in 2 rows, such as id=20007"],
    },
    Kind {
        name: "all rows doubled",
        plant: Rows(
            "(SELECT * FROM orders UNION ALL SELECT * FROM orders) WHERE day >= $start AND day < $end AND (id < 20500 OR id >= 30000)",
        ),
        said: &["unique-key in 2024-03-03", "500 repeated keys in 1000 rows"],
    },
    Kind {
        name: "rows of one kind dropped",
        plant: Rows(
            "orders WHERE day >= $start AND day < $end AND (kind <> 'kind 3' OR day <> DATE '2024-03-03')",
        ),
        said: &["expected-rows in 2024-03-03", "observed 712", "row only in production"],
    },
    Kind {
        name: "every tenth row dropped",
        plant: Rows("orders WHERE day >= $start AND day < $end AND id % 10 <> 3"),
        said: &["expected-rows in 2024-03-03", "removed-rows", "row only in production"],
    },
    Kind {
        name: "a whole day dropped",
        plant: Rows("orders WHERE day >= $start AND day < $end AND day <> DATE '2024-03-03'"),
        said: &["not-empty in 2024-03-03", "observed 0 rows"],
    },
    Kind {
        name: "a row of another key",
        plant: Column("id", "CASE WHEN id = 20007 THEN 999999 ELSE id END"),
        said: &[
            "row only in production where id = 20007",
            "row only in the candidate where id = 999999",
            "2024-03-03",
        ],
    },
    Kind {
        name: "keys negated",
        plant: Column("id", "CASE WHEN day = DATE '2024-03-03' THEN -id ELSE id END"),
        said: &["added-rows", "observed 1040 rows", "row only in the candidate", "2024-03-03"],
    },
    Kind {
        name: "a key repeated",
        plant: Column("id", "CASE WHEN id = 20007 THEN 20008 ELSE id END"),
        said: &["unique-key in 2024-03-03", "such as id=20008"],
    },
    Kind {
        name: "keys without their last digit",
        plant: Column("id", "CASE WHEN day = DATE '2024-03-03' THEN id / 10 ELSE id END"),
        said: &["unique-key in 2024-03-03", "104 repeated keys in 1040 rows"],
    },
    Kind {
        name: "a null key",
        plant: Column("id", "CASE WHEN id = 20007 THEN NULL ELSE id END"),
        said: &["FAILED 2024-03-03", "nulls that it may not have", "column id"],
    },
    Kind {
        name: "a row of the next day",
        plant: Column("day", "CASE WHEN id = 20007 THEN DATE '2024-03-04' ELSE day END"),
        said: &["interval in 2024-03-03", "1 rows, such as 2024-03-04"],
    },
    Kind {
        name: "a row without a day",
        plant: Column("day", "CASE WHEN id = 20007 THEN NULL ELSE day END"),
        said: &["interval in 2024-03-03", "1 rows, such as null"],
    },
    Kind {
        name: "a join that multiplies",
        plant: Rows(
            "(SELECT o.* FROM orders o LEFT JOIN (SELECT 20007 AS k UNION ALL SELECT 20007 AS k) d ON o.id = d.k) WHERE day >= $start AND day < $end",
        ),
        said: &["unique-key in 2024-03-03", "such as id=20007"],
    },
];

#[test]
fn values_that_change_in_other_columns_are_caught() {
    assert_caught(VALUES);
}

const VALUES: &[Kind] = &[
    Kind {
        name: "null for zero",
        plant: Column("rate", "CASE WHEN id = 20000 THEN NULL ELSE rate END"),
        said: &["changed-columns rate", "rate: value → null where id = 20000", "2024-03-03"],
    },
    Kind {
        name: "minus zero",
        plant: Column("rate", "CASE WHEN id = 20000 THEN rate * -1.0 ELSE rate END"),
        said: &[
            "changed-columns rate",
            "rate: zero with the other sign where id = 20000",
            "2024-03-03",
        ],
    },
    Kind {
        name: "no number",
        plant: Column(
            "rate",
            "CASE WHEN id = 20007 THEN arrow_cast('NaN', 'Float64') ELSE rate END",
        ),
        said: &["changed-columns rate", "rate: number → NaN where id = 20007", "2024-03-03"],
    },
    Kind {
        name: "infinity",
        plant: Column(
            "rate",
            "CASE WHEN id = 20007 THEN arrow_cast('inf', 'Float64') ELSE rate END",
        ),
        said: &["changed-columns rate", "rate: number → infinity where id = 20007", "2024-03-03"],
    },
    Kind {
        name: "minus infinity",
        plant: Column(
            "rate",
            "CASE WHEN id = 20007 THEN arrow_cast('-inf', 'Float64') ELSE rate END",
        ),
        said: &["changed-columns rate", "rate: number → infinity where id = 20007", "2024-03-03"],
    },
    Kind {
        name: "the last bit",
        plant: Column("rate", "CASE WHEN id = 20007 THEN rate * 1.0000000000000002 ELSE rate END"),
        said: &[
            "changed-columns rate",
            "rate: by a millionth at most where id = 20007",
            "2024-03-03",
        ],
    },
    Kind {
        name: "the sign",
        plant: Column("rate", "CASE WHEN id BETWEEN 20010 AND 20030 THEN -rate ELSE rate END"),
        said: &["changed-columns rate", "rate: sign turned", "2024-03-03"],
    },
    Kind {
        name: "hundredfold",
        plant: Column("rate", "CASE WHEN id BETWEEN 20010 AND 20030 THEN rate * 100 ELSE rate END"),
        said: &["changed-columns rate", "rate: × 100", "2024-03-03"],
    },
    Kind {
        name: "one more",
        plant: Column("rate", "CASE WHEN id BETWEEN 20010 AND 20030 THEN rate + 1 ELSE rate END"),
        said: &["changed-columns rate", "rate: +1 ", "2024-03-03"],
    },
    Kind {
        name: "rounded",
        plant: Column(
            "rate",
            "CASE WHEN day = DATE '2024-03-03' THEN round(rate * 100) / 100 ELSE rate END",
        ),
        said: &["changed-columns rate", "rate: rounded to 2 places", "2024-03-03"],
    },
    Kind {
        name: "through 32 bits",
        plant: Column(
            "rate",
            "CASE WHEN day = DATE '2024-03-03' THEN CAST(CAST(rate AS REAL) AS DOUBLE) ELSE rate END",
        ),
        said: &["changed-columns rate", "rate: by a millionth at most", "2024-03-03"],
    },
    Kind {
        name: "one value everywhere",
        plant: Column("rate", "CASE WHEN day = DATE '2024-03-03' THEN 1.5 ELSE rate END"),
        said: &["changed-columns rate", "rate: various → \"1.5\"", "2024-03-03"],
    },
    Kind {
        name: "the least double",
        plant: Column("rate", "CASE WHEN id = 20007 THEN 5e-324 ELSE rate END"),
        said: &["changed-columns rate", "rate: unclassified where id = 20007", "2024-03-03"],
    },
    Kind {
        name: "the greatest double",
        plant: Column("rate", "CASE WHEN id = 20007 THEN 1.7976931348623157e308 ELSE rate END"),
        said: &["changed-columns rate", "rate: unclassified where id = 20007", "2024-03-03"],
    },
    Kind {
        name: "shifted by a row",
        plant: Column("rate", "lag(rate, 1, 0.0) OVER (ORDER BY id)"),
        said: &["changed-columns rate", "rate: -0.142857143", "2024-03-02"],
    },
    Kind {
        name: "two rows exchanged",
        plant: Column(
            "rate",
            "CASE WHEN id = 20007 THEN 8.0 / 7 WHEN id = 20008 THEN 7.0 / 7 ELSE rate END",
        ),
        said: &["changed-columns rate", "rate: unclassified", "observed 2 values", "2024-03-03"],
    },
    Kind {
        name: "a default for null",
        plant: Column("kind", "coalesce(kind, 'none')"),
        said: &["changed-columns kind", "kind: null → value", "2024-03-02"],
    },
    Kind {
        name: "an empty text for null",
        plant: Column(
            "kind",
            "CASE WHEN day = DATE '2024-03-03' THEN coalesce(kind, '') ELSE kind END",
        ),
        said: &["changed-columns kind", "kind: null → value", "2024-03-03"],
    },
    Kind {
        name: "the word NULL",
        plant: Column("kind", "CASE WHEN id = 20007 THEN 'NULL' ELSE kind END"),
        said: &["changed-columns kind", "kind: null → value where id = 20007", "2024-03-03"],
    },
    Kind {
        name: "null for a text",
        plant: Column("kind", "nullif(kind, 'kind 3')"),
        said: &["changed-columns kind", "kind: value → null", "2024-03-02"],
    },
    Kind {
        name: "capitals",
        plant: Column("kind", "CASE WHEN day = DATE '2024-03-03' THEN upper(kind) ELSE kind END"),
        said: &["changed-columns kind", "kind: upper and lower case", "2024-03-03"],
    },
    Kind {
        name: "a space behind",
        plant: Column(
            "kind",
            "CASE WHEN id BETWEEN 20010 AND 20030 THEN kind || ' ' ELSE kind END",
        ),
        said: &["changed-columns kind", "kind: white space at the ends", "2024-03-03"],
    },
    Kind {
        name: "something before",
        plant: Column(
            "kind",
            "CASE WHEN day = DATE '2024-03-03' THEN 'old ' || kind ELSE kind END",
        ),
        said: &["changed-columns kind", "kind: \"old \" put before", "2024-03-03"],
    },
    Kind {
        name: "cut short",
        plant: Column(
            "kind",
            "CASE WHEN day = DATE '2024-03-03' THEN substr(kind, 1, 4) ELSE kind END",
        ),
        said: &["changed-columns kind", "kind: various → \"kind\"", "2024-03-03"],
    },
    Kind {
        name: "a letter that looks alike",
        plant: Column(
            "kind",
            "CASE WHEN id BETWEEN 20010 AND 20030 THEN replace(kind, 'i', '\u{456}') ELSE kind END",
        ),
        said: &["changed-columns kind", "kind: \"kind 0\" → \"k\u{456}nd 0\"", "2024-03-03"],
    },
    Kind {
        name: "a mark without width",
        plant: Column(
            "kind",
            "CASE WHEN id BETWEEN 20010 AND 20030 THEN kind || '\u{200b}' ELSE kind END",
        ),
        said: &["changed-columns kind", "put behind", "2024-03-03"],
    },
    Kind {
        name: "one kind for another",
        plant: Column(
            "kind",
            "CASE WHEN day = DATE '2024-03-03' AND kind = 'kind 2' THEN 'kind 3' ELSE kind END",
        ),
        said: &["changed-columns kind", "kind: \"kind 2\" → \"kind 3\"", "2024-03-03"],
    },
];

#[test]
fn what_goes_wrong_in_the_changed_column_is_caught() {
    assert_caught(CHANGED);
}

const CHANGED: &[Kind] = &[
    Kind {
        name: "nulls",
        plant: Column("amount", "CASE WHEN id = 20007 THEN NULL ELSE amount END"),
        said: &["warning became-null amount", "1 values, in 2024-03-03"],
    },
    Kind {
        name: "one value",
        plant: Column(
            "amount",
            "arrow_cast(CASE WHEN day = DATE '2024-03-03' THEN 1.00 ELSE amount END, 'Decimal128(12, 2)')",
        ),
        said: &["warning one-value amount", "one value only in 2024-03-03"],
    },
    Kind {
        name: "cents for euros",
        plant: Column(
            "amount",
            "arrow_cast(CASE WHEN day = DATE '2024-03-03' THEN amount * 100 ELSE amount END, 'Decimal128(12, 2)')",
        ),
        said: &["warning sum-moved amount", "in 2024-03-03"],
    },
    Kind {
        name: "signs",
        plant: Column("amount", "CASE WHEN day = DATE '2024-03-03' THEN -amount ELSE amount END"),
        said: &["warning sum-moved amount", "in 2024-03-03"],
    },
    Kind {
        name: "nothing done",
        plant: Source(nothing_to_do),
        said: &["warning any-difference", "observed 0 changed"],
    },
];

#[test]
fn files_that_are_not_what_they_were_are_caught() {
    assert_caught(FILES);
}

const FILES: &[Kind] = &[
    Kind {
        name: "one bit in a page",
        plant: Source(one_bit),
        said: &[
            "changed-columns rate",
            "rate: \"3.2857142857142856\" → \"3.285714285714286\"",
            "2024-03-03",
        ],
    },
    Kind {
        name: "truncated but valid",
        plant: Source(truncated),
        said: &["expected-rows in 2024-03-03", "observed 520", "row only in production"],
    },
    Kind {
        name: "two days exchanged",
        plant: Source(exchanged),
        said: &[
            "expected-rows in 2024-03-03",
            "expected-rows in 2024-03-04",
            "row only in the candidate",
        ],
    },
    Kind {
        name: "a row in the neighbour's file",
        plant: Source(moved),
        said: &[
            "expected-rows in 2024-03-03",
            "observed 1039",
            "expected-rows in 2024-03-04",
            "observed 1061",
        ],
    },
    Kind {
        name: "yesterday's file again",
        plant: Source(copied),
        said: &["expected-rows in 2024-03-03", "added-rows", "removed-rows"],
    },
    Kind {
        name: "same size and time, other bytes",
        plant: Source(same_size_and_time),
        said: &["changed-columns rate", "rate: \"3.2857142857142856\" →", "2024-03-03"],
    },
    Kind {
        name: "statistics that lie",
        plant: Source(lying_statistics),
        said: &["not-empty in 2024-03-03", "observed 0 rows"],
    },
    Kind {
        name: "a file more",
        plant: Source(twice),
        said: &["unique-key in 2024-03-03", "1040 repeated keys in 2080 rows"],
    },
];

fn orders(lab: &Lab, day: &str) -> std::path::PathBuf {
    lab.path(&format!("lake/orders/day={day}/orders.parquet"))
}

fn read(file: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(file).unwrap()).unwrap();
    let schema = Arc::clone(reader.schema());
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
    concat_batches(&schema, &batches).unwrap()
}

/// The source is production itself: the fix does nothing.
fn nothing_to_do(lab: &Lab) {
    for day in ["2024-03-02", DAY, "2024-03-04"] {
        fs::copy(lab.path(&format!("lake/sales/day={day}/sales.parquet")), orders(lab, day))
            .unwrap();
    }
}

/// Changes the lowest bit of the rate 7 / 7 wherever its bytes are.
fn flip(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let value = (23.0_f64 / 7.0).to_le_bytes();
    let places: Vec<usize> =
        (0..bytes.len() - 8).filter(|at| bytes[*at..at + 8] == value).collect();
    assert!(!places.is_empty());
    bytes[places[0]] ^= 1;
    fs::write(file, bytes).unwrap();
}

fn one_bit(lab: &Lab) {
    flip(&orders(lab, DAY));
}

fn same_size_and_time(lab: &Lab) {
    let file = orders(lab, DAY);
    let before = fs::metadata(&file).unwrap();
    flip(&file);
    let handle = fs::File::options().write(true).open(&file).unwrap();
    handle.set_modified(before.modified().unwrap()).unwrap();
    let after = fs::metadata(&file).unwrap();
    assert_eq!(
        (before.len(), before.modified().unwrap()),
        (after.len(), after.modified().unwrap())
    );
}

fn truncated(lab: &Lab) {
    let file = orders(lab, DAY);
    let rows = read(&file);
    write(&file, &rows.slice(0, rows.num_rows() / 2));
}

fn exchanged(lab: &Lab) {
    let (one, two) = (orders(lab, DAY), orders(lab, "2024-03-04"));
    let (first, second) = (fs::read(&one).unwrap(), fs::read(&two).unwrap());
    fs::write(one, second).unwrap();
    fs::write(two, first).unwrap();
}

fn moved(lab: &Lab) {
    let (one, two) = (orders(lab, DAY), orders(lab, "2024-03-04"));
    let (here, there) = (read(&one), read(&two));
    write(&two, &concat_batches(&here.schema(), [&there, &here.slice(7, 1)]).unwrap());
    let rest = [here.slice(0, 7), here.slice(8, here.num_rows() - 8)];
    write(&one, &concat_batches(&here.schema(), &rest).unwrap());
}

fn copied(lab: &Lab) {
    fs::copy(orders(lab, "2024-03-02"), orders(lab, DAY)).unwrap();
}

fn twice(lab: &Lab) {
    let file = orders(lab, DAY);
    fs::copy(&file, file.with_file_name("orders-1.parquet")).unwrap();
}

/// Days since 1970 of 2024-03-01.
const FIRST: i32 = 19_783;

/// One file with a group of rows for each day, of which one says in its statistics that it is of
/// another day.
fn lying_statistics(lab: &Lab) {
    let days: Vec<RecordBatch> = (0..10)
        .map(|day| {
            let rows = read(&orders(lab, &format!("2024-03-{:02}", day + 1)));
            let dates: ArrayRef = Arc::new(Date32Array::from(vec![FIRST + day; rows.num_rows()]));
            let columns = rows.schema_ref().fields().iter().zip(rows.columns());
            let columns = columns.map(|(field, array)| (field.name().clone(), Arc::clone(array)));
            RecordBatch::try_from_iter(columns.chain([("day".to_owned(), dates)])).unwrap()
        })
        .collect();
    fs::remove_dir_all(lab.path("lake/orders")).unwrap();
    fs::create_dir_all(lab.path("lake/orders")).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), days[0].schema(), None).unwrap();
    for day in &days {
        writer.write(day).unwrap();
        writer.flush().unwrap();
    }
    let bytes = writer.into_inner().unwrap();
    fs::write(lab.path("lake/orders/all.parquet"), with_lying_group(&bytes)).unwrap();
}

fn with_lying_group(file: &[u8]) -> Vec<u8> {
    let whole = bytes::Bytes::copy_from_slice(file);
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&whole).unwrap();
    let mut groups = Vec::new();
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let mut columns = group.columns().to_vec();
        if number == 2 {
            let day = columns.pop().unwrap();
            let lie = Statistics::int32(Some(FIRST + 8), Some(FIRST + 8), None, Some(0), false);
            columns.push(day.into_builder().set_statistics(lie).build().unwrap());
        }
        groups.push(group.clone().into_builder().set_column_metadata(columns).build().unwrap());
    }
    let metadata = metadata.into_builder().set_row_groups(groups).build();
    let footer = u32::from_le_bytes(file[file.len() - 8..file.len() - 4].try_into().unwrap());
    let mut patched = file[..file.len() - 8 - footer as usize].to_vec();
    ParquetMetaDataWriter::new(&mut patched, &metadata).finish().unwrap();
    patched
}
