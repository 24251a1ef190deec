//! The calendars of the CF conventions (CF 1.12, 4.4.1): conversions between dates and numbers of
//! days.
//!
//! Day 0 is 1970-01-01 of the calendar itself. In the calendars `Julian` and `Standard`, day 0 is
//! the day whose Gregorian date is 1970-01-01. In the three historical calendars (`Standard`,
//! `ProlepticGregorian`, `Julian`), the same number therefore means the same day. Internally, the
//! year before year 1 is year 0. In texts, it is year -1 if the calendar does not have a year 0.

use serde::{Deserialize, Serialize};

/// A rule that groups days into months and years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Calendar {
    /// Julian up to 1582-10-04, and Gregorian from the next day on, which is 1582-10-15.
    Standard,
    /// The Gregorian rule for all dates.
    ProlepticGregorian,
    /// A leap year every four years.
    Julian,
    /// Years of 365 days, without leap years.
    NoLeap,
    /// Years of 366 days, all of them leap years.
    AllLeap,
    /// Twelve months of 30 days.
    Days360,
}

/// A date in a calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    /// The year in astronomical numbering: year 0 precedes year 1.
    pub year: i64,
    /// The month, counted from 1.
    pub month: u8,
    /// The day, counted from 1.
    pub day: u8,
}

/// Number of days from 0001-01-01 to 1970-01-01 in the Gregorian calendar.
const GREGORIAN_EPOCH: i64 = 719_162;

/// Number of days from 0001-01-01 in the Julian calendar to 0001-01-01 in the Gregorian calendar.
const JULIAN_LAG: i64 = 2;

/// The first day of `Calendar::Standard` that has a Gregorian date.
const FIRST_GREGORIAN_DATE: Date = Date {
    year: 1582,
    month: 10,
    day: 15,
};

/// The number of the day `FIRST_GREGORIAN_DATE`: days from 1970-01-01, negative before it.
const FIRST_GREGORIAN_DAY: i64 = -141_427;

/// The last day of `Calendar::Standard` that has a Julian date.
const LAST_JULIAN_DATE: Date = Date {
    year: 1582,
    month: 10,
    day: 4,
};

/// Number of days before each month in a year of 365 days. The last entry is the whole year.
const DAYS_BEFORE_MONTH: [i64; 13] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];

