//! Partitions in time: which intervals exist, what they are called, where they begin and end.
//!
//! A [`Calendar`] cuts time into consecutive half-open intervals `[start, end)` by hour, day, week
//! or month of one IANA zone. Boundaries are instants computed here and stored; SQL never computes
//! them. For every zone the intervals are gapless and do not overlap: each begins where the one
//! before it ends.
//!
//! | every | name | begins |
//! |---|---|---|
//! | hour | `2013-11-03T01-0400`, `2013-11-03T01Z` | where the local hour or the offset changes |
//! | day | `2013-11-03` | first instant of the local date |
//! | week | `2013-11-04` (its first date) | first instant of that date |
//! | month | `2013-11` | first instant of the first date |
//!
//! A date that a zone skipped (Apia, 2011-12-30) has no interval.

mod range;
mod zone;

use std::fmt;
use std::str::FromStr;

use chrono::{
    DateTime, Datelike as _, Days, Months, NaiveDate, NaiveDateTime, TimeDelta, Timelike as _, Utc,
    Weekday,
};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

pub use range::Range;
use zone::{first_instant, local, next_transition, offset_seconds, start_of_date};

/// The version of the zone rules compiled in, such as `2025b`.
pub const ZONE_RULES: &str = chrono_tz::IANA_TZDB_VERSION;

/// How long a partition is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Every {
    /// One local hour.
    Hour,
    /// One local date.
    Day,
    /// Seven local dates from a declared weekday.
    Week,
    /// One local month.
    Month,
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        })
    }
}

/// A rule that cuts time into partitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calendar {
    /// How long a partition is.
    pub every: Every,
    /// The IANA zone whose wall clock decides.
    #[serde(with = "zone_name")]
    pub timezone: Tz,
    /// The first day of a week; present exactly when `every` is `week`.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "weekday_name")]
    pub week_start: Option<Weekday>,
}

/// One partition's place in time: `[start, end)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// The partition's name.
    pub name: String,
    /// The first instant inside.
    pub start: DateTime<Utc>,
    /// The first instant after.
    pub end: DateTime<Utc>,
    /// The wall clock's reading that the name stands for.
    pub local_start: NaiveDateTime,
    /// The same of the next interval that the calendar names.
    pub local_end: NaiveDateTime,
}

impl Calendar {
    /// The interval of a name.
    ///
    /// # Errors
    /// `Invalid` when the text is no name of this calendar, or names time that its zone skipped.
    pub fn named(&self, name: &str) -> Result<Interval> {
        match self.every {
            Every::Hour => self.named_hour(name),
            Every::Day | Every::Week | Every::Month => {
                let date = self.parse_date(name)?;
                self.of_date(date).ok_or_else(|| {
                    Error::invalid(format!("the date {date} does not exist in {}", self.timezone))
                        .hint("the zone skipped it when it changed sides of the date line; leave it out")
                })
            }
        }
    }

    /// The interval that holds an instant.
    pub fn containing(&self, instant: DateTime<Utc>) -> Interval {
        if self.every == Every::Hour {
            return self.hour_containing(instant);
        }
        let mut date = self.floor_date(local(self.timezone, instant).date());
        // Where the clock went back over midnight, an instant's local date is the old one again,
        // though the new date has already begun.
        while let Some(next) = self.next_date(date)
            && start_of_date(self.timezone, next) <= instant
        {
            date = next;
        }
        self.interval_from(date)
    }

    /// The interval that begins where this one ends.
    pub fn next(&self, interval: &Interval) -> Interval {
        self.containing(interval.end)
    }

    /// The wall-clock date and the instant, `span` before the interval's start (or after its end).
    pub fn before(&self, interval: &Interval, span: Span) -> Edge {
        self.shifted(interval.local_start, interval.start, span, false)
    }

    /// The edge `span` after the interval's end.
    pub fn after(&self, interval: &Interval, span: Span) -> Edge {
        self.shifted(interval.local_end, interval.end, span, true)
    }

    fn shifted(
        &self,
        wall: NaiveDateTime,
        instant: DateTime<Utc>,
        span: Span,
        later: bool,
    ) -> Edge {
        let dates =
            |wall: NaiveDateTime| Edge { instant: first_instant(self.timezone, wall), wall };
        let amount = span.amount;
        let moved = match (span.unit, later) {
            (SpanUnit::Hour, _) => {
                let hours = TimeDelta::hours(i64::from(amount));
                let instant = if later { instant + hours } else { instant - hours };
                return Edge { instant, wall: local(self.timezone, instant) };
            }
            (SpanUnit::Day, true) => wall.checked_add_days(Days::new(u64::from(amount))),
            (SpanUnit::Day, false) => wall.checked_sub_days(Days::new(u64::from(amount))),
            (SpanUnit::Week, true) => wall.checked_add_days(Days::new(7 * u64::from(amount))),
            (SpanUnit::Week, false) => wall.checked_sub_days(Days::new(7 * u64::from(amount))),
            (SpanUnit::Month, true) => wall.checked_add_months(Months::new(amount)),
            (SpanUnit::Month, false) => wall.checked_sub_months(Months::new(amount)),
        };
        if amount == 0 { Edge { instant, wall } } else { dates(moved.unwrap_or(wall)) }
    }

