//! Chooses the dimensions along which the members of a kind are joined, and the place of each
//! member.

pub(super) mod coordinate;
pub(super) mod member_kind;
pub(super) mod new_dimension;
pub(super) mod placement;
mod position;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use h5fs_reader::model::datatype::Class;
use h5fs_reader::wire::Count;

use crate::choice::JoinDimension;
use crate::limits;
use crate::members::content::ElementSummary;
use crate::members::convention::FirstDimensionMeaning;
use crate::members::skeleton::VariableRole;
use crate::members::{Member, Members};
use crate::paths::{Omission, OmissionResult, Path, split_path};
use crate::placing::coordinate::{Coordinate, CoordinateSummary};
use crate::placing::member_kind::MemberKind;
use crate::placing::placement::{JoinAxis, JoinedDimension, Placement};
use crate::placing::position::{CoordinateBlocks, order_by_coordinate};

/// A dimension that members of one kind have.
pub(super) struct KindDimension {
    key: Path,
    has_name: bool,
    is_unlimited: bool,
    /// The meaning of the dimension by a convention, for example rows of a table.
    rows: FirstDimensionMeaning,
    /// For each member of the kind, the dimension's index in the member's skeleton.
    dimension_indices: Vec<Option<usize>>,
}

/// The role of a dimension when members are joined.
enum DimensionRole {
    /// The dimension has coordinates, which all members share.
    Shared,
    /// The dimension has coordinates, which are not equal in all members. Contains a summary of
    /// each member's coordinates, or `None` for a member without the dimension.
    Differing(Vec<Option<CoordinateSummary>>),
    /// The dimension has no coordinates. Members are concatenated along it in the order of their
    /// names.
    WithoutCoordinates,
}

/// Finds the place of each member of a kind in the joined arrays.
///
/// # Errors
/// Fails with the reason if the placement is uncertain.
pub(super) fn place_members(
    members: &Members,
    kind: &MemberKind,
    join: &JoinDimension,
    omissions: &mut Vec<Omission>,
) -> OmissionResult<Placement> {
    let all = kind_dimensions(members, kind)?;
    let has_tables = all.iter().any(KindDimension::has_table_rows);
    let mut placement = match join {
        JoinDimension::NewForFiles => Placement::without_axes(kind.members.len()),
        JoinDimension::First => join_in_name_order(members, kind, &all, |facts| {
            facts.has_table_rows()
                || facts.rows == FirstDimensionMeaning::Unknown
                    && is_first_dimension(members, kind, facts)
        }),
        JoinDimension::Differing | JoinDimension::Named(_)
            if !has_tables && all.iter().any(|facts| facts.has_name) =>
        {
            let wanted = |facts: &&KindDimension| match join {
                JoinDimension::Named(name) => split_path(&facts.key).1 == name,
                _ => true,
            };
            find_joined_dimension(members, kind, &all, wanted, omissions)?
        }
        _ => {
            let grows = row_dimensions(members, kind, &all);
            join_in_name_order(members, kind, &all, |facts| {
                facts.has_table_rows() || grows.contains(&facts.key)
            })
        }
    };
    for facts in &all {
        if placement.find_dimension(&facts.key).is_some() {
            continue;
        }
        let key = Path::clone(&facts.key);
        // A named dimension of one file cannot have two lengths.
        let is_one = !facts.has_name || !facts.has_differing_lengths(members, kind);
        match facts.role(members, kind) {
            _ if !is_one => _ = placement.unjoined_dimensions.insert(key),
            Ok(DimensionRole::Shared) => _ = placement.shared_dimensions.insert(key),
            Ok(DimensionRole::WithoutCoordinates) => {}
            // If files are stacked, the values of this dimension may differ too.
            Ok(DimensionRole::Differing(_)) | Err(_) if *join == JoinDimension::NewForFiles => {}
            Ok(DimensionRole::Differing(_)) | Err(_) => {
                _ = placement.unjoined_dimensions.insert(key);
            }
        }
    }
    new_dimension::add_new_dimension(
        members,
        kind,
        &mut placement,
        *join == JoinDimension::NewForFiles,
    )?;
    Ok(placement)
}

