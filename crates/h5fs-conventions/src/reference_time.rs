//! The reference time in `units`: `1850-1-1 00:00:0.0 +1:00`.
//!
//! The parser accepts the same texts as cftime and pandas. The month, the day, and parts of the
//! time may be missing. Numbers may have one or two digits. `T` or any other character may precede
//! the time. Seconds may have a fraction. `Z`, `UTC`, `GMT` or an offset may follow. A text with an
//! unknown rest is not a time, because the rest may be a time zone.

/// The reference time in an attribute `units`, before the calendar is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferenceTime {
    /// The year as written in `units`. Only the calendar decides whether a year 0 exists.
    pub year: i64,
    pub month: u8,
    pub day: u8,
    /// Seconds from midnight of the date to the reference time in UTC. Because of the time zone,
    /// the number may be negative or exceed a day.
    pub second: i64,
    pub nanosecond: i64,
}

/// A parser: the bytes of a reference time that are not parsed yet.
struct ReferenceTimeParser<'a>(&'a [u8]);

impl ReferenceTime {
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut rest = ReferenceTimeParser(text.trim_ascii());
        let (year, month, day) = rest.parse_date()?;
        let (second, nanosecond) = rest.parse_time_of_day()?;
        let offset = rest.parse_time_zone()?;
        rest.0.is_empty().then_some(ReferenceTime {
            year,
            month,
            day,
            second: second - offset,
            nanosecond,
        })
    }
}

