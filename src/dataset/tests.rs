#![expect(clippy::disallowed_methods, reason = "tests make and break files")]

use std::fs::{self, File};
use std::path::Path as FsPath;
use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;

use super::*;
use crate::calendar::{Calendar, Every};
use crate::env::Env;
use crate::error::ErrorKind;
use crate::storage::Environment;

fn days() -> Calendar {
    Calendar { every: Every::Day, timezone: chrono_tz::Tz::UTC, week_start: None }
}

fn write(file: &FsPath, values: &[i64]) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let names: Vec<String> = values.iter().map(|value| format!("n{value}")).collect();
    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from(values.to_vec())) as arrow::array::ArrayRef),
        ("name", Arc::new(StringArray::from(names))),
    ])
    .unwrap();
    let mut writer =
        ArrowWriter::try_new(File::create(file).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

struct Lake {
    folder: tempfile::TempDir,
    stores: Stores,
    env: Env,
}

impl Lake {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for day in 1..=3 {
            let file = folder.path().join(format!("events/day=2013-01-0{day}/a.parquet"));
            write(&file, &[1, 2, day]);
        }
        Self { folder, stores: Stores::new(Environment::default()), env: Env::system() }
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join(path)
    }

    fn dataset(&self) -> Dataset {
        Dataset::at(&self.stores, "events", self.folder.path()).unwrap()
    }

    async fn adopted(&self) -> (Dataset, Version) {
        let dataset = self.dataset();
        let found = dataset.survey("day", &days(), None).await.unwrap();
        let options = InitOptions {
            definition: found.definition,
            partitions: found.partitions,
            policy: Policy::default(),
            actor: "owner".into(),
            reason: "first".into(),
        };
        let InitOutcome::Made(version) = dataset.init(options, &self.env).await.unwrap() else {
            panic!("it was a dataset already")
        };
        (dataset, version)
    }

    fn live(&self, day: &str, file: &str, base: Option<u64>) -> LiveCommit {
        LiveCommit {
            partition: day.into(),
            files: vec![self.path(file).display().to_string()],
            base,
            logic: Some("v7".into()),
            actor: "pipeline".into(),
            reason: "nightly".into(),
        }
    }

    async fn commit(&self, live: &LiveCommit) -> Result<LiveOutcome> {
        self.dataset().commit_live(&self.stores, live, &self.env).await
    }
}

#[tokio::test]
async fn adopting_touches_nothing_and_names_every_refused_object() {
    let lake = Lake::new();
    fs::write(lake.path("events/day=2013-01-02/empty.parquet"), "").unwrap();
    fs::write(lake.path("events/day=2013-01-02/_SUCCESS"), "").unwrap();
    fs::write(lake.path("events/stray.parquet"), "x").unwrap();
    write(&lake.path("events/day=__HIVE_DEFAULT_PARTITION__/a.parquet"), &[1]);
    let whole = fs::read(lake.path("events/day=2013-01-01/a.parquet")).unwrap();
    fs::write(lake.path("events/day=2013-01-03/cut.parquet"), &whole[..whole.len() / 2]).unwrap();
    let (dataset, version) = lake.adopted().await;
    let found = dataset.survey("day", &days(), None).await.unwrap();
    let reasons: Vec<(&str, bool)> =
        found.refused.iter().map(|object| (object.path.as_str(), object.looks_like_data)).collect();
    assert_eq!(
        reasons,
        [
            ("day=2013-01-02/_SUCCESS", false),
            ("day=2013-01-02/empty.parquet", true),
            ("day=2013-01-03/cut.parquet", true),
            ("day=__HIVE_DEFAULT_PARTITION__/a.parquet", true),
            ("stray.parquet", true),
        ]
    );
    assert!(found.refused[2].reason.contains("cut short"), "{}", found.refused[2].reason);
    assert_eq!(version.manifest.totals.rows, 9);
    assert_eq!(version.manifest.definition.partition.placement, Placement::Path);
    assert_eq!(fs::read(lake.path("events/day=2013-01-01/a.parquet")).unwrap(), whole);
}

