//! Numbers that carry a guarantee, three ways: our meters over the batches that were written, the
//! engine over the file, and pyarrow with plain Python over the file.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, BinaryArray, BooleanArray, Decimal128Array, Decimal256Array,
    DictionaryArray, FixedSizeBinaryArray, Float32Array, Float64Array, Int64Array,
    LargeStringArray, ListArray, MapArray, RecordBatch, StringArray, StringViewArray, StructArray,
    UInt64Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields, Int32Type, TimeUnit, i256};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use parquet::arrow::ArrowWriter;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use reissue::metrics::{ColumnMetrics, Meter, Metrics};
use serde_json::Value;

use crate::common::Dice;

/// How many values are null.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Nulls {
    None,
    Some,
    All,
}

/// What a table is made of.
#[derive(Debug, Clone)]
struct Recipe {
    columns: Vec<usize>,
    rows: usize,
    nulls: Nulls,
    seed: u64,
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let rows = prop_oneof![
        10 => Just(0_usize),
        30 => Just(1_usize),
        30 => 2_usize..40,
        30 => Just(1_023_usize),
        1 => Just(65_537_usize),
    ];
    let nulls = prop_oneof![Just(Nulls::None), Just(Nulls::Some), Just(Nulls::All)];
    let columns = prop::collection::vec(0..KINDS.len(), 1..5);
    (columns, rows, nulls, any::<u64>()).prop_map(|(mut columns, rows, nulls, seed)| {
        if rows > 10_000 {
            columns.truncate(2);
        }
        Recipe { columns, rows, nulls, seed }
    })
}

type Make = fn(usize, Nulls, &mut Dice) -> ArrayRef;

const KINDS: &[(&str, Make)] = &[
    ("bool", |n, nulls, dice| {
        Arc::new(BooleanArray::from(some(n, nulls, dice, |d| d.below(2) == 0)))
    }),
    ("int8", |n, nulls, dice| integer(n, nulls, dice, &DataType::Int8)),
    ("int16", |n, nulls, dice| integer(n, nulls, dice, &DataType::Int16)),
    ("int32", |n, nulls, dice| integer(n, nulls, dice, &DataType::Int32)),
    ("int64", |n, nulls, dice| integer(n, nulls, dice, &DataType::Int64)),
    ("uint8", |n, nulls, dice| unsigned(n, nulls, dice, &DataType::UInt8)),
    ("uint16", |n, nulls, dice| unsigned(n, nulls, dice, &DataType::UInt16)),
    ("uint32", |n, nulls, dice| unsigned(n, nulls, dice, &DataType::UInt32)),
    ("uint64", |n, nulls, dice| unsigned(n, nulls, dice, &DataType::UInt64)),
    ("float16", |n, nulls, dice| cast(&floats(n, nulls, dice), &DataType::Float16).unwrap()),
    ("float32", |n, nulls, dice| {
        Arc::new(Float32Array::from(some(n, nulls, dice, |d| match d.below(4) {
            0 => f32::from_bits(u32::try_from(d.next() >> 32).unwrap()),
            1 => -0.0,
            2 => f32::MAX,
            _ => f32::from(u16::try_from(d.below(60_000)).unwrap()) / 7.0,
        })))
    }),
    ("float64", floats),
    ("decimal", |n, nulls, dice| {
        let values = some(n, nulls, dice, |d| match d.below(4) {
            0 => 10_i128.pow(38) - 1,
            1 => 1 - 10_i128.pow(38),
            _ => i128::from(d.next()) - i128::from(u64::MAX / 2),
        });
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(38, 6).unwrap())
    }),
    ("decimal18", |n, nulls, dice| {
        let values = some(n, nulls, dice, |d| {
            i128::from(d.next() % 1_000_000_000_000_000_000) - 500_000_000_000_000_000
        });
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(18, 2).unwrap())
    }),
    ("decimal256", |n, nulls, dice| {
        let values = some(n, nulls, dice, |d| {
            let high = i256::from_i128(10_i128.pow(37) + i128::from(d.next()));
            if d.below(2) == 0 { high * i256::from_i128(10_i128.pow(35)) } else { -high }
        });
        Arc::new(Decimal256Array::from(values).with_precision_and_scale(76, 4).unwrap())
    }),
    ("text", |n, nulls, dice| Arc::new(StringArray::from(some(n, nulls, dice, text)))),
    ("large_text", |n, nulls, dice| Arc::new(LargeStringArray::from(some(n, nulls, dice, text)))),
    ("text_view", |n, nulls, dice| {
        Arc::new(StringViewArray::from_iter(some(n, nulls, dice, text)))
    }),
    ("dictionary", |n, nulls, dice| {
        let values = some(n, nulls, dice, |d| format!("value {}", d.below(5)));
        let values: DictionaryArray<Int32Type> =
            values.iter().map(|value| value.as_deref()).collect();
        Arc::new(values)
    }),
    ("binary", |n, nulls, dice| {
        let values = some(n, nulls, dice, |d| d.next().to_le_bytes()[..d.index(9)].to_vec());
        Arc::new(BinaryArray::from_iter(values))
    }),
    ("fixed", |n, nulls, dice| {
        let values = some(n, nulls, dice, |d| d.next().to_le_bytes());
        Arc::new(
            FixedSizeBinaryArray::try_from_sparse_iter_with_size(values.into_iter(), 8).unwrap(),
        )
    }),
    ("date", |n, nulls, dice| integer(n, nulls, dice, &DataType::Date32)),
    ("wall", |n, nulls, dice| {
        instant(n, nulls, dice, &DataType::Timestamp(TimeUnit::Microsecond, None))
    }),
    ("instant", |n, nulls, dice| {
        instant(n, nulls, dice, &DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())))
    }),
    ("time", |n, nulls, dice| {
        let values = some(n, nulls, dice, |d| i64::try_from(d.below(86_400_000_000)).unwrap());
        cast(
            &(Arc::new(Int64Array::from(values)) as ArrayRef),
            &DataType::Time64(TimeUnit::Microsecond),
        )
        .unwrap()
    }),
    ("list", |n, nulls, dice| {
        let lists = some(n, nulls, dice, |d| {
            let items = d.below(4);
            (0..items)
                .map(|_| (d.below(5) > 0).then(|| i32::try_from(d.below(1 << 30)).unwrap()))
                .collect::<Vec<_>>()
        });
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists))
    }),
    ("struct", |n, nulls, dice| {
        let a = integer(n, nulls, dice, &DataType::Int64);
        let b: ArrayRef = Arc::new(StringArray::from(some(n, nulls, dice, text)));
        let fields: Fields =
            vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::Utf8, true)]
                .into();
        Arc::new(StructArray::try_new(fields, vec![a, b], valid(n, nulls, dice)).unwrap())
    }),
    ("map", |n, nulls, dice| {
        let sizes: Vec<usize> = (0..n).map(|_| dice.index(3)).collect();
        let all: usize = sizes.iter().sum();
        let keys: ArrayRef =
            Arc::new(StringArray::from_iter_values((0..all).map(|at| format!("k{at}"))));
        let values = integer(all, nulls, dice, &DataType::Int64);
        let fields: Fields = vec![
            Field::new("key", DataType::Utf8, false),
            Field::new("value", DataType::Int64, true),
        ]
        .into();
        let entries = StructArray::new(fields, vec![keys, values], None);
        let field = Arc::new(Field::new("key_value", entries.data_type().clone(), false));
        Arc::new(MapArray::new(
            field,
            OffsetBuffer::from_lengths(sizes),
            entries,
            valid(n, nulls, dice),
            false,
        ))
    }),
];

