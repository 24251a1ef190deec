//! Chooses the datatype of a joined array, and decides what its numbers mean.

use h5fs_conventions::packing::Packing;
use h5fs_reader::model::Datatype;
use h5fs_reader::model::datatype::{ByteOrder, Class};

use crate::element_recoding::has_references;
use crate::members::skeleton::{FLAG_ATTRIBUTES, QUANTITY_ATTRIBUTES, Variable};
use crate::paths::OmissionResult;
use crate::variable::common_type::common_datatype;
use crate::variable::comparison::SkeletonVariable;
use crate::variable::{JoinedForm, NumberConversion, VariableJoin};

impl VariableJoin<'_, '_> {
    /// Returns the datatype of the joined array and how its numbers are interpreted: as stored,
    /// unpacked, or as times in a common unit.
    pub(super) fn joined_form(&self) -> OmissionResult<JoinedForm> {
        let alike = self.shared_variable;
        let first = alike.first_variable();
        if alike
            .variables()
            .any(|variable| has_references(&variable.datatype))
        {
            return Err("it contains references".to_owned());
        }
        let times = alike.time_units();
        if times.len() == alike.skeleton_variables.len() && !times.is_empty() {
            return self.time_form();
        }
        self.check_same_meaning()?;
        let packing = first.packing_attributes();
        let is_packed_alike = alike
            .variables()
            .all(|variable| variable.packing_attributes() == packing);
        // The meaning of packing attributes depends on the type of the numbers.
        let has_marks = packing.iter().any(Option::is_some);
        let is_one_type = alike.variables().all(|own| own.datatype == first.datatype);
        if !(is_packed_alike && (is_one_type || !has_marks))
            && alike
                .variables()
                .all(|variable| variable.meaning.packing.is_some())
        {
            let types = || {
                alike
                    .variables()
                    .filter_map(|own| own.meaning.packing.as_ref())
                    .map(Packing::datatype)
            };
            // No float type represents every 64-bit integer.
            let is_long =
                |own: &Datatype| own.size > 4 && matches!(own.class, Class::Integer { .. });
            if types().any(|own| is_long(&own)) {
                return Err(
                    "numbers are packed in some files, and 64-bit integers in others".to_owned(),
                );
            }
            let is_single = |own: &Datatype| own.size == 4 && matches!(own.class, Class::Float(_));
            let is_wide = !types().all(|own| is_single(&own));
            return Ok(JoinedForm {
                datatype: Datatype::ieee(if is_wide { 8 } else { 4 }, ByteOrder::Little),
                meaning: NumberConversion::Unpacked,
            });
        }
        self.stored_form()
    }

