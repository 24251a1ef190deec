//! The text format of instants, durations, days and periods.

use h5fs_reader::model::number::append_formatted;

use h5fs_conventions::calendar::{Calendar, Date};

const SECONDS_OF_DAY: i64 = 86_400;

/// Number of days before 1970-01-01, where January 1 of the year 1 is day 1.
const DAYS_BEFORE_1970: i64 = 719_163;

/// Maximum distance from 1970-01-01, in days, for which dates are computed. It is the range of a
/// 64-bit number of seconds.
const MOST_DAYS: i64 = i64::MAX / SECONDS_OF_DAY;

/// The kind of time that a stored number represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PandasTime {
    /// A number of units since 1970-01-01. The instant is in UTC if `is_utc` is set, and otherwise
    /// has no time zone.
    Instant {
        /// The length of a unit.
        unit: TimeUnit,
        /// Whether the instant is in UTC.
        is_utc: bool,
    },
    /// A duration, as a number of units.
    Duration(TimeUnit),
    /// The number of a day, where January 1 of the year 1 is day 1.
    Day,
    /// The number of a period. Period 0 contains the beginning of 1970.
    Period(Frequency),
}

/// The unit of instants and durations, as a fraction of a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeUnit {
    /// Number of units in a second.
    pub per_second: u32,
}

/// The length of a period, as in pandas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frequency {
    /// Years that may begin with any month. The number of a year is the calendar year in which it
    /// ends.
    Year,
    /// Quarters of years that may begin with any month.
    Quarter,
    /// Calendar months.
    Month,
    /// Weeks that end with this day of the week, where 0 is Sunday.
    Week(i64),
    /// Days.
    Day,
    /// Days except Saturdays and Sundays.
    BusinessDay,
    /// Hours.
    Hour,
    /// Minutes.
    Minute,
    /// Seconds, or this fraction of a second.
    Second(TimeUnit),
}

impl TimeUnit {
    /// Nanoseconds.
    pub(crate) const NANOSECOND: TimeUnit = TimeUnit {
        per_second: 1_000_000_000,
    };

    /// Returns the number of decimals that are needed to write a fraction of a second in this unit.
    fn fraction_digits(self) -> usize {
        self.per_second.max(1).ilog10().try_into().unwrap_or(0)
    }
}

impl PandasTime {
    /// Appends the text of the time whose stored number is `count`, in the format of a table cell.
    pub fn write(self, count: i64, out: &mut Vec<u8>) {
        match self {
            PandasTime::Instant { unit, is_utc } => write_instant(count, unit, is_utc, out),
            PandasTime::Duration(unit) => write_duration(count, unit, out),
            PandasTime::Day => write_day(count.saturating_sub(DAYS_BEFORE_1970), out),
            PandasTime::Period(frequency) => frequency.write(count, out),
        }
    }

    /// Appends the text of the time whose stored number is `count`, in pandas' format for a column
    /// name.
    pub(super) fn write_name(self, count: i64, out: &mut Vec<u8>) {
        if count == i64::MIN {
            out.extend_from_slice(b"NaT");
            return;
        }
        let start = out.len();
        self.write(count, out);
        let PandasTime::Instant { is_utc, .. } = self else {
            return;
        };
        if let Some(between) = out.iter().skip(start).position(|&byte| byte == b'T') {
            out[start + between] = b' ';
        }
        if is_utc {
            out.pop();
            out.extend_from_slice(b"+00:00");
        }
    }
}

impl Frequency {
    /// Appends the text of the period whose number is `count`, in pandas' format.
    fn write(self, count: i64, out: &mut Vec<u8>) {
        match self {
            Frequency::Year => {
                append_formatted(out, format_args!("{}", count.saturating_add(1970)));
            }
            Frequency::Quarter => {
                let (year, quarter) = (count.div_euclid(4), count.rem_euclid(4) + 1);
                append_formatted(out, format_args!("{}Q{quarter}", year + 1970));
            }
            Frequency::Month => {
                let (year, month) = (count.div_euclid(12), count.rem_euclid(12) + 1);
                append_formatted(out, format_args!("{}-{month:02}", year + 1970));
            }
            Frequency::Week(last) => {
                // January 1, 1970 was a Thursday.
                let end = count.saturating_mul(7).saturating_add(last - 4);
                write_day(end.saturating_sub(6), out);
                out.push(b'/');
                write_day(end, out);
            }
            Frequency::Day => write_day(count, out),
            Frequency::BusinessDay => {
                let from_monday = count.saturating_add(3);
                let weeks = from_monday.div_euclid(5).saturating_mul(7);
                write_day(weeks.saturating_add(from_monday.rem_euclid(5) - 3), out);
            }
            Frequency::Hour => write_minutes(count.saturating_mul(60), out),
            Frequency::Minute => write_minutes(count, out),
            Frequency::Second(unit) => {
                let of_second = i64::from(unit.per_second);
                let (seconds, fraction) =
                    (count.div_euclid(of_second), count.rem_euclid(of_second));
                write_minutes(seconds.div_euclid(60), out);
                append_formatted(out, format_args!(":{:02}", seconds.rem_euclid(60)));
                if unit.per_second > 1 {
                    let digits = unit.fraction_digits();
                    append_formatted(out, format_args!(".{fraction:0digits$}"));
                }
            }
        }
    }
}

