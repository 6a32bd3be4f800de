#![expect(clippy::disallowed_methods, reason = "tests make and break files")]

use std::fs;
use std::path::Path;
use std::time::Instant;

use super::*;

fn stores() -> Stores {
    Stores::new(Environment::default())
}

async fn everywhere(check: impl AsyncFn(Root)) {
    let folder = tempfile::tempdir().unwrap();
    let stores = stores();
    check(stores.root("lake", folder.path()).unwrap()).await;
    check(stores.root("memory://test/lake", Path::new("/")).unwrap()).await;
}

#[tokio::test]
async fn a_path_is_written_at_most_once() {
    everywhere(async |root| {
        assert!(matches!(root.create("a/b.json", "one").await.unwrap(), Created::New(_)));
        assert!(matches!(root.create("a/b.json", "two").await.unwrap(), Created::Exists));
        assert!(matches!(root.commit("a/b.json", "two").await.unwrap(), CommitAnswer::Exists));
        assert_eq!(root.read("a/b.json").await.unwrap().unwrap(), "one");
    })
    .await;
}

#[tokio::test]
async fn listings_are_sorted_relative_and_empty_for_absent_folders() {
    everywhere(async |root| {
        assert!(root.list("none").await.unwrap().objects.is_empty());
        for path in ["d/2.json", "d/10.json", "d/e/1.json"] {
            assert!(matches!(root.create(path, "x").await.unwrap(), Created::New(_)));
        }
        let paths: Vec<_> =
            root.list("d").await.unwrap().objects.into_iter().map(|object| object.path).collect();
        assert_eq!(paths, ["d/10.json", "d/2.json", "d/e/1.json"]);
    })
    .await;
}

#[tokio::test]
async fn a_large_object_is_visible_only_when_finished() {
    everywhere(async |root| {
        let mut writer = root.writer("data/large").await.unwrap();
        writer.write(&[7; 100_000]).await.unwrap();
        assert!(root.find("data/large").await.unwrap().is_none());
        let written = writer.finish().await.unwrap();
        assert_eq!(written.hash, crate::identity::file_hash(&[7; 100_000]));
        assert_eq!(root.find("data/large").await.unwrap().unwrap().size, 100_000);
        let mut given_up = root.writer("data/other").await.unwrap();
        given_up.write(b"x").await.unwrap();
        given_up.abort().await;
        assert!(root.find("data/other").await.unwrap().is_none());
    })
    .await;
}

#[tokio::test]
async fn a_pinned_object_that_is_replaced_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let root = stores().root("lake", folder.path()).unwrap();
    let Created::New(object) = root.create("a", "first").await.unwrap() else { panic!("exists") };
    let pinned = root.absolute(&object);
    let reader = root.store().open(&pinned).unwrap();
    assert_eq!(reader.read(1..3).await.unwrap(), "ir");
    reader.finish().unwrap();

    // The same name, size and modification time; other bytes.
    let file = folder.path().join("lake/a");
    let modified = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, "other").unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
    assert_eq!(reader.finish().unwrap_err().kind(), ErrorKind::Stale);
    assert_eq!(root.store().open(&pinned).unwrap_err().kind(), ErrorKind::Stale);
}

#[tokio::test]
async fn leftovers_of_a_dead_process_are_swept_and_never_listed() {
    let folder = tempfile::tempdir().unwrap();
    let root = stores().root("lake", folder.path()).unwrap();
    let writer = root.writer("data/x").await.unwrap();
    let left = folder.path().join("lake/data/.reissue-unfinished-dead");
    fs::write(&left, "half").unwrap();
    let fresh = folder.path().join("lake/data/.reissue-unfinished-fresh");
    fs::write(&fresh, "perhaps not locked yet").unwrap();
    let hour_ago = std::time::SystemTime::UNIX_EPOCH;
    fs::File::options().write(true).open(&left).unwrap().set_modified(hour_ago).unwrap();
    assert!(root.list("").await.unwrap().objects.is_empty());
    let swept = root.store().sweep_unfinished(&root.full("")).unwrap();
    assert_eq!(swept, 1, "the living writer's file stays, the dead one's goes");
    drop(writer);
    assert!(!left.exists() && fresh.exists());
}

#[tokio::test]
async fn one_odd_entry_does_not_hide_the_others() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = tempfile::tempdir().unwrap();
    let root = stores().root(".", folder.path()).unwrap();
    fs::write(folder.path().join("good"), "x").unwrap();
    fs::write(folder.path().join(std::ffi::OsStr::from_bytes(b"bad\xff")), "x").unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("broken")).unwrap();
    std::os::unix::fs::symlink(".", folder.path().join("loop")).unwrap();
    let listing = root.list("").await.unwrap();
    assert!(listing.objects.iter().any(|object| object.path == "good"));
    assert_eq!(listing.objects.len(), 1);
    assert!(listing.refused.iter().any(|(path, _)| path == "broken"));
    assert!(listing.refused.iter().any(|(path, _)| path == "loop"));
    assert!(listing.refused.iter().any(|(_, why)| why.contains("UTF-8")));
}

#[test]
fn missing_credentials_are_said_within_two_seconds_with_what_to_do() {
    for (url, hint) in [("s3://b/x", "AWS_"), ("az://c/x", "AZURE_"), ("gs://b/x", "GOOGLE_")] {
        let start = Instant::now();
        let error = stores().root(url, Path::new("/")).unwrap_err();
        assert!(start.elapsed().as_secs_f64() < 2.0, "{url}: {:?}", start.elapsed());
        assert!(error.message().contains("no credentials"), "{error}");
        assert!(error.hints()[0].contains(hint), "{:?}", error.hints());
    }
}

#[test]
fn urls_of_unknown_kinds_are_refused() {
    let error = stores().root("ftp://host/x", Path::new("/")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}
