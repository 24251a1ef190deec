//! Groups time variables that must be converted together: a coordinate, its bounds or climatology,
//! and its ancillary times.
//!
//! Bounds have no units (CF 1.12, 7.1), so they must be converted if the unit or the reference time
//! of their coordinate changes.

use std::collections::HashSet;

use h5fs_conventions::time::TimeUnits;

use crate::instants::{self, JoinedTimeUnit};
use crate::paths::Path;
use crate::placing::new_dimension::is_new_dimension_time;
use crate::placing::placement::Placement;
use crate::variable::common_type::common_datatype;
use crate::variable::comparison::{MemberComparison, SharedVariable};

/// Time variables that must be converted to the same unit and calendar.
pub(crate) struct TimeFamily<'m>(Vec<SharedVariable<'m>>);

impl<'m> MemberComparison<'m> {
    /// Returns the time variables that must be converted together with the one at `path`. The
    /// variable at `path` is the first of them.
    pub(crate) fn time_family(&'m self, path: &Path) -> TimeFamily<'m> {
        let mut met = HashSet::from([path]);
        let mut all = vec![path];
        let mut next = 0;
        while let Some(own) = all.get(next).copied() {
            let relatives = self.related_times.get(own);
            // The order of a hash set is random, so sort it.
            let mut relatives: Vec<_> = relatives.into_iter().flatten().copied().collect();
            relatives.sort_unstable();
            all.extend(relatives.into_iter().filter(|other| met.insert(other)));
            next += 1;
        }
        TimeFamily(all.into_iter().map(|path| self.variable(path)).collect())
    }
}

impl TimeFamily<'_> {
    /// Returns whether the stored numbers can be kept instead of being converted. Each variable
    /// must have one unit and one type in all files, and no variable may become the coordinate of a
    /// new dimension.
    pub(super) fn can_keep_numbers(&self, placement: &Placement) -> bool {
        let mut new = placement
            .axes
            .iter()
            .filter_map(|axis| axis.new_dimension.as_ref());
        let becomes_new = new.any(|new| {
            self.0
                .iter()
                .any(|own| is_new_dimension_time(new, own.first_variable()))
        });
        !becomes_new
            && self
                .0
                .iter()
                .all(|own| has_one_unit(own) && has_one_type(own))
    }

    /// Returns the common calendar of the variables, or `None` if their calendars differ.
    pub(crate) fn common_calendar(&self) -> Option<&'static str> {
        let times: Vec<TimeUnits> = self.0.iter().flat_map(SharedVariable::time_units).collect();
        let lowest = || self.instants().min();
        instants::common_calendar(&times, lowest)
    }

    /// Returns the coarsest unit in which all times of the variables are integers. Ignores
    /// variables whose times are unknown, because they are not shown.
    pub(crate) fn coarsest_unit(&self) -> JoinedTimeUnit {
        JoinedTimeUnit::coarsest(self.instants())
    }

    fn instants(&self) -> impl Iterator<Item = i128> {
        let known = self.0.iter().filter_map(SharedVariable::all_instants);
        known.flatten().collect::<Vec<_>>().into_iter()
    }
}

/// Returns whether all members store the times of a variable with the same unit and packing.
fn has_one_unit(alike: &SharedVariable<'_>) -> bool {
    let first = alike.first_variable();
    let packing = first.packing_attributes();
    alike.variables().all(|own| {
        own.meaning.time == first.meaning.time
            && own.packing_attributes() == packing
            && (own.datatype == first.datatype || packing.iter().all(Option::is_none))
    })
}

/// Returns whether one datatype represents the stored numbers of all members.
fn has_one_type(alike: &SharedVariable<'_>) -> bool {
    let types: Vec<_> = alike.variables().map(|own| &own.datatype).collect();
    common_datatype(&types).is_some()
}

#[cfg(test)]
mod tests {
    use crate::testing::{
        TestAttributes, TestElements, TestFile, days, f64s, i32s, join_files, text,
    };
    use h5fs_reader::model::attribute::AttributeContent;

    /// Number of hours from 1970-01-01 to 2000-01-01.
    const Y2000: f64 = 262_968.0;

