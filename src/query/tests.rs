#![expect(clippy::disallowed_methods, reason = "tests make and break files")]

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, Date32Array, Float64Array, Int64Array, RecordBatch,
    StringArray, TimestampMicrosecondArray, UInt32Array,
};
use chrono::{TimeZone as _, Utc};
use datafusion::common::ScalarValue;
use futures::TryStreamExt as _;
use parquet::arrow::ArrowWriter;

use super::*;
use crate::calendar::{Calendar, Every};
use crate::dataset::{PartitionColumn, Placement, TimeKind};
use crate::error::{Error, Result};
use crate::spec::Parameter;
use crate::storage::{Environment, Stores};

/// Flights around the short day of New York, with their instants and local dates.
fn flights() -> RecordBatch {
    let hours = [0, 5, 23, 30].map(|hour| {
        Utc.with_ymd_and_hms(2013, 3, 10, 0, 0, 0).unwrap().timestamp_micros()
            + hour * 3_600_000_000
    });
    RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(Int64Array::from(vec![1, 2, 3, 4])) as ArrayRef, false),
        ("day", Arc::new(Date32Array::from(vec![15773, 15774, 15774, 15775])), false),
        (
            "at",
            Arc::new(TimestampMicrosecondArray::from(hours.to_vec()).with_timezone("UTC")),
            false,
        ),
        ("wall", Arc::new(TimestampMicrosecondArray::from(hours.to_vec())), false),
        ("delay", Arc::new(Float64Array::from(vec![Some(1.0), None, Some(0.5), Some(2.0)])), true),
        ("name", Arc::new(StringArray::from(vec!["a", "b", "c", "d"])), false),
    ])
    .unwrap()
}

struct Lake {
    folder: tempfile::TempDir,
    stores: Stores,
}

impl Lake {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), stores: Stores::new(Environment::default()) }
    }

    async fn table(
        &self,
        name: &str,
        batch: &RecordBatch,
        window: Option<RowWindow>,
    ) -> PinnedTable {
        let path = self.folder.path().join(name);
        let mut writer =
            ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
        self.pinned(name, batch.schema(), window).await
    }

    async fn pinned(
        &self,
        name: &str,
        schema: arrow::datatypes::SchemaRef,
        window: Option<RowWindow>,
    ) -> PinnedTable {
        let root = self.stores.root(".", self.folder.path()).unwrap();
        let object = root.absolute(&root.find(name).await.unwrap().unwrap());
        let file = PinnedFile {
            object,
            store: Arc::clone(root.store()),
            footer: None,
            path_values: BTreeMap::new(),
        };
        PinnedTable::new(schema, vec![file], window)
    }
}

fn parameters() -> Parameters {
    let calendar = Calendar {
        every: Every::Day,
        timezone: chrono_tz::Tz::America__New_York,
        week_start: None,
    };
    let interval = calendar.named("2013-03-10").unwrap();
    let column = PartitionColumn {
        column: "day".into(),
        placement: Placement::Path,
        time: TimeKind::Date,
        calendar,
    };
    let declared = BTreeMap::from([("late_after".to_owned(), Parameter::Integer(15))]);
    Parameters::of(&interval, &column, Utc.timestamp_opt(0, 0).unwrap(), &declared).unwrap()
}

async fn prepare(sql: &str) -> Result<Prepared> {
    let lake = Lake::new();
    let table = lake.table("flights.parquet", &flights(), None).await;
    let query = Query::parse(sql, "test.sql")?;
    Prepared::new(&query, &BTreeMap::from([("flights".to_owned(), table)]), &parameters()).await
}

async fn run(sql: &str, table: PinnedTable) -> RecordBatch {
    let session = Session::new(&SessionOptions::default()).unwrap();
    session.register("flights", table).unwrap();
    let query = Query::parse(sql, "test.sql").unwrap();
    let stream = session.run(&query, &parameters(), &[]).await.unwrap();
    let schema = stream.schema();
    let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
    arrow::compute::concat_batches(&schema, &batches).unwrap()
}