/// Appends the date that is `days` days after 1970-01-01.
fn write_day(days: i64, out: &mut Vec<u8>) {
    // Dates beyond this range do not occur in practice.
    let days = days.clamp(-MOST_DAYS, MOST_DAYS);
    let Date { year, month, day } = Calendar::ProlepticGregorian.date_of_day(days);
    append_formatted(out, format_args!("{year:04}-{month:02}-{day:02}"));
}

/// Appends the date, hour and minute that are `minutes` minutes after the beginning of 1970-01-01.
fn write_minutes(minutes: i64, out: &mut Vec<u8>) {
    write_day(minutes.div_euclid(1440), out);
    let minute = minutes.rem_euclid(1440);
    append_formatted(out, format_args!(" {:02}:{:02}", minute / 60, minute % 60));
}

/// Appends the instant that is `count` units after the beginning of 1970-01-01, in ISO 8601:
/// `2020-01-31T23:59:59.5`. In UTC, a `Z` follows.
fn write_instant(count: i64, unit: TimeUnit, is_utc: bool, out: &mut Vec<u8>) {
    let of_second = i64::from(unit.per_second);
    let (seconds, fraction) = (count.div_euclid(of_second), count.rem_euclid(of_second));
    let days = seconds.div_euclid(SECONDS_OF_DAY);
    write_day(days, out);
    out.push(b'T');
    write_clock(seconds.rem_euclid(SECONDS_OF_DAY), fraction, unit, out);
    if is_utc {
        out.push(b'Z');
    }
}

/// Appends a duration of `count` units in pandas' format: `-1 days +23:59:59`.
fn write_duration(count: i64, unit: TimeUnit, out: &mut Vec<u8>) {
    let of_second = i64::from(unit.per_second);
    let (seconds, fraction) = (count.div_euclid(of_second), count.rem_euclid(of_second));
    let days = seconds.div_euclid(SECONDS_OF_DAY);
    let plus = if days < 0 { "+" } else { "" };
    append_formatted(out, format_args!("{days} days {plus}"));
    write_clock(seconds.rem_euclid(SECONDS_OF_DAY), fraction, unit, out);
}

