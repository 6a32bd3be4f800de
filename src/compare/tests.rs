use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, Decimal128Array, Float64Array, Int32Array, Int64Array, StringArray,
    StructArray, TimestampMicrosecondArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields};
use proptest::prelude::*;

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
    compare(&side(one), &side(two), &["id".to_owned()], &Equality::default()).unwrap()
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

type Pair = (Option<i64>, i32);

fn pairs(rows: &[Pair]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.0))) as ArrayRef, true),
        ("v", Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.1))), false),
    ])
    .unwrap()
}

/// What a person would count, with tables of every row.
fn counted(one: &[Pair], two: &[Pair]) -> (u64, u64, u64, u64, u64) {
    let mut groups: BTreeMap<Option<i64>, (Vec<i32>, Vec<i32>)> = BTreeMap::new();
    one.iter().for_each(|(id, v)| groups.entry(*id).or_default().0.push(*v));
    two.iter().for_each(|(id, v)| groups.entry(*id).or_default().1.push(*v));
    let (mut equal, mut changed, mut left, mut right, mut repeated) = (0, 0, 0, 0, 0);
    for (id, (one, mut two)) in groups {
        repeated += u64::from(one.len() > 1 || two.len() > 1);
        if id.is_some() && one.len() == 1 && two.len() == 1 {
            *(if one == two { &mut equal } else { &mut changed }) += 1;
            continue;
        }
        for value in one {
            match two.iter().position(|other| *other == value) {
                Some(at) => {
                    two.swap_remove(at);
                    equal += 1;
                }
                None => left += 1,
            }
        }
        right += two.len() as u64;
    }
    (equal, changed, left, right, repeated)
}

/// Cuts a side into batches and compares as they come.
fn streamed(one: &RecordBatch, two: &RecordBatch, cuts: (usize, usize)) -> Diff {
    let key = ["id".to_owned()];
    let encoder = KeyEncoder::new(&one.schema(), &key).unwrap();
    let sorted = |side: &RecordBatch, cut| sort_rows(vec![side.clone()], &encoder, cut).unwrap();
    let comparer = Comparer::new(&one.schema(), &key, &Equality::default()).unwrap();
    let see = |piece: &Piece| {
        for changed in &piece.changed {
            assert_eq!(changed.production.num_rows(), changed.candidate.num_rows());
        }
    };
    comparer.run(sorted(one, cuts.0), sorted(two, cuts.1), see).unwrap()
}

proptest! {
    #[test]
    fn repeated_and_null_keys_count_by_multiplicity_however_batches_are_cut(
        one in prop::collection::vec((prop::option::weighted(0.9, 0_i64..30), 0_i32..3), 0..60),
        two in prop::collection::vec((prop::option::weighted(0.9, 0_i64..30), 0_i32..3), 0..60),
        cuts in (1_usize..9, 1_usize..9),
    ) {
        let diff = streamed(&pairs(&one), &pairs(&two), cuts);
        let found = (diff.equal, diff.changed, diff.only_production, diff.only_candidate, diff.repeated_keys);
        prop_assert_eq!(found, counted(&one, &two));
        let nulls = |rows: &[Pair]| rows.iter().filter(|row| row.0.is_none()).count() as u64;
        prop_assert_eq!((diff.null_keys_production, diff.null_keys_candidate), (nulls(&one), nulls(&two)));
    }
}

#[test]
fn rows_out_of_key_order_are_said_to_be() {
    let mut comparer =
        Comparer::new(&side(&[]).schema(), &["id".to_owned()], &Equality::default()).unwrap();
    comparer.feed(Origin::Candidate, Some(side(&[(2, None, "a"), (1, None, "a")]))).unwrap();
    assert!(matches!(comparer.step().unwrap(), Step::Unordered(Origin::Candidate)));
}