    fn bounded<'a>(
        mark: &'a str,
        others: &[(&'a str, AttributeContent)],
    ) -> Vec<(&'a str, AttributeContent)> {
        let own = [(mark, text("edges"))];
        let all: Vec<_> = own.into_iter().chain(others.iter().cloned()).collect();
        days(&all)
    }

    /// Returns a file with one day, whose bounds are half a day before and after it.
    fn file_with_day(
        number: f64,
        time: TestElements,
        mark: &str,
        edges: TestAttributes<'_>,
    ) -> TestFile {
        let bounds = f64s(&[number - 0.5, number + 0.5]);
        TestFile::new()
            .with_variable("time", &[("time", 1)], time, &bounded(mark, &[]))
            .with_variable("edges", &[("time", 1), ("nv", 2)], bounds, edges)
            .with_variable("v", &[("time", 1)], f64s(&[number]), &[])
    }

    #[test]
    fn bounds_are_recoded_with_a_coordinate_of_two_types() {
        for mark in ["bounds", "climatology"] {
            let shown = join_files(vec![
                ("0.nc", file_with_day(0.0, i32s(&[0]), mark, &[])),
                ("1.nc", file_with_day(1.0, f64s(&[1.0]), mark, &[])),
            ]);
            // 32-bit integers and floats have a common type, so nothing is converted.
            assert_eq!(shown.numbers("time"), [0.0, 1.0]);
            assert_eq!(shown.numbers("edges"), [-0.5, 0.5, 0.5, 1.5]);
            let longs = |number: i64| TestElements {
                bytes: number.to_le_bytes().to_vec(),
                ..i64s()
            };
            let shown = join_files(vec![
                ("0.nc", file_with_day(0.0, longs(0), mark, &[])),
                ("1.nc", file_with_day(1.0, f64s(&[1.0]), mark, &[])),
            ]);
            assert_eq!(shown.numbers("time"), [Y2000, Y2000 + 24.0]);
            let edges = [-12.0, 12.0, 12.0, 36.0].map(|hours| Y2000 + hours);
            assert_eq!(shown.numbers("edges"), edges);
            assert_eq!(
                shown.texts("time", "units").unwrap(),
                ["hours since 1970-01-01"]
            );
        }
    }

    fn i64s() -> TestElements {
        TestElements {
            datatype: h5fs_reader::model::Datatype::integer(
                8,
                true,
                h5fs_reader::model::datatype::ByteOrder::Little,
            ),
            bytes: Vec::new(),
        }
    }

    #[test]
    fn bounds_with_another_reference_time_are_recoded() {
        let since = [("units", text("days since 2000-01-02"))];
        let shown = join_files(vec![
            (
                "0.nc",
                file_with_day(0.0, f64s(&[0.0]), "bounds", &days(&[])),
            ),
            ("1.nc", file_with_day(1.0, f64s(&[1.0]), "bounds", &since)),
        ]);
        assert_eq!(shown.numbers("time"), [Y2000, Y2000 + 24.0]);
        let edges = [-12.0, 12.0, 36.0, 60.0].map(|hours| Y2000 + hours);
        assert_eq!(shown.numbers("edges"), edges);
        assert_eq!(
            shown.texts("edges", "units").unwrap(),
            ["hours since 1970-01-01"]
        );
    }

    #[test]
    fn bounds_of_a_scalar_that_becomes_a_dimension_are_recoded() {
        let image = |number: f64| {
            TestFile::new()
                .with_variable("x", &[("x", 1)], f64s(&[0.0]), &[])
                .with_variable("time", &[], f64s(&[number]), &bounded("bounds", &[]))
                .with_variable("edges", &[("nv", 2)], f64s(&[number - 0.5, number]), &[])
                .with_variable("v", &[("x", 1)], f64s(&[number]), &[])
        };
        let shown = join_files(vec![("a.nc", image(2.0)), ("b.nc", image(1.0))]);
        assert_eq!(shown.numbers("time"), [Y2000 + 24.0, Y2000 + 48.0]);
        assert_eq!(
            shown.numbers("edges"),
            [12.0, 24.0, 36.0, 48.0].map(|hours| Y2000 + hours)
        );
        assert_eq!(shown.numbers("v"), [1.0, 2.0]);
    }

    #[test]
    fn bounds_with_a_missing_time_are_omitted_if_recoded() {
        let since = [("units", text("days since 2000-01-02"))];
        let shown = join_files(vec![
            (
                "0.nc",
                file_with_day(f64::NAN, f64s(&[0.0]), "bounds", &days(&[])),
            ),
            ("1.nc", file_with_day(1.0, f64s(&[1.0]), "bounds", &since)),
        ]);
        assert_eq!(
            shown.texts("time", "units").unwrap(),
            ["days since 1970-01-01"]
        );
        assert!(shown.reason("edges").contains("some are missing"));
    }

    #[test]
    fn bounds_have_the_calendar_of_their_coordinate() {
        let noleap = |number: f64| {
            let calendar = [("calendar", text("noleap"))];
            let marks = bounded("bounds", &calendar);
            let units = days(&[]);
            TestFile::new()
                .with_variable(
                    "time",
                    &[("time", 1)],
                    if number > 0.0 {
                        f64s(&[number])
                    } else {
                        i32s(&[0])
                    },
                    &marks,
                )
                .with_variable(
                    "edges",
                    &[("time", 1), ("nv", 2)],
                    f64s(&[number, number + 1.0]),
                    &units,
                )
                .with_variable("v", &[("time", 1)], f64s(&[number]), &[])
        };
        let shown = join_files(vec![("0.nc", noleap(0.0)), ("1.nc", noleap(60.0))]);
        // The calendars do not differ.
        assert_eq!(shown.numbers("edges"), [0.0, 1.0, 60.0, 61.0]);
        assert!(shown.omissions().is_empty(), "{:?}", shown.omissions());
    }
}
