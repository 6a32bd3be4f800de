//! The large exercise: ninety days of real flights, a bad corrections file on day 17.

use std::fs;
use std::path::Path;

use arrow::array::{ArrayRef, Date32Array, Int32Array, RecordBatch, StringArray};
use std::sync::Arc;

use crate::common::{Lab, MAKER, OWNER, write};

const BAD_DAY: &str = "2013-01-17";
const DATASET: [&str; 2] = ["--dataset", "lake/on_time"];

fn with<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().copied().chain(DATASET).collect()
}

/// Delivers day 17's corrections as they should be.
fn mend(lab: &Lab) {
    let folder = lab.path(&format!("lake/corrections/flight_date={BAD_DAY}"));
    fs::remove_dir_all(&folder).unwrap();
    let batch = RecordBatch::try_from_iter([
        ("carrier", Arc::new(StringArray::from(vec!["AA", "AA"])) as ArrayRef),
        ("flight", Arc::new(Int32Array::from(vec![145, 269]))),
        ("origin", Arc::new(StringArray::from(vec!["JFK", "JFK"]))),
        ("dep_delay", Arc::new(Int32Array::from(vec![41, 3]))),
        ("local_date", Arc::new(Date32Array::from(vec![15722, 15722]))),
    ])
    .unwrap();
    let nullable: arrow::datatypes::Schema = arrow::datatypes::Schema::new(
        batch
            .schema()
            .fields()
            .iter()
            .map(|f| f.as_ref().clone().with_nullable(false))
            .collect::<Vec<_>>(),
    );
    let batch = batch.with_schema(Arc::new(nullable)).unwrap();
    write(Path::new(&folder.join("corrections-1.parquet")), &batch);
}

#[test]
fn ninety_days_fail_on_day_17_resume_publish_roll_back_and_stay_rolled_back() {
    let lab = Lab::flights();
    lab.adopt("lake/on_time", "flight_date", "America/New_York").expect(0);
    let before = lab.hashes("lake/on_time");
    let plan = lab.plan("specs/on_time.toml");

    // Day 17 fails; later batches are not started; its evidence stays.
    let run = lab.run(&with(&["run", &plan, "--json"])).expect(3).json();
    assert_eq!(run["failed"][0]["partition"], BAD_DAY);
    assert!(run["computed"].as_u64().unwrap() < 40, "{run}");
    let failed = run["failed"][0]["findings"].as_array().unwrap().clone();
    let failed: Vec<&str> = failed.iter().map(|f| f["check"].as_str().unwrap()).collect();
    assert!(failed.contains(&"interval") && failed.contains(&"unique-key"), "{failed:?}");
    lab.run(&with(&["publish", &plan])).expect(3);
    lab.run(&with(&["check", &plan])).expect(3);
    assert!(
        lab.run_as(OWNER, &with(&["approve", &plan])).expect(3).stdout.contains("checks failed")
    );

    // All other days, nothing published.
    let run = lab.run(&with(&["run", &plan, "--keep-going", "--json"])).expect(3).json();
    assert_eq!(run["computed"].as_u64().unwrap() + run["done_before"].as_u64().unwrap(), 89);
    lab.run(&with(&["publish", &plan])).expect(3);

    // The file is replaced: 89 kept, 1 computed.
    mend(&lab);
    let dry = lab.run(&["plan", "specs/on_time.toml", "--json"]).expect(0).json();
    assert_eq!((&dry["kept"], &dry["to_compute"]), (&89.into(), &1.into()));
    let mended = dry["plan_id"].as_str().unwrap().to_owned();
    assert_ne!(mended, plan);
    let run = lab.run(&with(&["run", &mended, "--json"])).expect(0).json();
    assert_eq!((&run["kept"], &run["computed"]), (&89.into(), &1.into()));
    let status = lab.run(&with(&["status", &plan, "--json"])).expect(0).json();
    assert_eq!(status["failed"][0]["partition"], BAD_DAY, "the evidence of the first plan stays");

    // Checked, approved by somebody else, published at once.
    let report = lab.run(&with(&["check", &mended, "--json"])).expect(0).json();
    assert_eq!(report["total"]["changed"], 2_646);
    lab.run_as(MAKER, &with(&["approve", &mended])).expect(3);
    lab.run(&with(&["publish", &mended])).expect(3);
    lab.run_as(OWNER, &with(&["approve", &mended])).expect(0);
    let published = lab.run(&with(&["publish", &mended, "--json"])).expect(0).json();
    assert_eq!((&published["version"], &published["partitions"]), (&2.into(), &90.into()));
    let again = lab.run(&with(&["publish", &mended, "--json"])).expect(0).json();
    assert_eq!(again["outcome"], "already-published");

    // Rolled back, once; a naive scheduler does not republish.
    let preview = lab.run(&with(&["rollback", "--of", &mended, "--json"])).expect(0).json();
    assert_eq!(preview["preview"]["partitions"].as_array().unwrap().len(), 90);
    lab.run(&with(&["rollback", "--of", &mended, "--expect", "1"])).expect(4);
    let back = lab
        .run_as(OWNER, &with(&["rollback", "--of", &mended, "--expect", "2", "--json"]))
        .expect(0)
        .json();
    assert_eq!(back["version"], 3);
    let twice =
        lab.run(&with(&["rollback", "--of", &mended, "--expect", "3", "--json"])).expect(0).json();
    assert_eq!((&twice["outcome"], &twice["version"]), (&"already-rolled-back".into(), &3.into()));
    for _ in 0..3 {
        let retry = lab.run(&with(&["publish", &mended, "--json"])).expect(3).json();
        assert_eq!((&retry["outcome"], &retry["undone_by"]), (&"rolled-back".into(), &3.into()));
    }
    // With a new approval it can be published again.
    lab.run_as(OWNER, &with(&["approve", &mended])).expect(0);
    assert_eq!(lab.run(&with(&["publish", &mended, "--json"])).expect(0).json()["version"], 4);
    assert_eq!(before, lab.hashes("lake/on_time"), "no file of the root was ever touched");
}