fn with_column(values: ArrayRef) -> RecordBatch {
    let ids = Int64Array::from_iter_values((0_i64..).take(values.len()));
    RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(ids) as ArrayRef, false),
        ("c", values, true),
    ])
    .unwrap()
}

fn changed_by(before: ArrayRef, after: ArrayRef, rule: Rule) -> u64 {
    let equality = Equality(BTreeMap::from([("c".to_owned(), rule)]));
    compare(&with_column(before), &with_column(after), &["id".to_owned()], &equality)
        .unwrap()
        .changed
}

#[test]
fn tolerances_and_truncations_are_as_their_rules_say() {
    let floats = |values: &[f64]| Arc::new(Float64Array::from(values.to_vec())) as ArrayRef;
    let absolute = Rule { absolute: Some(Real(0.5)), ..Rule::default() };
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let before = floats(&[1.0, 1.0, 0.0, nan, inf, inf, nan]);
    let after = floats(&[1.5, 1.6, -0.0, nan, inf, 1.0, 1.0]);
    assert_eq!(changed_by(before, after, absolute), 3);
    let relative = Rule { relative: Some(Real(0.01)), ..Rule::default() };
    assert_eq!(
        changed_by(floats(&[100.0, 100.0, 0.0]), floats(&[101.0, 101.1, 0.001]), relative),
        2
    );
    let decimals = |values: &[i128]| {
        let array = Decimal128Array::from(values.to_vec()).with_precision_and_scale(10, 2);
        Arc::new(array.unwrap()) as ArrayRef
    };
    assert_eq!(changed_by(decimals(&[100, 100]), decimals(&[150, 151]), absolute), 1);
    let times =
        |values: &[i64]| Arc::new(TimestampMicrosecondArray::from(values.to_vec())) as ArrayRef;
    let second = Rule { truncate: Some(Truncation::Second), ..Rule::default() };
    assert_eq!(changed_by(times(&[1, -1, 5]), times(&[999_999, 1, 5]), second), 1);
}

#[test]
fn a_rule_that_does_not_fit_its_column_is_refused() {
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let batch = with_column(text);
    for (column, rule) in [
        ("c", Rule { absolute: Some(Real(1.0)), ..Rule::default() }),
        ("c", Rule::default()),
        ("nowhere", Rule { absolute: Some(Real(1.0)), ..Rule::default() }),
    ] {
        let equality = Equality(BTreeMap::from([(column.to_owned(), rule)]));
        let error = compare(&batch, &batch, &["id".to_owned()], &equality).unwrap_err();
        assert!(error.to_string().contains(column), "{error}");
    }
}

#[test]
fn a_struct_differs_by_the_paths_of_its_fields() {
    let fields = Fields::from(vec![
        Field::new("a", DataType::Int32, true),
        Field::new("b", DataType::Int32, true),
    ]);
    let structs = |values: [(Option<i32>, i32); 3], nulls: [bool; 3]| {
        let a: ArrayRef = Arc::new(Int32Array::from_iter(values.iter().map(|value| value.0)));
        let b: ArrayRef =
            Arc::new(Int32Array::from_iter_values(values.iter().map(|value| value.1)));
        Arc::new(StructArray::new(
            fields.clone(),
            vec![a, b],
            Some(NullBuffer::from(nulls.to_vec())),
        )) as ArrayRef
    };
    let before = structs([(Some(1), 1), (Some(2), 2), (None, 3)], [true, true, false]);
    let after = structs([(Some(1), 9), (Some(2), 2), (None, 3)], [true, true, true]);
    let diff = compare(
        &with_column(before),
        &with_column(after),
        &["id".to_owned()],
        &Equality::default(),
    )
    .unwrap();
    let columns: Vec<(&str, u64)> =
        diff.columns.iter().map(|(name, column)| (name.as_str(), column.changed)).collect();
    assert_eq!(columns, [("c", 1), ("c.b", 2)]);
    assert_eq!(diff.changed, 2);
}
