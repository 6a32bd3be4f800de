//! `diff` of folders whose files, columns and layouts are not alike: nothing that differs is told
//! as equal.

use serde_json::Value;

use crate::common::Lab;

fn lab() -> Lab {
    let lab = Lab::empty();
    lab.python("odd_folders.py", &[&lab.path("").display().to_string()]);
    lab
}

fn diff(lab: &Lab, one: &str, two: &str) -> Value {
    lab.run(&["diff", one, two, "--key", "id", "--json"]).expect(0).json()
}

fn refused(lab: &Lab, one: &str, two: &str, key: &str) -> String {
    lab.run(&["diff", one, two, "--key", key]).expect(2).said()
}

/// `[changed, only in production, only in the candidate]`.
fn rows(diff: &Value) -> [u64; 3] {
    ["changed", "only_production", "only_candidate"]
        .map(|name| diff["total"][name].as_u64().unwrap())
}

#[test]
fn values_that_do_not_fit_the_first_files_type_are_compared_or_refused_and_never_null() {
    let lab = lab();
    assert_eq!(rows(&diff(&lab, "narrow", "narrow")), [0, 0, 0]);
    let found = diff(&lab, "narrow", "narrow_other");
    assert_eq!(rows(&found), [1, 0, 0]);
    assert_eq!(found["total"]["columns"]["v"]["null_only_production"], 0);
    let said = refused(&lab, "mixed", "narrow", "id");
    assert!(
        said.contains("\"v\"") && said.contains("a.parquet") && said.contains("b.parquet"),
        "{said}"
    );
    let said = refused(&lab, "far_ms", "near_ns", "id");
    assert!(said.contains("does not fit") && said.contains("column: v"), "{said}");
}

#[test]
fn a_column_that_some_files_lack_is_null_there_and_told() {
    let lab = lab();
    let found = diff(&lab, "grown", "grown_other");
    assert_eq!(rows(&found), [1, 0, 0]);
    let found = diff(&lab, "grown", "shrunk");
    assert_eq!(rows(&found), [3, 0, 0]);
    assert_eq!(found["schema"][0]["column"], "late");
    let said = lab.run(&["diff", "shrunk", "without", "--key", "id"]).expect(0).said();
    assert!(said.contains("absent in 1 of 2 files"), "{said}");
}

#[test]
fn a_folders_name_does_not_hide_the_files_own_column() {
    let lab = lab();
    assert_eq!(rows(&diff(&lab, "hive_in", "hive_in_other")), [3, 0, 0]);
}

#[test]
fn the_same_rows_in_other_folders_meet() {
    let lab = lab();
    assert_eq!(rows(&diff(&lab, "hive_1", "hive_01")), [1, 0, 0]);
    let whole = diff(&lab, "hive_1", "flat");
    assert_eq!(rows(&whole), [0, 0, 0]);
    assert_eq!(whole["is_equal"], true, "{whole}");
    assert!(whole["layout"].as_str().unwrap().contains("m="), "{whole}");
    assert_eq!(rows(&diff(&lab, "hive_01", "flat")), [1, 0, 0]);
    assert_eq!(rows(&diff(&lab, "default_1", "default_01")), [0, 0, 0]);
    assert_eq!(diff(&lab, "order_ab", "order_ba")["is_equal"], true);
    assert_eq!(rows(&diff(&lab, "hive_null", "flat_null")), [0, 0, 0]);
    let apart = diff(&lab, "hive_1", "hive_3");
    assert!(apart["layout"].as_str().unwrap().contains("no partition is on both sides"), "{apart}");
    let part = ["diff", "hive_1", "hive_01", "--key", "id", "--partition", "2", "--json"];
    assert_eq!(rows(&lab.run(&part).expect(0).json()), [1, 0, 0]);
}

#[test]
fn one_file_is_a_side_too() {
    let lab = lab();
    assert_eq!(rows(&diff(&lab, "narrow/b.parquet", "narrow_other/b.parquet")), [1, 0, 0]);
    assert_eq!(rows(&diff(&lab, "flat/a.parquet", "flat")), [0, 0, 0]);
    // A folder that is called as a version would be.
    assert_eq!(rows(&diff(&lab, "number", "s@2")), [1, 0, 0]);
    assert!(refused(&lab, "number", "nowhere@3", "id").contains("no Parquet file"));
}

#[test]
fn keys_that_are_no_number_are_one_key() {
    let lab = lab();
    let words = ["diff", "nan_one", "nan_two", "--key", "k", "--json"];
    let found = lab.run(&words).expect(0).json();
    assert_eq!(found["total"]["equal"], 2, "{found}");
    // The engine's sort agrees with ours, or this would not end.
    let words = [&words[..], &["--memory", "1"]].concat();
    assert_eq!(lab.run(&words).expect(0).json()["total"], found["total"]);
}

#[test]
fn a_column_called_like_a_structs_field_is_refused() {
    let lab = lab();
    let said = refused(&lab, "path_one", "path_one", "id");
    assert!(said.contains("two columns are called \"a.b\""), "{said}");
}

#[test]
fn types_that_hold_the_same_values_are_compared_by_value() {
    let lab = lab();
    let found = diff(&lab, "types_one", "types_two");
    let columns: Vec<&str> =
        found["total"]["columns"].as_object().unwrap().keys().map(String::as_str).collect();
    let all = ["bytes", "clock", "deep.x", "double", "ints", "texts", "whole", "wide", "zone"];
    assert_eq!(columns, all, "{found}");
    for column in all {
        assert_eq!(found["total"]["columns"][column]["changed"], 1, "{column}");
    }
    assert!(found["schema"].as_array().unwrap().iter().all(|one| one["compared"] == true));
}

#[test]
fn sides_with_columns_that_were_not_compared_are_not_called_equal() {
    let lab = lab();
    for (one, two) in [("text", "number"), ("without", "number"), ("number", "without")] {
        let found = diff(&lab, one, two);
        assert_eq!((rows(&found), &found["is_equal"]), ([0, 0, 0], &Value::Bool(false)), "{found}");
        let said = lab.run(&["diff", one, two, "--key", "id"]).expect(0).said();
        assert!(said.contains("the sides are not equal"), "{said}");
    }
    let said = refused(&lab, "upper", "number", "id");
    assert!(said.contains("\"ID\""), "{said}");
    assert!(said.contains("no column in common"), "{said}");
}

#[test]
fn tables_without_a_column_that_names_segments_are_explained_too() {
    let lab = lab();
    let found =
        lab.run(&["diff", "times_one", "times_two", "--key", "at", "--json"]).expect(0).json();
    assert_eq!(rows(&found), [1, 0, 0]);
    assert_eq!(found["clusters"][0]["column"], "price");
}

#[test]
fn fields_of_a_struct_are_compared_by_name_whatever_their_order() {
    let lab = lab();
    let found = diff(&lab, "fields_one", "fields_two");
    let columns: Vec<&String> = found["total"]["columns"].as_object().unwrap().keys().collect();
    assert_eq!(columns, ["s.b"], "{found}");
    assert_eq!(found["total"]["columns"]["s.b"]["changed"], 1);
}

#[test]
fn tolerances_without_a_key_are_refused() {
    let said = refused_words(&["diff", "number", "number", "--keyless", "--absolute", "v=1"]);
    assert!(said.contains("--keyless"), "{said}");
}

fn refused_words(words: &[&str]) -> String {
    Lab::empty().run(words).expect(2).said()
}
