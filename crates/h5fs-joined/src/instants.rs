//! Converts times of several members to one unit (CF 1.12, 4.4).

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::Datatype;
use h5fs_reader::model::datatype::ByteOrder;

use h5fs_conventions::stored_type::ExactNumber;
use h5fs_conventions::time::TimeUnits;

/// Units in descending order, with their nanoseconds.
const UNITS: [(&str, i128); 7] = [
    ("days", 86_400_000_000_000),
    ("hours", 3_600_000_000_000),
    ("minutes", 60_000_000_000),
    ("seconds", 1_000_000_000),
    ("milliseconds", 1_000_000),
    ("microseconds", 1_000),
    ("nanoseconds", 1),
];

/// The start of 1582-10-15, in nanoseconds since 1970-01-01. From this date on, the standard
/// calendar equals the proleptic Gregorian calendar.
const GREGORIAN_REFORM: i128 = -141_427 * 86_400_000_000_000;

/// Converts a number with time units to nanoseconds since 1970-01-01 in the calendar of the units.
/// Returns `None` if the number is not a time.
///
/// # Errors
/// `Limit` if the time is out of range.
pub(super) fn to_nanoseconds(units: &TimeUnits, number: ExactNumber) -> Result<Option<i128>> {
    let time = units.convert_to_ticks(number)?;
    Ok(time.map(|time| units.nanoseconds(time)))
}

/// A unit in which all times are integers, and the integer type for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JoinedTimeUnit {
    name: &'static str,
    nanoseconds: i128,
    integers: IntegerWidth,
}

impl JoinedTimeUnit {
    /// Returns the coarsest unit in which all times are integers.
    pub(super) fn coarsest(times: impl Iterator<Item = i128>) -> Self {
        // A unit divides all times if and only if it divides their greatest common divisor.
        let (common, farthest) = times.fold((0, 0), |(common, farthest), time: i128| {
            (greatest_divisor(common, time), time.abs().max(farthest))
        });
        let whole = UNITS.iter().find(|(_, unit)| common % unit == 0);
        let &(name, nanoseconds) = whole.unwrap_or(&("nanoseconds", 1));
        JoinedTimeUnit {
            name,
            nanoseconds,
            integers: IntegerWidth::for_magnitude(farthest / nanoseconds),
        }
    }

    /// Returns the text of the attribute `units` for this unit.
    pub(super) fn units_text(self) -> String {
        format!("{} since 1970-01-01", self.name)
    }

    /// Returns the datatype of the numbers of this unit.
    pub(super) fn datatype(self) -> Datatype {
        self.integers.datatype()
    }

    /// Converts times in nanoseconds to the bytes of numbers of this unit. The times must be
    /// multiples of the unit.
    ///
    /// # Errors
    /// `Limit` if a number does not fit in the datatype.
    pub(super) fn numbers(self, times: &[i128]) -> Result<Vec<u8>> {
        let numbers = times.iter().map(|time| time / self.nanoseconds);
        self.integers.bytes(numbers)
    }
}

/// The size of signed little-endian integers. Classic netCDF files before CDF-5 have only the
/// narrow ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IntegerWidth {
    Bits32,
    Bits64,
}

impl IntegerWidth {
    /// Returns the smallest width for numbers up to this magnitude, or 64 bits if there is none.
    pub(super) fn for_magnitude(magnitude: i128) -> Self {
        match i32::try_from(magnitude) {
            Ok(_) => Self::Bits32,
            Err(_) => Self::Bits64,
        }
    }

    pub(super) fn datatype(self) -> Datatype {
        let bytes = match self {
            Self::Bits32 => 4,
            Self::Bits64 => 8,
        };
        Datatype::integer(bytes, true, ByteOrder::Little)
    }

