use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};

use super::*;
use crate::identity::Real;

fn side(rows: &[(i64, Option<f64>, &str)]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(Int64Array::from_iter_values(rows.iter().map(|r| r.0))) as ArrayRef, false),
        ("x", Arc::new(Float64Array::from_iter(rows.iter().map(|r| r.1))), true),
        ("t", Arc::new(StringArray::from_iter_values(rows.iter().map(|r| r.2))), false),
    ])
    .unwrap()
}

fn diff(one: &[(i64, Option<f64>, &str)], two: &[(i64, Option<f64>, &str)]) -> Diff {
    compare(&side(one), &side(two), &["id".to_owned()]).unwrap()
}

#[test]
fn rows_are_equal_changed_or_on_one_side_only() {
    let diff = diff(
        &[(1, Some(1.0), "a"), (2, Some(2.0), "b"), (3, None, "c"), (4, Some(4.0), "d")],
        &[(2, Some(5.0), "b"), (1, Some(1.0), "a"), (3, Some(0.0), "c"), (9, None, "z")],
    );
    assert_eq!((diff.equal, diff.changed, diff.only_production, diff.only_candidate), (1, 2, 1, 1));
    let x = &diff.columns["x"];
    assert_eq!((x.changed, x.null_only_production, x.null_only_candidate), (2, 1, 0));
    assert_eq!((x.net_change, x.largest_change), (Some(Real(3.0)), Some(Real(3.0))));
    assert!(!diff.columns.contains_key("t"));
    assert_eq!(diff.examples[0].key["id"], "2");
    assert_eq!(diff.examples[0].production.as_ref().unwrap()["x"], "2.0");
    assert_eq!(diff.examples[0].candidate.as_ref().unwrap()["x"], "5.0");
}

#[test]
fn nan_equals_nan_and_negative_zero_is_not_zero() {
    let other_nan = f64::from_bits(f64::NAN.to_bits() | 1);
    let diff = diff(
        &[(1, Some(f64::NAN), "a"), (2, Some(0.0), "a")],
        &[(1, Some(other_nan), "a"), (2, Some(-0.0), "a")],
    );
    assert_eq!((diff.equal, diff.changed), (1, 1));
}

#[test]
fn repeated_keys_are_never_paired_by_accident() {
    let diff = diff(
        &[(1, Some(1.0), "a"), (1, Some(1.0), "a"), (1, Some(2.0), "b")],
        &[(1, Some(1.0), "a"), (1, Some(3.0), "c")],
    );
    assert_eq!((diff.equal, diff.changed, diff.only_production, diff.only_candidate), (1, 0, 2, 1));
    assert_eq!(diff.repeated_keys, 1);
}

#[test]
fn the_order_of_rows_does_not_matter() {
    let forward: Vec<_> = (0..1_000).map(|id| (id, Some(id as f64), "x")).collect();
    let backward: Vec<_> = forward.iter().rev().copied().collect();
    assert!(diff(&forward, &backward).is_empty());
    assert_eq!(diff(&forward, &backward).equal, 1_000);
}

#[test]
fn an_empty_side_is_all_on_the_other() {
    assert_eq!(diff(&[], &[(1, None, "a")]).only_candidate, 1);
    assert_eq!(diff(&[(1, None, "a")], &[]).only_production, 1);
}