/// Returns all dimensions of the members of a kind, ordered by the depth of their groups.
fn kind_dimensions(members: &Members, kind: &MemberKind) -> OmissionResult<Vec<KindDimension>> {
    let mut all: BTreeMap<(usize, Path), KindDimension> = BTreeMap::new();
    for (place, &member) in kind.members.iter().enumerate() {
        let skeleton = members.member_skeleton(&members.list[member]);
        for (number, dim) in skeleton.dimensions.iter().enumerate() {
            let depth = dim.key.iter().filter(|&&byte| byte == b'/').count();
            let facts = all
                .entry((depth, Path::clone(&dim.key)))
                .or_insert_with(|| KindDimension {
                    key: Path::clone(&dim.key),
                    has_name: dim.has_name,
                    is_unlimited: true,
                    rows: FirstDimensionMeaning::Unknown,
                    dimension_indices: vec![None; kind.members.len()],
                });
            facts.is_unlimited &= dim.is_unlimited;
            if facts.rows == FirstDimensionMeaning::Unknown {
                facts.rows = dim.rows;
            }
            facts.dimension_indices[place] = Some(number);
            if all.len().times(kind.members.len()) > limits::JOINED_PLACES {
                return Err("its files have too many dimensions".to_owned());
            }
        }
    }
    Ok(all.into_values().collect())
}

impl KindDimension {
    /// Returns whether the dimension has the rows of a table, or depends on the number of such
    /// rows.
    fn has_table_rows(&self) -> bool {
        matches!(
            self.rows,
            FirstDimensionMeaning::TableRows | FirstDimensionMeaning::RowEnds
        )
    }

    /// Iterates over the members of the kind. Returns the dimension's length in each member, or
    /// `None` for a member without the dimension.
    fn lengths<'a>(
        &'a self,
        members: &'a Members,
        kind: &'a MemberKind,
    ) -> impl Iterator<Item = Option<u64>> + 'a {
        let all = kind.members.iter().zip(&self.dimension_indices);
        all.map(|(&member, number)| number.map(|number| members.list[member].lengths[number]))
    }

    fn has_differing_lengths(&self, members: &Members, kind: &MemberKind) -> bool {
        let mut lengths = self.lengths(members, kind).flatten();
        let first = lengths.next();
        lengths.any(|length| Some(length) != first)
    }

    /// Returns the role of the dimension when the members are joined.
    fn role(&self, members: &Members, kind: &MemberKind) -> OmissionResult<DimensionRole> {
        let mut elements: Vec<Option<&Arc<[u8]>>> = Vec::new();
        let mut have = 0_usize;
        let mut with = 0_usize;
        for (&member, &number) in kind.members.iter().zip(&self.dimension_indices) {
            let member = &members.list[member];
            let own = number.and_then(|number| coordinate_values(members, member, number));
            have += usize::from(number.is_some());
            with += usize::from(own.is_some());
            elements.push(own.and_then(|(_, known)| known.all_elements()));
        }
        if with == 0 {
            let is_bare = self.is_unlimited || self.has_differing_lengths(members, kind);
            return Ok(if is_bare {
                DimensionRole::WithoutCoordinates
            } else {
                DimensionRole::Shared
            });
        }
        let name = self.key.escape_ascii();
        if with < have {
            return Err(format!("dimension {name}: some files have no coordinate"));
        }
        let mut all: Vec<Option<CoordinateSummary>> = Vec::new();
        let mut are_same = true;
        let mut first: Option<(usize, Coordinate)> = None;
        for (place, &number) in self.dimension_indices.iter().enumerate() {
            let Some(number) = number else {
                all.push(None);
                continue;
            };
            // Files of one grid share one copy of its values.
            if let Some((of, _)) = &first
                && is_shared_in_memory(members, kind, (*of, place), &elements, number)
            {
                all.push(all[*of].clone());
                continue;
            }
            let own = self.read_coordinate(members, kind, place)?;
            all.push(Some(own.summary()));
            match &first {
                Some((_, first)) => are_same &= first.is_nearly_equal(&own),
                None => first = Some((place, own)),
            }
        }
        Ok(if are_same {
            DimensionRole::Shared
        } else {
            DimensionRole::Differing(all)
        })
    }
}