/// Appends a time of day: hours, minutes and seconds, and the `fraction` of a second in units if it
/// is not zero.
fn write_clock(seconds: i64, fraction: i64, unit: TimeUnit, out: &mut Vec<u8>) {
    let (minutes, second) = (seconds / 60, seconds % 60);
    let (hour, minute) = (minutes / 60, minutes % 60);
    append_formatted(out, format_args!("{hour:02}:{minute:02}:{second:02}"));
    if fraction == 0 {
        return;
    }
    let digits = unit.fraction_digits();
    append_formatted(out, format_args!(".{fraction:0digits$}"));
    while out.ends_with(b"0") {
        out.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Extreme numbers also have a text.
    #[test]
    fn extreme_times_have_a_text() {
        let mut out = Vec::new();
        let frequencies = [
            Frequency::Year,
            Frequency::Quarter,
            Frequency::Month,
            Frequency::Week(6),
            Frequency::Day,
            Frequency::BusinessDay,
            Frequency::Hour,
            Frequency::Minute,
            Frequency::Second(TimeUnit::NANOSECOND),
        ];
        for count in [i64::MIN, i64::MAX] {
            for frequency in frequencies {
                PandasTime::Period(frequency).write(count, &mut out);
            }
            PandasTime::Day.write(count, &mut out);
        }
        assert!(!out.is_empty());
    }

    fn instant(count: i64, of_second: u32) -> String {
        let mut out = Vec::new();
        write_instant(
            count,
            TimeUnit {
                per_second: of_second,
            },
            false,
            &mut out,
        );
        String::from_utf8(out).unwrap()
    }

    /// Expected: `numpy.datetime64(count, unit)`.
    #[test]
    fn times_are_formatted_as_in_numpy() {
        assert_eq!(instant(0, 1), "1970-01-01T00:00:00");
        assert_eq!(instant(-1, 1), "1969-12-31T23:59:59");
        assert_eq!(instant(951_782_399, 1), "2000-02-28T23:59:59");
        assert_eq!(instant(951_782_400, 1), "2000-02-29T00:00:00");
        assert_eq!(instant(-2_203_891_200, 1), "1900-03-01T00:00:00");
        assert_eq!(instant(-62_135_596_800, 1), "0001-01-01T00:00:00");
        assert_eq!(
            instant(253_402_300_799_999, 1000),
            "9999-12-31T23:59:59.999"
        );
        let first = instant(i64::MIN + 1, 1_000_000_000);
        assert_eq!(first, "1677-09-21T00:12:43.145224193");
        assert_eq!(instant(1_500_000, 1_000_000), "1970-01-01T00:00:01.5");
        // All 64-bit numbers have a text.
        assert!(!instant(i64::MAX, 1).is_empty());
        assert!(!instant(i64::MIN, 1).is_empty());
    }

    /// Expected: `str(pandas.Period(ordinal=count, freq=…))`, `datetime.date.fromordinal(count)`.
    #[test]
    fn periods_and_days_equal_those_of_pandas() {
        let period = |count, frequency| {
            let mut out = Vec::new();
            PandasTime::Period(frequency).write(count, &mut out);
            String::from_utf8(out).unwrap()
        };
        let second = |of_second| {
            Frequency::Second(TimeUnit {
                per_second: of_second,
            })
        };
        assert_eq!(period(-7, Frequency::Year), "1963");
        assert_eq!(period(19_755, Frequency::Year), "21725");
        assert_eq!(period(-7, Frequency::Quarter), "1968Q2");
        assert_eq!(period(19_755, Frequency::Quarter), "6908Q4");
        assert_eq!(period(-7, Frequency::Month), "1969-06");
        assert_eq!(period(19_755, Frequency::Month), "3616-04");
        assert_eq!(period(-7, Frequency::Week(0)), "1969-11-03/1969-11-09");
        assert_eq!(period(19_755, Frequency::Week(0)), "2348-08-02/2348-08-08");
        assert_eq!(period(-7, Frequency::Week(3)), "1969-11-06/1969-11-12");
        assert_eq!(period(19_755, Frequency::Week(3)), "2348-08-05/2348-08-11");
        assert_eq!(period(-7, Frequency::Day), "1969-12-25");
        assert_eq!(period(19_755, Frequency::Day), "2024-02-02");
        assert_eq!(period(-7, Frequency::BusinessDay), "1969-12-23");
        assert_eq!(period(19_755, Frequency::BusinessDay), "2045-09-21");
        assert_eq!(period(-7, Frequency::Hour), "1969-12-31 17:00");
        assert_eq!(period(19_755, Frequency::Hour), "1972-04-03 03:00");
        assert_eq!(period(-7, Frequency::Minute), "1969-12-31 23:53");
        assert_eq!(period(19_755, Frequency::Minute), "1970-01-14 17:15");
        assert_eq!(period(-7, second(1)), "1969-12-31 23:59:53");
        assert_eq!(period(19_755, second(1)), "1970-01-01 05:29:15");
        assert_eq!(period(-7, second(1000)), "1969-12-31 23:59:59.993");
        assert_eq!(period(19_755, second(1000)), "1970-01-01 00:00:19.755");
        assert_eq!(
            period(-7, second(1_000_000_000)),
            "1969-12-31 23:59:59.999999993"
        );
        assert_eq!(
            period(19_755, second(1_000_000_000)),
            "1970-01-01 00:00:00.000019755"
        );
        let mut day = Vec::new();
        PandasTime::Day.write(738_886, &mut day);
        assert_eq!(day, b"2024-01-01");
    }

    /// Expected: `str(pandas.Timestamp(…))`.
    #[test]
    fn names_that_are_times() {
        let name = |count, is_utc| {
            let unit = TimeUnit { per_second: 1 };
            let mut out = b"T.".to_vec();
            PandasTime::Instant { unit, is_utc }.write_name(count, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(name(1_704_110_400, false), "T.2024-01-01 12:00:00");
        assert_eq!(name(1_704_110_400, true), "T.2024-01-01 12:00:00+00:00");
        assert_eq!(name(i64::MIN, true), "T.NaT");
    }

    /// Expected: `str(pandas.Timedelta(count, "ns"))`.
    #[test]
    fn durations_equal_those_of_pandas() {
        let duration = |count| {
            let mut out = Vec::new();
            write_duration(count, TimeUnit::NANOSECOND, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(duration(1_000_000_000), "0 days 00:00:01");
        assert_eq!(duration(-1_000_000_000), "-1 days +23:59:59");
        assert_eq!(duration(90_061_000_000_000), "1 days 01:01:01");
    }
}
