//! The function that orders rows for a sample.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray as _, UInt64Array};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use xxhash_rust::xxh3::xxh3_64;

use crate::spec::RANK;

/// A hash of a text, the same everywhere and always.
pub(super) fn sample_rank() -> ScalarUDF {
    let implementation = Arc::new(|arguments: &[ColumnarValue]| rank(arguments));
    create_udf(RANK, vec![DataType::Utf8], DataType::UInt64, Volatility::Immutable, implementation)
}

fn rank(arguments: &[ColumnarValue]) -> EngineResult<ColumnarValue> {
    let arrays = ColumnarValue::values_to_arrays(arguments)?;
    let mut ranks = UInt64Array::from_iter_values([]);
    if let Some(texts) = arrays.first() {
        let texts = cast(texts, &DataType::Utf8)?;
        let texts = texts.as_string::<i32>();
        ranks =
            texts.iter().map(|text| Some(xxh3_64(text.unwrap_or_default().as_bytes()))).collect();
    }
    let ranks: ArrayRef = Arc::new(ranks);
    Ok(ColumnarValue::Array(ranks))
}