#[test]
fn batch_by_batch_publishing_never_passes_a_failure_and_says_it_is_partial() {
    let lab = Lab::flights();
    lab.adopt("lake/on_time", "flight_date", "America/New_York").expect(0);
    fs::write(lab.path("policy.toml"), "publish_by_batch = true\n").unwrap();
    lab.edit("specs/on_time.toml", "[expect]", "[publish]\nunit = \"batch\"\n\n[expect]");
    // The owner's rules decide, not the spec.
    assert!(lab.run(&["plan", "specs/on_time.toml"]).expect(2).stderr.contains("does not allow"));
    lab.run_as(OWNER, &["policy", "lake/on_time", "--set", "policy.toml"]).expect(0);
    let plan = lab.plan("specs/on_time.toml");
    lab.run(&with(&["run", &plan])).expect(3);
    for batch in ["1", "2"] {
        lab.run(&with(&["check", &plan, "--batch", batch])).expect(0);
        lab.run_as(OWNER, &with(&["approve", &plan, "--batch", batch])).expect(0);
    }
    assert!(
        lab.run(&with(&["publish", &plan, "--batch", "2"]))
            .expect(2)
            .stderr
            .contains("before batch 1")
    );
    let first = lab.run(&with(&["publish", &plan, "--json"])).expect(0).json();
    assert_eq!(
        (&first["partial"]["published"], &first["partial"]["planned"]),
        (&7.into(), &90.into())
    );
    let second = lab.run(&with(&["publish", &plan, "--json"])).expect(0).json();
    assert_eq!(second["partial"]["published"], 14);
    // Batch 3 holds day 17: neither it nor anything after it is published.
    lab.run(&with(&["publish", &plan])).expect(3);
    lab.run(&with(&["publish", &plan, "--batch", "4"])).expect(2);
    let files = lab.run(&with(&["files", "--json"])).expect(0).json();
    assert_eq!(files["partial"]["published"], 14, "the version says that it holds part of a run");
    let ours = files["files"].as_array().unwrap().iter().filter(|file| file["place"] == "control");
    assert_eq!(ours.count(), 14);
    assert!(lab.run(&with(&["log"])).stdout.contains("part of a run: 14 of 90"));
    // Rolling back undoes all of its commits at once.
    let back =
        lab.run(&with(&["rollback", "--of", &plan, "--expect", "4", "--json"])).expect(0).json();
    assert_eq!(back["preview"]["partitions"].as_array().unwrap().len(), 14);
}

#[test]
fn the_key_without_the_origin_has_exactly_24_repeated_keys_in_the_year() {
    let lab = Lab::flights();
    fs::write(
        lab.path("flights.toml"),
        r#"[dataset]
url       = "lake/flights"
partition = { column = "flight_date", every = "day", timezone = "America/New_York" }
key       = ["carrier", "flight"]

[range]
first = "2013-01-01"
last  = "2013-12-31"

[change]
reason  = "a look at the key"
owner   = "flight-analytics"
columns = ["dep_delay"]

[transform]
sql = "flights.sql"

[sources.flights]
url      = "lake/flights"
interval = "flight_date"
"#,
    )
    .unwrap();
    fs::write(lab.path("flights.sql"), "SELECT * FROM flights\n").unwrap();
    lab.adopt("lake/flights", "flight_date", "America/New_York").expect(0);
    let plan = lab.plan("flights.toml");
    let words = ["run", &plan, "--keep-going", "--dataset", "lake/flights", "--json"];
    let run = lab.run(&words).expect(3).json();
    let failed = run["failed"].as_array().unwrap();
    let repeated: u64 =
        failed.iter().map(|f| f["metrics"]["keys"]["repeated_keys"].as_u64().unwrap()).sum();
    assert_eq!(repeated, 24);
    let said = failed[0]["findings"][0].to_string();
    assert!(said.contains("unique-key") && said.contains("carrier="), "{said}");
}

#[test]
fn the_demo_tells_its_whole_story() {
    let lab = Lab::empty();
    let folder = lab.path("demo");
    let told = lab.run_with(&["demo", "--folder", folder.to_str().unwrap()], &[]).expect(0);
    for words in [
        "is a dataset now: version 1",
        "nothing was written",
        "90 partitions in 13 batches of at most 7",
        "FAILED 2013-01-17",
        "89 kept from earlier plans",
        "0 warnings, 0 failed",
        "not approved: analyst@example.com made this candidate",
        "published as version 2: 90 partitions in one commit",
        "version 3: 90 partitions are what they were",
        "its approval is used up",
    ] {
        assert!(told.stdout.contains(words), "{words:?} is not in: {}", told.stdout);
    }
    let json =
        lab.run_with(&["demo", "--json", "--folder", lab.path("two").to_str().unwrap()], &[]);
    assert_eq!(json.expect(0).json()["steps"].as_array().unwrap().len(), 20);
}
