//! Rates of the kernels that every row passes, on one core: `cargo bench`. Bytes are those of the
//! values, on both sides of a comparison; nothing depends on the figures.
#![expect(clippy::unwrap_used, reason = "a bench has no caller to tell")]

use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, BooleanArray, Date32Array, Decimal128Array,
    DictionaryArray, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, ListArray,
    RecordBatch, StringArray, StringViewArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use reissue::compare::{Comparer, Equality};
use reissue::key::{KeyEncoder, sort_rows};
use reissue::metrics::{FloatSum, Meter};

const ROWS: usize = 1 << 20;
const BATCH_ROWS: usize = 32_768;

const TYPES: [&str; 14] = [
    "boolean",
    "int16",
    "int32",
    "int64",
    "float32",
    "float64",
    "date32",
    "timestamp",
    "decimal128",
    "decimal128, a fifth null",
    "text of 10 bytes",
    "text of 10 bytes, view",
    "text of 40 bytes, view",
    "dictionary of texts",
];

const NESTED: [&str; 1] = ["list of int64"];

fn main() {
    divan::main();
}

/// Numbers without an order.
fn noise() -> impl Iterator<Item = u32> {
    (0..ROWS).scan(1_u32, |state, _| {
        *state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        Some(*state)
    })
}

fn texts(length: usize) -> impl Iterator<Item = String> {
    noise().map(move |number| format!("{:0length$}", number % 1_000_000))
}

fn values(data_type: &str) -> ArrayRef {
    let small = || noise().map(|number| i32::from(number.to_le_bytes()[3]) * 101);
    let decimals = || noise().map(i128::from);
    match data_type {
        "boolean" => Arc::new(BooleanArray::from_iter(noise().map(|n| Some(n % 3 == 0)))),
        "int16" => Arc::new(Int16Array::from_iter_values(
            noise().map(|number| i16::from(number.to_le_bytes()[2])),
        )),
        "int32" => Arc::new(Int32Array::from_iter_values(small())),
        "int64" => Arc::new(Int64Array::from_iter_values(noise().map(i64::from))),
        "float32" => Arc::new(Float32Array::from_iter_values(small().map(|n| n as f32 / 7.0))),
        "float64" => Arc::new(Float64Array::from_iter_values(noise().map(|n| f64::from(n) / 7.0))),
        "date32" => Arc::new(Date32Array::from_iter_values(small())),
        "timestamp" => {
            Arc::new(TimestampMicrosecondArray::from_iter_values(noise().map(i64::from)))
        }
        "decimal128" => {
            let array = Decimal128Array::from_iter_values(decimals());
            Arc::new(array.with_precision_and_scale(18, 2).unwrap())
        }
        "decimal128, a fifth null" => {
            let array = Decimal128Array::from_iter(decimals().map(|n| (n % 5 != 0).then_some(n)));
            Arc::new(array.with_precision_and_scale(18, 2).unwrap())
        }
        "text of 10 bytes" => Arc::new(StringArray::from_iter_values(texts(10))),
        "text of 10 bytes, view" => Arc::new(StringViewArray::from_iter_values(texts(10))),
        "text of 40 bytes, view" => Arc::new(StringViewArray::from_iter_values(texts(40))),
        "dictionary of texts" => {
            let texts: Vec<String> = noise().map(|n| format!("colour {}", n % 50)).collect();
            Arc::new(texts.iter().map(String::as_str).collect::<DictionaryArray<Int32Type>>())
        }
        "list of int64" => {
            let lists = noise().map(|n| Some((0..i64::from(n % 4)).map(Some).collect::<Vec<_>>()));
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists))
        }
        other => unimplemented_type(other),
    }
}

#[expect(clippy::panic, reason = "a name that no bench uses")]
fn unimplemented_type(name: &str) -> ArrayRef {
    panic!("no values of type {name:?}")
}

/// The bytes of values: a view's text counts as 16 bytes and what is outside of it.
fn bytes(values: &ArrayRef) -> usize {
    let outside: usize = match values.data_type() {
        DataType::Utf8View => {
            values.as_string_view().data_buffers().iter().map(|buffer| buffer.len()).sum()
        }
        _ => 0,
    };
    values.to_data().get_slice_memory_size().unwrap() + outside
}

fn batches(batch: &RecordBatch) -> Vec<RecordBatch> {
    (0..ROWS).step_by(BATCH_ROWS).map(|start| batch.slice(start, BATCH_ROWS)).collect()
}

/// Counts, sums, bounds and the content digest of one column.
#[divan::bench(args = TYPES.into_iter().chain(NESTED))]
fn metrics(bencher: Bencher<'_, '_>, data_type: &str) {
    let values = values(data_type);
    let table = RecordBatch::try_from_iter([("value", Arc::clone(&values))]).unwrap();
    let parts = batches(&table);
    bencher.counter(BytesCount::new(bytes(&values))).counter(ItemsCount::new(ROWS)).bench(|| {
        let mut meter = Meter::new(table.schema(), &[]).unwrap();
        parts.iter().for_each(|part| meter.update(part).unwrap());
        meter.metrics()
    });
}

/// A table of a key of 8 bytes, in order, and a column.
fn keyed(values: ArrayRef) -> RecordBatch {
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values((0_i64..).take(ROWS)));
    RecordBatch::try_from_iter([("key", keys), ("value", values)]).unwrap()
}

/// Two equal sides in the order of a key of 8 bytes, which counts too.
#[divan::bench(args = TYPES)]
fn comparison(bencher: Bencher<'_, '_>, data_type: &str) {
    // Made twice: the same memory would be found equal without a look.
    let [production, candidate] = [(); 2].map(|()| keyed(values(data_type)));
    let size: usize = production.columns().iter().chain(candidate.columns()).map(bytes).sum();
    let sides = [&production, &candidate].map(batches);
    let key = ["key".to_owned()];
    bencher.counter(BytesCount::new(size)).counter(ItemsCount::new(ROWS)).bench(|| {
        let comparer = Comparer::new(&candidate.schema(), &key, &Equality::default()).unwrap();
        let [production, candidate] = sides.each_ref().map(|side| side.iter().cloned().map(Ok));
        let found = comparer.run(production, candidate, |_| {}).unwrap();
        assert!(found.is_empty());
    });
}

/// A key of 8 bytes in no order, and a value.
#[divan::bench]
fn sorting(bencher: Bencher<'_, '_>) {
    let table =
        RecordBatch::try_from_iter([("key", values("int64")), ("value", values("float64"))])
            .unwrap();
    let key = ["key".to_owned()];
    let encoder = KeyEncoder::new(&table.schema(), &key).unwrap();
    bencher.counter(BytesCount::new(16 * ROWS)).counter(ItemsCount::new(ROWS)).bench(|| {
        let sorted = sort_rows(batches(&table), &encoder, BATCH_ROWS).unwrap();
        sorted.map(|batch| batch.unwrap().num_rows()).sum::<usize>()
    });
}

/// The sum of doubles, rounded once.
#[divan::bench]
fn exact_float_sum(bencher: Bencher<'_, '_>) {
    let values: Vec<f64> = noise().map(|number| f64::from(number) / 7.0).collect();
    bencher.counter(BytesCount::new(8 * ROWS)).counter(ItemsCount::new(ROWS)).bench(|| {
        let mut sum = FloatSum::default();
        sum.add_all(black_box(&values));
        sum.value()
    });
}
