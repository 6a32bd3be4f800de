//! The columns of two tables that can be compared, and the types in which they are.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use serde::Serialize;

use super::tables::Tables;
use crate::dataset::plain;
use crate::error::{Error, Result};

/// A column that is not the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SchemaDifference {
    /// The column.
    pub column: String,
    /// Its type in production, and how many files lack it; none: it has no such column.
    pub production: Option<String>,
    /// Its type in the candidate, and how many files lack it; none: it has no such column.
    pub candidate: Option<String>,
    /// Whether its values are compared all the same.
    pub compared: bool,
}

/// The columns that can be compared, and how the sides' columns differ.
pub(super) fn common_schema(
    production: &Tables,
    candidate: &Tables,
    key: &[String],
) -> Result<(SchemaRef, Vec<SchemaDifference>)> {
    let mut fields = Vec::new();
    let mut differences = Vec::new();
    let (of_production, of_candidate) = (by_name(production), by_name(candidate));
    let mut see = |name: &String| {
        let (one, two) = (of_production.get(name), of_candidate.get(name));
        let (theirs, ours) =
            (one.map(|field| told(production, field)), two.map(|field| told(candidate, field)));
        let common =
            one.zip(two).and_then(|(one, two)| common_column(production, candidate, one, two));
        let lacks = [production, candidate].iter().any(|side| side.lacking.contains_key(name));
        if theirs != ours || common.is_none() || lacks {
            differences.push(SchemaDifference {
                column: name.clone(),
                production: theirs,
                candidate: ours,
                compared: common.is_some(),
            });
        }
        fields.extend(common);
    };
    candidate.schema.fields().iter().for_each(|field| see(field.name()));
    for field in production.schema.fields() {
        if !of_candidate.contains_key(field.name()) {
            see(field.name());
        }
    }
    let schema = Arc::new(Schema::new(fields));
    if let Some(lost) = key.iter().find(|name| schema.field_with_name(name).is_err()) {
        return Err(lost_key(lost, &schema, production, candidate));
    }
    if schema.fields().is_empty() {
        return Err(Error::invalid("the two sides have no column in common")
            .with("production", &production.name)
            .with("its columns", names(&production.schema))
            .with("candidate", &candidate.name)
            .with("its other columns", names(&candidate.schema))
            .hint("give a column the same name and a like type on both sides"));
    }
    Ok((schema, differences))
}

fn lost_key(lost: &str, common: &Schema, production: &Tables, candidate: &Tables) -> Error {
    let said = |side: &Tables| {
        let other_case = |field: &&Arc<Field>| field.name().eq_ignore_ascii_case(lost);
        match (side.schema.field_with_name(lost), side.schema.fields().iter().find(other_case)) {
            (Ok(field), _) => told(side, field),
            (Err(_), Some(field)) => format!("no such column, but {:?}", field.name()),
            (Err(_), None) => "no such column".to_owned(),
        }
    };
    Error::invalid(format!("the key column {lost:?} cannot be compared"))
        .with("production", format!("{}: {}", production.name, said(production)))
        .with("candidate", format!("{}: {}", candidate.name, said(candidate)))
        .hint(match names(common) {
            none if none.is_empty() => "the two sides have no column in common".to_owned(),
            names => format!("the columns of both that can be compared are {names}"),
        })
}

fn names(schema: &Schema) -> String {
    schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ")
}

/// A side's column in words.
fn told(side: &Tables, field: &Field) -> String {
    match side.lacking.get(field.name()) {
        None => field.data_type().to_string(),
        Some(files) => {
            format!("{}, absent in {files} of {} files", field.data_type(), side.files())
        }
    }
}

fn by_name(side: &Tables) -> HashMap<&String, &Field> {
    side.schema.fields().iter().map(|field| (field.name(), field.as_ref())).collect()
}

fn common_column(
    production: &Tables,
    candidate: &Tables,
    one: &Field,
    two: &Field,
) -> Option<Field> {
    let name = one.name();
    // A folder's name is text, whatever it says: it is read as what the other side has.
    let only_path = (production.path_columns.contains(name), candidate.path_columns.contains(name));
    let common = match only_path {
        (true, false) => Some(two.data_type().clone()),
        (false, true) => Some(one.data_type().clone()),
        _ => common_type(one.data_type(), two.data_type()),
    };
    Some(Field::new(name, common?, one.is_nullable() || two.is_nullable()))
}