fn valid(rows: usize, nulls: Nulls, dice: &mut Dice) -> Option<NullBuffer> {
    match nulls {
        Nulls::None => None,
        Nulls::Some => Some((0..rows).map(|_| dice.below(4) > 0).collect::<Vec<_>>().into()),
        Nulls::All => Some(NullBuffer::new_null(rows)),
    }
}

fn some<T>(
    rows: usize,
    nulls: Nulls,
    dice: &mut Dice,
    mut make: impl FnMut(&mut Dice) -> T,
) -> Vec<Option<T>> {
    let each = (0..rows).map(|_| match nulls {
        Nulls::All => None,
        Nulls::Some if dice.below(4) == 0 => None,
        _ => Some(make(dice)),
    });
    each.collect()
}

fn text(dice: &mut Dice) -> String {
    match dice.below(5) {
        0 => String::new(),
        1 => "é\u{10ffff}漢".to_owned(),
        2 => "a longer text that no view holds inline".to_owned(),
        _ => format!("t{}", dice.below(1_000)),
    }
}

fn floats(rows: usize, nulls: Nulls, dice: &mut Dice) -> ArrayRef {
    Arc::new(Float64Array::from(some(rows, nulls, dice, |d| match d.below(10) {
        0 => f64::NAN,
        1 => -0.0,
        2 => 0.0,
        3 => f64::INFINITY,
        4 => f64::NEG_INFINITY,
        5 => f64::from_bits(d.next() & 0x000f_ffff_ffff_ffff),
        6 => f64::from_bits(d.next() & 0xbfff_ffff_ffff_ffff),
        _ => (d.below(1 << 40) as f64) / 1e6 - 1e5,
    })))
}

