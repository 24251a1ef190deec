//! NumPy's `datetime64`: opaque elements of 8 bytes with a tag as h5py writes it, `NUMPY:<M8[s]`.
//!
//! A time is written in ISO 8601, so that NumPy parses the text to the same value. Units of a day
//! or more are written as a date. Smaller units are written with all decimals of the unit, as in
//! `2000-01-31T12:00:00.250`. NumPy's `NaT` is a missing value.

use crate::model::Datatype;
use crate::model::datatype::{ByteOrder, Class};
use crate::model::number::append_formatted;

/// The decoder of the elements of a `datetime64` type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datetime64 {
    order: ByteOrder,
    unit: Unit,
    /// Number of time units in one step of the stored number, such as 10 for `M8[10s]`.
    multiple: i64,
}

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Months(i64),
    Days(i64),
    Seconds(i64),
    /// A fraction of a second, whose denominator is ten to this power.
    Fraction(u32),
}

impl Datetime64 {
    /// Returns the decoder of elements of `datatype`. Returns `None` if the type is not a
    /// `datetime64`, or has no unit.
    pub fn from_datatype(datatype: &Datatype) -> Option<Self> {
        match &datatype.class {
            Class::Opaque { tag } if datatype.size == 8 => Self::from_opaque_tag(tag),
            _ => None,
        }
    }

    fn from_opaque_tag(tag: &[u8]) -> Option<Self> {
        let (order, rest) = tag.strip_prefix(b"NUMPY:")?.split_first()?;
        let order = match order {
            b'<' => ByteOrder::Little,
            b'>' => ByteOrder::Big,
            _ => return None,
        };
        let unit = rest.strip_prefix(b"M8[")?.strip_suffix(b"]")?;
        let digits = unit.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (multiple, unit) = unit.split_at_checked(digits)?;
        let multiple = match multiple {
            [] => 1,
            digits => std::str::from_utf8(digits).ok()?.parse().ok()?,
        };
        let unit = match unit {
            b"Y" => Unit::Months(12),
            b"M" => Unit::Months(1),
            b"W" => Unit::Days(7),
            b"D" => Unit::Days(1),
            b"h" => Unit::Seconds(3600),
            b"m" => Unit::Seconds(60),
            b"s" => Unit::Seconds(1),
            b"ms" => Unit::Fraction(3),
            b"us" => Unit::Fraction(6),
            b"ns" => Unit::Fraction(9),
            b"ps" => Unit::Fraction(12),
            b"fs" => Unit::Fraction(15),
            b"as" => Unit::Fraction(18),
            _ => return None,
        };
        Some(Datetime64 {
            order,
            unit,
            multiple,
        })
    }

    /// Returns the type of the elements in NumPy's notation, such as `<M8[s]`, or `None` if
    /// `datatype` is not a `datetime64`.
    pub fn numpy_type(datatype: &Datatype) -> Option<String> {
        Self::from_datatype(datatype)?;
        let Class::Opaque { tag } = &datatype.class else {
            return None;
        };
        String::from_utf8(tag.strip_prefix(b"NUMPY:")?.to_vec()).ok()
    }

    /// Returns the number that an element stores: its time as a count of steps since 1970. Returns
    /// `None` for a missing value (`NaT`), or an element that is too short.
    pub(crate) fn tick_count(&self, element: &[u8]) -> Option<i64> {
        let count = match (self.order, element.first_chunk()?) {
            (ByteOrder::Big, bytes) => i64::from_be_bytes(*bytes),
            (_, bytes) => i64::from_le_bytes(*bytes),
        };
        (count != i64::MIN).then_some(count)
    }

    /// Returns the integer type of the stored elements.
    pub fn integer_datatype(&self) -> Datatype {
        Datatype::integer(8, true, self.order)
    }

    /// Returns the length of one step of the stored number, in microseconds, or in nanoseconds for
    /// units below a microsecond. Returns `None` for units below a nanosecond, and for months,
    /// whose length varies.
    pub fn step_length(&self) -> Option<StepLength> {
        let seconds = match self.unit {
            Unit::Months(_) => return None,
            Unit::Days(days) => days.checked_mul(86_400)?,
            Unit::Seconds(seconds) => seconds,
            Unit::Fraction(power @ ..=9) => {
                let is_nanosecond = power > 6;
                let of_second = if is_nanosecond { 9_u32 } else { 6 };
                let each = 10_i64.checked_pow(of_second.checked_sub(power)?)?;
                let each = each.checked_mul(self.multiple)?;
                return Some(StepLength {
                    ticks_per_step: each,
                    is_nanosecond,
                });
            }
            Unit::Fraction(_) => return None,
        };
        let each = seconds.checked_mul(1_000_000)?.checked_mul(self.multiple)?;
        Some(StepLength {
            ticks_per_step: each,
            is_nanosecond: false,
        })
    }

