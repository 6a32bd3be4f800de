//! What was seen of a discrepancy when something was said of it, and whether it is still that.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::explain::Cluster;
use crate::identity::Real;

/// A discrepancy as somebody saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// How many values, or rows.
    pub values: u64,
    /// Its partitions.
    pub partitions: BTreeSet<String>,
    /// What all its rows had in common.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub segment: BTreeMap<String, String>,
    /// The sum of its changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_change: Option<Real>,
    /// The largest of them by magnitude.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_change: Option<Real>,
    /// Where the pattern does not say what became of a value: which rows, by the sum of their hashes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<String>,
}

impl Seen {
    /// A cluster as it is.
    pub(super) fn of(cluster: &Cluster) -> Self {
        Self {
            values: cluster.values,
            partitions: cluster.partition_names.clone(),
            segment: cluster.segment.clone(),
            net_change: cluster.net_change,
            largest_change: cluster.largest_change,
            rows: cluster.rows.clone(),
        }
    }
}

/// Why what was said of a discrepancy no longer covers it; none: it has become no more, nor
/// anything else.
pub(super) fn grown(seen: &Seen, cluster: &Cluster) -> Option<String> {
    if let Some(new) = cluster.partition_names.difference(&seen.partitions).next() {
        return Some(format!("it was not in {new} then, and is now"));
    }
    if let Some((column, value)) =
        seen.segment.iter().find(|(column, value)| cluster.segment.get(*column) != Some(value))
    {
        return Some(format!("all its rows had {column} = {value} then, which does not show now"));
    }
    if cluster.values > seen.values {
        return Some(format!("it had {} values then, and has {} now", seen.values, cluster.values));
    }
    if !cluster.pattern.decides() && (seen.rows.is_none() || seen.rows != cluster.rows) {
        return Some("its rows are not the ones that were seen then".to_owned());
    }
    let told = |change: Option<Real>| change.map_or("no number".to_owned(), |one| one.to_string());
    let sums = (seen.net_change, cluster.net_change);
    if is_more(sums.0, sums.1) {
        let (then, now) = (told(sums.0), told(sums.1));
        return Some(format!("its changes came to {then} then, and come to {now} now"));
    }
    let largest = (seen.largest_change, cluster.largest_change);
    let by_size = |change: Option<Real>| change.map(|one| Real(one.0.abs()));
    is_more(by_size(largest.0), by_size(largest.1)).then(|| {
        let (then, now) = (told(largest.0), told(largest.1));
        format!("its largest change was {then} then, and is {now} now")
    })
}

/// Whether a number lies farther from zero than another, or on its other side.
fn is_more(then: Option<Real>, now: Option<Real>) -> bool {
    match (then, now) {
        (None, None) => false,
        (Some(then), Some(now)) => {
            now.0 != 0.0 && (now.0.abs() > then.0.abs() || now.0.signum() != then.0.signum())
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::Pattern;

    fn days(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn cluster(change: impl FnOnce(&mut Cluster)) -> Cluster {
        let mut cluster = Cluster {
            column: Some("amount".to_owned()),
            pattern: Pattern::SignTurned,
            values: 43,
            partitions: 2,
            first: "2024-03-02".to_owned(),
            last: "2024-03-05".to_owned(),
            segment: BTreeMap::from([("carrier".to_owned(), "UA".to_owned())]),
            partition_names: days(&["2024-03-02", "2024-03-05"]),
            net_change: Some(Real(12.0)),
            largest_change: Some(Real(-5.0)),
            rows: None,
            examples: Vec::new(),
        };
        change(&mut cluster);
        cluster
    }

    #[test]
    fn a_word_covers_what_was_seen_or_less_and_nothing_else() {
        let seen = Seen::of(&cluster(|_| {}));
        for less in [
            cluster(|_| {}),
            cluster(|one| one.values = 1),
            cluster(|one| one.partition_names = days(&["2024-03-05"])),
            cluster(|one| drop(one.segment.insert("dest".to_owned(), "LAX".to_owned()))),
            cluster(|one| one.net_change = Some(Real(0.0))),
            cluster(|one| one.largest_change = Some(Real(4.0))),
        ] {
            assert_eq!(grown(&seen, &less), None, "{less:?}");
        }
        for more in [
            cluster(|one| one.values = 44),
            cluster(|one| one.partition_names = days(&["2024-03-03"])),
            cluster(|one| one.segment.clear()),
            cluster(|one| drop(one.segment.insert("carrier".to_owned(), "AA".to_owned()))),
            cluster(|one| one.net_change = Some(Real(12.5))),
            cluster(|one| one.net_change = Some(Real(-1.0))),
            cluster(|one| one.net_change = None),
            cluster(|one| one.largest_change = Some(Real(1e9))),
            cluster(|one| one.largest_change = Some(Real(f64::INFINITY))),
        ] {
            assert!(grown(&seen, &more).is_some(), "{more:?}");
        }
    }

    #[test]
    fn where_a_pattern_does_not_say_what_became_of_a_value_the_rows_must_be_the_same() {
        let of = |rows: Option<&str>| {
            cluster(|one| {
                one.pattern = Pattern::Unclassified;
                one.rows = rows.map(str::to_owned);
            })
        };
        let seen = Seen::of(&of(Some("07")));
        assert_eq!(grown(&seen, &of(Some("07"))), None);
        assert!(grown(&seen, &of(Some("08"))).is_some());
        assert!(grown(&Seen::of(&of(None)), &of(None)).is_some());
    }
}
