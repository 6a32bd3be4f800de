use chrono::TimeZone as _;
use proptest::prelude::*;

use super::*;

fn calendar(every: Every, timezone: Tz) -> Calendar {
    let week_start = (every == Every::Week).then_some(Weekday::Mon);
    Calendar { every, timezone, week_start }
}

fn hours(interval: &Interval) -> i64 {
    (interval.end - interval.start).num_hours()
}

fn names(calendar: &Calendar, first: &str, last: &str) -> Vec<String> {
    let range = Range::Inclusive { first: first.into(), last: last.into() };
    calendar.partitions(&range).unwrap().into_iter().map(|interval| interval.name).collect()
}

#[test]
fn new_york_days_of_23_and_25_hours_are_one_partition_each() {
    let days = calendar(Every::Day, Tz::America__New_York);
    assert_eq!(hours(&days.named("2013-03-10").unwrap()), 23);
    assert_eq!(hours(&days.named("2013-11-03").unwrap()), 25);
    assert_eq!(hours(&days.named("2013-07-01").unwrap()), 24);
}

#[test]
fn a_doubled_hour_is_two_partitions_and_a_skipped_one_is_none() {
    let hours = calendar(Every::Hour, Tz::America__New_York);
    assert_eq!(
        names(&hours, "2013-11-03T00-0400", "2013-11-03T02-0500"),
        ["2013-11-03T00-0400", "2013-11-03T01-0400", "2013-11-03T01-0500", "2013-11-03T02-0500"]
    );
    assert!(hours.named("2013-03-10T02-0500").is_err());
    assert!(hours.named("2013-03-10T02-0400").is_err());
    assert_eq!(
        names(&hours, "2013-03-10T01-0500", "2013-03-10T03-0400"),
        ["2013-03-10T01-0500", "2013-03-10T03-0400"]
    );
}

#[test]
fn a_skipped_date_is_refused_by_name_and_left_out_of_ranges() {
    let days = calendar(Every::Day, Tz::Pacific__Apia);
    assert!(days.named("2011-12-30").unwrap_err().message().contains("2011-12-30"));
    assert_eq!(
        names(&days, "2011-12-29", "2012-01-01"),
        ["2011-12-29", "2011-12-31", "2012-01-01"]
    );
}

#[test]
fn leap_days_exist_only_in_leap_years() {
    let days = calendar(Every::Day, Tz::UTC);
    assert!(days.named("2012-02-29").is_ok());
    assert!(days.named("2013-02-29").is_err());
    let months = calendar(Every::Month, Tz::UTC);
    assert_eq!(hours(&months.named("2012-02").unwrap()), 29 * 24);
}

#[test]
fn a_week_is_named_by_its_declared_first_day() {
    let weeks = Calendar { week_start: Some(Weekday::Sun), ..calendar(Every::Week, Tz::UTC) };
    assert_eq!(hours(&weeks.named("2013-11-03").unwrap()), 168);
    let refused = weeks.named("2013-11-05").unwrap_err();
    assert!(refused.hints()[0].contains("2013-11-03"), "{refused}: {:?}", refused.hints());
}

#[test]
fn start_and_end_leave_the_end_out() {
    let days = calendar(Every::Day, Tz::UTC);
    let range = Range::HalfOpen { start: "2013-01-01".into(), end: "2013-01-03".into() };
    assert_eq!(days.partitions(&range).unwrap().len(), 2);
    let empty = Range::HalfOpen { start: "2013-01-01".into(), end: "2013-01-01".into() };
    assert!(days.partitions(&empty).is_err());
}

#[test]
fn a_lookback_counts_local_dates_not_hours() {
    let days = calendar(Every::Day, Tz::America__New_York);
    let day = days.named("2013-03-11").unwrap();
    let edge = days.before(&day, "1 day".parse().unwrap());
    assert_eq!(edge.instant.to_rfc3339(), "2013-03-10T05:00:00+00:00");
    let edge = days.before(&day, "24 hours".parse().unwrap());
    assert_eq!(edge.instant.to_rfc3339(), "2013-03-10T04:00:00+00:00");
}

/// Walks a calendar and checks that it never leaves a gap, overlaps, or repeats a name.
fn walk(calendar: &Calendar, from: DateTime<Utc>, until: DateTime<Utc>) {
    let mut interval = calendar.containing(from);
    assert!(interval.start <= from && from < interval.end, "{calendar:?} {interval:?}");
    while interval.end < until {
        assert!(interval.start < interval.end, "{calendar:?} {interval:?}");
        let next = calendar.next(&interval);
        assert_eq!(next.start, interval.end, "{calendar:?} {interval:?} {next:?}");
        assert_ne!(next.name, interval.name, "{calendar:?} {interval:?}");
        let named = calendar.named(&next.name);
        assert_eq!(named.as_ref().ok(), Some(&next), "{calendar:?} {next:?}");
        interval = next;
    }
}

fn year(year: i32) -> DateTime<Utc> {
    Utc.with_ymd_and_hms(year, 1, 1, 0, 0, 0).unwrap()
}

#[test]
fn days_of_every_zone_from_1970_to_2037_are_gapless() {
    for zone in chrono_tz::TZ_VARIANTS {
        walk(&calendar(Every::Day, zone), year(1970), year(2038));
    }
}

#[test]
fn weeks_and_months_of_every_zone_from_1970_to_2037_are_gapless() {
    for zone in chrono_tz::TZ_VARIANTS {
        walk(&calendar(Every::Week, zone), year(1970), year(2038));
        walk(&calendar(Every::Month, zone), year(1970), year(2038));
    }
}

/// Every hour of 68 years of 600 zones would take minutes; the hours around each transition, and
/// around two plain days a year, are where anything can go wrong.
#[test]
fn hours_of_every_zone_around_every_transition_from_1970_to_2037_are_gapless() {
    for zone in chrono_tz::TZ_VARIANTS {
        let hours = calendar(Every::Hour, zone);
        let mut at = year(1970);
        while at < year(2038) {
            let next = at + TimeDelta::days(5);
            if offset_seconds(zone, at) != offset_seconds(zone, next) {
                let transition = next_transition(zone, at, next).unwrap();
                walk(&hours, transition - TimeDelta::hours(4), transition + TimeDelta::hours(4));
            }
            at = next;
        }
    }
}

proptest! {
    #[test]
    fn any_instant_is_in_exactly_the_interval_that_holds_it(
        seconds in 0_i64..2_145_916_800,
        zone in 0..chrono_tz::TZ_VARIANTS.len(),
        every in prop_oneof![
            Just(Every::Hour), Just(Every::Day), Just(Every::Week), Just(Every::Month)
        ],
    ) {
        let calendar = calendar(every, chrono_tz::TZ_VARIANTS[zone]);
        let instant = DateTime::from_timestamp(seconds, 0).unwrap();
        let interval = calendar.containing(instant);
        prop_assert!(interval.start <= instant && instant < interval.end);
        prop_assert_eq!(calendar.named(&interval.name).unwrap(), interval);
    }
}