/// Returns whether two members, given by their positions in the kind, share the same coordinates of
/// the dimension `number` in memory, with the same meaning. The coordinates then need not be
/// compared.
fn is_shared_in_memory(
    members: &Members,
    kind: &MemberKind,
    (of, place): (usize, usize),
    elements: &[Option<&Arc<[u8]>>],
    number: usize,
) -> bool {
    let [of, own] = [of, place].map(|place| (&members.list[kind.members[place]], elements[place]));
    let (Some(first), Some(elements)) = (of.1, own.1) else {
        return false;
    };
    let is_alike = of.0.skeleton == own.0.skeleton && of.0.lengths[number] == own.0.lengths[number];
    is_alike && Arc::ptr_eq(first, elements)
}

/// Returns the index of the variable with a dimension's coordinates, and the summary of its
/// elements. Returns `None` if there is no such variable, or the scan did not read its elements.
fn coordinate_values<'m>(
    members: &'m Members,
    member: &'m Member,
    dim: usize,
) -> Option<(usize, &'m ElementSummary)> {
    let variable = members
        .member_skeleton(member)
        .dimensions
        .get(dim)?
        .coordinate?;
    let known = member.summaries.get(variable)?;
    let has_some = matches!(
        known,
        ElementSummary::Elements(_) | ElementSummary::EndsAndHash(..)
    );
    has_some.then_some((variable, known))
}

impl KindDimension {
    /// Returns the coordinates of the dimension in the member at the position `place` of the kind.
    fn read_coordinate(
        &self,
        members: &Members,
        kind: &MemberKind,
        place: usize,
    ) -> OmissionResult<Coordinate> {
        let member = &members.list[kind.members[place]];
        let refused = |why: &dyn std::fmt::Display| {
            let key = self.key.escape_ascii();
            format!("{key} of {}: {why}", member.name.escape_ascii())
        };
        let number = self.dimension_indices.get(place).copied().flatten();
        let known =
            number.and_then(|number| Some((number, coordinate_values(members, member, number)?)));
        let Some((number, (variable, known))) = known else {
            return Err(refused(&"its values are unknown"));
        };
        if member.stored_lengths(variable).is_some() {
            return Err(refused(&"it has fewer values than its dimension"));
        }
        let variable = &members.member_skeleton(member).variables[variable];
        let own = Coordinate::from_variable(variable, known, member.lengths[number]);
        own.map_err(|error| refused(&error))
    }

    /// Divides the dimension into blocks, so that each member's coordinates are one block.
    fn divide_into_blocks(
        &self,
        members: &Members,
        kind: &MemberKind,
        summaries: &[Option<CoordinateSummary>],
    ) -> OmissionResult<CoordinateBlocks> {
        let has_nan = |summary: &Option<CoordinateSummary>| {
            summary.as_ref().is_some_and(|summary| summary.has_nan)
        };
        if let Some(place) = summaries.iter().position(has_nan) {
            let name = &members.list[kind.members[place]].name;
            let key = self.key.escape_ascii();
            return Err(format!("{key} of {}: it contains NaN", name.escape_ascii()));
        }
        order_by_coordinate(summaries, |a, b| {
            if summaries[a] != summaries[b] && !can_be_nearly_equal(&summaries[a], &summaries[b]) {
                return Ok(false);
            }
            let [a, b] = [a, b].map(|place| self.read_coordinate(members, kind, place));
            Ok(a?.is_nearly_equal(&b?))
        })
    }
}

/// Returns whether two members have the same number of coordinates, so that their coordinates may
/// differ only by rounding.
fn can_be_nearly_equal(a: &Option<CoordinateSummary>, b: &Option<CoordinateSummary>) -> bool {
    let length =
        |summary: &Option<CoordinateSummary>| summary.as_ref().map(|summary| summary.length);
    length(a) == length(b)
}

