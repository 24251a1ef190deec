//! Times in netCDF: numbers of a unit since a reference time, `hours since 1850-01-01` (CF 1.12,
//! 4.4).
//!
//! Numbers are decoded as in cftime. Integers are exact, and floating-point numbers are rounded to
//! the microsecond. A time within one microsecond of a whole second is rounded to that second,
//! because fractions of a day are inexact. The product of a number and its unit is computed
//! exactly. As text, a number that is exact to the nanosecond keeps its nanoseconds, as in xarray.
//! This applies to the calendars and years of NumPy's `datetime64[ns]`.

pub mod period;
pub mod round;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::number::append_formatted;
use serde::{Deserialize, Serialize};

use crate::calendar::{Calendar, Date};
use crate::reference_time::ReferenceTime;
use crate::stored_type::ExactNumber;

/// The meaning of numbers that represent times: their unit, reference time and calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeUnits {
    calendar: Calendar,
    tick: Tick,
    /// Number of [`Tick`]s in one unit.
    per_unit: i64,
    /// The reference time in ticks since 1970-01-01, rounded down.
    reference: i128,
    /// Nanoseconds from `reference` to the exact reference time.
    reference_remainder: i64,
}

/// The fraction of a second in which times are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tick {
    /// Used for all units but nanoseconds.
    Microsecond,
    /// Used only for units of nanoseconds.
    Nanosecond,
}

/// A time, as the number of [`Tick`]s since 1970-01-01.
pub type TicksSinceEpoch = i64;

/// Maximum length in bytes of a time's text.
pub const TEXT_BYTES: usize = 29;

const MICROSECONDS: i64 = 1_000_000;
const DAY_SECONDS: i64 = 86_400;

impl Tick {
    /// Returns the number of ticks in a second.
    pub fn per_second(self) -> i64 {
        match self {
            Tick::Microsecond => MICROSECONDS,
            Tick::Nanosecond => 1000 * MICROSECONDS,
        }
    }

    /// Returns the length of one tick in nanoseconds.
    fn nanoseconds(self) -> i64 {
        match self {
            Tick::Microsecond => 1000,
            Tick::Nanosecond => 1,
        }
    }
}

/// Returns the tick for a unit, and the number of ticks in the unit. `name` is the unit's name in
/// lower case. Returns `None` for an unknown unit, and for a unit that the calendar does not have.
fn parse_unit(name: &[u8], calendar: Calendar) -> Option<(Tick, i64)> {
    const DAY: i64 = DAY_SECONDS * MICROSECONDS;
    let microseconds = match name {
        b"nanosecond" | b"nanoseconds" => return Some((Tick::Nanosecond, 1)),
        b"microsecond" | b"microseconds" | b"microsec" | b"microsecs" => 1,
        b"millisecond" | b"milliseconds" | b"millisec" | b"millisecs" | b"msec" | b"msecs"
        | b"ms" => 1000,
        b"second" | b"seconds" | b"sec" | b"secs" | b"s" => MICROSECONDS,
        b"minute" | b"minutes" | b"min" | b"mins" => 60 * MICROSECONDS,
        b"hour" | b"hours" | b"hr" | b"hrs" | b"h" => 3600 * MICROSECONDS,
        b"day" | b"days" | b"d" => DAY,
        b"month" | b"months" if calendar == Calendar::Days360 => 30 * DAY,
        b"common_year" | b"common_years" if calendar == Calendar::NoLeap => 365 * DAY,
        _ => return None,
    };
    Some((Tick::Microsecond, microseconds))
}

