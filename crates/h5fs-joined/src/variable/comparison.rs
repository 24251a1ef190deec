//! Finds the variables and groups of the members of a kind by their paths, and compares them
//! between members.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use h5fs_conventions::time::TimeUnits;
use h5fs_reader::model::shape::product;
use h5fs_reader::wire::{Count, to_usize};

use crate::instants::to_nanoseconds;
use crate::limits;
use crate::member_mapping::PlacedMembers;
use crate::members::content::ElementSummary;
use crate::members::convention::MemberTable;
use crate::members::skeleton::{Dimension, NamedAttribute, Skeleton, Variable, VariableRole};
use crate::members::{Member, Members};
use crate::paths::Path;
use crate::placing::member_kind::has_data;
use crate::variable::related_times::{RelatedTimes, add_relations};

/// The members of a kind with their placement, and the objects of these members by path.
pub(crate) struct MemberComparison<'m> {
    pub(crate) members: &'m Members,
    pub(crate) placed_members: &'m Arc<PlacedMembers>,
    /// For the path of each variable, the skeletons that have it, in the order of the members: the
    /// index of the skeleton, and the index of the variable in the skeleton.
    variables: HashMap<&'m Path, Vec<(usize, usize)>>,
    /// For the path of each group, the skeletons that have it, in the order of the members: the
    /// index of the skeleton, and the index of the group in the skeleton.
    groups: HashMap<&'m Path, Vec<(usize, usize)>>,
    /// For each skeleton, its members as positions in the kind.
    members_of_skeleton: HashMap<usize, Vec<usize>>,
    pub(super) related_times: RelatedTimes<'m>,
}

/// The variables of several members that have the same path.
pub(crate) struct SharedVariable<'m> {
    pub(crate) comparison: &'m MemberComparison<'m>,
    pub(crate) path: Path,
    /// The variable of each skeleton that has it, in the order of the members.
    pub(crate) skeleton_variables: Vec<SkeletonVariable<'m>>,
    /// The members that have the variable: their position in the kind, and the index of their
    /// variable in `skeleton_variables`.
    members: Vec<(usize, usize)>,
}

/// A variable, as one skeleton describes it.
#[derive(Clone, Copy)]
pub(crate) struct SkeletonVariable<'m> {
    pub(crate) skeleton_index: usize,
    pub(crate) skeleton: &'m Skeleton,
    /// The index of the variable in the skeleton.
    pub(crate) variable_index: usize,
    pub(crate) variable: &'m Variable,
}

impl<'m> SkeletonVariable<'m> {
    /// Returns the role of the variable. See [`Skeleton::resolved_role`].
    pub(crate) fn resolved_role(self) -> (bool, bool, Option<&'m [u8]>) {
        self.skeleton.resolved_role(self.variable)
    }
}

impl<'m> MemberComparison<'m> {
    pub(crate) fn new(members: &'m Members, placed: &'m Arc<PlacedMembers>) -> Self {
        let mut compared = MemberComparison {
            members,
            placed_members: placed,
            variables: HashMap::new(),
            groups: HashMap::new(),
            members_of_skeleton: HashMap::new(),
            related_times: RelatedTimes::new(),
        };
        for (place, &member) in placed.members.iter().enumerate() {
            let number = members.list[member].skeleton;
            let own = compared.members_of_skeleton.entry(number).or_default();
            own.push(place);
            if own.len() > 1 {
                continue;
            }
            let skeleton = &members.skeletons[number];
            add_relations(skeleton, &mut compared.related_times);
            for (variable, own) in skeleton.variables.iter().enumerate() {
                let same = compared.variables.entry(&own.path).or_default();
                same.push((number, variable));
            }
            for (group, path) in skeleton.groups.iter().enumerate() {
                compared
                    .groups
                    .entry(path)
                    .or_default()
                    .push((number, group));
            }
        }
        compared
    }

    /// Returns the member at a position in the kind, and the member's block on each axis.
    fn member(&self, place: usize) -> (&'m Member, &'m [usize]) {
        let (members, placed) = (self.members, self.placed_members);
        let member = &members.list[placed.members[place]];
        (member, &placed.placement.member_blocks[place])
    }

    /// Returns the indices of the skeletons of the kind, in the order of the members.
    fn skeletons(&self) -> Vec<usize> {
        let mut all: Vec<_> = self.members_of_skeleton.iter().collect();
        all.sort_by_key(|(_, members)| members.first());
        all.into_iter().map(|(number, _)| *number).collect()
    }

    /// Returns the paths of all variables, in the order of the members.
    pub(crate) fn variables(&self) -> Vec<Path> {
        let mut known = HashSet::new();
        let skeletons = self.skeletons();
        let all = skeletons.iter();
        let all = all.flat_map(|&number| &self.members.skeletons[number].variables);
        let paths = all.map(|variable| &variable.path);
        paths.filter(|path| known.insert(*path)).cloned().collect()
    }

