//! Checks that all members with the same block in a joined array have equal elements, because only
//! the first member's elements are shown. An example is a two-dimensional latitude: all members of
//! one tile contain it, one for each time.

use std::collections::HashMap;

use h5fs_reader::model::shape::product;
use h5fs_reader::wire::to_usize;

use crate::limits;
use crate::members::Member;
use crate::members::content::ElementSummary;
use crate::members::convention::FirstDimensionMeaning;
use crate::members::skeleton::{Variable, VariableRole};
use crate::paths::OmissionResult;
use crate::placing::coordinate::Coordinate;
use crate::variable::comparison::SkeletonVariable;
use crate::variable::{VariableJoin, VariablePlacement};

/// A member, and the description of one of its variables by the member's skeleton.
type MemberAndVariable<'m> = (&'m Member, SkeletonVariable<'m>);

/// The result of comparing the elements of two members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ElementComparison {
    Equal,
    Different,
    /// The elements have more bytes than the limit for comparisons.
    TooLarge,
}

/// Hashes of elements that the scan skipped. They are computed only when members must be compared.
#[derive(Default)]
struct DeferredHashes {
    can_read: Option<bool>,
    /// The number of the first member of the block that is being compared, and the hashes of its
    /// elements.
    first: Option<(usize, [u64; 2])>,
}

impl DeferredHashes {
    fn first_hash(&self, number: usize) -> Option<[u64; 2]> {
        let first = self.first.filter(|(first, _)| *first == number);
        first.map(|(_, hash)| hash)
    }
}

impl<'m> VariableJoin<'_, 'm> {
    /// Returns whether the elements of the variable are equal in all members. Returns `None` if
    /// some elements have not been read.
    pub(super) fn are_elements_equal(&self) -> Option<bool> {
        let is_equal = self.shared_variable.are_elements_equal();
        if is_equal != Some(false) || !self.are_bounds_of_one_place() {
            return is_equal;
        }
        let mut all = self
            .shared_variable
            .occurrences()
            .map(|(member, _, own)| (member, own));
        let first = all.next()?;
        Some(
            all.all(|other| compare_elements(first, other, true) == Some(ElementComparison::Equal)),
        )
    }

    /// Checks that all members with the same block on each axis of the array have equal elements,
    /// because only the first member's elements are shown. Returns a warning if the array is too
    /// large to be compared.
    ///
    /// # Errors
    /// Fails with the reason if the variable must be absent.
    pub(super) fn check_agreement(
        &self,
        arrangement: &VariablePlacement,
    ) -> OmissionResult<Option<String>> {
        if matches!(arrangement, VariablePlacement::RepeatedScalar)
            || self.is_placement_coordinate()
        {
            return Ok(None);
        }
        let mut remark = None;
        let mut late = DeferredHashes::default();
        for together in self.group_by_place(arrangement) {
            let Some((&first, others)) = together.split_first() else {
                continue;
            };
            late.first = None;
            for &other in others {
                let (one, two) = (first.0.name.escape_ascii(), other.0.name.escape_ascii());
                match self.compare(first, other, &mut late)? {
                    ElementComparison::Equal => {}
                    ElementComparison::Different if self.variable_axes(arrangement).is_empty() => {
                        return Err(format!("it differs between files ({one}, {two})"));
                    }
                    ElementComparison::Different => {
                        return Err(format!(
                            "it differs between files of the same place ({one}, {two})"
                        ));
                    }
                    ElementComparison::TooLarge
                        if first.1.variable.convention.rows
                            == FirstDimensionMeaning::EqualInAllFiles =>
                    {
                        let why = "it must be the same in all files, and is too large to compare";
                        return Err(why.to_owned());
                    }
                    ElementComparison::TooLarge => {
                        let most = limits::JOINED_COMPARED;
                        let why = format!("not compared, because it has more than {most} bytes");
                        let why = || format!("{why}: {one} is shown, not {two}");
                        remark.get_or_insert_with(why);
                        break;
                    }
                }
            }
        }
        Ok(remark)
    }

    /// Returns whether the variable is the coordinate of a shared or joined dimension, or a
    /// dimension scale without values. Then it is equal in all members with the same block.
    fn is_placement_coordinate(&self) -> bool {
        let first = self.shared_variable.first_variable();
        let placement = &self.shared_variable.comparison.placed_members.placement;
        let follows = || {
            placement.shared_dimensions.contains(&first.path)
                || placement.find_dimension(&first.path).is_some()
        };
        first.role == VariableRole::Dimension || first.role == VariableRole::Coordinate && follows()
    }

    /// Returns the members that have the variable, grouped by their blocks on the axes of the
    /// array.
    fn group_by_place(&self, arrangement: &VariablePlacement) -> Vec<Vec<MemberAndVariable<'m>>> {
        let axes = self.variable_axes(arrangement);
        let placement = &self.shared_variable.comparison.placed_members.placement;
        let mut groups: HashMap<Vec<usize>, Vec<MemberAndVariable<'m>>> = HashMap::new();
        for (member, place, own) in self.shared_variable.occurrences() {
            if placement.is_empty_at(place) {
                continue;
            }
            let blocks = axes.iter().filter_map(|&axis| place.get(axis).copied());
            let group = groups.entry(blocks.collect()).or_default();
            group.push((member, own));
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        groups.sort_by_key(|group| group.first().map(|(member, _)| member.number));
        groups
    }

    fn compare(
        &self,
        first: MemberAndVariable<'m>,
        other: MemberAndVariable<'m>,
        late: &mut DeferredHashes,
    ) -> OmissionResult<ElementComparison> {
        if let Some(known) = compare_elements(first, other, self.are_bounds_of_one_place()) {
            return Ok(known);
        }
        if !has_same_meaning(first.1, other.1) {
            let (one, two) = (first.0.name.escape_ascii(), other.0.name.escape_ascii());
            return Err(format!(
                "it was not compared in all files: its types or attributes differ ({one}, {two})"
            ));
        }
        if [first, other].iter().any(|own| known_hash(*own).is_none())
            && is_too_large_to_compare(first)
        {
            return Ok(ElementComparison::TooLarge);
        }
        let (one, two) = (self.hash(first, late)?, self.hash(other, late)?);
        Ok(if one == two {
            ElementComparison::Equal
        } else {
            ElementComparison::Different
        })
    }

    /// Returns the hashes of a member's elements. Reads the elements now if the scan has not read
    /// them, as for a growing array.
    fn hash(
        &self,
        own: MemberAndVariable<'_>,
        late: &mut DeferredHashes,
    ) -> OmissionResult<[u64; 2]> {
        let number = own.0.number;
        if let Some(hash) = known_hash(own).or_else(|| late.first_hash(number)) {
            return Ok(hash);
        }
        let members = self.shared_variable.comparison.members;
        let may_read = late.can_read;
        let may_read = may_read
            .unwrap_or_else(|| members.reserve_reopening(self.shared_variable.member_count()));
        late.can_read = Some(may_read);
        let not_compared = || "it was not compared in all files".to_owned();
        if !may_read {
            return Err(not_compared());
        }
        let hash = members.hash_variable(own.0, own.1.variable_index);
        let hash = hash.map_err(|error| format!("{}: {error}", not_compared()))?;
        let hash = hash.ok_or_else(not_compared)?;
        late.first.get_or_insert((number, hash));
        Ok(hash)
    }

    /// Returns whether the variable contains the bounds of the coordinate of a shared or joined
    /// dimension. In members with the same block, these coordinates are equal except for rounding.
    fn are_bounds_of_one_place(&self) -> bool {
        let first = self.shared_variable.skeleton_variables[0];
        let VariableRole::Bounds(of) = first.variable.role else {
            return false;
        };
        let placement = &self.shared_variable.comparison.placed_members.placement;
        let bounded = first.skeleton.variables.get(of);
        bounded.is_some_and(|bounded| {
            placement.shared_dimensions.contains(&bounded.path)
                || placement.find_dimension(&bounded.path).is_some()
        })
    }
}

