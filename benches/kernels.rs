//! Rates of the kernels that every row passes: `cargo bench`. Prints megabytes of values a second,
//! the best of several passes on one core; nothing depends on the figures.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints")]

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray};
use reissue::compare::{Equality, compare};
use reissue::metrics::Meter;

const ROWS: i64 = 1 << 20;

fn table(name: &str, values: ArrayRef) -> RecordBatch {
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS));
    RecordBatch::try_from_iter([("key", keys), (name, values)]).unwrap()
}

fn best(bytes: usize, work: impl Fn()) -> f64 {
    let seconds = (0..7).map(|_| {
        let begun = Instant::now();
        work();
        begun.elapsed().as_secs_f64()
    });
    bytes as f64 / 1e6 / seconds.fold(f64::INFINITY, f64::min)
}

fn main() {
    let texts = (0..ROWS).map(|row| format!("value {}", row % 1_000));
    let decimals = Decimal128Array::from_iter_values((0..ROWS).map(i128::from));
    let columns: [(&str, ArrayRef); 4] = [
        ("int64", Arc::new(Int64Array::from_iter_values((0..ROWS).rev()))),
        (
            "float64",
            Arc::new(Float64Array::from_iter_values((0..ROWS).map(|row| row as f64 / 7.0))),
        ),
        ("decimal128", Arc::new(decimals.with_precision_and_scale(18, 2).unwrap())),
        ("text", Arc::new(StringArray::from_iter_values(texts))),
    ];
    println!("{:<12} {:>16} {:>22}", "column", "metrics MB/s", "comparison MB/s");
    for (name, values) in columns {
        let bytes = values.get_array_memory_size() + 8 * usize::try_from(ROWS).unwrap();
        let batch = table(name, values);
        let key = vec!["key".to_owned()];
        let metrics = best(bytes, || {
            let mut meter = Meter::new(batch.schema(), &key).unwrap();
            for start in (0..batch.num_rows()).step_by(32_768) {
                meter.update(&batch.slice(start, 32_768)).unwrap();
            }
            assert_eq!(meter.metrics().rows, ROWS.unsigned_abs());
        });
        let compared = best(2 * bytes, || {
            assert!(compare(&batch, &batch, &key, &Equality::default()).unwrap().is_empty());
        });
        println!("{name:<12} {metrics:>16.0} {compared:>22.0}");
    }
}
