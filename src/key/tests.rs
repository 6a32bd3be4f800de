use arrow::array::{Float64Array, Int32Array, Int64Array, StringArray};
use arrow::compute::{SortColumn, SortOptions, lexsort_to_indices, take_record_batch};
use proptest::prelude::*;

use super::*;

type Row = (Option<i64>, Option<i32>, Option<f64>, Option<String>);

fn batch(rows: &[Row]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([
        ("a", Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.0))) as ArrayRef, true),
        ("b", Arc::new(Int32Array::from_iter(rows.iter().map(|row| row.1))), true),
        ("x", Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.2))), true),
        ("t", Arc::new(StringArray::from_iter(rows.iter().map(|row| row.3.as_deref()))), true),
    ])
    .unwrap()
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let float = prop_oneof![any::<f64>(), Just(0.0), Just(-0.0), Just(f64::NAN)];
    let row = (
        prop::option::of(prop_oneof![any::<i64>(), -2_i64..2]),
        prop::option::of(-2_i32..2),
        prop::option::of(float),
        prop::option::of("[ab\\x00é]{0,3}"),
    );
    prop::collection::vec(row, 1..40)
}

fn names(key: &[&str]) -> Vec<String> {
    key.iter().map(|name| (*name).to_owned()).collect()
}

/// What arrow's own sort says, as the referee.
fn sorted(batch: &RecordBatch, key: &[String]) -> RecordBatch {
    let columns: Vec<SortColumn> = key
        .iter()
        .map(|name| SortColumn {
            values: Arc::clone(batch.column_by_name(name).unwrap()),
            options: Some(SortOptions { descending: false, nulls_first: true }),
        })
        .collect();
    take_record_batch(batch, &lexsort_to_indices(&columns, None).unwrap()).unwrap()
}

proptest! {
    #[test]
    fn keys_are_in_the_order_of_sql(rows in rows(), which in 0_usize..4) {
        let key = names([&["a", "b"][..], &["b", "a"], &["x"], &["t", "b"]][which]);
        let batch = batch(&rows);
        let encoder = KeyEncoder::new(&batch.schema(), &key).unwrap();
        let expected = sorted(&batch, &key);
        prop_assert_eq!(in_order(&encoder.encode(&expected).unwrap(), None) != Ordered::Not(0), true);
        let cut = batch.num_rows() / 2;
        let halves = [batch.slice(0, cut), batch.slice(cut, batch.num_rows() - cut)];
        let ours: Vec<RecordBatch> =
            sort_rows(halves.to_vec(), &encoder, 7).unwrap().collect::<Result<_>>().unwrap();
        let ours = arrow::compute::concat_batches(&batch.schema(), &ours).unwrap();
        for name in &key {
            let (one, two) = (ours.column_by_name(name).unwrap(), expected.column_by_name(name).unwrap());
            prop_assert_eq!(one.to_data(), two.to_data(), "{}", name);
        }
    }
}

#[test]
fn a_lesser_key_is_found_where_it_stands_across_batches_too() {
    let batch = batch(&[(Some(1), None, None, None), (Some(3), None, None, None)]);
    let encoder = KeyEncoder::new(&batch.schema(), &names(&["a"])).unwrap();
    let keys = encoder.encode(&batch).unwrap();
    assert_eq!(in_order(&keys, None), Ordered::Ascending);
    assert_eq!(in_order(&keys, Some(&keys.one(0))), Ordered::WithRepeats);
    assert_eq!(in_order(&keys, Some(&keys.one(1))), Ordered::Not(0));
}