fn whole(error: &Error) -> String {
    format!("{error}; {}; {}", error.hints().join("; "), error.causes().join("; "))
}

#[track_caller]
fn refused(sql: &str) -> String {
    whole(&Query::parse(sql, "test.sql").unwrap_err())
}

#[test]
fn anything_but_one_query_is_refused() {
    for sql in [
        "INSERT INTO flights VALUES (1)",
        "CREATE TABLE x AS SELECT 1",
        "COPY flights TO 'x.parquet'",
        "SET datafusion.execution.batch_size = 1",
        "SELECT 1; SELECT 2",
        "DROP TABLE flights",
        "EXPLAIN SELECT 1",
        "",
    ] {
        let text = refused(sql);
        assert!(text.contains("SELECT") || text.contains("query"), "{sql}: {text}");
    }
}

#[test]
fn table_functions_and_select_into_are_refused() {
    assert!(refused("SELECT * FROM read_parquet('x')").contains("table function read_parquet"));
    assert!(
        refused("SELECT * FROM (SELECT * FROM generate_series(1, 2)) t")
            .contains("generate_series")
    );
    assert!(refused("SELECT 1 INTO x").contains("only reads"));
}

#[test]
fn a_chain_that_would_kill_the_planner_is_refused_by_its_size() {
    let sql = format!("SELECT {}", vec!["1"; 20_000].join("+"));
    assert!(refused(&sql).contains("19999 operators"));
}

#[test]
fn comments_and_spacing_do_not_change_the_canonical_text() {
    let one = Query::parse("-- why\nSELECT  a\nFROM t", "a.sql").unwrap();
    let two = Query::parse("select a from t", "a.sql").unwrap();
    assert_eq!(one.digest(), two.digest());
    assert_ne!(one.digest(), Query::parse("select b from t", "a.sql").unwrap().digest());
}

#[tokio::test]
async fn clocks_and_chance_are_refused_by_name_also_in_subqueries() {
    for (sql, name) in [
        ("SELECT now() AS t FROM flights", "now()"),
        ("SELECT id FROM flights WHERE at < current_timestamp", "now()"),
        ("SELECT random() AS r FROM flights", "random()"),
        ("SELECT id FROM flights WHERE day = (SELECT current_date)", "current_date()"),
    ] {
        let error = whole(&prepare(sql).await.unwrap_err());
        assert!(error.contains(name), "{sql}: {error}");
    }
}

#[tokio::test]
async fn unknown_parameters_and_tables_are_refused_with_the_known_ones() {
    let error = whole(&prepare("SELECT id FROM flights WHERE day = $day").await.unwrap_err());
    assert!(error.contains("$day") && error.contains("$start_at"), "{error}");
    let error = whole(&prepare("SELECT id FROM airlines").await.unwrap_err());
    assert!(error.contains("airlines") && error.contains("declared sources: flights"), "{error}");
}

#[tokio::test]
async fn different_kinds_of_time_are_not_compared() {
    for sql in [
        "SELECT id FROM flights WHERE day >= $start_at",
        "SELECT id FROM flights WHERE at >= $start",
        "SELECT id FROM flights WHERE at BETWEEN $start AND $end",
        "SELECT id FROM flights WHERE wall < $end_at",
        "SELECT id FROM flights WHERE at = '2013-03-10 12:00:00'",
        "SELECT id FROM flights WHERE day IN ($start_at)",
        "SELECT a.id FROM flights a JOIN flights b ON a.day = b.at",
        "SELECT id FROM flights WHERE id IN (SELECT id FROM flights WHERE at < $end)",
        "SELECT id FROM flights WHERE at IN (SELECT day FROM flights)",
    ] {
        let error = whole(&prepare(sql).await.expect_err(sql));
        assert!(error.contains("compares"), "{sql}: {error}");
    }
    for sql in [
        "SELECT id FROM flights WHERE day >= $start AND day < $end",
        "SELECT id FROM flights WHERE at >= $start_at AND at < $end_at",
        "SELECT id FROM flights WHERE day = '2013-03-10'",
        "SELECT id FROM flights WHERE day = CAST(at AS date)",
    ] {
        prepare(sql).await.expect(sql);
    }
}

