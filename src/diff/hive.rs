//! Hive folders: `month=2013-01/region=north`.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

/// What Hive and Spark write for a null.
pub(super) const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The Hive part of a file's path, and the values in it; none for null.
pub(super) fn hive(path: &str) -> (String, BTreeMap<String, Option<String>>) {
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    let parts: Vec<&str> = folders.split('/').filter(|part| part.contains('=')).collect();
    let values = parts.iter().filter_map(|part| part.split_once('=')).map(|(column, value)| {
        let value = Some(decoded(value)).filter(|value| value != NULL);
        (decoded(column), value)
    });
    // The same folders in another order, or with other signs spelt out, are the same.
    let mut names: Vec<String> =
        parts.iter().map(|part| decoded(part).replace('/', "%2F")).collect();
    names.sort();
    (names.join("/"), values.collect())
}

/// Spark writes what a file system may not like as `%3A`.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_owned(), Into::into)
}

/// The columns of a partition's name, in its order.
pub(super) fn columns(partition: &str) -> Vec<&str> {
    partition.split('/').filter_map(|part| Some(part.split_once('=')?.0)).collect()
}