    /// Appends the text of an element. Returns false and appends nothing for a missing value
    /// (`NaT`).
    pub fn write_text(&self, element: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(count) = self.tick_count(element) else {
            return false;
        };
        // The product of two 64-bit numbers fits in 128 bits.
        let count = i128::from(count).wrapping_mul(self.multiple.into());
        match self.unit {
            Unit::Months(each) => write_month(count.wrapping_mul(each.into()), out),
            Unit::Days(each) => write_day(count.wrapping_mul(each.into()), out),
            Unit::Seconds(each) => write_second(count.wrapping_mul(each.into()), out),
            Unit::Fraction(power) => {
                let of_second = 10_i128.checked_pow(power).unwrap_or(1);
                write_second(count.div_euclid(of_second), out);
                let digits = usize::try_from(power).unwrap_or(0);
                let rest = count.rem_euclid(of_second);
                append_formatted(out, format_args!(".{rest:0digits$}"));
            }
        }
        true
    }
}

/// The length of one step of a stored time, as a number of clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepLength {
    /// Number of ticks in one step of the stored number.
    pub ticks_per_step: i64,
    /// Whether a tick is a nanosecond. Otherwise a tick is a microsecond.
    pub is_nanosecond: bool,
}

fn write_date(year: i128, month: i128, day: i128, out: &mut Vec<u8>) {
    let digits = if year < 0 { 5 } else { 4 };
    append_formatted(out, format_args!("{year:0digits$}-{month:02}-{day:02}"));
}

/// Appends the first day of the month that is `months` months after January 1970.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "months of 64 bits are far from the ends of 128"
)]
fn write_month(months: i128, out: &mut Vec<u8>) {
    write_date(
        1970 + months.div_euclid(12),
        1 + months.rem_euclid(12),
        1,
        out,
    );
}

/// Appends the day that is `days` days after 1970-01-01. Years begin in March here, so that a leap
/// day is the last day of its year. An era has 400 years.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "days of 64 bits are far from the ends of 128"
)]
fn write_day(days: i128, out: &mut Vec<u8>) {
    const ERA: i128 = 146_097;
    const BEFORE_1970: i128 = 719_468;
    let (era, day) = (
        (days + BEFORE_1970).div_euclid(ERA),
        (days + BEFORE_1970).rem_euclid(ERA),
    );
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    write_date(era * 400 + year + next, month, day, out);
}

/// Appends the time that is `seconds` seconds after 1970 began.
fn write_second(seconds: i128, out: &mut Vec<u8>) {
    const DAY: i128 = 86_400;
    write_day(seconds.div_euclid(DAY), out);
    let second = seconds.rem_euclid(DAY);
    let (hour, minute) = (
        second.div_euclid(3600),
        second.div_euclid(60).rem_euclid(60),
    );
    append_formatted(
        out,
        format_args!("T{hour:02}:{minute:02}:{:02}", second.rem_euclid(60)),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::type_of;

    fn datatype(tag: &str) -> Datatype {
        let tag = tag.as_bytes().to_vec();
        type_of(8, Class::Opaque { tag })
    }

    fn text(unit: &str, count: i64) -> String {
        let time = Datetime64::from_datatype(&datatype(&format!("NUMPY:<M8[{unit}]"))).unwrap();
        let mut out = Vec::new();
        assert!(time.write_text(&count.to_le_bytes(), &mut out));
        String::from_utf8(out).unwrap()
    }

    /// Expected: texts for which `numpy.datetime64(text)` equals `numpy.datetime64(count, unit)`.
    #[test]
    fn times_are_formatted_as_in_numpy() {
        assert_eq!(text("Y", -1), "1969-01-01");
        assert_eq!(text("2M", 3), "1970-07-01");
        assert_eq!(text("W", 1), "1970-01-08");
        assert_eq!(text("D", -1), "1969-12-31");
        assert_eq!(text("D", 11_016), "2000-02-29");
        assert_eq!(text("h", 5), "1970-01-01T05:00:00");
        assert_eq!(text("25s", 2), "1970-01-01T00:00:50");
        assert_eq!(text("ms", -1), "1969-12-31T23:59:59.999");
        assert_eq!(text("ns", 5), "1970-01-01T00:00:00.000000005");
        assert_eq!(text("fs", -5), "1969-12-31T23:59:59.999999999999995");
        assert_eq!(text("s", 1 << 62), "146138514283-06-19T07:45:04");
        assert_eq!(text("D", -(1 << 40)), "-3010358620-01-18");
    }

    #[test]
    fn other_tags_are_not_datetime64() {
        for tag in [
            "",
            "M8[s]",
            "NUMPY:|M8[s]",
            "NUMPY:<m8[s]",
            "NUMPY:<M8",
            "NUMPY:<M8[x]",
        ] {
            assert_eq!(Datetime64::from_datatype(&datatype(tag)), None, "{tag}");
        }
        let big = Datetime64::from_datatype(&datatype("NUMPY:>M8[us]")).unwrap();
        assert_eq!(big.tick_count(&7_i64.to_be_bytes()), Some(7));
        assert_eq!(big.tick_count(&i64::MIN.to_be_bytes()), None);
        assert!(!big.write_text(&i64::MIN.to_be_bytes(), &mut Vec::new()));
        assert_eq!(big.step_length().unwrap().ticks_per_step, 1);
    }
}