    /// Returns the objects that some member cannot show: path and reason.
    pub(crate) fn refusals(&self) -> BTreeMap<Path, String> {
        let mut all = BTreeMap::new();
        for &member in &self.placed_members.members {
            for (path, reason) in member_refusals(&self.members.list[member]) {
                all.entry(path).or_insert(reason);
            }
        }
        // An object that a member without data cannot show may be a variable of the members of this
        // kind.
        for member in members_without_data(self.members) {
            let own = member_refusals(member).filter(|(path, _)| self.variables.contains_key(path));
            for (path, reason) in own {
                all.entry(path).or_insert(reason);
            }
        }
        all
    }

    /// Returns the paths of all groups, in the order of the members.
    pub(crate) fn groups(&self) -> Vec<Path> {
        let mut known = HashSet::new();
        let skeletons = self.skeletons();
        let all = skeletons.iter();
        let all = all.flat_map(|&number| &self.members.skeletons[number].groups);
        all.filter(|path| known.insert(*path)).cloned().collect()
    }

    /// Iterates over the tables of all members, in the order of the members.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &'m MemberTable> {
        let members = self.members;
        let all = self.skeletons().into_iter();
        all.flat_map(move |number| &members.skeletons[number].tables)
    }

    /// Returns the attributes of the group or variable at `path` whose values are equal in all
    /// members that have the object.
    pub(crate) fn attributes(&self, path: &Path) -> Vec<NamedAttribute> {
        let none = Vec::new();
        let groups = self.groups.get(path).unwrap_or(&none).iter().copied();
        let variables = self.variables.get(path).unwrap_or(&none).iter();
        let behind = |number: usize| self.members.skeletons[number].groups.len();
        let variables = variables.map(|&(number, at)| (number, behind(number) + at));
        let mut common: Option<Vec<NamedAttribute>> = None;
        for (number, at) in groups.chain(variables) {
            let Some(own) = self.members.common_metadata[number].attributes.get(at) else {
                continue;
            };
            match &mut common {
                None => common = Some(own.to_vec()),
                Some(common) => {
                    let own: HashMap<_, _> =
                        own.iter().map(|(name, value)| (name, value)).collect();
                    common.retain(|(name, value)| own.get(name) == Some(&value));
                }
            }
        }
        common.unwrap_or_default()
    }

    /// Returns the scalars of the ASDF trees: the ones that are equal in all members, and the paths
    /// of the ones that differ. The returned value contains no attributes.
    pub(crate) fn scalars(&self) -> crate::members::scan::CommonMetadata {
        let mut all = self
            .skeletons()
            .into_iter()
            .map(|number| &self.members.common_metadata[number]);
        let mut common = all.next().cloned().unwrap_or_default();
        common.attributes.clear();
        all.for_each(|other| common.retain_equal(other));
        common
    }

    /// Returns the path of the array whose bounds the array at `path` contains. Returns `None` if
    /// the array contains no bounds, or has units of its own.
    pub(crate) fn array_with_bounds(&self, path: &Path) -> Option<&'m Path> {
        let (number, place) = *self.variables.get(path)?.first()?;
        let skeleton = &self.members.skeletons[number];
        let own = &skeleton.variables[place];
        let VariableRole::Bounds(of) = own.role else {
            return None;
        };
        let bounded = skeleton.variables.get(of);
        bounded
            .filter(|_| own.attribute(b"units").is_none())
            .map(|bounded| &bounded.path)
    }

    /// Returns the variable at `path` in all members that have it.
    pub(crate) fn variable(&'m self, path: &Path) -> SharedVariable<'m> {
        let of = self.variables.get(path).map_or(&[][..], |of| of);
        let specimens: Vec<SkeletonVariable<'m>> = of
            .iter()
            .map(|&(number, place)| {
                let skeleton = &*self.members.skeletons[number];
                SkeletonVariable {
                    skeleton_index: number,
                    skeleton,
                    variable_index: place,
                    variable: &skeleton.variables[place],
                }
            })
            .collect();
        let mut members: Vec<(usize, usize)> = Vec::new();
        for (at, specimen) in specimens.iter().enumerate() {
            let own = self.members_of_skeleton.get(&specimen.skeleton_index);
            members.extend(own.into_iter().flatten().map(|&place| (place, at)));
        }
        members.sort_unstable();
        SharedVariable {
            comparison: self,
            path: Path::clone(path),
            skeleton_variables: specimens,
            members,
        }
    }
}