/// A type that holds every value of both, so that equal values stay equal and others other.
pub(super) fn common_type(one: &DataType, two: &DataType) -> Option<DataType> {
    use DataType as T;
    if one == two {
        return Some(one.clone());
    }
    let (one, two) = (&plain(one), &plain(two));
    let either = |a: &T, b: &T| (one == a && two == b) || (one == b && two == a);
    match (one, two) {
        (a, b) if a == b => Some(a.clone()),
        (T::Timestamp(a, x), T::Timestamp(b, y)) => {
            // Instants are the same in any zone; a wall clock's reading is no instant.
            let zone = match (x, y) {
                (x, y) if x == y => x.clone(),
                (Some(_), Some(_)) => Some("UTC".into()),
                _ => return None,
            };
            Some(T::Timestamp(finer(*a, *b), zone))
        }
        (T::Time32(a) | T::Time64(a), T::Time32(b) | T::Time64(b)) => match finer(*a, *b) {
            unit @ (TimeUnit::Second | TimeUnit::Millisecond) => Some(T::Time32(unit)),
            unit => Some(T::Time64(unit)),
        },
        (T::FixedSizeBinary(_) | T::Binary, T::FixedSizeBinary(_) | T::Binary) => Some(T::Binary),
        (
            T::FixedSizeBinary(_) | T::Binary | T::LargeBinary,
            T::FixedSizeBinary(_) | T::Binary | T::LargeBinary,
        ) => Some(T::LargeBinary),
        (
            T::List(a) | T::LargeList(a) | T::FixedSizeList(a, _),
            T::List(b) | T::LargeList(b) | T::FixedSizeList(b, _),
        ) => Some(T::LargeList(Arc::new(common_field(a, b, a.name())?))),
        (T::Struct(a), T::Struct(b)) if a.len() == b.len() => {
            let same = |a: &Field| b.iter().find(|b| b.name() == a.name());
            let fields: Option<Vec<Field>> =
                a.iter().map(|a| common_field(a, same(a)?, a.name())).collect();
            Some(T::Struct(fields?.into()))
        }
        _ if one.is_integer() && two.is_integer() => common_integer(one, two),
        _ if either(&T::Float32, &T::Float64) => Some(T::Float64),
        _ if either(&T::Float16, &T::Float32) => Some(T::Float32),
        _ if either(&T::Float16, &T::Float64) => Some(T::Float64),
        _ if either(&T::Utf8, &T::LargeUtf8) => Some(T::LargeUtf8),
        (T::Float64, whole) | (whole, T::Float64)
            if whole.is_integer() && whole.primitive_width() <= Some(4) =>
        {
            Some(T::Float64)
        }
        _ => common_decimal(digits(one)?, digits(two)?),
    }
}

fn common_field(one: &Field, two: &Field, name: &str) -> Option<Field> {
    let data_type = common_type(one.data_type(), two.data_type())?;
    Some(Field::new(name, data_type, one.is_nullable() || two.is_nullable()))
}

/// Digits before and after the point.
fn digits(data_type: &DataType) -> Option<(i16, i8)> {
    match data_type {
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s) => Some((i16::from(*p) - i16::from(*s), *s)),
        whole if whole.is_integer() => {
            let digits = match whole.primitive_width()? {
                1 => 3,
                2 => 5,
                4 => 10,
                _ => 20,
            };
            Some((digits, 0))
        }
        _ => None,
    }
}

/// Keeps all digits of both, on both sides of the point.
fn common_decimal(one: (i16, i8), two: (i16, i8)) -> Option<DataType> {
    let scale = one.1.max(two.1);
    let digits = u8::try_from(one.0.max(two.0) + i16::from(scale)).ok()?;
    match digits {
        0..=38 => Some(DataType::Decimal128(digits.max(1), scale)),
        39..=76 => Some(DataType::Decimal256(digits, scale)),
        _ => None,
    }
}

fn finer(one: TimeUnit, two: TimeUnit) -> TimeUnit {
    let rank = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    };
    if rank(&one) >= rank(&two) { one } else { two }
}

fn common_integer(one: &DataType, two: &DataType) -> Option<DataType> {
    let width = |data_type: &DataType| data_type.primitive_width();
    match (one.is_unsigned_integer(), two.is_unsigned_integer()) {
        (a, b) if a == b => Some(if width(one)? >= width(two)? { one } else { two }.clone()),
        _ => match width(if one.is_unsigned_integer() { one } else { two })? {
            1..=4 => Some(DataType::Int64),
            _ => Some(DataType::Decimal128(20, 0)),
        },
    }
}