#[tokio::test]
async fn the_short_new_york_day_is_its_own_rows() {
    let lake = Lake::new();
    let table = lake.table("f.parquet", &flights(), None).await;
    let rows =
        run("SELECT id FROM flights WHERE day >= $start AND day < $end ORDER BY id", table.clone())
            .await;
    assert_eq!(rows.column(0).as_ref(), &Int64Array::from(vec![2, 3]) as &dyn arrow::array::Array);
    let rows =
        run("SELECT id FROM flights WHERE at >= $start_at AND at < $end_at ORDER BY id", table)
            .await;
    assert_eq!(rows.column(0).as_ref(), &Int64Array::from(vec![2, 3]) as &dyn arrow::array::Array);
}

#[tokio::test]
async fn order_sensitive_constructs_are_named() {
    let named =
        |sql: &'static str| async move { prepare(sql).await.unwrap().order_sensitive.join("; ") };
    assert!(named("SELECT sum(delay) AS s FROM flights").await.contains("floating-point"));
    assert!(named("SELECT array_agg(id) AS s FROM flights").await.contains("no ORDER BY"));
    assert!(
        named("SELECT id, row_number() OVER (ORDER BY day) AS n FROM flights")
            .await
            .contains("equal")
    );
    assert!(named("SELECT id FROM flights ORDER BY day LIMIT 1").await.contains("LIMIT"));
    assert_eq!(named("SELECT sum(id) AS s, max(delay) AS m FROM flights").await, "");
    let error = whole(&prepare("SELECT id FROM flights LIMIT 1").await.unwrap_err());
    assert!(error.contains("LIMIT without an ORDER BY"), "{error}");
}

#[tokio::test]
async fn only_the_columns_that_matter_count_as_read() {
    let prepared = prepare("SELECT id FROM flights WHERE delay > $late_after").await.unwrap();
    let columns: Vec<&str> = prepared.reads["flights"].iter().map(String::as_str).collect();
    assert_eq!(columns, ["delay", "id"]);
    assert_eq!(prepared.parameters, ["late_after"]);
}

#[tokio::test]
async fn a_window_shows_exactly_its_rows() {
    let lake = Lake::new();
    let at = |hour: i64| {
        let start = Utc.with_ymd_and_hms(2013, 3, 10, 0, 0, 0).unwrap().timestamp_micros();
        ScalarValue::TimestampMicrosecond(Some(start + hour * 3_600_000_000), Some("UTC".into()))
    };
    let window = RowWindow { column: "at".into(), start: at(5), end: at(30) };
    let table = lake.table("f.parquet", &flights(), Some(window)).await;
    let rows = run("SELECT count(*) AS n FROM flights", table).await;
    assert_eq!(rows.column(0).as_ref(), &Int64Array::from(vec![2]) as &dyn arrow::array::Array);
}

#[tokio::test]
async fn a_file_changed_after_it_was_pinned_fails_the_query() {
    let lake = Lake::new();
    let table = lake.table("f.parquet", &flights(), None).await;
    let path = lake.folder.path().join("f.parquet");
    let (bytes, modified) =
        (std::fs::read(&path).unwrap(), path.metadata().unwrap().modified().unwrap());
    std::fs::write(&path, bytes).unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    let session = Session::new(&SessionOptions::default()).unwrap();
    session.register("flights", table).unwrap();
    let query = Query::parse("SELECT count(*) AS n FROM flights", "t").unwrap();
    let stream = session.run(&query, &parameters(), &[]).await.unwrap();
    let failed = stream.try_collect::<Vec<_>>().await.unwrap_err();
    let error = crate::error::from_engine(crate::error::ErrorKind::Internal, "run", failed);
    assert_eq!(error.kind(), crate::error::ErrorKind::Stale, "{error}");
}