impl<'m> SharedVariable<'m> {
    /// Returns the variable as the first member has it.
    pub(crate) fn first_variable(&self) -> &'m Variable {
        self.skeleton_variables[0].variable
    }

    /// Iterates over the dimensions that the variable has in the first member.
    pub(crate) fn dims(&self) -> impl Iterator<Item = &'m Dimension> {
        let first = self.skeleton_variables[0];
        first.skeleton.dims(first.variable)
    }

    pub(crate) fn variables(&self) -> impl Iterator<Item = &'m Variable> + '_ {
        self.skeleton_variables
            .iter()
            .map(|specimen| specimen.variable)
    }

    /// Iterates over the members that have the variable, with the block of each member on each
    /// axis.
    pub(crate) fn occurrences(
        &self,
    ) -> impl Iterator<Item = (&'m Member, &'m [usize], SkeletonVariable<'m>)> + '_ {
        self.members.iter().map(|&(place, at)| {
            let (member, along) = self.comparison.member(place);
            (member, along, self.skeleton_variables[at])
        })
    }

    /// Returns the number of members that have the variable.
    pub(crate) fn member_count(&self) -> usize {
        self.members.len()
    }

    /// Returns whether all members have the variable.
    pub(crate) fn is_in_all_members(&self) -> bool {
        self.member_count() == self.comparison.placed_members.members.len()
    }

    /// Returns whether the elements of the variable are equal in all members. Returns `None` if
    /// some elements have not been read.
    pub(crate) fn are_elements_equal(&self) -> Option<bool> {
        if self.member_count() == 1 {
            return Some(true);
        }
        let first = self.first_variable();
        if !self.variables().all(|own| own.has_same_meaning(first)) {
            return Some(false);
        }
        self.are_hashes_equal()
    }

    /// Returns whether the shapes and hashes are equal in all members. Returns `None` if a hash is
    /// missing.
    fn are_hashes_equal(&self) -> Option<bool> {
        let mut first = None;
        for (member, _, own) in self.occurrences() {
            let hash = member
                .summaries
                .get(own.variable_index)
                .and_then(ElementSummary::hash)?;
            let own = (hash, member.variable_lengths(own));
            if *first.get_or_insert_with(|| own.clone()) != own {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Returns two file names for an error message: the first file that has the variable, and the
    /// first file with the skeleton of `other`.
    pub(crate) fn differing_file_names(&self, other: SkeletonVariable<'_>) -> (String, String) {
        let name = |number: usize| {
            let members = self.comparison.members_of_skeleton.get(&number);
            let first = members.and_then(|members| members.first());
            let name = first.map(|&place| self.comparison.member(place).0.name.escape_ascii());
            name.map_or_else(String::new, |name| name.to_string())
        };
        (
            name(self.skeleton_variables[0].skeleton_index),
            name(other.skeleton_index),
        )
    }

    /// Returns the time units of the variable in each skeleton in which it is a time.
    pub(crate) fn time_units(&self) -> Vec<TimeUnits> {
        self.variables()
            .filter_map(|variable| variable.meaning.time)
            .collect()
    }

    /// Returns the elements of a member as times in nanoseconds since 1970-01-01. Returns `None` if
    /// an element is unknown or not a time.
    pub(crate) fn member_instants(member: &Member, own: SkeletonVariable<'_>) -> Option<Vec<i128>> {
        let ElementSummary::Elements(elements) = member.summaries.get(own.variable_index)? else {
            return None;
        };
        let units = own.variable.meaning.time.as_ref()?;
        let packing = own.variable.meaning.packing.as_ref()?;
        let size = to_usize(own.variable.datatype.size.into()).ok()?.max(1);
        let each = elements.chunks_exact(size);
        each.map(|element| to_nanoseconds(units, packing.decode_number(element)?).ok()?)
            .collect()
    }

    /// Returns the times of all members that have the variable, in nanoseconds since 1970-01-01.
    /// Returns `None` if a time is unknown or there are too many.
    pub(crate) fn all_instants(&self) -> Option<Vec<i128>> {
        /// Maximum number of times. As 64-bit numbers, they fit in the memory limit of joined
        /// arrays.
        const MOST: u64 = limits::JOINED_INLINE / 8;
        let mut counts = self
            .occurrences()
            .map(|(member, _, own)| product(&member.variable_lengths(own)));
        let count = counts.try_fold(0_u64, |all, own| Some(all.plus(own.ok()?)))?;
        if count > MOST {
            return None;
        }
        let mut all = Vec::new();
        for (member, _, own) in self.occurrences() {
            all.extend(Self::member_instants(member, own)?);
        }
        Some(all)
    }
}

impl Member {
    /// Returns the length of each dimension of this member's variable, which the skeleton variable
    /// `own` describes.
    pub(crate) fn variable_lengths(&self, own: SkeletonVariable<'_>) -> Vec<u64> {
        let dims = own.variable.dims.iter();
        dims.map(|&dim| self.lengths.get(dim).copied().unwrap_or(0))
            .collect()
    }
}

/// Iterates over the members that have no data variable, and therefore belong to no kind.
pub(crate) fn members_without_data(members: &Members) -> impl Iterator<Item = &Member> {
    let all = members.list.iter();
    all.filter(move |member| !has_data(members.member_skeleton(member)))
}

/// Iterates over the objects that a member cannot show: path and reason.
pub(crate) fn member_refusals(member: &Member) -> impl Iterator<Item = (Path, String)> + '_ {
    let all = member.refusals.iter();
    all.map(move |(path, why)| {
        let reason = format!("{why} ({})", member.name.escape_ascii());
        (Path::clone(path), reason)
    })
}
