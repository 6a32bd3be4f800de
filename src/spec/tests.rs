use super::*;

const SPEC: &str = r#"[dataset]
url       = "../lake/on_time"
partition = { column = "flight_date", every = "day", timezone = "America/New_York" }
key       = ["carrier", "flight", "origin"]

[range]
first = "2013-01-01"
last  = "2013-03-31"

[change]
reason  = "cancelled flights were counted as on time"
owner   = "flight-analytics"
columns = ["on_time"]

[transform]
sql = "../sql/on_time.sql"

[parameters]
late_after_minutes = 15
since = 2013-01-01

[sources.flights]
url      = "../lake/flights"
interval = "flight_date"
lookback = "1 day"
"#;

fn read(text: &str) -> Result<Spec> {
    Spec::from_toml(text, Path::new("specs/on_time.toml"))
}

fn refused(from: &str, to: &str) -> (String, String) {
    let text = SPEC.replace(from, to);
    assert_ne!(text, SPEC, "the replacement must hit");
    let error = read(&text).unwrap_err();
    (error.to_string(), error.hints().join("; "))
}

#[test]
fn a_whole_spec_is_read() {
    let spec = read(SPEC).unwrap();
    assert_eq!(spec.sources["flights"].lookback.to_string(), "1 day");
    assert_eq!(spec.folder, Path::new("specs"));
    assert_eq!(spec.limits, Limits::default());
    assert_eq!(spec.parameters["late_after_minutes"].value().unwrap().to_string(), "15");
    assert_eq!(spec.parameters["since"].value().unwrap().to_string(), "2013-01-01");
}

#[test]
fn an_unknown_key_is_refused_with_its_line_and_the_known_ones() {
    let (error, hint) = refused("reason  =", "reasson =");
    assert!(error.contains("line 11: reasson"), "{error}");
    assert!(error.contains("`reason`"), "{error}");
    assert!(!hint.is_empty());
}

#[test]
fn a_wrong_value_shows_its_line_and_the_fix() {
    let (error, hint) = refused("America/New_York", "New York");
    assert!(error.contains("line 3:") && error.contains("New York"), "{error}");
    assert!(hint.contains("America/New_York"), "{hint}");
    let (error, _) = refused("2013-03-31", "2013-02-30");
    assert!(error.contains("line 6: [range]"), "{error}");
    let (error, hint) = refused("cancelled flights were counted as on time", " ");
    assert!(error.contains("line 11:") && error.contains("empty"), "{error}");
    assert!(hint.contains("ticket"), "{hint}");
    let (error, _) = refused("\"1 day\"", "\"1 fortnight\"");
    assert!(error.contains("line 25:") && error.contains("fortnight"), "{error}");
}

#[test]
fn a_bound_that_no_number_could_keep_is_refused() {
    for checks in [
        "range.delay = { min = nan }",
        "range.delay = { max = nan }",
        "range.delay = { min = 2, max = 1 }",
        "rows = { max_relative_change = nan }",
        "rows = { max_relative_change = -0.1 }",
        "sum.delay = { max_relative_change = nan }",
    ] {
        let error = read(&format!("{SPEC}\n[checks]\n{checks}\n")).unwrap_err();
        let name = checks.split(" =").next().unwrap();
        assert!(error.to_string().contains(name), "{checks}: {error}");
        assert!(!error.hints().is_empty(), "{checks}");
    }
    let error = read(&format!("{SPEC}\n[expect]\nnet_change.delay = {{ max = nan }}\n"));
    assert!(error.unwrap_err().to_string().contains("net_change.delay"));
}

#[test]
fn broken_toml_shows_the_line() {
    let (error, _) = refused("owner   = \"flight-analytics\"", "owner = \"flight");
    assert!(error.contains("line 12:"), "{error}");
}

#[test]
fn first_with_end_is_no_range() {
    let (error, _) = refused("last  = \"2013-03-31\"", "end = \"2013-03-31\"");
    assert!(error.contains("range") || error.contains("line"), "{error}");
}

#[test]
fn a_key_column_cannot_be_a_changed_column() {
    let (error, _) = refused("columns = [\"on_time\"]", "columns = [\"origin\"]");
    assert!(error.contains("key column \"origin\""), "{error}");
}