impl TimeUnits {
    /// Parses the attributes `units` and `calendar`. Returns `None` if `units` is not a unit of
    /// time since a reference time, or if the calendar is unknown or does not have the date of the
    /// reference time.
    pub fn parse(units: &[u8], calendar: Option<&[u8]>) -> Option<Self> {
        let calendar = match calendar {
            Some(name) => Calendar::from_name(name.trim_ascii())?,
            None => Calendar::Standard,
        };
        let (name, rest) = split_word(units)?;
        let (since, reference) = split_word(rest)?;
        if !since.eq_ignore_ascii_case(b"since") {
            return None;
        }
        let (tick, per_unit) = parse_unit(&name.to_ascii_lowercase(), calendar)?;
        let reference = ReferenceTime::parse(reference)?;
        let days = i128::from(calendar.day_number(Date {
            year: calendar.year_from_written(reference.year)?,
            month: reference.month,
            day: reference.day,
        })?);
        let seconds = days * i128::from(DAY_SECONDS) + i128::from(reference.second);
        let of_tick = tick.nanoseconds();
        let fraction = reference.nanosecond / of_tick;
        let whole = seconds * i128::from(tick.per_second());
        Some(TimeUnits {
            calendar,
            tick,
            per_unit,
            reference: whole + i128::from(fraction),
            reference_remainder: reference.nanosecond % of_tick,
        })
    }

    /// Returns the precision of the `datetime64` type for these times; `None` for a calendar that
    /// `datetime64` does not have.
    pub fn datetime64_precision(&self) -> Option<Tick> {
        self.calendar.has_numpy_dates().then_some(self.tick)
    }

