//! The same plan gives the same bytes, whatever the threads and the batch sizes.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};

use crate::common::{Lab, write};

/// Each partition's file hashes after a run with these words.
fn hashes(lab: &Lab, words: &[&str]) -> BTreeMap<String, String> {
    let lab = lab.copied();
    let plan = lab.plan("specs/sales.toml");
    let all: Vec<&str> = ["run", &plan, "--dataset", "lake/sales"]
        .into_iter()
        .chain(words.iter().copied())
        .collect();
    lab.run(&all).expect(0);
    let status = lab.run(&["status", &plan, "--dataset", "lake/sales", "--json"]).expect(0).json();
    let records = status["records"].as_array().unwrap().iter();
    let pairs = records.map(|record| {
        let hash = record["files"][0]["hash"].as_str().unwrap().to_owned();
        (record["partition"].as_str().unwrap().to_owned(), hash)
    });
    let pairs: BTreeMap<String, String> = pairs.collect();
    assert_eq!(pairs.len(), 10);
    pairs
}

#[test]
fn threads_and_batch_sizes_do_not_change_a_byte() {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    // A join, an aggregate and a sort, so that threads have something to reorder.
    std::fs::write(
        lab.path("specs/sales.sql"),
        "SELECT o.day, o.id, o.kind, o.rate, o.amount FROM orders o \
         JOIN (SELECT id, max(rate) AS top, count(*) AS n FROM orders GROUP BY id) g ON g.id = o.id \
         WHERE o.day >= $start AND o.day < $end AND g.n >= 1\n",
    )
    .unwrap();
    let expected = hashes(&lab, &[]);
    for threads in ["1", "2", "8"] {
        for rows in ["1000", "8192", "65536"] {
            let words = ["--query-threads", threads, "--batch-rows", rows];
            assert_eq!(hashes(&lab, &words), expected, "{threads} threads, batches of {rows}");
        }
    }
}

#[test]
fn memory_and_whether_a_reference_table_is_held_do_not_change_a_byte() {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    // Some 8 MiB of long texts: too much for an eighth of 32 MiB, little for one of 1 GiB.
    let rows = 0..60_000_i64;
    let codes: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.clone()));
    let names = rows.map(|code| format!("{code}{}", " of a rate with a long name".repeat(4)));
    let names: ArrayRef = Arc::new(StringArray::from_iter_values(names));
    let table = RecordBatch::try_from_iter([("code", codes), ("name", names)]).unwrap();
    write(&lab.path("lake/rates/all.parquet"), &table);
    std::fs::write(
        lab.path("specs/sales.sql"),
        "SELECT day, id, name AS kind, rate, amount FROM orders \
         JOIN rates ON rates.code = orders.id % 60000 WHERE day >= $start AND day < $end\n",
    )
    .unwrap();
    let limits = "[sources.rates]\nurl = \"../lake/rates\"\n\n[limits]\nmemory = \"1 GiB\"\n";
    lab.edit("specs/sales.toml", "[limits]\n", limits);
    let expected = hashes(&lab, &[]);
    for memory in ["128 MiB", "32 MiB"] {
        let lab = lab.copied();
        lab.edit("specs/sales.toml", "1 GiB", memory);
        for words in [&[][..], &["--batch-rows", "1000"]] {
            assert_eq!(hashes(&lab, words), expected, "{memory} {words:?}");
        }
    }
}

#[test]
fn order_sensitive_sql_is_named_and_still_gives_the_same_bytes() {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    lab.edit(
        "specs/sales.sql",
        "rate, amount FROM",
        "sum(rate) OVER (PARTITION BY kind) AS rate, amount FROM",
    );
    let dry = lab.run(&["plan", "specs/sales.toml"]).expect(0);
    assert!(
        dry.stdout.contains("depends on the order of rows")
            && dry.stdout.contains("sum(orders.rate)"),
        "{}",
        dry.stdout
    );
    let expected = hashes(&lab, &[]);
    for words in [["--query-threads", "8"], ["--batch-rows", "1000"], ["--batch-rows", "65536"]] {
        assert_eq!(hashes(&lab, &words), expected, "{words:?}");
    }
    // A frame of rows over ties, even of whole numbers, is one too.
    let ties = "CAST(sum(id) OVER (PARTITION BY kind ORDER BY kind ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS DOUBLE) AS rate, amount FROM";
    lab.edit("specs/sales.sql", "sum(rate) OVER (PARTITION BY kind) AS rate, amount FROM", ties);
    let dry = lab.run(&["plan", "specs/sales.toml"]).expect(0);
    assert!(dry.stdout.contains("if rows are equal in its ORDER BY"), "{}", dry.stdout);
    assert!(dry.stdout.contains("wraps around silently"), "{}", dry.stdout);
}
