//! A daily maintenance window.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, NaiveTime, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// A part of each day, such as `22:00-06:00 America/New_York`; it may pass midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    from: NaiveTime,
    to: NaiveTime,
    zone: Tz,
}

impl Window {
    /// Whether an instant is inside: the start belongs to it, the end does not.
    pub fn contains(&self, at: DateTime<Utc>) -> bool {
        let time = at.with_timezone(&self.zone).time();
        if self.from <= self.to {
            self.from <= time && time < self.to
        } else {
            self.from <= time || time < self.to
        }
    }
}

impl FromStr for Window {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            Error::invalid(format!("{text:?} is no window of the day"))
                .hint("write it as \"22:00-06:00 America/New_York\"")
        };
        let (times, zone) = text.split_once(' ').ok_or_else(wrong)?;
        let (from, to) = times.split_once('-').ok_or_else(wrong)?;
        let time = |text| NaiveTime::parse_from_str(text, "%H:%M").map_err(|_| wrong());
        let window =
            Self { from: time(from)?, to: time(to)?, zone: zone.parse().map_err(|_| wrong())? };
        if window.from == window.to { Err(wrong()) } else { Ok(window) }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{} {}", self.from.format("%H:%M"), self.to.format("%H:%M"), self.zone)
    }
}

impl Serialize for Window {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Window {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(|error: Error| {
            serde::de::Error::custom(format!("{error}; {}", error.hints().join("; ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(window: &str, at: &str) -> bool {
        let at = DateTime::parse_from_rfc3339(at).unwrap().with_timezone(&Utc);
        window.parse::<Window>().unwrap().contains(at)
    }

    #[test]
    fn a_window_may_pass_midnight_and_follows_its_zone() {
        let night = "22:00-06:00 America/New_York";
        assert!(contains(night, "2013-01-01T04:00:00Z"));
        assert!(!contains(night, "2013-01-01T02:59:00Z"));
        assert!(contains(night, "2013-01-01T10:59:00Z"));
        assert!(!contains(night, "2013-01-01T11:00:00Z"));
    }
}