    /// Returns the calendar's name in the CF conventions.
    pub fn calendar_name(&self) -> &'static str {
        self.calendar.name()
    }

    /// Converts a time to nanoseconds since the calendar's 1970-01-01.
    pub fn nanoseconds(&self, time: TicksSinceEpoch) -> i128 {
        i128::from(time) * i128::from(self.tick.nanoseconds())
    }

    /// Converts a number to a time; `None` for NaN, infinities, and the integer that NumPy uses for
    /// `NaT`.
    ///
    /// # Errors
    /// `Limit` for a time that does not fit in 64 bits.
    pub fn convert_to_ticks(&self, number: ExactNumber) -> Result<Option<TicksSinceEpoch>> {
        let since = match number {
            // NumPy uses this number for `NaT`.
            ExactNumber::Integer(number) if number == i128::from(i64::MIN) => return Ok(None),
            ExactNumber::Integer(number) => number.checked_mul(self.per_unit.into()),
            ExactNumber::Real(number) if !number.is_finite() => return Ok(None),
            ExactNumber::Real(number) => self.round_to_ticks(number),
        };
        let ticks = since.and_then(|since| since.checked_add(self.reference));
        // The lowest number is `NaT`.
        let ticks = ticks.and_then(|ticks| TicksSinceEpoch::try_from(ticks).ok());
        let ticks = ticks.filter(|&ticks| ticks > TicksSinceEpoch::MIN);
        let most = TicksSinceEpoch::MAX.unsigned_abs();
        ticks
            .map(Some)
            .ok_or_else(|| Error::limit("cf: distance of a time from 1970", most))
    }

    /// Converts a finite number of units to ticks, rounded as in cftime; `None` if the ticks
    /// overflow.
    fn round_to_ticks(&self, number: f64) -> Option<i128> {
        let (mantissa, exponent) = split_float(number);
        let product = i128::from(mantissa) * i128::from(self.per_unit);
        let Ok(shift) = u32::try_from(-exponent) else {
            let factor = 1_i128.checked_shl(exponent.unsigned_abs())?;
            return product.checked_mul(factor);
        };
        if shift == 0 {
            return Some(product);
        }
        let shift = shift.min(126);
        let floor = product >> shift;
        let nearest = round_half_even(product, shift);
        let ceiling = floor + i128::from(product != floor << shift);
        if self.per_unit < MICROSECONDS {
            return Some(nearest);
        }
        Some(match nearest.rem_euclid(MICROSECONDS.into()) {
            1 => floor,
            999_999 => ceiling,
            _ => nearest,
        })
    }

    /// Converts a number to a time, and appends its text. Returns false if the number is not a
    /// time: for NaN, infinities and `NaT`.
    ///
    /// # Errors
    /// Fails as [`convert_to_ticks`](Self::convert_to_ticks) does.
    pub fn write_number(&self, number: ExactNumber, out: &mut Vec<u8>) -> Result<bool> {
        let Some(time) = self.convert_to_ticks(number)? else {
            return Ok(false);
        };
        match self.exact_nanoseconds(number) {
            Some(time) => self.write_ticks(time, Tick::Nanosecond, out),
            None => self.write(time, out),
        }
        Ok(true)
    }

    /// Converts a number to nanoseconds since 1970-01-01 if the conversion is exact.
    ///
    /// Returns `None` if the nanoseconds do not fit in 64 bits, or if the number is not exact to
    /// the nanosecond. Also returns `None` in calendars with other days than `datetime64`.
    fn exact_nanoseconds(&self, number: ExactNumber) -> Option<i64> {
        self.datetime64_precision()?;
        let of_tick = i128::from(self.tick.nanoseconds());
        let per_unit = i128::from(self.per_unit) * of_tick;
        let since = match number {
            ExactNumber::Integer(number) => number.checked_mul(per_unit)?,
            ExactNumber::Real(number) => {
                let (mantissa, exponent) = split_float(number);
                let shift = u32::try_from(-exponent).ok()?.min(126);
                let is_exact = per_unit <= 1 << shift;
                is_exact.then(|| round_half_even(i128::from(mantissa) * per_unit, shift))?
            }
        };
        let reference = self.reference.checked_mul(of_tick)?;
        let since_1970 = since
            .checked_add(reference)?
            .checked_add(self.reference_remainder.into())?;
        i64::try_from(since_1970).ok()
    }

    /// Appends a time as text in ISO 8601: `2000-01-31T12:00:00`, with six or nine decimals if they
    /// are not zero.
    pub fn write(&self, time: TicksSinceEpoch, out: &mut Vec<u8>) {
        self.write_ticks(time, self.tick, out);
    }

    fn write_ticks(&self, time: TicksSinceEpoch, tick: Tick, out: &mut Vec<u8>) {
        let per_second = tick.per_second();
        let (seconds, fraction) = (time.div_euclid(per_second), time.rem_euclid(per_second));
        let (days, second) = (
            seconds.div_euclid(DAY_SECONDS),
            seconds.rem_euclid(DAY_SECONDS),
        );
        let date = self.calendar.date_of_day(days);
        let year = self.calendar.written_year(date.year);
        let digits = if year < 0 { 5 } else { 4 };
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        append_formatted(
            out,
            format_args!(
                "{year:0digits$}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}",
                date.month, date.day
            ),
        );
        match tick {
            _ if fraction == 0 => {}
            Tick::Nanosecond if fraction % 1000 == 0 => {
                append_formatted(out, format_args!(".{:06}", fraction / 1000));
            }
            Tick::Microsecond => append_formatted(out, format_args!(".{fraction:06}")),
            Tick::Nanosecond => append_formatted(out, format_args!(".{fraction:09}")),
        }
    }
}

/// Returns `product / 2^shift`, rounded half to even.
fn round_half_even(product: i128, shift: u32) -> i128 {
    let floor = product >> shift;
    let rest = product - (floor << shift);
    let half = (1_i128 << shift) >> 1;
    let up = rest > half || rest == half && rest > 0 && floor % 2 != 0;
    floor + i128::from(up)
}

/// Splits a finite number into `mantissa * 2^exponent`.
fn split_float(number: f64) -> (i64, i32) {
    const FRACTION: u64 = (1 << 52) - 1;
    let bits = number.to_bits();
    let biased = (bits >> 52 & 0x7FF) as i32;
    let (mantissa, exponent) = match biased {
        0 => (bits & FRACTION, -1074),
        biased => (bits & FRACTION | (FRACTION + 1), biased - 1075),
    };
    let magnitude = mantissa.cast_signed();
    if number.is_sign_negative() {
        (-magnitude, exponent)
    } else {
        (magnitude, exponent)
    }
}

