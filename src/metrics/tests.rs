use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int32Array, Int64Array, StringArray,
    UInt32Array,
};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::DataType;
use proptest::prelude::*;

use super::*;

fn metrics(batches: &[RecordBatch], key: &[&str]) -> Metrics {
    let key: Vec<String> = key.iter().map(|name| (*name).to_owned()).collect();
    let mut meter = Meter::new(batches[0].schema(), &key).unwrap();
    batches.iter().for_each(|batch| meter.update(batch).unwrap());
    meter.metrics()
}

type Rows = Vec<(i64, Option<f64>, Option<String>)>;

fn batch(rows: &Rows) -> RecordBatch {
    let ids = Int64Array::from_iter_values(rows.iter().map(|row| row.0));
    let floats = Float64Array::from_iter(rows.iter().map(|row| row.1));
    let texts = StringArray::from_iter(rows.iter().map(|row| row.2.as_deref()));
    RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(ids) as ArrayRef, false),
        ("x", Arc::new(floats), true),
        ("t", Arc::new(texts), true),
    ])
    .unwrap()
}

fn digest(rows: &Rows) -> String {
    metrics(&[batch(rows)], &["id"]).content
}

fn rows() -> impl Strategy<Value = Rows> {
    let float = prop::option::of(prop_oneof![
        any::<f64>(),
        Just(0.0),
        Just(-0.0),
        Just(f64::NAN),
        Just(f64::INFINITY)
    ]);
    prop::collection::vec((any::<i64>(), float, prop::option::of(".{0,5}")), 1..40)
}

#[test]
fn sums_are_exact_where_the_engine_wraps() {
    let batch = RecordBatch::try_from_iter([
        ("i", Arc::new(Int64Array::from(vec![i64::MAX, 1])) as ArrayRef),
        (
            "d",
            Arc::new(
                Decimal128Array::from(vec![10_i128.pow(38) - 1; 2])
                    .with_precision_and_scale(38, 0)
                    .unwrap(),
            ),
        ),
    ])
    .unwrap();
    let metrics = metrics(&[batch], &["i"]);
    assert_eq!(metrics.columns["i"].sum.as_deref(), Some("9223372036854775808"));
    assert_eq!(
        metrics.columns["d"].sum.as_deref(),
        Some("199999999999999999999999999999999999998")
    );
}

#[test]
fn each_kind_of_column_has_its_numbers() {
    let metrics = metrics(
        &[batch(&vec![
            (3, Some(1.5), Some("b".into())),
            (1, None, None),
            (2, Some(f64::NAN), Some("aé".into())),
        ])],
        &["id"],
    );
    assert_eq!(metrics.rows, 3);
    let x = &metrics.columns["x"];
    assert_eq!(
        (x.nulls, x.nans, x.sum.as_deref(), x.max.as_deref()),
        (1, Some(1), Some("1.5"), Some("1.5"))
    );
    let t = &metrics.columns["t"];
    assert_eq!((t.min.as_deref(), t.max.as_deref(), t.bytes), (Some("aé"), Some("b"), Some(4)));
}

#[test]
fn repeated_null_and_unordered_keys_are_counted_across_batches() {
    let key = |values: Vec<Option<i32>>| {
        RecordBatch::try_from_iter_with_nullable([(
            "k",
            Arc::new(Int32Array::from(values)) as ArrayRef,
            true,
        )])
        .unwrap()
    };
    let batches = [
        key(vec![None, Some(1), Some(1)]),
        key(vec![Some(1), Some(4)]),
        key(vec![Some(3), Some(3)]),
    ];
    let keys = metrics(&batches, &["k"]).keys;
    assert_eq!(keys.repeated_keys, 2);
    assert_eq!(keys.rows_with_repeated_keys, 5);
    assert_eq!(keys.rows_with_null_keys, 1);
    assert_eq!(keys.out_of_order, 1);
    assert_eq!(keys.examples, ["k=null", "k=1", "k=3"]);
}

#[test]
fn the_digest_keeps_to_its_test_vectors() {
    let rows: Rows = vec![
        (1, Some(0.5), Some("a".into())),
        (2, None, Some(String::new())),
        (3, Some(-0.0), None),
    ];
    assert_eq!(digest(&rows), include_str!("../../testdata/digest/mixed.txt").trim());
    let flags = RecordBatch::try_from_iter([(
        "b",
        Arc::new(BooleanArray::from(vec![true, false])) as ArrayRef,
    )])
    .unwrap();
    assert_eq!(
        metrics(&[flags], &["b"]).content,
        include_str!("../../testdata/digest/booleans.txt").trim()
    );
}

#[test]
fn the_digest_does_not_depend_on_how_wide_a_value_is_stored() {
    let narrow =
        RecordBatch::try_from_iter([("n", Arc::new(Int32Array::from(vec![-7, 8])) as ArrayRef)])
            .unwrap();
    let wide =
        RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![-7, 8])) as ArrayRef)])
            .unwrap();
    assert_eq!(metrics(&[narrow], &["n"]).content, metrics(&[wide], &["n"]).content);
}