/// Integers, extreme ones among them, as a type of at most 64 bits.
fn integer(rows: usize, nulls: Nulls, dice: &mut Dice, data_type: &DataType) -> ArrayRef {
    let bits = 8 * u32::try_from(data_type.primitive_width().unwrap()).unwrap();
    // Dates stay where every reader has them.
    let bits = if *data_type == DataType::Date32 { 20 } else { bits };
    let (min, max) = (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits));
    let values = some(rows, nulls, dice, |d| match d.below(5) {
        0 => min,
        1 => max,
        2 => 0,
        _ => d.next().cast_signed() >> (64 - bits),
    });
    let whole: ArrayRef = Arc::new(Int64Array::from(values));
    match data_type {
        DataType::Date32 => cast(&cast(&whole, &DataType::Int32).unwrap(), data_type).unwrap(),
        _ => cast(&whole, data_type).unwrap(),
    }
}

fn unsigned(rows: usize, nulls: Nulls, dice: &mut Dice, data_type: &DataType) -> ArrayRef {
    let bits = 8 * u32::try_from(data_type.primitive_width().unwrap()).unwrap();
    let values = some(rows, nulls, dice, |d| match d.below(4) {
        0 => u64::MAX >> (64 - bits),
        1 => 0,
        _ => d.next() >> (64 - bits),
    });
    cast(&(Arc::new(UInt64Array::from(values)) as ArrayRef), data_type).unwrap()
}

fn instant(rows: usize, nulls: Nulls, dice: &mut Dice, data_type: &DataType) -> ArrayRef {
    let values = some(rows, nulls, dice, |d| d.next().cast_signed() >> 8);
    cast(&(Arc::new(Int64Array::from(values)) as ArrayRef), data_type).unwrap()
}

fn table(recipe: &Recipe) -> RecordBatch {
    let mut dice = Dice(recipe.seed);
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values((0_i64..).take(recipe.rows)));
    let mut columns = vec![("key".to_owned(), keys, false)];
    for (place, kind) in recipe.columns.iter().enumerate() {
        let (name, make) = KINDS[*kind];
        columns.push((format!("{name}_{place}"), make(recipe.rows, recipe.nulls, &mut dice), true));
    }
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// pyarrow, kept running.
struct Referee {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Referee {
    fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/referee/decode.py");
        let python = std::env::var("REISSUE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let mut child = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let questions = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, questions, answers }
    }

