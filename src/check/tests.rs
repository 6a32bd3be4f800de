use super::*;

#[test]
fn a_percentage_never_rounds_to_all_or_nothing() {
    assert_eq!(percent(0, 10), "0 %");
    assert_eq!(percent(1, 1_000_000_000), "0.01 %");
    assert_eq!(percent(999_999_999, 1_000_000_000), "99.99 %");
    assert_eq!(percent(10, 10), "100 %");
    assert_eq!(percent(1, 0), "unknown");
}