/// Chooses the joined dimensions among those that `wanted` selects: the dimensions of one group
/// whose coordinates differ between members. This group is the first one that has such a dimension.
/// Dimensions of other groups whose coordinates differ are joined on the same axis.
fn find_joined_dimension(
    members: &Members,
    kind: &MemberKind,
    all: &[KindDimension],
    wanted: impl Fn(&&KindDimension) -> bool,
    omissions: &mut Vec<Omission>,
) -> OmissionResult<Placement> {
    let mut joined = Vec::new();
    let mut bare = Vec::new();
    for facts in all.iter().filter(wanted) {
        match facts.role(members, kind)? {
            DimensionRole::Differing(values) => joined.push((facts, values)),
            DimensionRole::WithoutCoordinates if facts.has_name => {
                bare.push(Path::clone(&facts.key));
            }
            DimensionRole::WithoutCoordinates | DimensionRole::Shared => {}
        }
    }
    if joined.is_empty() {
        return Ok(join_in_name_order(members, kind, all, |facts| {
            bare.contains(&facts.key)
        }));
    }
    let group = split_path(&joined[0].0.key).0.to_vec();
    let (own, others): (Vec<_>, Vec<_>) = joined
        .into_iter()
        .partition(|(facts, _)| split_path(&facts.key).0 == group);
    let mut placement = Placement::without_axes(kind.members.len());
    let is_one = own.len() == 1;
    for (facts, values) in &own {
        let blocks = facts.divide_into_blocks(members, kind, values)?;
        let name = |place: usize| members.list[kind.members[place]].name.escape_ascii();
        let overlap = blocks.overlapping_members;
        let overlap = overlap.map(|(a, b)| format!("{} and {} overlap", name(a), name(b)));
        if let (Some(overlap), false) = (&overlap, is_one) {
            return Err(format!("{}: {overlap}", facts.key.escape_ascii()));
        }
        omissions.extend(overlap.map(|reason| Omission {
            subject: format!("/{}", facts.key.escape_ascii()),
            reason,
        }));
        placement.add_axis(facts, &blocks);
    }
    if let ([axis], true) = (&mut placement.axes[..], is_one) {
        let others = others.iter().map(|(facts, _)| *facts);
        let numbers: Vec<usize> = placement
            .member_blocks
            .iter()
            .map(|places| places[0])
            .collect();
        axis.add_dimensions(members, kind, others, &numbers);
    }
    Ok(placement)
}

impl Placement {
    fn add_axis(&mut self, facts: &KindDimension, blocks: &CoordinateBlocks) {
        for (places, own) in self.member_blocks.iter_mut().zip(&blocks.member_blocks) {
            places.push(own.unwrap_or(0));
        }
        self.axes.push(JoinAxis {
            dims: vec![JoinedDimension::new(&facts.key, &blocks.lengths)],
            block_count: blocks.lengths.len(),
            new_dimension: None,
            has_overlap: blocks.overlapping_members.is_some(),
            has_tables: false,
        });
    }
}

impl JoinAxis {
    /// Adds dimensions to the axis as joined dimensions. `blocks` contains the block of each
    /// member. No two members have the same block.
    fn add_dimensions<'f>(
        &mut self,
        members: &Members,
        kind: &MemberKind,
        others: impl Iterator<Item = &'f KindDimension>,
        blocks: &[usize],
    ) {
        if blocks.len() != self.block_count {
            return;
        }
        for facts in others {
            let mut lengths = vec![0; self.block_count];
            for (&block, length) in blocks.iter().zip(facts.lengths(members, kind)) {
                lengths[block] = length.unwrap_or(0);
            }
            self.dims.push(match facts.rows {
                FirstDimensionMeaning::RowEnds => {
                    JoinedDimension::new_omitting_first(&facts.key, &lengths)
                }
                _ => JoinedDimension::new(&facts.key, &lengths),
            });
        }
    }
}

/// Joins the members along the given dimensions, in the order of the members' names.
fn join_in_name_order(
    members: &Members,
    kind: &MemberKind,
    all: &[KindDimension],
    is_joined: impl Fn(&KindDimension) -> bool,
) -> Placement {
    let mut placement = Placement::without_axes(kind.members.len());
    let joined: Vec<&KindDimension> = all.iter().filter(|facts| is_joined(facts)).collect();
    if joined.is_empty() {
        return placement;
    }
    let mut axis = JoinAxis {
        dims: Vec::new(),
        block_count: kind.members.len(),
        new_dimension: None,
        has_overlap: false,
        has_tables: joined.iter().any(|facts| facts.has_table_rows()),
    };
    let numbers: Vec<usize> = (0..kind.members.len()).collect();
    axis.add_dimensions(members, kind, joined.into_iter(), &numbers);
    placement.member_blocks = numbers.into_iter().map(|number| vec![number]).collect();
    placement.axes.push(axis);
    placement
}