/// Compares elements that are in memory: as bytes if they have the same meaning in both members,
/// otherwise as numbers or times. If `are_bounds` is set, rounding differences count as equal.
/// Returns `None` if some elements are not in memory.
fn compare_elements(
    first: MemberAndVariable<'_>,
    other: MemberAndVariable<'_>,
    are_bounds: bool,
) -> Option<ElementComparison> {
    let known =
        |(member, own): MemberAndVariable<'_>| member.summaries.get(own.variable_index).cloned();
    let (Some(one @ ElementSummary::Elements(_)), Some(two @ ElementSummary::Elements(_))) =
        (known(first), known(other))
    else {
        return None;
    };
    let (a, b) = (first.1.variable, other.1.variable);
    let lengths = [first, other].map(|(member, own)| member.variable_lengths(own));
    if has_same_meaning(first.1, other.1) && one == two && lengths[0] == lengths[1] {
        return Some(ElementComparison::Equal);
    }
    let is_number = |own: &Variable| own.meaning.packing.is_some();
    if a.attribute(b"units") != b.attribute(b"units") && a.meaning.time.is_none()
        || !is_number(a)
        || !is_number(b)
    {
        return Some(ElementComparison::Different);
    }
    let count = |lengths: &[u64]| product(lengths).unwrap_or(u64::MAX);
    let [one, two] = [
        Coordinate::from_variable(a, &one, count(&lengths[0])),
        Coordinate::from_variable(b, &two, count(&lengths[1])),
    ];
    let (Ok(one), Ok(two)) = (one, two) else {
        // Some values are missing, so the elements are equal only if the bytes and their meaning
        // are equal.
        return Some(ElementComparison::Different);
    };
    let each = lengths[0]
        .last()
        .copied()
        .map_or(Ok(1), to_usize)
        .unwrap_or(0);
    let are_near = || are_bounds && one.are_nearly_equal_bounds(&two, each);
    let are_equal = lengths[0] == lengths[1] && (one.is_equal(&two) || are_near());
    Some(if are_equal {
        ElementComparison::Equal
    } else {
        ElementComparison::Different
    })
}