/// A footer that lies about a column's values, as truncating writers and NaN make them.
#[tokio::test]
async fn wrong_statistics_never_change_an_answer() {
    let lake = Lake::new();
    let values: Vec<i64> = (0..1_000).collect();
    let numbers: ArrayRef = Arc::new(Int64Array::from(values));
    let floats: ArrayRef = Arc::new(Float64Array::from_iter_values(
        (0..1_000).map(|n| if n == 0 { 1.0 } else { f64::NAN }),
    ));
    let batch = RecordBatch::try_from_iter([("x", numbers), ("y", floats)]).unwrap();
    let table = lake.table("f.parquet", &batch, None).await;
    // The greatest value 999 of the footer becomes 10; the statistics hold it as eight bytes.
    let path = lake.folder.path().join("f.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    let (from, to) = (999_i64.to_le_bytes(), 10_i64.to_le_bytes());
    let footer = bytes.len() - 8 - footer_length(&bytes);
    let mut patched = 0;
    for at in footer..bytes.len() - 8 {
        if bytes[at..].starts_with(&from) {
            bytes[at..at + 8].copy_from_slice(&to);
            patched += 1;
        }
    }
    assert!(patched > 0, "the footer holds the greatest value");
    std::fs::write(&path, bytes).unwrap();
    let table = lake.pinned("f.parquet", Arc::clone(table.schema_ref()), None).await;
    let sql = "SELECT max(x) AS a, count(*) AS b FROM flights WHERE x > 100";
    let rows = run(sql, table.clone()).await;
    assert_eq!(
        ScalarValue::try_from_array(rows.column(0), 0).unwrap(),
        ScalarValue::Int64(Some(999))
    );
    assert_eq!(
        ScalarValue::try_from_array(rows.column(1), 0).unwrap(),
        ScalarValue::Int64(Some(899))
    );
    let rows = run("SELECT count(*) AS n FROM flights WHERE y > 2", table.clone()).await;
    assert_eq!(
        ScalarValue::try_from_array(rows.column(0), 0).unwrap(),
        ScalarValue::Int64(Some(999))
    );
    let rows = run("SELECT y FROM flights WHERE y = 1.0", table).await;
    assert_eq!(rows.num_rows(), 1, "NaN is not rewritten to the constant");
}

fn footer_length(bytes: &[u8]) -> usize {
    let at = bytes.len() - 8;
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

#[tokio::test]
async fn sessions_share_nothing_so_a_rewritten_file_is_never_remembered() {
    let lake = Lake::new();
    let path: &Path = &lake.folder.path().join("f.parquet");
    let one = |value: i64| {
        RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from(vec![value])) as ArrayRef)])
            .unwrap()
    };
    let table = lake.table("f.parquet", &one(1), None).await;
    let modified = path.metadata().unwrap().modified().unwrap();
    let before = run("SELECT max(x) AS x FROM flights", table).await;
    let table = lake.table("f.parquet", &one(2), None).await;
    File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
    let schema = Arc::clone(table.schema_ref());
    let after =
        run("SELECT max(x) AS x FROM flights", lake.pinned("f.parquet", schema, None).await).await;
    assert_ne!(before.column(0), after.column(0));
    assert_eq!(after.column(0).len(), 1);
}

fn ids(batch: &RecordBatch) -> Vec<i64> {
    batch.column(0).as_primitive::<arrow::datatypes::Int64Type>().values().to_vec()
}

/// A run's queries over a table that is held within a limit.
struct HeldFlights {
    lake: Lake,
    options: SessionOptions,
    held: Arc<HeldTables>,
    table: PinnedTable,
}

impl HeldFlights {
    async fn new(limit: usize) -> Self {
        let lake = Lake::new();
        let memory = SessionOptions::pool(1 << 20);
        let held = Arc::new(HeldTables::new(&memory, limit));
        let table = lake.table("flights.parquet", &flights(), None).await;
        let options = SessionOptions { memory: Some(memory), ..SessionOptions::default() };
        Self { lake, options, held, table }
    }

