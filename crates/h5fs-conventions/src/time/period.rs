//! Periods that a text in ISO 8601 names: `2020-03` is a month, `2020-03-05T12:30` a minute.

use h5fs_reader::error::Result;

use crate::calendar::Date;
use crate::stored_type::ExactNumber;
use crate::time::{DAY_SECONDS, TimeUnits};

/// A time in nanoseconds since the calendar's 1970-01-01.
pub type Instant = i128;

/// The precision of a text in ISO 8601, or of a time that is a whole number of such parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeResolution {
    /// `2020-03-05T12:30:15.123456789`
    Nanosecond,
    /// `2020-03-05T12:30:15.123456`
    Microsecond,
    /// `2020-03-05T12:30:15.123`
    Millisecond,
    /// `2020-03-05T12:30:15`
    Second,
    /// `2020-03-05T12:30`
    Minute,
    /// `2020-03-05T12`
    Hour,
    /// `2020-03-05`
    Day,
    /// `2020-03`
    Month,
    /// `2020`
    Year,
}

/// A period of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimePeriod {
    /// The first nanosecond of the period.
    pub first: Instant,
    /// The last nanosecond of the period.
    pub last: Instant,
    /// The length of the period.
    pub resolution: TimeResolution,
}

const SECOND: Instant = 1_000_000_000;
const DAY: Instant = DAY_SECONDS as Instant * SECOND;

impl TimeResolution {
    /// Returns the coarsest resolution, but at most a day, of which `instant` is a multiple.
    pub fn from_instant(instant: Instant) -> Self {
        let all = [
            (DAY, TimeResolution::Day),
            (3600 * SECOND, TimeResolution::Hour),
            (60 * SECOND, TimeResolution::Minute),
            (SECOND, TimeResolution::Second),
            (SECOND / 1000, TimeResolution::Millisecond),
            (SECOND / 1_000_000, TimeResolution::Microsecond),
        ];
        let found = all.iter().find(|(length, _)| instant % length == 0);
        found.map_or(TimeResolution::Nanosecond, |(_, resolution)| *resolution)
    }
}

/// The parts of a text in ISO 8601 that are not parsed yet.
struct IsoParser<'a>(&'a [u8]);

impl IsoParser<'_> {
    /// Consumes `mark` and the `digits` digits after it. Returns their number, or `None` if the
    /// text does not continue in this way.
    fn part(&mut self, mark: &[u8], digits: usize) -> Option<i64> {
        let after = self.0.strip_prefix(mark)?;
        let (number, rest) = after.split_at_checked(digits)?;
        let is_number = number.iter().all(u8::is_ascii_digit);
        let number = str::from_utf8(number).ok().filter(|_| is_number)?;
        self.0 = rest;
        number.parse().ok()
    }

    /// Consumes two digits after `mark`. Returns their number if it is at most `most`.
    fn two_digits(&mut self, mark: &[u8], most: i64) -> Option<i64> {
        self.part(mark, 2).filter(|&number| number <= most)
    }
}

impl TimeUnits {
    /// Converts a number to nanoseconds since the calendar's 1970-01-01. The result is exact if the
    /// number is exact to the nanosecond. Returns `None` for a number that is not a time.
    ///
    /// # Errors
    /// Fails as [`convert_to_ticks`](Self::convert_to_ticks) does.
    pub fn convert_to_instant(&self, number: ExactNumber) -> Result<Option<Instant>> {
        let ticks = self.convert_to_ticks(number)?;
        let exact = self.exact_nanoseconds(number).map(Instant::from);
        Ok(ticks.map(|ticks| exact.unwrap_or_else(|| self.nanoseconds(ticks))))
    }

