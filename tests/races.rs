//! Two processes publish at once, 200 rounds; every history is checked.

use std::process::{Child, Stdio};

use crate::common::{Lab, MAKER, OWNER};

const DATASET: [&str; 2] = ["--dataset", "lake/sales"];

fn with<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().copied().chain(DATASET).collect()
}

fn publish(lab: &Lab, plan: &str) -> Child {
    let mut command = lab.command(&with(&["publish", plan, "--json"]));
    command.args(["--as", MAKER]).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Plans, runs, checks and approves a range with one SQL.
fn ready(lab: &Lab, first: &str, last: &str) -> String {
    let words = ["plan", "specs/sales.toml", "--first", first, "--last", last, "--json"];
    let plan = lab.run(&words).expect(0).json()["plan_id"].as_str().unwrap().to_owned();
    lab.run(&with(&["run", &plan])).expect(0);
    lab.run(&with(&["check", &plan])).expect(0);
    lab.run_as(OWNER, &with(&["approve", &plan])).expect(0);
    plan
}

fn outcome(child: Child) -> (i32, String) {
    let output = child.wait_with_output().unwrap();
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code().unwrap(), value["outcome"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn of_two_publishers_at_once_none_is_lost_doubled_or_mixed() {
    let lab = Lab::ten_days();
    lab.adopt("lake/sales", "day", "UTC").expect(0);
    let early = ready(&lab, "2024-03-01", "2024-03-02");
    let late = ready(&lab, "2024-03-03", "2024-03-04");
    lab.edit("specs/sales.sql", "rate, amount FROM", "rate, amount * 2 AS amount FROM");
    let other = ready(&lab, "2024-03-02", "2024-03-03");
    for round in 0..200 {
        let lab = lab.copied();
        // The same plan twice; two plans of different days; two plans that share a day.
        let (one, two) = match round % 3 {
            0 => (&early, &early),
            1 => (&early, &late),
            _ => (&early, &other),
        };
        let children = (publish(&lab, one), publish(&lab, two));
        let mut outcomes = [outcome(children.0), outcome(children.1)];
        outcomes.sort();
        let names: Vec<&str> = outcomes.iter().map(|(_, name)| name.as_str()).collect();
        let log = lab.run(&with(&["log", "--json"])).expect(0).json();
        let versions = log["versions"].as_array().unwrap();
        let publishes = versions.iter().filter(|version| version["kind"] == "publish").count();
        match round % 3 {
            // Once; the other finds it, or made the very same commit.
            0 => assert_eq!((versions.len(), publishes), (2, 1), "round {round}: {names:?}"),
            1 => assert_eq!(
                (versions.len(), names),
                (3, vec!["published", "published"]),
                "round {round}"
            ),
            _ => {
                assert_eq!((versions.len(), publishes), (2, 1), "round {round}");
                assert_eq!(names, ["published", "conflict"], "round {round}");
                assert_eq!(outcomes[1].0, 4);
            }
        }
    }
}
