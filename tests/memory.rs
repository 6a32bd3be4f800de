//! A run whose queries need more memory than the spec allows.

use std::fs;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};

use crate::common::{Lab, write};

/// Orders that are in no pair of a table with itself: the pairs need their memory, and cannot spill.
const SQL: &str = "SELECT day, orders.id, kind, rate, amount FROM orders
LEFT JOIN (SELECT one.id AS found FROM refs AS one JOIN refs AS two ON one.id = two.id) AS pairs
  ON orders.id = pairs.found
WHERE day >= $start AND day < $end AND pairs.found IS NULL
";

fn lab() -> Lab {
    let lab = Lab::ten_days();
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values((0..1_200_000).map(|n| 1 << 40 | n)));
    write(&lab.path("lake/refs/all.parquet"), &RecordBatch::try_from_iter([("id", ids)]).unwrap());
    fs::write(lab.path("specs/sales.sql"), SQL).unwrap();
    let refs = "[sources.refs]\nurl = \"../lake/refs\"\n\n[limits]\nmemory = \"16 MiB\"\n";
    lab.edit("specs/sales.toml", "[limits]\n", refs);
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    lab
}

#[test]
fn too_little_memory_is_said_by_name_with_what_to_do_and_more_of_it_is_enough() {
    let lab = lab();
    let plan = lab.plan("specs/sales.toml");
    let failed = lab.run(&["run", &plan, "--dataset", "lake/sales"]).expect(10).said();
    assert!(failed.contains("needs more memory"), "{failed}");
    assert!(failed.contains("HashJoinInput") && failed.contains("pool_size: 16.0 MB"), "{failed}");
    assert!(failed.contains("hint: raise limits.memory in the spec"), "{failed}");
    lab.edit("specs/sales.toml", "\"16 MiB\"", "\"256 MiB\"");
    let plan = lab.plan("specs/sales.toml");
    lab.run(&["run", &plan, "--dataset", "lake/sales"]).expect(0);
}
