//! Instants and durations as text.

use crate::model::number::append;
use crate::view::calendar::{Calendar, Date};
use crate::view::table::column::TimeUnit;

const SECONDS_OF_DAY: i64 = 86_400;

/// Appends an instant, so many units after 1970 began, in ISO 8601: `2020-01-31T23:59:59.5`, with
/// `Z` behind it in UTC.
pub(super) fn write_instant(count: i64, unit: TimeUnit, is_utc: bool, out: &mut Vec<u8>) {
    let of_second = i64::from(unit.of_second);
    let (seconds, fraction) = (count.div_euclid(of_second), count.rem_euclid(of_second));
    let days = seconds.div_euclid(SECONDS_OF_DAY);
    let Date { year, month, day } = Calendar::ProlepticGregorian.date(days);
    append(out, format_args!("{year:04}-{month:02}-{day:02}T"));
    write_clock(seconds.rem_euclid(SECONDS_OF_DAY), fraction, unit, out);
    if is_utc {
        out.push(b'Z');
    }
}

/// Appends a duration of so many units as pandas has it: `-1 days +23:59:59`.
pub(super) fn write_duration(count: i64, unit: TimeUnit, out: &mut Vec<u8>) {
    let of_second = i64::from(unit.of_second);
    let (seconds, fraction) = (count.div_euclid(of_second), count.rem_euclid(of_second));
    let days = seconds.div_euclid(SECONDS_OF_DAY);
    let plus = if days < 0 { "+" } else { "" };
    append(out, format_args!("{days} days {plus}"));
    write_clock(seconds.rem_euclid(SECONDS_OF_DAY), fraction, unit, out);
}

/// Appends a time of the day: hours, minutes, seconds, and the fraction where it is not zero.
fn write_clock(seconds: i64, fraction: i64, unit: TimeUnit, out: &mut Vec<u8>) {
    let (minutes, second) = (seconds / 60, seconds % 60);
    let (hour, minute) = (minutes / 60, minutes % 60);
    append(out, format_args!("{hour:02}:{minute:02}:{second:02}"));
    if fraction == 0 {
        return;
    }
    let digits = usize::try_from(unit.of_second.ilog10()).unwrap_or(0);
    append(out, format_args!(".{fraction:0digits$}"));
    while out.ends_with(b"0") {
        out.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant(count: i64, of_second: u32) -> String {
        let mut out = Vec::new();
        write_instant(count, TimeUnit { of_second }, false, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// Expected: `numpy.datetime64(count, unit)`.
    #[test]
    fn instants_as_numpy_has_them() {
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
        // No number of 64 bits is too large.
        assert!(!instant(i64::MAX, 1).is_empty());
        assert!(!instant(i64::MIN, 1).is_empty());
    }

    /// Expected: `str(pandas.Timedelta(count, "ns"))`.
    #[test]
    fn durations_as_pandas_has_them() {
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