    async fn ids(&self, sql: &str) -> Result<Vec<i64>, String> {
        let session = Session::new(&self.options).unwrap();
        let table = self.table.clone().held_in(Arc::clone(&self.held), "flights");
        session.register("flights", table).unwrap();
        let query = Query::parse(sql, "test.sql").unwrap();
        let stream = session.run(&query, &parameters(), &[]).await.unwrap();
        let batches: Vec<RecordBatch> =
            stream.try_collect().await.map_err(|error| error.to_string())?;
        Ok(batches.iter().flat_map(ids).collect())
    }
}

const IDS: &str = "SELECT id FROM flights";

#[tokio::test]
async fn a_table_that_every_query_reads_is_decoded_once_if_it_fits() {
    for (limit, is_held) in [(1 << 20, true), (16, false)] {
        let run = HeldFlights::new(limit).await;
        assert_eq!(run.ids(IDS).await.unwrap(), [1, 2, 3, 4]);
        assert_eq!(run.ids("SELECT id FROM flights LIMIT 2").await.unwrap(), [1, 2]);
        assert_eq!(run.ids("SELECT count(*) AS n FROM flights").await.unwrap(), [4]);
        std::fs::remove_file(run.lake.folder.path().join("flights.parquet")).unwrap();
        assert_eq!(run.ids(IDS).await.is_ok(), is_held);
        // Rows without columns take no room.
        assert_eq!(run.ids("SELECT count(*) AS n FROM flights").await.unwrap(), [4]);
        let other_column = run.ids("SELECT id FROM flights WHERE delay > 0").await;
        assert!(other_column.is_err(), "decoded from a file that is gone: {other_column:?}");
    }
}

#[tokio::test]
async fn after_an_error_a_held_table_is_read_again() {
    let run = HeldFlights::new(1 << 20).await;
    // The folder, because a renamed file is a changed one.
    let here = run.lake.folder.path();
    let away = here.with_extension("away");
    std::fs::rename(here, &away).unwrap();
    assert!(run.ids(IDS).await.is_err());
    std::fs::rename(&away, here).unwrap();
    assert_eq!(run.ids(IDS).await.unwrap(), [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_query_that_has_stopped_asking_holds_nobody_up() {
    let run = HeldFlights::new(1 << 20).await;
    let session = Session::new(&run.options).unwrap();
    let table = run.table.clone().held_in(Arc::clone(&run.held), "flights");
    session.register("flights", table).unwrap();
    let query = Query::parse(IDS, "test.sql").unwrap();
    let mut stopped = session.run(&query, &parameters(), &[]).await.unwrap();
    // Asked once, and then neither again nor dropped.
    let _ = futures::poll!(stopped.try_next());
    let ids = tokio::time::timeout(std::time::Duration::from_secs(20), run.ids(IDS)).await;
    assert_eq!(ids.unwrap().unwrap(), [1, 2, 3, 4]);
    drop(stopped);
}

#[tokio::test]
async fn the_side_of_a_join_with_fewer_expected_rows_is_the_one_in_memory() {
    let lake = Lake::new();
    let backwards = UInt32Array::from(vec![3, 2, 1, 0]);
    let backwards = arrow::compute::take_record_batch(&flights(), &backwards).unwrap();
    let other = lake.table("other.parquet", &backwards, None).await;
    let flights = lake.table("flights.parquet", &flights(), None).await;
    let sql = "SELECT flights.id FROM flights JOIN other ON flights.id = other.id";
    let query = Query::parse(sql, "test.sql").unwrap();
    // The rows come in the order of the side that is not in memory.
    for (sizes, expected) in [([1, 1_000], [4, 3, 2, 1]), ([1_000, 1], [1, 2, 3, 4])] {
        let session = Session::new(&SessionOptions::default()).unwrap();
        session.register("flights", flights.clone().expecting(sizes[0])).unwrap();
        session.register("other", other.clone().expecting(sizes[1])).unwrap();
        let stream = session.run(&query, &parameters(), &[]).await.unwrap();
        let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
        let ids: Vec<i64> = batches.iter().flat_map(ids).collect();
        assert_eq!(ids, expected);
    }
    // An estimate is never an answer: a count reads the rows.
    let counted = run("SELECT count(*) AS n FROM flights", flights.expecting(99)).await;
    assert_eq!(ids(&counted), [4]);
}