    fn parse_date(&self, name: &str) -> Result<NaiveDate> {
        let wrong = |form: &str| {
            Error::invalid(format!("{name:?} is no {} of this calendar", self.every))
                .hint(format!("write it as {form}"))
        };
        let full = |text: &str| {
            (text.len() == 10).then(|| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()).flatten()
        };
        match self.every {
            Every::Month => {
                let text = if name.len() == 7 { format!("{name}-01") } else { String::new() };
                full(&text).ok_or_else(|| wrong("YYYY-MM"))
            }
            Every::Week => {
                let date = full(name).ok_or_else(|| wrong("YYYY-MM-DD, its first date"))?;
                let first = self.floor_date(date);
                if first == date {
                    return Ok(date);
                }
                Err(Error::invalid(format!("{name} does not begin a week"))
                    .hint(format!("weeks begin on {}: write {first}", self.week_start())))
            }
            Every::Day | Every::Hour => full(name).ok_or_else(|| wrong("YYYY-MM-DD")),
        }
    }

    /// The interval of a date that begins one, or `None` where the zone skipped it whole.
    fn of_date(&self, date: NaiveDate) -> Option<Interval> {
        let interval = self.interval_from(date);
        (interval.start < interval.end).then_some(interval)
    }

    fn interval_from(&self, date: NaiveDate) -> Interval {
        let end = self.next_date(date).unwrap_or(date);
        Interval {
            name: self.name_of(date),
            start: start_of_date(self.timezone, date),
            end: start_of_date(self.timezone, end),
            local_start: date.and_time(chrono::NaiveTime::MIN),
            local_end: end.and_time(chrono::NaiveTime::MIN),
        }
    }

    fn name_of(&self, date: NaiveDate) -> String {
        match self.every {
            Every::Month => date.format("%Y-%m").to_string(),
            Every::Day | Every::Week | Every::Hour => date.format("%Y-%m-%d").to_string(),
        }
    }

    fn floor_date(&self, date: NaiveDate) -> NaiveDate {
        match self.every {
            Every::Hour | Every::Day => date,
            Every::Week => {
                let back = date.weekday().days_since(self.week_start());
                date.checked_sub_days(Days::new(u64::from(back))).unwrap_or(date)
            }
            Every::Month => date.with_day(1).unwrap_or(date),
        }
    }

    fn next_date(&self, date: NaiveDate) -> Option<NaiveDate> {
        match self.every {
            Every::Hour | Every::Day => date.checked_add_days(Days::new(1)),
            Every::Week => date.checked_add_days(Days::new(7)),
            Every::Month => date.checked_add_months(Months::new(1)),
        }
    }

    fn week_start(&self) -> Weekday {
        self.week_start.unwrap_or(Weekday::Mon)
    }

    fn named_hour(&self, name: &str) -> Result<Interval> {
        let wrong = || {
            Error::invalid(format!("{name:?} is no hour of this calendar")).hint(
                "write it as YYYY-MM-DDTHH and the offset: 2013-11-03T01-0400, or 2013-11-03T01Z",
            )
        };
        let (wall, offset) = name.split_at_checked(13).ok_or_else(wrong)?;
        let wall = NaiveDateTime::parse_from_str(&format!("{wall}:00:00"), "%Y-%m-%dT%H:%M:%S")
            .map_err(|_| wrong())?;
        let seconds = parse_offset(offset).ok_or_else(wrong)?;
        let instant = wall.and_utc() - TimeDelta::seconds(i64::from(seconds));
        // The label's own hour may begin at a transition inside it.
        [instant, instant + TimeDelta::minutes(59)]
            .map(|at| self.hour_containing(at))
            .into_iter()
            .find(|interval| interval.name == name)
            .ok_or_else(|| {
                Error::invalid(format!("the hour {name} does not exist in {}", self.timezone))
                    .hint("the clock skipped it, or the offset is another one at that time")
            })
    }