/// Returns whether a dimension is the first dimension of a data variable in some member.
fn is_first_dimension(members: &Members, kind: &MemberKind, facts: &KindDimension) -> bool {
    kind.members
        .iter()
        .zip(&facts.dimension_indices)
        .any(|(&member, &number)| {
            let skeleton = members.member_skeleton(&members.list[member]);
            let mut data = skeleton
                .variables
                .iter()
                .filter(|variable| variable.role == VariableRole::Data);
            number.is_some() && data.any(|variable| variable.dims.first().copied() == number)
        })
}

/// Returns the keys of the dimensions that contain rows, for members whose dimensions have no
/// names. These are the first dimensions of tables, of arrays that can grow or differ in length,
/// and of arrays with the same number of rows.
fn row_dimensions(members: &Members, kind: &MemberKind, all: &[KindDimension]) -> Vec<Path> {
    let first: Vec<&KindDimension> = all
        .iter()
        .filter(|facts| {
            facts.rows == FirstDimensionMeaning::Unknown && is_first_dimension(members, kind, facts)
        })
        .collect();
    let lengths = |facts: &KindDimension| facts.lengths(members, kind).collect::<Vec<_>>();
    let grows = |facts: &&&KindDimension| {
        facts.is_unlimited
            || facts.has_differing_lengths(members, kind)
            || is_table_dimension(members, kind, facts)
    };
    let growing: HashSet<_> = first
        .iter()
        .filter(grows)
        .map(|facts| lengths(facts))
        .collect();
    let as_many = first
        .iter()
        .filter(|facts| growing.contains(&lengths(facts)));
    as_many.map(|facts| Path::clone(&facts.key)).collect()
}

/// Returns whether a dimension is the only dimension of an array of compound elements (a table).
fn is_table_dimension(members: &Members, kind: &MemberKind, facts: &KindDimension) -> bool {
    kind.members
        .iter()
        .zip(&facts.dimension_indices)
        .any(|(&member, &number)| {
            let skeleton = members.member_skeleton(&members.list[member]);
            skeleton.variables.iter().any(|variable| {
                let is_table = matches!(variable.datatype.class, Class::Compound(_));
                is_table && variable.dims.len() == 1 && variable.dims.first().copied() == number
            })
        })
}

#[cfg(test)]
mod tests {
    use crate::testing::{JoinedTest, TestFile, f64s, i32s, join_as_named, join_files, text};

    /// Joins files in which `x` has these values, together with a numeric variable along `x`.
    fn join_along_x(values: &[&[f64]]) -> JoinedTest {
        let files = values.iter().enumerate().map(|(n, values)| {
            let length = values.len() as u64;
            let own = vec![n as i32; values.len()];
            let file = TestFile::new()
                .with_variable("x", &[("x", length)], f64s(values), &[])
                .with_variable("v", &[("x", length)], i32s(&own), &[]);
            (["b.nc", "a.nc", "c.nc"][n], file)
        });
        join_files(files.collect())
    }