/// Splits a text into its first word and the text after the word.
fn split_word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let end = text.iter().position(u8::is_ascii_whitespace);
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    (!word.is_empty()).then_some((word, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn units(units: &str, calendar: &str) -> Option<TimeUnits> {
        TimeUnits::parse(units.as_bytes(), Some(calendar.as_bytes()))
    }

    fn text(of: &str, calendar: &str, number: ExactNumber) -> String {
        let units = units(of, calendar).unwrap();
        let mut text = Vec::new();
        assert!(units.write_number(number, &mut text).unwrap());
        assert!(text.len() <= TEXT_BYTES);
        String::from_utf8(text).unwrap()
    }

    /// Expected: `xarray.conventions.decode_cf_variable(…).values`. For calendars that NumPy does
    /// not have, and for numbers that are not exact to the nanosecond, `cftime.num2date`.
    #[test]
    fn exact_numbers_keep_their_nanoseconds() {
        let real = |units, number| text(units, "standard", ExactNumber::Real(number));
        let seconds = "seconds since 2000-01-01";
        assert_eq!(real(seconds, 0.1234567), "2000-01-01T00:00:00.123456700");
        assert_eq!(real(seconds, 1.0 / 3.0), "2000-01-01T00:00:00.333333333");
        assert_eq!(real(seconds, 1e-6), "2000-01-01T00:00:00.000001");
        assert_eq!(
            real("ms since 2000-01-01", 1e-4),
            "2000-01-01T00:00:00.000000100"
        );
        assert_eq!(
            real("microseconds since 2000-01-01", 0.5),
            "2000-01-01T00:00:00.000000500"
        );
        assert_eq!(
            real("days since 2000-01-01", 1.0 / 3.0),
            "2000-01-01T08:00:00"
        );
        assert_eq!(
            real(seconds, 700_000_000.1234567),
            "2022-03-07T20:26:40.123457"
        );
        assert_eq!(
            real("seconds since 1500-01-01", 0.1234567),
            "1500-01-01T00:00:00.123457"
        );
        let other = text(seconds, "noleap", ExactNumber::Real(0.1234567));
        assert_eq!(other, "2000-01-01T00:00:00.123457");
        let fraction = "seconds since 2000-01-01 00:00:00.123456789";
        let whole = text(fraction, "standard", ExactNumber::Integer(1));
        assert_eq!(whole, "2000-01-01T00:00:01.123456789");
    }

    fn days(number: f64, since: &str, calendar: &str) -> String {
        let units = format!("days since {since}");
        text(&units, calendar, ExactNumber::Real(number))
    }

    /// Expected: `cftime.num2date(…).isoformat()`.
    #[test]
    fn times_are_formatted_as_in_cftime() {
        assert_eq!(days(0.0, "1850-01-01", "standard"), "1850-01-01T00:00:00");
        assert_eq!(days(59.5, "2001-01-01", "noleap"), "2001-03-01T12:00:00");
        assert_eq!(days(59.0, "2000-01-01", "360_day"), "2000-02-30T00:00:00");
        assert_eq!(days(59.0, "2001-01-01", "366_day"), "2001-02-29T00:00:00");
        assert_eq!(days(1.0, "1582-10-04", "gregorian"), "1582-10-15T00:00:00");
        assert_eq!(days(1.0, "1582-10-04", "julian"), "1582-10-05T00:00:00");
        assert_eq!(days(-1.0, "0001-01-01", "standard"), "-0001-12-31T00:00:00");
        assert_eq!(
            days(-1.0, "1-1-1", "proleptic_gregorian"),
            "0000-12-31T00:00:00"
        );
        assert_eq!(
            days(0.1, "2000-01-01 00:00 +1:00", "standard"),
            "2000-01-01T01:24:00"
        );
        let third = days(1.0 / 3.0, "2000-01-01", "standard");
        assert_eq!(third, "2000-01-01T08:00:00");
        let near = days(738_000.041_666_666_6, "0001-01-01", "proleptic_gregorian");
        assert_eq!(near, "2021-07-30T00:59:59.999997");
    }

    #[test]
    fn units_and_calendars() {
        let integer = |units: &str, calendar: &str| text(units, calendar, ExactNumber::Integer(2));
        let since = |unit: &str| format!("{unit} since 2000-01-01");
        assert_eq!(integer(&since("Hours"), "standard"), "2000-01-01T02:00:00");
        assert_eq!(integer(&since("mins"), "standard"), "2000-01-01T00:02:00");
        assert_eq!(
            integer(&since("msec"), "standard"),
            "2000-01-01T00:00:00.002000"
        );
        assert_eq!(
            integer(&since("nanoseconds"), "standard"),
            "2000-01-01T00:00:00.000000002"
        );
        assert_eq!(integer(&since("months"), "360_day"), "2000-03-01T00:00:00");
        assert_eq!(
            integer(&since("common_years"), "365_day"),
            "2002-01-01T00:00:00"
        );
        for (of, calendar) in [
            ("months since 2000-01-01", "standard"),
            ("years since 2000-01-01", "noleap"),
            ("days since 2000-02-30", "standard"),
            ("days since 0000-01-01", "standard"),
            ("days since 2000-01-01", "none"),
            ("days", "standard"),
            ("days past 2000-01-01", "standard"),
            ("", "standard"),
        ] {
            assert_eq!(units(of, calendar), None, "{of}, {calendar}");
        }
        let standard = TimeUnits::parse(b"s since 1970-1-1", None).unwrap();
        assert_eq!(standard.datetime64_precision(), Some(Tick::Microsecond));
        assert_eq!(
            standard.convert_to_ticks(ExactNumber::Real(1.5)),
            Ok(Some(1_500_000))
        );
        assert_eq!(
            units(&since("d"), "julian").unwrap().datetime64_precision(),
            None
        );
    }

    #[test]
    fn nan_and_infinity_are_not_times() {
        let seconds = units("s since 1970-1-1", "standard").unwrap();
        assert_eq!(
            seconds.convert_to_ticks(ExactNumber::Real(f64::NAN)),
            Ok(None)
        );
        assert_eq!(
            seconds.convert_to_ticks(ExactNumber::Real(f64::INFINITY)),
            Ok(None)
        );
        assert_eq!(
            seconds.convert_to_ticks(ExactNumber::Integer(i64::MIN.into())),
            Ok(None)
        );
        let days = units("days since -4713-01-01", "standard").unwrap();
        for far in [1e18, -1e18, f64::MAX, f64::MIN, 1e14] {
            let time = days.convert_to_ticks(ExactNumber::Real(far));
            assert!(matches!(time, Err(Error::Limit { .. })), "{far}");
        }
        for far in [10_i128.pow(18), i128::MAX, i128::MIN, 200_000_000] {
            let time = days.convert_to_ticks(ExactNumber::Integer(far));
            assert!(matches!(time, Err(Error::Limit { .. })), "{far}");
        }
        assert!(units("s since 99999999-1-1", "noleap").is_none());
        let far = units("s since -9999999-1-1", "noleap").unwrap();
        assert!(far.convert_to_ticks(ExactNumber::Integer(0)).is_err());
    }

    proptest! {
        /// Each 64-bit time has a text of at most `TEXT_BYTES` bytes.
        #[test]
        fn every_time_has_a_text(time: i64, which in 0..7_usize) {
            let all = [
                "standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day",
                "standard",
            ];
            let unit = if which == 6 { "nanoseconds" } else { "microseconds" };
            let of = format!("{unit} since 1970-01-01");
            let units = units(&of, all[which]).unwrap();
            let mut text = Vec::new();
            units.write(time, &mut text);
            prop_assert!(text.len() <= TEXT_BYTES);
        }
    }
}