    fn ask(&mut self, file: &Path) -> Value {
        writeln!(self.questions, "{}", file.display()).unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }
}

impl Drop for Referee {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn told(metrics: &ColumnMetrics, number: &str) -> Option<String> {
    match number {
        "nulls" => Some(metrics.nulls.to_string()),
        "items" => metrics.items.map(|n| n.to_string()),
        "sum" => metrics.sum.clone(),
        "min" => metrics.min.clone(),
        "max" => metrics.max.clone(),
        "nans" => metrics.nans.map(|n| n.to_string()),
        "infinities" => metrics.infinities.map(|n| n.to_string()),
        "trues" => metrics.trues.map(|n| n.to_string()),
        "bytes" => metrics.bytes.map(|n| n.to_string()),
        other => panic!("{other}"),
    }
}

/// Numbers that are written differently are the same.
fn same(ours: &str, theirs: &str) -> bool {
    if ours == theirs {
        return true;
    }
    let decimal = |text: &str| {
        let (mantissa, exponent) = text.split_once('E').unwrap_or((text, "0"));
        let exponent: i32 = exponent.parse().ok()?;
        let (sign, digits) = mantissa.strip_prefix('-').map_or((1, mantissa), |rest| (-1, rest));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all = format!("{whole}{fraction}");
        let scale = exponent - i32::try_from(fraction.len()).ok()?;
        let trimmed = all.trim_start_matches('0').trim_end_matches('0');
        let zeros = all.len() - all.trim_end_matches('0').len();
        let is_number = !all.is_empty() && all.bytes().all(|byte| byte.is_ascii_digit());
        if trimmed.is_empty() {
            return is_number.then(|| (0, String::new(), 0));
        }
        is_number.then(|| (sign, trimmed.to_owned(), scale + i32::try_from(zeros).unwrap()))
    };
    if let (Some(one), Some(two)) = (decimal(ours), decimal(theirs)) {
        return one == two;
    }
    let float = |text: &str| text.parse::<f64>().ok().map(f64::to_bits);
    matches!((float(ours), float(theirs)), (Some(one), Some(two)) if one == two)
}

/// Bounds of floats, the sign of zero included. Ours are written as short as their own type allows.
fn same_bound(path: &str, ours: &str, theirs: &str) -> bool {
    let theirs: f64 = theirs.parse().unwrap();
    let ours = match path.split('_').next().unwrap() {
        "float16" => half::f16::from_f32(ours.parse().unwrap()).to_f64(),
        "float32" => f64::from(ours.parse::<f32>().unwrap()),
        _ => ours.parse().unwrap(),
    };
    ours.to_bits() == theirs.to_bits()
}

fn check_against_pyarrow(metrics: &Metrics, theirs: &Value) -> Result<(), TestCaseError> {
    prop_assert_eq!(metrics.rows, theirs["rows"].as_u64().unwrap());
    for (path, numbers) in theirs["columns"].as_object().unwrap() {
        let ours = metrics.columns.get(path);
        prop_assert!(ours.is_some(), "{} is not among {:?}", path, metrics.columns.keys());
        for (number, value) in numbers.as_object().unwrap() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let ours = told(ours.unwrap(), number);
            let agrees = ours.as_deref().is_some_and(|ours| {
                if path.starts_with("float") && matches!(number.as_str(), "min" | "max") {
                    same_bound(path, ours, &value)
                } else if path.starts_with("float") && number == "sum" {
                    // Two shortest texts of one double may end in different digits.
                    ours.parse::<f64>().unwrap() == value.parse::<f64>().unwrap()
                } else {
                    same(ours, &value)
                }
            });
            prop_assert!(agrees, "{} {}: ours {:?}, pyarrow {}", path, number, ours, value);
        }
    }
    Ok(())
}

/// The engine over the same file, with its statistics off: counts, sums and bounds that it can
/// compute exactly.
async fn check_against_engine(
    metrics: &Metrics,
    file: &Path,
    batch: &RecordBatch,
) -> Result<(), TestCaseError> {
    let mut config = SessionConfig::new().with_collect_statistics(false).with_target_partitions(1);
    config.options_mut().execution.parquet.pruning = false;
    let context = SessionContext::new_with_config(config);
    context
        .register_parquet("t", file.to_str().unwrap(), ParquetReadOptions::default())
        .await
        .unwrap();
    for field in batch.schema().fields() {
        let (name, ours) = (field.name(), &metrics.columns[field.name()]);
        let sum = match field.data_type() {
            data_type if data_type.is_integer() => {
                format!("sum(CAST(\"{name}\" AS DECIMAL(38, 0)))")
            }
            DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => {
                format!("sum(arrow_cast(\"{name}\", 'Decimal256(76, {scale})'))")
            }
            _ => "NULL".to_owned(),
        };
        // Sums of the widest decimals may not fit into the engine's own.
        let sum = if matches!(field.data_type(), DataType::Decimal256(..)) {
            "NULL".to_owned()
        } else {
            sum
        };
        let bounds = if field.data_type().is_integer() || field.data_type().is_decimal() {
            format!("CAST(min(\"{name}\") AS TEXT) AS low, CAST(max(\"{name}\") AS TEXT) AS high")
        } else {
            "CAST(NULL AS TEXT) AS low, CAST(NULL AS TEXT) AS high".to_owned()
        };
        let sql = format!(
            "SELECT CAST(count(*) - count(\"{name}\") AS TEXT) AS nulls, CAST({sum} AS TEXT) AS total, {bounds} FROM t"
        );
        let found = context.sql(&sql).await.unwrap().collect().await.unwrap();
        let cell = |at: usize| {
            let column = cast(found[0].column(at), &DataType::Utf8).unwrap();
            let column = column.as_any().downcast_ref::<StringArray>().unwrap().clone();
            (!column.is_null(0)).then(|| column.value(0).to_owned())
        };
        prop_assert_eq!(cell(0), Some(ours.nulls.to_string()), "nulls of {}", name);
        for (at, number) in [(1, "sum"), (2, "min"), (3, "max")] {
            let Some(theirs) = cell(at) else { continue };
            let ours = told(ours, number).unwrap();
            prop_assert!(
                same(&ours, &theirs),
                "{} {}: ours {}, the engine {}",
                name,
                number,
                ours,
                theirs
            );
        }
    }
    Ok(())
}

/// Random tables; 10,000 of them with `REISSUE_TABLES=10000`.
#[test]
fn our_meters_the_engine_and_pyarrow_agree_on_random_tables_of_every_type() {
    let tables =
        std::env::var("REISSUE_TABLES").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("table.parquet");
    let referee = std::cell::RefCell::new(Referee::start());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = Config { cases: tables, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&recipe(), |recipe| {
        let batch = table(&recipe);
        let mut meter = Meter::new(batch.schema(), &["key".to_owned()]).unwrap();
        let cut = 1 + Dice(recipe.seed).index(700);
        let mut from = 0;
        while from < batch.num_rows() {
            let rows = cut.min(batch.num_rows() - from);
            meter.update(&batch.slice(from, rows)).unwrap();
            from += rows;
        }
        let metrics = meter.metrics();
        let target = std::fs::File::create(&file).unwrap();
        let mut writer = ArrowWriter::try_new(target, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        check_against_pyarrow(&metrics, &referee.borrow_mut().ask(&file))?;
        runtime.block_on(check_against_engine(&metrics, &file, &batch))
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