    #[test]
    fn files_follow_each_other_by_their_coordinates() {
        let shown = join_along_x(&[&[4.0, 5.0], &[1.0], &[2.0, 3.0]]);
        assert_eq!(shown.numbers("x"), [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(shown.numbers("v"), [1.0, 2.0, 2.0, 0.0, 0.0]);
        let shown = join_along_x(&[&[2.0, 1.0], &[5.0, 4.0]]);
        assert_eq!(shown.numbers("x"), [5.0, 4.0, 2.0, 1.0]);
    }

    #[test]
    fn rounded_coordinates_are_shared() {
        let shown = join_along_x(&[&[0.0, 1.0], &[0.0, 1.0005]]);
        assert_eq!(shown.numbers("x"), [0.0, 1.0]);
        assert_eq!(shown.dims("v"), [2, 2]);
    }

    #[test]
    fn overlapping_blocks_are_kept_and_reported() {
        let shown = join_along_x(&[&[0.0, 1.0, 2.0], &[2.0, 3.0]]);
        assert_eq!(shown.numbers("x"), [0.0, 1.0, 2.0, 2.0, 3.0]);
        assert_eq!(shown.reported_reason("x"), "b.nc and a.nc overlap");
        assert!(shown.has_attribute("x", "_h5fs_overlap"));
    }

    #[test]
    fn coordinates_with_nan_are_refused() {
        let shown = join_along_x(&[&[0.0, 1.0], &[f64::NAN, 3.0]]);
        assert!(shown.names().is_empty());
        assert!(
            shown.omissions()[0].contains("missing values"),
            "{:?}",
            shown.omissions()
        );
    }

    #[test]
    fn a_coordinate_in_some_files_only_is_refused() {
        let bare = TestFile::new().with_variable("v", &[("x", 2)], i32s(&[1, 2]), &[]);
        let other = TestFile::new()
            .with_variable("x", &[("x", 2)], f64s(&[0.0, 1.0]), &[])
            .with_variable("v", &[("x", 2)], i32s(&[3, 4]), &[]);
        let shown = join_files(vec![("0.nc", bare), ("1.nc", other)]);
        assert!(
            shown.omissions()[0].contains("some files have no coordinate"),
            "{:?}",
            shown.omissions()
        );
    }

    #[test]
    fn calendars_that_differ_are_refused() {
        let file = |first: f64, calendar: &str| {
            let marks = [
                ("units", text("days since 2000-01-01")),
                ("calendar", text(calendar)),
            ];
            TestFile::new()
                .with_variable("time", &[("time", 1)], f64s(&[first]), &marks)
                .with_variable("v", &[("time", 1)], f64s(&[first]), &[])
        };
        let shown = join_files(vec![
            ("0.nc", file(0.0, "noleap")),
            ("1.nc", file(1.0, "360_day")),
        ]);
        assert!(shown.names().is_empty());
        assert!(
            shown.omissions()[0].contains("calendars differ"),
            "{:?}",
            shown.omissions()
        );
    }

    #[test]
    fn files_without_coordinates_are_joined_in_name_order() {
        let file = |values: &[i32]| {
            TestFile::new().with_unlimited_variable(
                "v",
                &[("time", values.len() as u64)],
                i32s(values),
                &[],
            )
        };
        let shown = join_files(vec![("a.nc", file(&[7, 8])), ("b.nc", file(&[1]))]);
        assert_eq!(shown.numbers("v"), [7.0, 8.0, 1.0]);
    }

    #[test]
    fn without_names_of_dimensions_arrays_of_one_length_are_stacked() {
        let file = |values: &[i32]| {
            TestFile::new().with_variable("v", &[("", values.len() as u64)], i32s(values), &[])
        };
        let files = vec![("1.h5", file(&[7, 8])), ("2.h5", file(&[1, 2]))];
        let shown = join_files(files.clone());
        assert_eq!(
            (shown.dims("v"), shown.numbers("v")),
            (vec![2, 2], vec![7.0, 8.0, 1.0, 2.0])
        );
        assert_eq!(join_as_named("joined[*,join=0]", files).dims("v"), [4]);
        let shown = join_files(vec![("1.h5", file(&[7, 8])), ("2.h5", file(&[1]))]);
        assert_eq!(shown.numbers("v"), [7.0, 8.0, 1.0]);
    }

    #[test]
    fn directories_distinguish_files_at_the_same_position() {
        let file = |n: f64| {
            TestFile::new()
                .with_variable("x", &[("x", 2)], f64s(&[0.0, 1.0]), &[])
                .with_variable("v", &[("x", 2)], f64s(&[n, n]), &[])
        };
        let files = ["member=r1/a.nc", "member=r2/a.nc"]
            .into_iter()
            .zip([file(1.0), file(2.0)]);
        let shown = join_files(files.collect());
        assert_eq!(shown.dims("v"), [2, 2]);
        assert_eq!(shown.dims("member"), [2]);
        // No property distinguishes these files: the directory, time and block are equal.
        let other = TestFile::new()
            .with_variable("x", &[("x", 2)], f64s(&[5.0, 6.0]), &[])
            .with_variable("v", &[("x", 2)], f64s(&[0.0, 0.0]), &[]);
        let files = vec![("a.nc", file(1.0)), ("b.nc", file(2.0)), ("c.nc", other)];
        let shown = join_files(files);
        assert!(shown.omissions()[0].contains("several files for the same place: a.nc, b.nc"));
    }
}
