//! Command-line sessions word for word. After a wanted change: `TRYCMD=overwrite tests/run golden`,
//! then read the difference.

#[test]
fn sessions_say_what_they_said() {
    trycmd::TestCases::new().case("tests/golden/*.trycmd");
}