impl Calendar {
    /// Returns the calendar that the CF attribute `calendar` names; case is ignored. Returns `None`
    /// for an unknown name.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_slice() {
            b"standard" | b"gregorian" => Calendar::Standard,
            b"proleptic_gregorian" => Calendar::ProlepticGregorian,
            b"julian" => Calendar::Julian,
            b"noleap" | b"365_day" => Calendar::NoLeap,
            b"all_leap" | b"366_day" => Calendar::AllLeap,
            b"360_day" => Calendar::Days360,
            _ => return None,
        })
    }

    /// Returns the calendar's primary name in the CF conventions, such as `standard`, of which
    /// `gregorian` is a synonym.
    pub fn name(self) -> &'static str {
        match self {
            Calendar::Standard => "standard",
            Calendar::ProlepticGregorian => "proleptic_gregorian",
            Calendar::Julian => "julian",
            Calendar::NoLeap => "noleap",
            Calendar::AllLeap => "all_leap",
            Calendar::Days360 => "360_day",
        }
    }

    /// Returns whether dates in this calendar are the dates of NumPy's `datetime64`, at least after
    /// the reform of 1582.
    pub(crate) fn has_numpy_dates(self) -> bool {
        matches!(self, Calendar::Standard | Calendar::ProlepticGregorian)
    }

    /// Converts a year as written in a date to astronomical numbering, in which year 0 precedes
    /// year 1. Returns `None` for a written year 0 in a calendar without a year 0.
    pub(crate) fn year_from_written(self, written: i64) -> Option<i64> {
        match written {
            written if self.has_year_zero() => Some(written),
            0 => None,
            written if written < 0 => written.checked_add(1),
            written => Some(written),
        }
    }

    /// Converts a year in astronomical numbering, in which year 0 precedes year 1, to the year as
    /// written in a date.
    pub(crate) fn written_year(self, year: i64) -> i64 {
        if year <= 0 && !self.has_year_zero() {
            year - 1
        } else {
            year
        }
    }

    /// Returns whether the calendar has a year 0, by CF 1.9 and ISO 8601.
    fn has_year_zero(self) -> bool {
        !matches!(self, Calendar::Standard | Calendar::Julian)
    }

    /// Returns the number of a date: its days from 1970-01-01. Returns `None` if the calendar does
    /// not have the date.
    pub(crate) fn day_number(self, date: Date) -> Option<i64> {
        let rule = match self {
            Calendar::Standard if date >= FIRST_GREGORIAN_DATE => Calendar::ProlepticGregorian,
            Calendar::Standard if date <= LAST_JULIAN_DATE => Calendar::Julian,
            Calendar::Standard => return None,
            rule => rule,
        };
        if !(1..=12).contains(&date.month) {
            return None;
        }
        let begin = rule.days_before_month(date.year, date.month);
        let end = rule.days_before_month(date.year, date.month + 1);
        let day = i64::from(date.day);
        let is_there = day >= 1 && begin + day <= end;
        is_there.then(|| rule.days_before_year(date.year) + begin + day - 1 - rule.epoch())
    }

    /// Returns the date of day `number`, which is counted in days from 1970-01-01.
    pub fn date_of_day(self, number: i64) -> Date {
        let rule = match self {
            Calendar::Standard if number >= FIRST_GREGORIAN_DAY => Calendar::ProlepticGregorian,
            Calendar::Standard => Calendar::Julian,
            rule => rule,
        };
        let day = number + rule.epoch();
        let (days, years) = rule.leap_cycle();
        // Leap days are not evenly distributed, so the guess may be one year too early or too late.
        let guess = (day * years).div_euclid(days) + 1;
        let near = [guess + 1, guess, guess - 1];
        let begun = near
            .into_iter()
            .find(|&year| rule.days_before_year(year) <= day);
        let year = begun.unwrap_or(guess);
        let in_year = day - rule.days_before_year(year);
        let months = (1..=12).rev();
        let begins = |&month: &u8| rule.days_before_month(year, month) <= in_year;
        let month = months.into_iter().find(begins).unwrap_or(1);
        let in_month = in_year - rule.days_before_month(year, month);
        Date {
            year,
            month,
            day: u8::try_from(in_month + 1).unwrap_or(u8::MAX),
        }
    }

    /// Returns the number of days from 0001-01-01 in this calendar to day 0. In the Julian
    /// calendar, day 0 is the day of the Gregorian 1970-01-01.
    fn epoch(self) -> i64 {
        match self {
            Calendar::Standard | Calendar::ProlepticGregorian => GREGORIAN_EPOCH,
            Calendar::Julian => GREGORIAN_EPOCH + JULIAN_LAG,
            rule => rule.days_before_year(1970),
        }
    }

    /// Returns the number of days from 0001-01-01 to the first day of `year`.
    fn days_before_year(self, year: i64) -> i64 {
        let before = year - 1;
        let leap_days = match self {
            Calendar::Standard | Calendar::ProlepticGregorian => {
                before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400)
            }
            Calendar::Julian => before.div_euclid(4),
            Calendar::NoLeap => 0,
            Calendar::AllLeap => before,
            Calendar::Days360 => -5 * before,
        };
        365 * before + leap_days
    }

    /// Returns the number of days of `year` before month `month`. For month 13, returns the length
    /// of the whole year.
    fn days_before_month(self, year: i64, month: u8) -> i64 {
        if self == Calendar::Days360 {
            return 30 * (i64::from(month) - 1);
        }
        let is_leap = self.days_before_year(year + 1) - self.days_before_year(year) == 366;
        DAYS_BEFORE_MONTH[usize::from(month) - 1] + i64::from(is_leap && month > 2)
    }

    /// Returns the length of a leap year cycle in days, and in years.
    fn leap_cycle(self) -> (i64, i64) {
        match self {
            Calendar::Standard | Calendar::ProlepticGregorian => (146_097, 400),
            Calendar::Julian => (1461, 4),
            Calendar::NoLeap => (365, 1),
            Calendar::AllLeap => (366, 1),
            Calendar::Days360 => (360, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Calendar::{AllLeap, Days360, Julian, NoLeap, ProlepticGregorian, Standard};
    use proptest::prelude::*;

    const ALL: [Calendar; 6] = [
        Standard,
        ProlepticGregorian,
        Julian,
        NoLeap,
        AllLeap,
        Days360,
    ];

    fn date(year: i64, month: u8, day: u8) -> Date {
        Date { year, month, day }
    }

    /// Days from 1970-01-01 by `cftime.date2num`. For the standard and the proleptic Gregorian
    /// calendar, `cftime.datetime.toordinal() - 2440588`.
    #[test]
    fn numbers_of_days() {
        let days = |calendar: Calendar, y, m, d| calendar.day_number(date(y, m, d)).unwrap();
        assert_eq!(days(Standard, 2000, 2, 29), 11_016);
        assert_eq!(days(Standard, 1582, 10, 15), -141_427);
        assert_eq!(days(Standard, 1582, 10, 4), -141_428);
        assert_eq!(days(Standard, 1, 1, 1), -719_164);
        assert_eq!(days(ProlepticGregorian, 1, 1, 1), -719_162);
        assert_eq!(days(ProlepticGregorian, 1582, 10, 4), -141_438);
        assert_eq!(days(Julian, 1970, 1, 1), 13);
        assert_eq!(days(Julian, -4712, 1, 1), -2_440_588);
        assert_eq!(days(NoLeap, 2000, 3, 1), 10_950 + 59);
        assert_eq!(days(AllLeap, 2001, 3, 1), 31 * 366 + 60);
        assert_eq!(days(Days360, 1971, 2, 30), 360 + 59);
        assert_eq!(days(Days360, 0, 1, 1), -709_200);
    }

    /// Each day of 400 years follows the previous one.
    #[test]
    fn days_follow_each_other() {
        let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let mut expected = date(1970, 1, 1);
        for days in 0..146_097 {
            assert_eq!(ProlepticGregorian.date_of_day(days), expected);
            let Date { year, month, day } = expected;
            let last = match month {
                2 if is_leap(year) => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            expected = match (month, day) {
                (12, 31) => date(year + 1, 1, 1),
                (_, day) if day == last => date(year, month + 1, 1),
                _ => date(year, month, day + 1),
            };
        }
    }

    #[test]
    fn nonexistent_dates_are_rejected() {
        assert_eq!(Standard.day_number(date(1582, 10, 10)), None);
        assert_eq!(Standard.day_number(date(1900, 2, 29)), None);
        assert_eq!(NoLeap.day_number(date(2000, 2, 29)), None);
        assert_eq!(Days360.day_number(date(2000, 1, 31)), None);
        for calendar in ALL {
            for wrong in [date(2000, 0, 1), date(2000, 13, 1), date(2000, 1, 0)] {
                assert_eq!(calendar.day_number(wrong), None);
            }
            assert!(calendar.day_number(date(2000, 2, 30)).is_some() == (calendar == Days360));
        }
    }

    #[test]
    fn years_around_zero() {
        assert_eq!(
            (
                Standard.year_from_written(-1),
                Standard.year_from_written(0)
            ),
            (Some(0), None)
        );
        assert_eq!((Julian.written_year(0), Julian.written_year(1)), (-1, 1));
        assert_eq!(
            (NoLeap.year_from_written(0), NoLeap.written_year(0)),
            (Some(0), 0)
        );
    }

    #[test]
    fn names() {
        assert_eq!(Calendar::from_name(b"Gregorian"), Some(Standard));
        assert_eq!(Calendar::from_name(b"366_day"), Some(AllLeap));
        assert_eq!(Calendar::from_name(b"none"), None);
    }

    proptest! {
        /// Each day number has its own date, and the dates increase with the day numbers.
        #[test]
        fn each_number_is_a_date(number in -110_000_000_i64..110_000_000, which in 0..6_usize) {
            let calendar = ALL[which];
            let found = calendar.date_of_day(number);
            prop_assert_eq!(calendar.day_number(found), Some(number));
            prop_assert!(calendar.date_of_day(number - 1) < found);
        }
    }
}