    /// Parses a time in ISO 8601, or its beginning: `2020`, `2020-03`, `2020-03-05`,
    /// `2020-03-05T12`, `2020-03-05T12:30`, `2020-03-05T12:30:15` with up to nine decimals. Returns
    /// `None` for any other text, and for a date that the calendar does not have.
    pub fn parse_period(&self, text: &[u8]) -> Option<TimePeriod> {
        let mut rest = IsoParser(text);
        let year = self.calendar.year_from_written(rest.part(b"", 4)?)?;
        if rest.0.is_empty() {
            return self.dates(year, 1, year.checked_add(1)?, 1, TimeResolution::Year);
        }
        let month = u8::try_from(rest.two_digits(b"-", 12)?).ok()?;
        if rest.0.is_empty() {
            let (next_year, next) = match month {
                12 => (year.checked_add(1)?, 1),
                month => (year, month + 1),
            };
            return self.dates(year, month, next_year, next, TimeResolution::Month);
        }
        let day = u8::try_from(rest.two_digits(b"-", 31)?).ok()?;
        let midnight = self.midnight(year, month, day)?;
        let (first, resolution) = parse_time_of_day(&mut rest)?;
        let first = midnight + first;
        rest.0.is_empty().then_some(TimePeriod {
            first,
            last: first + resolution.nanoseconds()? - 1,
            resolution,
        })
    }

    /// Returns the period from the first day of a month to the day before the first day of another.
    fn dates(
        &self,
        year: i64,
        month: u8,
        next_year: i64,
        next_month: u8,
        resolution: TimeResolution,
    ) -> Option<TimePeriod> {
        Some(TimePeriod {
            first: self.midnight(year, month, 1)?,
            last: self.midnight(next_year, next_month, 1)? - 1,
            resolution,
        })
    }

    fn midnight(&self, year: i64, month: u8, day: u8) -> Option<Instant> {
        let days = self.calendar.day_number(Date { year, month, day })?;
        Some(Instant::from(days) * DAY)
    }
}

impl TimeResolution {
    /// Returns the length in nanoseconds; `None` for months and years, which differ in length.
    fn nanoseconds(self) -> Option<Instant> {
        Some(match self {
            TimeResolution::Nanosecond => 1,
            TimeResolution::Microsecond => SECOND / 1_000_000,
            TimeResolution::Millisecond => SECOND / 1000,
            TimeResolution::Second => SECOND,
            TimeResolution::Minute => 60 * SECOND,
            TimeResolution::Hour => 3600 * SECOND,
            TimeResolution::Day => DAY,
            TimeResolution::Month | TimeResolution::Year => return None,
        })
    }
}

