//! Local time to instants: where a local date or hour begins.
//!
//! The rules (pitfalls of every calendar): a local date begins at the **first instant whose local
//! date is at or after it**. A midnight that happens twice begins at the first; a midnight that
//! is skipped begins at the transition; a date that is skipped altogether begins where the next
//! one does, and so is empty.

use chrono::{
    DateTime, LocalResult, NaiveDate, NaiveDateTime, Offset as _, TimeDelta, TimeZone as _, Utc,
};
use chrono_tz::Tz;

/// The offset from UTC in force at an instant, in seconds east.
pub(crate) fn offset_seconds(zone: Tz, instant: DateTime<Utc>) -> i32 {
    zone.offset_from_utc_datetime(&instant.naive_utc()).fix().local_minus_utc()
}

/// The wall-clock time at an instant.
pub(crate) fn local(zone: Tz, instant: DateTime<Utc>) -> NaiveDateTime {
    instant.with_timezone(&zone).naive_local()
}

/// The first instant whose local time is at or after `wall`, looking past a gap.
pub(crate) fn first_instant(zone: Tz, wall: NaiveDateTime) -> DateTime<Utc> {
    match zone.from_local_datetime(&wall) {
        LocalResult::Single(instant) => instant.with_timezone(&Utc),
        LocalResult::Ambiguous(first, _) => first.with_timezone(&Utc),
        LocalResult::None => gap_end(zone, wall),
    }
}

/// The first instant of a local date, or of the next one that exists.
pub(crate) fn start_of_date(zone: Tz, date: NaiveDate) -> DateTime<Utc> {
    first_instant(zone, date.and_time(chrono::NaiveTime::MIN))
}

/// The transition that skips `wall`: the instant where the offset changes.
fn gap_end(zone: Tz, wall: NaiveDateTime) -> DateTime<Utc> {
    // No offset is further than 26 hours from UTC, and no two transitions are this close.
    let before = wall.and_utc() - TimeDelta::hours(26);
    let after = wall.and_utc() + TimeDelta::hours(26);
    // The wall clock jumps over `wall` at one instant; before it the local time is earlier.
    first_where(before, after, |instant| local(zone, instant) >= wall)
}

/// The next change of offset in `(after, until]`, if any.
pub(crate) fn next_transition(
    zone: Tz,
    after: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Option<DateTime<Utc>> {
    let offset = offset_seconds(zone, after);
    if offset_seconds(zone, until) == offset {
        return None;
    }
    Some(first_where(after, until, |instant| offset_seconds(zone, instant) != offset))
}

/// The first whole second in `(low, high]` where `holds` is true; it is false at `low`, true at
/// `high`, and changes once in between.
fn first_where(
    low: DateTime<Utc>,
    high: DateTime<Utc>,
    holds: impl Fn(DateTime<Utc>) -> bool,
) -> DateTime<Utc> {
    let (mut low, mut high) = (low.timestamp(), high.timestamp());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(at(middle)) { high = middle } else { low = middle }
    }
    at(high)
}

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap_or(DateTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(zone: Tz, y: i32, m: u32, d: u32) -> String {
        start_of_date(zone, NaiveDate::from_ymd_opt(y, m, d).unwrap()).to_rfc3339()
    }

    #[test]
    fn a_skipped_midnight_begins_at_the_transition() {
        assert_eq!(start(Tz::America__Sao_Paulo, 2015, 10, 18), "2015-10-18T03:00:00+00:00");
        assert_eq!(start(Tz::Asia__Amman, 2021, 3, 26), "2021-03-25T22:00:00+00:00");
    }

    #[test]
    fn a_doubled_midnight_begins_at_the_first() {
        assert_eq!(start(Tz::Asia__Amman, 2021, 10, 29), "2021-10-28T21:00:00+00:00");
    }

    #[test]
    fn a_skipped_date_begins_with_the_next_one() {
        assert_eq!(start(Tz::Pacific__Apia, 2011, 12, 30), start(Tz::Pacific__Apia, 2011, 12, 31));
    }
}