    /// # Errors
    /// `Limit` if a number does not fit.
    pub(super) fn bytes(self, numbers: impl Iterator<Item = i128>) -> Result<Vec<u8>> {
        let too_large = |most: u64| Error::limit("joined: distance of a time from 1970", most);
        let mut bytes = Vec::new();
        for number in numbers {
            match self {
                Self::Bits32 => {
                    let number = i32::try_from(number);
                    let number = number.map_err(|_| too_large(i32::MAX.unsigned_abs().into()))?;
                    bytes.extend(number.to_le_bytes());
                }
                Self::Bits64 => {
                    let number = i64::try_from(number);
                    let number = number.map_err(|_| too_large(i64::MAX.unsigned_abs()))?;
                    bytes.extend(number.to_le_bytes());
                }
            }
        }
        Ok(bytes)
    }
}

fn greatest_divisor(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Returns the common calendar of all `units`. `standard` and `proleptic_gregorian` have the common
/// calendar `standard` if no time precedes the reform of 1582, because they are equal from then on.
/// `lowest` returns the earliest time, in nanoseconds since 1970-01-01. Returns `None` if the
/// calendars differ.
pub(super) fn common_calendar(
    units: &[TimeUnits],
    lowest: impl FnOnce() -> Option<i128>,
) -> Option<&'static str> {
    let mut names: Vec<_> = units.iter().map(TimeUnits::calendar_name).collect();
    names.sort_unstable();
    names.dedup();
    match names[..] {
        [name] => Some(name),
        ["proleptic_gregorian", "standard"]
            if lowest().is_none_or(|time| time >= GREGORIAN_REFORM) =>
        {
            Some("standard")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(units: &str, calendar: &str) -> TimeUnits {
        TimeUnits::parse(units.as_bytes(), Some(calendar.as_bytes())).unwrap()
    }

    /// The expected values were calculated by hand: 271 764 hours are 11 323.5 days.
    #[test]
    fn the_coarsest_unit_keeps_all_times_integers() {
        let days = units("days since 2001-01-01", "standard");
        let noon = to_nanoseconds(&days, ExactNumber::Real(0.5))
            .unwrap()
            .unwrap();
        let unit = JoinedTimeUnit::coarsest([noon, noon + 86_400_000_000_000].into_iter());
        assert_eq!(unit.units_text(), "hours since 1970-01-01");
        assert_eq!(
            unit.numbers(&[noon]),
            Ok(271_764_i32.to_le_bytes().to_vec())
        );
        assert_eq!(
            JoinedTimeUnit::coarsest(std::iter::once(0)).units_text(),
            "days since 1970-01-01"
        );
        assert_eq!(
            JoinedTimeUnit::coarsest(std::iter::once(1)).units_text(),
            "nanoseconds since 1970-01-01"
        );
        let nanoseconds = JoinedTimeUnit::coarsest(std::iter::once(1));
        assert!(nanoseconds.numbers(&[i128::MAX]).is_err());
    }

    /// In 2038, the seconds since 1970 pass 32 bits.
    #[test]
    fn integers_are_as_narrow_as_the_times_allow() {
        let second = 1_000_000_000;
        for (last, bytes) in [(0x7fff_ffff, 4), (0x8000_0000_i64, 8)] {
            let times = [second, i128::from(last) * second];
            let unit = JoinedTimeUnit::coarsest(times.into_iter());
            let unit_name = "seconds since 1970-01-01";
            assert_eq!(
                (&*unit.units_text(), unit.datatype().size),
                (unit_name, bytes)
            );
            let expected = [1, last].map(|number: i64| number.to_le_bytes());
            let width = usize::try_from(bytes).unwrap();
            let expected: Vec<u8> = expected
                .iter()
                .flat_map(|all| all[..width].to_vec())
                .collect();
            assert_eq!(unit.numbers(&times), Ok(expected));
        }
    }

    #[test]
    fn equivalent_calendars_have_a_common_name() {
        let all = [
            units("d since 2000-1-1", "gregorian"),
            units("d since 2000-1-1", "proleptic_gregorian"),
        ];
        assert_eq!(common_calendar(&all, || Some(0)), Some("standard"));
        assert_eq!(common_calendar(&all, || Some(GREGORIAN_REFORM - 1)), None);
        assert_eq!(
            common_calendar(&all[1..], || Some(GREGORIAN_REFORM - 1)),
            Some("proleptic_gregorian")
        );
        let other = [all[0], units("d since 2000-1-1", "noleap")];
        assert_eq!(common_calendar(&other, || None), None);
    }
}
