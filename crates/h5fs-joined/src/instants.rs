//! Converts times of several members to one unit (CF 1.12, 4.4).

use h5fs_reader::error::{Error, Result};

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

/// A unit in which all times are integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JoinedTimeUnit {
    name: &'static str,
    nanoseconds: i128,
}

impl JoinedTimeUnit {
    /// Returns the coarsest unit in which all times are integers.
    pub(super) fn coarsest(times: impl Iterator<Item = i128>) -> Self {
        // A unit divides all times if and only if it divides their greatest common divisor.
        let common = times.fold(0, greatest_divisor);
        let whole = UNITS.iter().find(|(_, unit)| common % unit == 0);
        let &(name, nanoseconds) = whole.unwrap_or(&("nanoseconds", 1));
        JoinedTimeUnit { name, nanoseconds }
    }

    /// Returns the text of the attribute `units` for this unit.
    pub(super) fn units_text(self) -> String {
        format!("{} since 1970-01-01", self.name)
    }

    /// Converts a time in nanoseconds to a number of this unit. The time must be a multiple of the
    /// unit.
    ///
    /// # Errors
    /// `Limit` if the result does not fit in 64 bits.
    pub(super) fn to_number(self, time: i128) -> Result<i64> {
        let number = i64::try_from(time / self.nanoseconds);
        let most = i64::MAX.unsigned_abs();
        number.map_err(|_| Error::limit("joined: distance of a time from 1970", most))
    }
}

fn greatest_divisor(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Returns the common calendar of all units, or `None` if the calendars differ. `lowest` returns
/// the earliest time, in nanoseconds since 1970-01-01.
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

    /// Calculated by hand: 271 764 hours are 11 323.5 days.
    #[test]
    fn the_coarsest_unit_in_which_all_are_whole() {
        let days = units("days since 2001-01-01", "standard");
        let noon = to_nanoseconds(&days, ExactNumber::Real(0.5))
            .unwrap()
            .unwrap();
        let unit = JoinedTimeUnit::coarsest([noon, noon + 86_400_000_000_000].into_iter());
        assert_eq!(unit.units_text(), "hours since 1970-01-01");
        assert_eq!(unit.to_number(noon), Ok(271_764));
        assert_eq!(
            JoinedTimeUnit::coarsest(std::iter::once(0)).units_text(),
            "days since 1970-01-01"
        );
        assert_eq!(
            JoinedTimeUnit::coarsest(std::iter::once(1)).units_text(),
            "nanoseconds since 1970-01-01"
        );
        assert!(
            JoinedTimeUnit::coarsest(std::iter::once(1))
                .to_number(i128::MAX)
                .is_err()
        );
    }

    #[test]
    fn calendars_that_are_one() {
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