impl ReferenceTimeParser<'_> {
    /// Consumes the next byte if it is one of `bytes`.
    fn next_if(&mut self, bytes: &[u8]) -> Option<u8> {
        let (&first, after) = self.0.split_first()?;
        let taken = bytes.contains(&first).then_some(first);
        if taken.is_some() {
            self.0 = after;
        }
        taken
    }

    /// Consumes at most `most` digits. Returns the number that they form, and the number of digits.
    /// Returns `None` if no digit follows.
    fn parse_digits(&mut self, most: usize) -> Option<(i64, usize)> {
        let digits = self.0.iter().take(most);
        let count = digits.take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, after) = self.0.split_at(count);
        self.0 = after;
        let text = std::str::from_utf8(digits).ok()?;
        Some((text.parse().ok()?, count))
    }

    /// Consumes a month, a day, an hour, a minute or a second of one or two digits. Returns the
    /// number if it is at most `most`.
    fn parse_part(&mut self, most: i64) -> Option<i64> {
        let (number, _) = self.parse_digits(2)?;
        (number <= most).then_some(number)
    }

    fn parse_two_digits(&mut self) -> Option<u8> {
        u8::try_from(self.parse_part(31)?).ok()
    }

    fn skip_blanks(&mut self) {
        self.0 = self.0.trim_ascii_start();
    }

    /// Consumes a date. Returns the year, the month and the day. A missing month or day is 1.
    fn parse_date(&mut self) -> Option<(i64, u8, u8)> {
        /// Maximum number of digits of a year. The year of a 64-bit time has fewer digits.
        const YEAR_DIGITS: usize = 8;
        let sign = self.next_if(b"+-");
        let (year, digits) = self.parse_digits(YEAR_DIGITS)?;
        if digits == YEAR_DIGITS && sign.is_none() {
            // The date has the form 20000131.
            let small = |number: i64| u8::try_from(number % 100).ok();
            return Some((year / 10_000, small(year / 100)?, small(year)?));
        }
        let year = if sign == Some(b'-') { -year } else { year };
        if self.next_if(b"-").is_none() {
            return Some((year, 1, 1));
        }
        let month = self.parse_two_digits()?;
        let day = match self.next_if(b"-") {
            Some(_) => self.parse_two_digits()?,
            None => 1,
        };
        Some((year, month, day))
    }

    /// Consumes a time of day. Returns the second of the day, and the nanoseconds within the
    /// second. A missing time is midnight.
    fn parse_time_of_day(&mut self) -> Option<(i64, i64)> {
        let is_digit = |text: &[u8]| text.first().is_some_and(u8::is_ascii_digit);
        let behind = match self.0.split_first() {
            None | Some((b'+' | b'-' | b'0'..=b'9', _)) => return Some((0, 0)),
            Some((b' ', after)) => after.trim_ascii_start(),
            Some((_, after)) => after,
        };
        if !is_digit(behind) {
            return Some((0, 0));
        }
        self.0 = behind;
        let hour = self.parse_part(23)?;
        let minute = match self.next_if(b":") {
            Some(_) => self.parse_part(59)?,
            None => return Some((hour * 3600, 0)),
        };
        let second = match self.next_if(b":") {
            Some(_) => self.parse_part(59)?,
            None => 0,
        };
        let nanosecond = match self.next_if(b".") {
            Some(_) => self.parse_fraction(),
            None => 0,
        };
        Some((hour * 3600 + minute * 60 + second, nanosecond))
    }

    /// Consumes the fraction of a second. Returns the fraction in nanoseconds, rounded down.
    fn parse_fraction(&mut self) -> i64 {
        let (number, count) = self.parse_digits(9).unwrap_or_default();
        let rest = self.0.iter().take_while(|byte| byte.is_ascii_digit());
        self.0 = &self.0[rest.count()..];
        (count..9).fold(number, |number, _| number * 10)
    }

    /// Consumes the time zone. Returns how many seconds its local time is ahead of UTC.
    fn parse_time_zone(&mut self) -> Option<i64> {
        self.skip_blanks();
        for name in [&b"UTC"[..], b"GMT", b"Z"] {
            let (begin, after) = self.0.split_at_checked(name.len()).unwrap_or_default();
            if begin.eq_ignore_ascii_case(name) {
                self.0 = after;
                self.skip_blanks();
                break;
            }
        }
        let Some(sign) = self.next_if(b"+-") else {
            return Some(0);
        };
        let (number, digits) = self.parse_digits(4)?;
        let (hours, minutes) = match (digits, self.next_if(b":")) {
            (1 | 2, Some(_)) => (number, self.parse_part(59)?),
            (1 | 2, None) => (number, 0),
            (_, None) => (number / 100, number % 100),
            _ => return None,
        };
        let seconds = hours * 3600 + minutes * 60;
        Some(if sign == b'-' { -seconds } else { seconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<(i64, u8, u8, i64, i64)> {
        let time = ReferenceTime::parse(text.as_bytes())?;
        let date = (time.year, time.month, time.day);
        Some((date.0, date.1, date.2, time.second, time.nanosecond))
    }

    #[test]
    fn dates() {
        let midnight = |year, month, day| Some((year, month, day, 0, 0));
        assert_eq!(parse("1850-01-31"), midnight(1850, 1, 31));
        assert_eq!(parse("1-1-1"), midnight(1, 1, 1));
        assert_eq!(parse("2000"), midnight(2000, 1, 1));
        assert_eq!(parse("2000-12"), midnight(2000, 12, 1));
        assert_eq!(parse("20001231"), midnight(2000, 12, 31));
        assert_eq!(parse(" -4713-11-24 "), midnight(-4713, 11, 24));
    }

    #[test]
    fn times_and_zones() {
        let at = |text: &str| parse(&format!("2000-1-2{text}")).map(|time| (time.3, time.4));
        assert_eq!(at(" 12"), Some((43_200, 0)));
        assert_eq!(at("T01:02:03"), Some((3723, 0)));
        assert_eq!(at("  00:00:0.0"), Some((0, 0)));
        assert_eq!(at(" 0:0:1.5"), Some((1, 500_000_000)));
        assert_eq!(at("T00:00:00.1234567899"), Some((0, 123_456_789)));
        for zone in ["Z", " UTC", "utc", " GMT", " +00:00", " +0"] {
            assert_eq!(at(&format!(" 01:00{zone}")), Some((3600, 0)), "{zone}");
        }
        for zone in ["+05:30", " +0530", " +5:30", "UTC+05:30", " 5:30-0"] {
            let text = if zone.contains(" 5") {
                zone.to_owned()
            } else {
                format!(" 11:00{zone}")
            };
            assert_eq!(at(&text), Some((19_800, 0)), "{zone}");
        }
        assert_eq!(at(" 00:00:00 -06"), Some((21_600, 0)));
        assert_eq!(at("-06:00"), Some((21_600, 0)));
        assert_eq!(at(" +01:00"), Some((-3600, 0)));
    }

    #[test]
    fn invalid_reference_times_are_rejected() {
        for text in [
            "",
            "today",
            "-",
            "2000-",
            "2000-1-",
            "2000-1-32",
            "2000-1-1 24:00",
            "2000-1-1 1:60",
            "2000-1-1 00:00:60",
            "2000-1-1 12:00 EST",
            "2000-1-1 +",
            "2000-1-1 1:00 +99999",
            "2000-1-111",
            "99999999999999999999-1-1",
            "2000-1-1 12:",
            "1/1/2000",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