    /// Rejects a variable whose units, flags or quantity differ between files.
    ///
    /// # Errors
    /// Fails with the reason if the attributes of two files give the numbers different meanings.
    fn check_same_meaning(&self) -> OmissionResult<()> {
        let first = self.shared_variable.first_variable();
        for name in std::iter::once(&b"units"[..])
            .chain(FLAG_ATTRIBUTES)
            .chain(QUANTITY_ATTRIBUTES)
        {
            let mut others = self.shared_variable.skeleton_variables.iter();
            let differs = |other: &&SkeletonVariable<'_>| {
                let (own, is_there) = (other.variable, other.variable.attribute(name).is_some());
                let may_lack = QUANTITY_ATTRIBUTES.contains(&name)
                    && !(is_there && first.attribute(name).is_some());
                !may_lack && !own.has_same_attribute(first, name)
            };
            if let Some(other) = others.find(differs) {
                return Err(self.difference_text(name, *other));
            }
        }
        Ok(())
    }

    fn difference_text(&self, name: &[u8], other: SkeletonVariable<'_>) -> String {
        let text =
            |variable: &Variable| match (variable.attribute_text(name), variable.attribute(name)) {
                (Some(text), _) => text.escape_ascii().to_string(),
                (None, Some(_)) => "numbers".to_owned(),
                (None, None) => "none".to_owned(),
            };
        let [own, others] = [self.shared_variable.first_variable(), other.variable].map(text);
        let (one, file) = self.shared_variable.differing_file_names(other);
        let name = name.escape_ascii();
        if own == others {
            format!("{name} differ ({one}, {file})")
        } else {
            format!("{name} differ: {own} in {one}, {others} in {file}")
        }
    }

    fn stored_form(&self) -> OmissionResult<JoinedForm> {
        let types: Vec<&Datatype> = self
            .shared_variable
            .variables()
            .map(|variable| &variable.datatype)
            .collect();
        let first = types[0];
        let datatype = common_datatype(&types).ok_or_else(|| {
            let mut others = self.shared_variable.skeleton_variables.iter();
            let other = others.find(|own| own.variable.datatype != *first);
            let other = other
                .copied()
                .unwrap_or(self.shared_variable.skeleton_variables[0]);
            let (one, other) = self.shared_variable.differing_file_names(other);
            format!("its types differ ({one}, {other})")
        })?;
        Ok(JoinedForm {
            datatype,
            meaning: NumberConversion::Stored,
        })
    }

    fn time_form(&self) -> OmissionResult<JoinedForm> {
        let family = self
            .shared_variable
            .comparison
            .time_family(&self.shared_variable.path);
        let calendar = family.common_calendar().ok_or_else(|| {
            let calendar = |own: &Variable| own.meaning.time.map(|time| time.calendar_name());
            let own = calendar(self.shared_variable.first_variable());
            let mut others = self.shared_variable.skeleton_variables.iter();
            let other = others.find(|other| calendar(other.variable) != own);
            let other = other
                .copied()
                .unwrap_or(self.shared_variable.skeleton_variables[0]);
            let (one, other) = self.shared_variable.differing_file_names(other);
            format!("calendars differ ({one}, {other})")
        })?;
        if family.can_keep_numbers(&self.shared_variable.comparison.placed_members.placement) {
            return self.stored_form();
        }
        if self.shared_variable.all_instants().is_none() {
            let what = "its times, or the times of its bounds, have several units or types";
            return Err(format!(
                "{what}, and some are missing or too many to be read"
            ));
        }
        let unit = family.coarsest_unit();
        Ok(JoinedForm {
            datatype: unit.datatype(),
            meaning: NumberConversion::Times(unit, calendar),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{
        JoinedTest, TestAttributes, TestElements, TestFile, f64s, i16s, i32s, join_files, number,
        text,
    };

    /// Joins two files along `x`. The variable `v` is `one` in the first file, and `other` in the
    /// second.
    fn join_two_files(
        one: (TestElements, TestAttributes<'_>),
        other: (TestElements, TestAttributes<'_>),
    ) -> JoinedTest {
        let file = |first: f64, (elements, marks): (TestElements, TestAttributes<'_>)| {
            let values = f64s(&[first, first + 1.0]);
            TestFile::new()
                .with_variable("x", &[("x", 2)], values.clone(), &[])
                .with_variable("own", &[("x", 2)], values, &[])
                .with_variable("v", &[("x", 2)], elements, marks)
        };
        join_files(vec![("0.nc", file(0.0, one)), ("1.nc", file(2.0, other))])
    }

    #[test]
    fn equally_packed_numbers_stay_packed() {
        let marks = [("scale_factor", number(f64s(&[0.5])))];
        let shown = join_two_files((i16s(&[1, 2]), &marks), (i16s(&[3, 4]), &marks));
        assert_eq!(shown.numbers("v"), [1.0, 2.0, 3.0, 4.0]);
        assert!(shown.has_attribute("v", "scale_factor"));
    }

    #[test]
    fn differently_packed_numbers_are_decoded() {
        let half = [("scale_factor", number(f64s(&[0.5])))];
        let offset = [
            ("add_offset", number(f64s(&[100.0]))),
            ("_FillValue", number(i16s(&[4]))),
        ];
        let shown = join_two_files((i16s(&[1, 2]), &half), (i16s(&[3, 4]), &offset));
        let numbers = shown.numbers("v");
        assert_eq!(numbers[..3], [0.5, 1.0, 103.0]);
        assert!(numbers[3].is_nan());
        assert!(!shown.has_attribute("v", "scale_factor"));
        let long = TestElements {
            datatype: h5fs_reader::model::Datatype::integer(8, true, super::ByteOrder::Little),
            bytes: vec![0; 16],
        };
        let shown = join_two_files((i16s(&[1, 2]), &half), (long, &[]));
        assert!(
            shown.reason("v").contains("64-bit integers"),
            "{:?}",
            shown.omissions()
        );
    }

    #[test]
    fn valid_ranges_that_differ_are_applied() {
        let [low, high] = [[2], [9]].map(|most| [("valid_max", number(i16s(&most)))]);
        let numbers = join_two_files((i16s(&[1, 3]), &low), (i16s(&[1, 3]), &high)).numbers("v");
        assert!(numbers[1].is_nan());
        assert_eq!((numbers[0], numbers[2], numbers[3]), (1.0, 1.0, 3.0));
    }

    #[test]
    fn differing_types_become_the_smallest_common_type() {
        let shown = join_two_files((i16s(&[1, 2]), &[]), (i32s(&[3, 4]), &[]));
        assert_eq!(
            (shown.numbers("v"), shown.datatype("v").size),
            (vec![1.0, 2.0, 3.0, 4.0], 4)
        );
    }

    #[test]
    fn numbers_with_different_meanings_are_omitted() {
        let marks = |name: &'static str, value: &str| [(name, text(value))];
        for (name, one, other, reason) in [
            (
                "units",
                "K",
                "degC",
                "units differ: K in 0.nc, degC in 1.nc",
            ),
            (
                "standard_name",
                "a",
                "b",
                "standard_name differ: a in 0.nc, b in 1.nc",
            ),
            (
                "positive",
                "up",
                "down",
                "positive differ: up in 0.nc, down in 1.nc",
            ),
            (
                "flag_meanings",
                "a b",
                "b a",
                "flag_meanings differ: a b in 0.nc, b a in 1.nc",
            ),
        ] {
            let (one, other) = (marks(name, one), marks(name, other));
            let shown = join_two_files((i16s(&[1, 2]), &one), (i16s(&[1, 2]), &other));
            assert_eq!(shown.reason("v"), reason);
            // A file without the attribute agrees with any other file.
            let shown = join_two_files((i16s(&[1, 2]), &one), (i16s(&[1, 2]), &[]));
            let may_lack = ["standard_name", "positive"].contains(&name);
            assert_eq!(shown.names().contains(&"v".to_owned()), may_lack, "{name}");
        }
    }
}