#[tokio::test]
async fn a_file_with_other_columns_is_refused_not_filled_with_nulls() {
    let lake = Lake::new();
    let file = lake.path("events/day=2013-01-04/a.parquet");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let ids = Arc::new(arrow::array::Int32Array::from(vec![1]));
    let batch = RecordBatch::try_from_iter([("id", ids as arrow::array::ArrayRef)]).unwrap();
    let mut writer =
        ArrowWriter::try_new(File::create(file).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let found = lake.dataset().survey("day", &days(), None).await.unwrap();
    assert!(found.refused[0].reason.contains("\"id\" is Int32, not Int64"), "{:?}", found.refused);
}

#[tokio::test]
async fn replacing_a_partition_needs_the_version_that_was_seen() {
    let lake = Lake::new();
    let (dataset, _) = lake.adopted().await;
    write(&lake.path("new.parquet"), &[7]);
    let refused = lake.commit(&lake.live("2013-01-02", "new.parquet", None)).await.unwrap_err();
    assert!(refused.hints()[0].contains("--base 1"), "{:?}", refused.hints());
    let done = lake.commit(&lake.live("2013-01-02", "new.parquet", Some(1))).await.unwrap();
    assert!(matches!(done, LiveOutcome::Committed(version) if version.number() == 2));
    // The same again is nothing new; another content on the old base is a conflict.
    let again = lake.commit(&lake.live("2013-01-02", "new.parquet", Some(1))).await.unwrap();
    assert!(matches!(again, LiveOutcome::Already(_)));
    write(&lake.path("newer.parquet"), &[8]);
    let stale = lake.commit(&lake.live("2013-01-02", "newer.parquet", Some(1))).await.unwrap();
    let LiveOutcome::Conflict { reason, head: 2 } = stale else { panic!("{stale:?}") };
    assert!(reason.contains("changed by version 2"), "{reason}");
    // A new partition needs no base, and the others carry forward.
    let added = lake.commit(&lake.live("2013-01-04", "new.parquet", None)).await.unwrap();
    let LiveOutcome::Committed(version) = added else { panic!("{added:?}") };
    let partitions = dataset.partitions(&version).await.unwrap();
    assert_eq!(partitions.present().count(), 4);
    assert_eq!(partitions.named("2013-01-01").unwrap().changed_in, 1);
    assert_eq!(partitions.named("2013-01-02").unwrap().superseded.len(), 1);
}

#[tokio::test]
async fn removed_history_is_noticed() {
    let lake = Lake::new();
    let (dataset, _) = lake.adopted().await;
    write(&lake.path("new.parquet"), &[7]);
    for day in ["2013-01-04", "2013-01-05"] {
        let done = lake.commit(&lake.live(day, "new.parquet", None)).await.unwrap();
        assert!(matches!(done, LiveOutcome::Committed(_)));
    }
    let second = lake.path(&format!("events.reissue/{}", layout::version(2)));
    let bytes = fs::read(&second).unwrap();
    fs::remove_file(&second).unwrap();
    let gap = dataset.head().await.unwrap_err();
    assert_eq!(gap.kind(), ErrorKind::Corrupt);
    assert!(gap.message().contains("version 2 is missing"), "{gap}");
    let text = String::from_utf8(bytes).unwrap().replace("nightly", "nightlx");
    fs::write(&second, text).unwrap();
    let changed = dataset.head().await.unwrap_err();
    assert_eq!(changed.kind(), ErrorKind::Corrupt, "{changed}");
}

#[tokio::test]
async fn a_commit_whose_first_try_landed_unnoticed_is_committed_not_lost() {
    let lake = Lake::new();
    let (dataset, head) = lake.adopted().await;
    let change = |name: &str| Change {
        kind: Kind::Commit,
        cause: Cause::default(),
        partitions: Vec::new(),
        commit_id: crate::identity::Digest::of_bytes(name.as_bytes()),
        actor: "pipeline".into(),
        at: lake.env.now(),
        policy: None,
    };
    let first = dataset.commit(&head, &change("ours"), &lake.env).await.unwrap();
    assert!(matches!(first, CommitOutcome::Committed(version) if version.number() == 2));
    // The reply was lost; the store says that the object exists. It is ours.
    let again = dataset.commit(&head, &change("ours"), &lake.env).await.unwrap();
    assert!(matches!(again, CommitOutcome::Committed(version) if version.number() == 2));
    let other = dataset.commit(&head, &change("another's"), &lake.env).await.unwrap();
    assert!(matches!(other, CommitOutcome::Lost(version) if version.number() == 2));
}

#[tokio::test]
async fn changes_by_writers_who_do_not_know_us_are_seen() {
    let lake = Lake::new();
    let (dataset, version) = lake.adopted().await;
    write(&lake.path("events/day=2013-01-01/a.parquet"), &[5]);
    write(&lake.path("events/day=2013-01-02/b.parquet"), &[6]);
    fs::remove_file(lake.path("events/day=2013-01-03/a.parquet")).unwrap();
    let partitions = dataset.partitions(&version).await.unwrap();
    let report = dataset.foreign_changes(partitions.present()).await.unwrap();
    let seen: Vec<_> = report.changes.iter().map(|c| (c.partition.as_str(), c.what)).collect();
    assert_eq!(seen, [("2013-01-01", "changed"), ("2013-01-02", "added"), ("2013-01-03", "gone")]);
    let (again, names, _) =
        dataset.adopt_again("owner", "taken in", false, &lake.env).await.unwrap();
    assert_eq!(names, ["2013-01-01", "2013-01-02", "2013-01-03"]);
    assert_eq!(again.manifest.totals.partitions, 2);
    let partitions = dataset.partitions(&again).await.unwrap();
    assert!(dataset.foreign_changes(partitions.present()).await.unwrap().changes.is_empty());
}

#[tokio::test]
async fn a_restored_root_has_other_tags_but_is_the_same() {
    let lake = Lake::new();
    let (dataset, version) = lake.adopted().await;
    let file = lake.path("events/day=2013-01-01/a.parquet");
    let bytes = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    fs::write(&file, bytes).unwrap();
    let partitions = dataset.partitions(&version).await.unwrap();
    assert!(dataset.foreign_changes(partitions.present()).await.unwrap().changes.is_empty());
}

#[tokio::test]
async fn of_many_commits_at_once_each_number_has_one_winner_and_none_is_lost() {
    let lake = Lake::new();
    let (dataset, _) = lake.adopted().await;
    write(&lake.path("new.parquet"), &[7]);
    let lives: Vec<_> =
        (10..22).map(|day| lake.live(&format!("2013-01-{day}"), "new.parquet", None)).collect();
    let outcomes = futures::future::join_all(lives.iter().map(|live| lake.commit(live))).await;
    assert!(outcomes.into_iter().all(|done| matches!(done, Ok(LiveOutcome::Committed(_)))));
    let history = dataset.history().await.unwrap();
    assert_eq!(history.len(), 13);
    assert_eq!(history.last().unwrap().manifest.totals.partitions, 15);
}
