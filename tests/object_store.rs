//! The whole path on S3, against a real server (SeaweedFS) that this test starts and ends.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Lab, MAKER, OWNER};

/// A running server; ended when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().expect("the server was running");
        self.0.wait().expect("the server has ended");
    }
}

const PORT: u16 = 18_333;

fn start(lab: &Lab) -> Server {
    let config = r#"{"identities":[{"name":"test","credentials":[{"accessKey":"testkey","secretKey":"testsecret"}],"actions":["Admin","Read","List","Tagging","Write"]}]}"#;
    std::fs::write(lab.path("s3.json"), config).unwrap();
    let python = std::env::var("REISSUE_PYTHON")
        .expect("REISSUE_PYTHON names the referees' Python: use tests/run");
    let weed = std::path::Path::new(&python).with_file_name("weed");
    let folder = lab.path("weed");
    std::fs::create_dir_all(&folder).unwrap();
    let mut command = Command::new(weed);
    command.args([
        "-logtostderr=true",
        "mini",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-master.telemetry=false",
    ]);
    command.args([
        "-webdav=false",
        "-admin.ui=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-s3.autoCreateBucket=false",
        "-bucket=lake",
    ]);
    command.arg(format!("-s3.port={PORT}")).arg(format!("-dir={}", folder.display()));
    command.arg(format!("-s3.config={}", lab.path("s3.json").display()));
    let log = std::fs::File::create(lab.path("weed.log")).unwrap();
    let child = command
        .stdout(Stdio::null())
        .stderr(log)
        .current_dir(lab.path("."))
        .spawn()
        .expect("weed is installed with the referees");
    Server(child)
}

const ENVIRONMENT: [(&str, &str); 6] = [
    ("AWS_ACCESS_KEY_ID", "testkey"),
    ("AWS_SECRET_ACCESS_KEY", "testsecret"),
    ("AWS_REGION", "us-east-1"),
    ("AWS_ENDPOINT", "http://127.0.0.1:18333"),
    ("AWS_ALLOW_HTTP", "true"),
    ("REISSUE_DATASET", "s3://lake/sales"),
];

#[test]
fn the_whole_path_works_on_s3_and_two_publishers_make_one_version() {
    let lab = Lab::ten_days();
    let _server = start(&lab);
    let python = |script: &str| {
        let output = Command::new(std::env::var("REISSUE_PYTHON").unwrap())
            .args(["-c", script])
            .envs(ENVIRONMENT)
            .current_dir(lab.path("."))
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let begun = Instant::now();
    let upload = "
import os, pyarrow.fs as fs
s3 = fs.S3FileSystem(endpoint_override='127.0.0.1:18333', scheme='http', access_key='testkey', secret_key='testsecret', region='us-east-1')
fs.copy_files('lake/sales', 'lake/sales', destination_filesystem=s3)
fs.copy_files('lake/orders', 'lake/orders', destination_filesystem=s3)
";
    loop {
        let ready = TcpStream::connect(("127.0.0.1", PORT)).is_ok();
        let (done, said) = if ready { python(upload) } else { (false, "not listening".to_owned()) };
        if done {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{said}");
        std::thread::sleep(Duration::from_millis(300));
    }
    let run = |actor: &str, words: &[&str]| {
        let words: Vec<&str> = words.iter().copied().chain(["--as", actor]).collect();
        lab.run_with(&words, &ENVIRONMENT)
    };
    for (from, to) in [
        ("\"../lake/sales\"", "\"s3://lake/sales\""),
        ("\"../lake/orders\"", "\"s3://lake/orders\""),
    ] {
        lab.edit("specs/sales.toml", from, to);
    }
    run(OWNER, &["init", "s3://lake/sales", "--adopt", "--partition", "day", "--timezone", "UTC"])
        .expect(0);
    let dry = run(MAKER, &["plan", "specs/sales.toml", "--json"]).expect(0).json();
    let plan = dry["plan_id"].as_str().unwrap().to_owned();
    let ran = run(MAKER, &["run", &plan, "--json"]).expect(0).json();
    let counts = &ran["stores"]["s3://lake"];
    assert!(counts["http_requests"].as_u64().unwrap() > 50, "requests are counted: {ran}");
    let report = run(MAKER, &["check", &plan, "--json"]).expect(0).json();
    assert_eq!(report["total"]["changed"], 3_637);
    run(OWNER, &["approve", &plan]).expect(0);
    let publish = || {
        let mut command = lab.command(&["publish", &plan, "--json", "--as", MAKER]);
        command.envs(ENVIRONMENT).stdout(Stdio::piped()).spawn().unwrap()
    };
    for child in [publish(), publish()] {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let log = run(MAKER, &["log", "--json"]).expect(0).json();
    assert_eq!(log["versions"].as_array().unwrap().len(), 2);
    let rows = run(MAKER, &["query", "SELECT count(*) AS n FROM sales", "--json"]).expect(0).json();
    assert_eq!(rows["rows"][0]["n"], 10_900);
    run(OWNER, &["rollback", "--of", &plan, "--expect", "2"]).expect(0);
    run(OWNER, &["files", "--check"]).expect(0);
    // A wrong secret is a refusal, not an absent dataset.
    let mut wrong = ENVIRONMENT;
    wrong[1].1 = "wrong";
    let refused = lab.run_with(&["log"], &wrong).expect(2);
    assert!(refused.stderr.contains("refuses"), "{}", refused.stderr);
}
