//! Times of several members in one unit (CF 1.12, 4.4).

use crate::error::{Error, Result};
use crate::view::cf::stored::Number;
use crate::view::cf::time::TimeUnits;

/// Units, the coarsest first, with their nanoseconds.
const UNITS: [(&str, i128); 7] = [
    ("days", 86_400_000_000_000),
    ("hours", 3_600_000_000_000),
    ("minutes", 60_000_000_000),
    ("seconds", 1_000_000_000),
    ("milliseconds", 1_000_000),
    ("microseconds", 1_000),
    ("nanoseconds", 1),
];

/// 1582-10-15: from then on, the standard calendar is the proleptic Gregorian one.
const REFORM: i128 = -141_427 * 86_400_000_000_000;

/// Nanoseconds from 1970-01-01 of the calendar on; `None` for no time.
///
/// # Errors
/// `Limit` for a time that is too far away.
pub(super) fn instant(units: &TimeUnits, number: Number) -> Result<Option<i128>> {
    let time = units.time(number)?;
    Ok(time.map(|time| units.nanoseconds(time)))
}

/// A unit in which times are whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit {
    name: &'static str,
    nanoseconds: i128,
}

impl Unit {
    /// The coarsest unit in which all times are whole.
    pub(super) fn of(times: impl Iterator<Item = i128>) -> Self {
        // What divides two numbers divides what divides both.
        let common = times.fold(0, greatest_divisor);
        let whole = UNITS.iter().find(|(_, unit)| common % unit == 0);
        let &(name, nanoseconds) = whole.unwrap_or(&("nanoseconds", 1));
        Unit { name, nanoseconds }
    }

    /// The attribute `units`.
    pub(super) fn since(self) -> String {
        format!("{} since 1970-01-01", self.name)
    }

    /// The number of a time, which is whole in this unit.
    ///
    /// # Errors
    /// `Limit` where 64 bits do not hold it.
    pub(super) fn number(self, time: i128) -> Result<i64> {
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

/// The one calendar that all of these have; `None` where they differ. `lowest` finds the first time.
pub(super) fn calendar(
    units: &[TimeUnits],
    lowest: impl FnOnce() -> Option<i128>,
) -> Option<&'static str> {
    let mut names: Vec<_> = units.iter().map(TimeUnits::calendar).collect();
    names.sort_unstable();
    names.dedup();
    match names[..] {
        [name] => Some(name),
        ["proleptic_gregorian", "standard"] if lowest().is_none_or(|time| time >= REFORM) => {
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

    /// Expected: by hand, 271 764 hours are 11 323.5 days.
    #[test]
    fn the_coarsest_unit_in_which_all_are_whole() {
        let days = units("days since 2001-01-01", "standard");
        let noon = instant(&days, Number::Real(0.5)).unwrap().unwrap();
        let unit = Unit::of([noon, noon + 86_400_000_000_000].into_iter());
        assert_eq!(unit.since(), "hours since 1970-01-01");
        assert_eq!(unit.number(noon), Ok(271_764));
        assert_eq!(
            Unit::of(std::iter::once(0)).since(),
            "days since 1970-01-01"
        );
        assert_eq!(
            Unit::of(std::iter::once(1)).since(),
            "nanoseconds since 1970-01-01"
        );
        assert!(Unit::of(std::iter::once(1)).number(i128::MAX).is_err());
    }

    #[test]
    fn calendars_that_are_one() {
        let all = [
            units("d since 2000-1-1", "gregorian"),
            units("d since 2000-1-1", "proleptic_gregorian"),
        ];
        assert_eq!(calendar(&all, || Some(0)), Some("standard"));
        assert_eq!(calendar(&all, || Some(REFORM - 1)), None);
        assert_eq!(
            calendar(&all[1..], || Some(REFORM - 1)),
            Some("proleptic_gregorian")
        );
        let other = [all[0], units("d since 2000-1-1", "noleap")];
        assert_eq!(calendar(&other, || None), None);
    }
}
