//! `diff` of random tables of every type, beside an independent comparison in plain Python.

use crate::common::{Lab, REISSUE};

/// 150 pairs, with their seeds from 1; more of them with `REISSUE_PAIRS`.
#[test]
fn random_pairs_of_tables_differ_as_plain_python_says() {
    let pairs = std::env::var("REISSUE_PAIRS").unwrap_or_else(|_| "150".to_owned());
    let lab = Lab::empty();
    let folder = lab.path("pairs").display().to_string();
    let said = lab.python("random_pairs.py", &[REISSUE, "1", &pairs, &folder]);
    assert!(said.ends_with(&format!("{pairs} pairs, 0 wrong\n")), "{said}");
}
