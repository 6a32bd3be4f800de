//! Command-line sessions word for word. After a wanted change: `TRYCMD=overwrite tests/run golden`,
//! then read the difference.

#[test]
fn sessions_say_what_they_said() {
    // Help is as wide as the terminal; without one, as this says.
    trycmd::TestCases::new().env("COLUMNS", "100").case("tests/golden/*.trycmd");
}