#[test]
fn values_swapped_between_rows_or_columns_change_the_digest() {
    let one: Rows = vec![(1, Some(1.0), None), (2, Some(2.0), None)];
    let swapped: Rows = vec![(1, Some(2.0), None), (2, Some(1.0), None)];
    assert_ne!(digest(&one), digest(&swapped));
    let pair = |a: i64, b: i64| {
        RecordBatch::try_from_iter([
            ("a", Arc::new(Int64Array::from(vec![a])) as ArrayRef),
            ("b", Arc::new(Int64Array::from(vec![b])) as ArrayRef),
        ])
        .unwrap()
    };
    assert_ne!(metrics(&[pair(1, 2)], &["a"]).content, metrics(&[pair(2, 1)], &["a"]).content);
}

proptest! {
    #[test]
    fn the_digest_ignores_order_and_batches(rows in rows(), seed in any::<u64>(), cut in 1_usize..40) {
        let whole = batch(&rows);
        let mut order: Vec<u32> = (0..u32::try_from(rows.len()).unwrap()).collect();
        order.sort_by_key(|row| u64::from(*row).wrapping_mul(seed | 1).rotate_left(17));
        let shuffled = take_record_batch(&whole, &UInt32Array::from(order)).unwrap();
        let cut = cut.min(rows.len());
        let parts = [shuffled.slice(0, cut), shuffled.slice(cut, rows.len() - cut)];
        prop_assert_eq!(&metrics(std::slice::from_ref(&whole), &["id"]).content, &metrics(&parts, &["id"]).content);
        let again = concat_batches(&whole.schema(), &parts).unwrap();
        prop_assert_eq!(metrics(&[whole], &["id"]).columns, metrics(&[again], &["id"]).columns);
    }

    #[test]
    fn any_changed_value_null_or_multiplicity_changes_the_digest(rows in rows(), at in any::<prop::sample::Index>()) {
        let before = digest(&rows);
        let at = at.index(rows.len());
        let mut changed = rows.clone();
        changed[at].0 = changed[at].0.wrapping_add(1);
        prop_assert_ne!(&before, &digest(&changed));
        let mut changed = rows.clone();
        changed[at].1 = match changed[at].1 { None => Some(0.0), Some(_) => None };
        prop_assert_ne!(&before, &digest(&changed));
        let mut changed = rows.clone();
        changed[at].2 = match &changed[at].2 { None => Some(String::new()), Some(text) => Some(format!("{text}x")) };
        prop_assert_ne!(&before, &digest(&changed));
        let mut changed = rows.clone();
        changed.push(rows[at].clone());
        prop_assert_ne!(&before, &digest(&changed));
        changed.push(rows[at].clone());
        prop_assert_ne!(&before, &digest(&changed));
    }
}

#[test]
fn parts_of_nested_values_have_numbers_of_their_own() {
    use arrow::array::{ListArray, StructArray};
    use arrow::datatypes::{Field, Int32Type};
    // [[1, null], null, [], [5]]
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
        Some(vec![Some(5)]),
    ]);
    let texts: ArrayRef =
        Arc::new(StringArray::from(vec![Some("a"), Some("hidden"), None, Some("bcd")]));
    let fields = vec![Field::new("t", DataType::Utf8, true)].into();
    let there = vec![true, false, true, true].into();
    let structs = StructArray::new(fields, vec![texts], Some(there));
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..4));
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("id", ids, false),
        ("l", Arc::new(lists) as ArrayRef, true),
        ("s", Arc::new(structs), true),
    ])
    .unwrap();
    let found = metrics(&[batch.slice(0, 2), batch.slice(2, 2)], &["id"]).columns;
    let items = &found["l[]"];
    assert_eq!((items.items, items.nulls, items.sum.as_deref()), (Some(3), 1, Some("6")));
    assert_eq!((items.min.as_deref(), items.max.as_deref()), (Some("1"), Some("5")));
    // What lies below a null struct is not there.
    let texts = &found["s.t"];
    assert_eq!((texts.items, texts.nulls, texts.bytes), (Some(3), 1, Some(4)));
    assert_eq!(found["l"].nulls, 1);
}

#[test]
fn dictionaries_and_views_are_what_they_hold() {
    use arrow::array::{DictionaryArray, StringViewArray};
    use arrow::datatypes::Int8Type;
    let plain = vec![Some("a"), None, Some("bb"), Some("a")];
    let of = |values: ArrayRef| {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..4));
        let batch =
            RecordBatch::try_from_iter_with_nullable([("id", ids, false), ("t", values, true)]);
        metrics(&[batch.unwrap()], &["id"])
    };
    let expected = of(Arc::new(StringArray::from(plain.clone())));
    let dictionary: DictionaryArray<Int8Type> = plain.iter().copied().collect();
    assert_eq!(of(Arc::new(dictionary)), expected);
    assert_eq!(of(Arc::new(StringViewArray::from(plain))), expected);
    assert_eq!(expected.columns["t"].bytes, Some(4));
}