    fn hour_containing(&self, instant: DateTime<Utc>) -> Interval {
        let zone = self.timezone;
        let offset = offset_seconds(zone, instant);
        let wall = local(zone, instant);
        let hour = wall.date().and_hms_opt(wall.hour(), 0, 0).unwrap_or(wall);
        let nominal = hour.and_utc() - TimeDelta::seconds(i64::from(offset));
        let full = nominal + TimeDelta::hours(1);
        // A transition inside the hour ends one label and begins another.
        let start = next_transition(zone, nominal, instant).unwrap_or(nominal);
        let end = next_transition(zone, instant, full).unwrap_or(full);
        Interval {
            name: format!("{}{}", hour.format("%Y-%m-%dT%H"), offset_text(offset)),
            start,
            end,
            local_start: local(zone, start),
            local_end: local(zone, end),
        }
    }
}

/// A point that a window begins or ends at, in both kinds of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// As an instant.
    pub instant: DateTime<Utc>,
    /// As the wall clock reads.
    pub wall: NaiveDateTime,
}

/// A length of calendar time, such as `1 day`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// How many units.
    pub amount: u32,
    /// Of what.
    pub unit: SpanUnit,
}

/// The unit of a [`Span`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanUnit {
    /// 3,600 seconds.
    Hour,
    /// A local date, however long.
    Day,
    /// Seven local dates.
    Week,
    /// A month; a date that the target month lacks becomes its last one.
    Month,
}

impl Span {
    /// No time at all.
    pub const NONE: Self = Self { amount: 0, unit: SpanUnit::Day };
}

impl FromStr for Span {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::invalid(format!("{text:?} is no length of time")).hint(
                "write a number and a unit: \"1 day\", \"36 hours\", \"2 weeks\", \"1 month\"",
            )
        };
        let (amount, unit) = text.trim().split_once(' ').ok_or_else(wrong)?;
        let unit = match unit.trim().trim_end_matches('s') {
            "hour" => SpanUnit::Hour,
            "day" => SpanUnit::Day,
            "week" => SpanUnit::Week,
            "month" => SpanUnit::Month,
            _ => return Err(wrong()),
        };
        let amount: u32 = amount.parse().map_err(|_| wrong())?;
        // A century of hours: longer is a slip of the pen.
        if amount > 876_600 {
            return Err(wrong());
        }
        Ok(Self { amount, unit })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            SpanUnit::Hour => "hour",
            SpanUnit::Day => "day",
            SpanUnit::Week => "week",
            SpanUnit::Month => "month",
        };
        write!(f, "{} {unit}{}", self.amount, if self.amount == 1 { "" } else { "s" })
    }
}

impl Serialize for Span {
    fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(|error: Error| {
            serde::de::Error::custom(format!("{error}; {}", error.hints().join("; ")))
        })
    }
}

fn offset_text(seconds: i32) -> String {
    if seconds == 0 {
        return "Z".to_owned();
    }
    let sign = if seconds < 0 { '-' } else { '+' };
    let (hours, minutes, rest) =
        (seconds.abs() / 3600, seconds.abs() / 60 % 60, seconds.abs() % 60);
    let tail = if rest == 0 { String::new() } else { format!("{rest:02}") };
    format!("{sign}{hours:02}{minutes:02}{tail}")
}

fn parse_offset(text: &str) -> Option<i32> {
    if text == "Z" {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = text.get(1..)?;
    if !matches!(digits.len(), 4 | 6) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = |range: std::ops::Range<usize>| digits.get(range)?.parse::<i32>().ok();
    let rest = if digits.len() == 6 { part(4..6)? } else { 0 };
    Some(sign * (part(0..2)? * 3600 + part(2..4)? * 60 + rest))
}

mod zone_name {
    use super::Tz;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(zone: &Tz, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(zone.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Tz, D::Error> {
        let name = String::deserialize(from)?;
        name.parse().map_err(|_| {
            serde::de::Error::custom(format!(
                "{name:?} is no IANA time zone; write one such as \"America/New_York\" or \"UTC\""
            ))
        })
    }
}

mod weekday_name {
    use super::Weekday;
    use serde::{Deserialize as _, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "the signature serde asks for")]
    pub(super) fn serialize<S: Serializer>(
        day: &Option<Weekday>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match day {
            Some(day) => to.collect_str(&long_name(*day)),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Weekday>, D::Error> {
        let Some(name) = Option::<String>::deserialize(from)? else { return Ok(None) };
        let day = name.parse().map_err(|_| {
            serde::de::Error::custom(format!(
                "{name:?} is no day of the week; write \"monday\" or such"
            ))
        })?;
        Ok(Some(day))
    }

    fn long_name(day: Weekday) -> &'static str {
        match day {
            Weekday::Mon => "monday",
            Weekday::Tue => "tuesday",
            Weekday::Wed => "wednesday",
            Weekday::Thu => "thursday",
            Weekday::Fri => "friday",
            Weekday::Sat => "saturday",
            Weekday::Sun => "sunday",
        }
    }
}

#[cfg(test)]
mod tests;