/// Consumes the time of day, which may be absent. Returns the nanoseconds since midnight, and the
/// resolution of the text.
fn parse_time_of_day(rest: &mut IsoParser<'_>) -> Option<(Instant, TimeResolution)> {
    if rest.0.is_empty() {
        return Some((0, TimeResolution::Day));
    }
    let hour = rest.two_digits(b"T", 23)?;
    if rest.0.is_empty() {
        return Some((Instant::from(hour * 3600) * SECOND, TimeResolution::Hour));
    }
    let minute = rest.two_digits(b":", 59)?;
    let seconds = hour * 3600 + minute * 60;
    if rest.0.is_empty() {
        return Some((Instant::from(seconds) * SECOND, TimeResolution::Minute));
    }
    let seconds = Instant::from(seconds + rest.two_digits(b":", 59)?) * SECOND;
    if rest.0.is_empty() {
        return Some((seconds, TimeResolution::Second));
    }
    let digits = rest.0.len().checked_sub(1)?;
    let resolution = match digits {
        1..=3 => TimeResolution::Millisecond,
        4..=6 => TimeResolution::Microsecond,
        7..=9 => TimeResolution::Nanosecond,
        _ => return None,
    };
    let fraction = rest.part(b".", digits)?;
    let fraction = (digits..9).fold(fraction, |fraction, _| fraction * 10);
    Some((seconds + Instant::from(fraction), resolution))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(calendar: &str) -> TimeUnits {
        TimeUnits::parse(b"days since 2000-01-01", Some(calendar.as_bytes())).unwrap()
    }

    /// Returns the first day of the period as a number of days since 2000-01-01, and its days.
    fn days(calendar: &str, text: &str) -> Option<(i128, i128)> {
        let units = units(calendar);
        let epoch = units
            .convert_to_instant(ExactNumber::Integer(0))
            .unwrap()
            .unwrap();
        let period = units.parse_period(text.as_bytes())?;
        let (first, next) = (period.first - epoch, period.last + 1 - epoch);
        assert_eq!((first % DAY, next % DAY), (0, 0));
        Some((first / DAY, (next - first) / DAY))
    }

    #[test]
    fn years_months_and_days_of_each_calendar() {
        assert_eq!(days("standard", "2000"), Some((0, 366)));
        assert_eq!(days("standard", "2001"), Some((366, 365)));
        assert_eq!(days("standard", "2000-02"), Some((31, 29)));
        assert_eq!(days("standard", "2000-12"), Some((335, 31)));
        assert_eq!(days("standard", "2000-03-01"), Some((60, 1)));
        assert_eq!(days("noleap", "2000-03-01"), Some((59, 1)));
        assert_eq!(days("noleap", "2000-02"), Some((31, 28)));
        assert_eq!(days("all_leap", "2001-02"), Some((366 + 31, 29)));
        assert_eq!(days("360_day", "2001"), Some((360, 360)));
        assert_eq!(days("360_day", "2000-02-30"), Some((59, 1)));
        // Ten days of October 1582 do not exist.
        assert_eq!(days("standard", "1582-10").map(|(_, days)| days), Some(21));
    }

    #[test]
    fn times_of_day() {
        let period = |text: &str| {
            let period = units("standard").parse_period(text.as_bytes())?;
            Some((
                period.first % DAY,
                period.last + 1 - period.first,
                period.resolution,
            ))
        };
        let (hour, minute) = (3600 * SECOND, 60 * SECOND);
        let noon = 12 * hour;
        let found = period("2000-03-05T12");
        assert_eq!(found, Some((noon, hour, TimeResolution::Hour)));
        let found = period("2000-03-05T12:30");
        assert_eq!(
            found,
            Some((noon + 30 * minute, minute, TimeResolution::Minute))
        );
        let found = period("2000-03-05T12:00:01");
        assert_eq!(found, Some((noon + SECOND, SECOND, TimeResolution::Second)));
        let found = period("2000-03-05T12:00:00.5");
        let millisecond = TimeResolution::Millisecond;
        assert_eq!(found, Some((noon + SECOND / 2, SECOND / 1000, millisecond)));
        let found = period("2000-03-05T12:00:00.000000001");
        assert_eq!(found, Some((noon + 1, 1, TimeResolution::Nanosecond)));
    }

    #[test]
    fn other_texts_are_not_times() {
        for text in [
            "",
            "200",
            "20000",
            "2000-",
            "2000-1",
            "2000-13",
            "2000-00",
            "2000-02-30",
            "2000-1-1",
            "2000-01-01T",
            "2000-01-01T24",
            "2000-01-01T1",
            "2000-01-01T12:",
            "2000-01-01T12:60",
            "2000-01-01T12:00:60",
            "2000-01-01T12:00:00.",
            "2000-01-01T12:00:00.0000000001",
            "2000-01-01 12",
            "2000-01-01T12Z",
            "noon",
            "0000",
            "+200",
            "1582-10-10",
        ] {
            assert_eq!(
                units("standard").parse_period(text.as_bytes()),
                None,
                "{text}"
            );
        }
    }

    #[test]
    fn resolutions_of_instants() {
        let all = [
            (2 * DAY, TimeResolution::Day),
            (-DAY + 6 * 3600 * SECOND, TimeResolution::Hour),
            (90 * SECOND, TimeResolution::Second),
            (120 * SECOND, TimeResolution::Minute),
            (SECOND / 10, TimeResolution::Millisecond),
            (1000, TimeResolution::Microsecond),
            (1, TimeResolution::Nanosecond),
        ];
        for (instant, resolution) in all {
            assert_eq!(TimeResolution::from_instant(instant), resolution);
        }
    }
}