fn known_hash((member, own): MemberAndVariable<'_>) -> Option<[u64; 2]> {
    member
        .summaries
        .get(own.variable_index)
        .and_then(ElementSummary::hash)
}

fn has_same_meaning(one: SkeletonVariable<'_>, other: SkeletonVariable<'_>) -> bool {
    one.skeleton_index == other.skeleton_index || one.variable.has_same_meaning(other.variable)
}

/// Returns whether the elements of a member have more bytes than the limit for comparisons.
fn is_too_large_to_compare((member, own): MemberAndVariable<'_>) -> bool {
    let elements = product(&member.variable_lengths(own)).ok();
    let bytes = elements.and_then(|all| all.checked_mul(own.variable.datatype.size.into()));
    bytes.is_none_or(|bytes| bytes > limits::JOINED_COMPARED)
}

#[cfg(test)]
mod tests {
    use crate::testing::{JoinedTest, TestFile, days, f64s, i32s, join_files};

    /// Joins two tiles for each time. `own` adds variables to the file of a tile.
    fn join_tiles(times: i32, own: impl Fn(TestFile, f64, f64) -> TestFile) -> JoinedTest {
        let mut names = Vec::new();
        let mut files = Vec::new();
        for time in 0..times {
            for tile in 0..2 {
                let (time, x) = (f64::from(time), f64::from(tile) * 2.0);
                let file = TestFile::new()
                    .with_variable("time", &[("time", 1)], f64s(&[time]), &days(&[]))
                    .with_variable("x", &[("x", 2)], f64s(&[x, x + 1.0]), &[])
                    .with_variable("v", &[("time", 1), ("x", 2)], f64s(&[time; 2]), &[]);
                names.push(format!("{time}_{tile}.nc"));
                files.push(own(file, time, x));
            }
        }
        join_files(names.iter().map(String::as_str).zip(files).collect())
    }

    /// There are more files with the same block than the permitted number of overlapping parts of
    /// an array.
    #[test]
    fn equal_elements_of_one_block_are_shown_once() {
        let shown = join_tiles(20, |file, time, x| {
            file.with_variable("area", &[("x", 2)], f64s(&[x, 7.0]), &[])
                .with_unlimited_variable("flag", &[("time", 1)], f64s(&[time]), &[])
        });
        assert_eq!(shown.numbers("area"), [0.0, 7.0, 2.0, 7.0]);
        assert_eq!(
            shown.numbers("flag"),
            (0..20).map(f64::from).collect::<Vec<_>>()
        );
        assert_eq!(shown.dims("v"), [20, 4]);
        assert!(shown.omissions().is_empty(), "{:?}", shown.omissions());
    }

    #[test]
    fn differing_elements_of_one_block_are_omitted() {
        let shown = join_tiles(2, |file, time, x| {
            file.with_variable("area", &[("x", 2)], f64s(&[x + time, 7.0]), &[])
                .with_unlimited_variable("flag", &[("time", 1)], f64s(&[time + x]), &[])
                .with_variable("mask", &[("x", 2)], f64s(&[time, 7.0]), &[])
        });
        for name in ["area", "flag", "mask"] {
            let reason = shown.reason(name);
            assert!(
                reason.starts_with("it differs between files of the same place ("),
                "{reason}"
            );
        }
    }

    #[test]
    fn bounds_of_one_block_are_compared() {
        let shown = |error: f64| {
            join_tiles(3, |file, time, x| {
                let edges = [time, time + 1.0 + if x > 0.0 { error } else { 0.0 }];
                let bounds = [("bounds", crate::testing::text("time_bnds"))];
                file.with_variable("time", &[("time", 1)], f64s(&[time]), &days(&bounds))
                    .with_variable("time_bnds", &[("time", 1), ("nv", 2)], f64s(&edges), &[])
            })
        };
        assert_eq!(
            shown(0.0).numbers("time_bnds"),
            [0.0, 1.0, 1.0, 2.0, 2.0, 3.0]
        );
        assert!(
            shown(0.5)
                .reason("time_bnds")
                .starts_with("it differs between files of the same place")
        );
    }

    #[test]
    fn numbers_of_different_types_are_not_equal() {
        let shown = join_tiles(2, |file, time, _| {
            let area = if time > 0.0 {
                i32s(&[1, 2])
            } else {
                f64s(&[1.0, 2.0])
            };
            file.with_variable("area", &[("x", 2)], area, &[])
        });
        assert!(
            shown
                .reason("area")
                .contains("its types or attributes differ")
        );
    }

    #[test]
    fn large_arrays_are_reported_as_not_compared() {
        let shown = join_tiles(2, |file, time, x| {
            let area = vec![x + time; 20_000];
            file.with_variable("area", &[("x", 2), ("z", 10_000)], f64s(&area), &[])
        });
        assert_eq!(shown.dims("area"), [4, 10_000]);
        let remark = shown.reported_reason("area");
        assert!(
            remark.starts_with("not compared, because it has more than 65536 bytes: 0_0.nc"),
            "{remark}"
        );
    }
}
