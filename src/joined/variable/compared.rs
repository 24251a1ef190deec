//! A variable of the members of a kind, side by side.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::joined::instants::instant;
use crate::joined::mapped::Placed;
use crate::joined::members::content::Known;
use crate::joined::members::convention::Table;
use crate::joined::members::skeleton::{Dimension, Named, Role, Skeleton, Variable};
use crate::joined::members::{Member, Members};
use crate::joined::paths::Path;
use crate::joined::variable::relatives::{Relatives, relate};
use crate::limits;
use crate::model::shape::product;
use crate::view::cf::time::TimeUnits;
use crate::wire::{Count, to_usize};

/// The members of a kind, where they lie, and what they have by path.
pub(in crate::joined) struct Compared<'m> {
    pub(in crate::joined) members: &'m Members,
    pub(in crate::joined) placed: &'m Arc<Placed>,
    /// The variables of each path: the numbers of the skeletons, those of the first members first,
    /// and of the variable there.
    variables: HashMap<&'m Path, Vec<(usize, usize)>>,
    /// The same of groups.
    groups: HashMap<&'m Path, Vec<(usize, usize)>>,
    /// Of each skeleton the members that have it, by their places in the kind.
    of_skeleton: HashMap<usize, Vec<usize>>,
    pub(super) relatives: Relatives<'m>,
}

/// A variable of several members.
pub(in crate::joined) struct Alike<'m> {
    pub(in crate::joined) of: &'m Compared<'m>,
    pub(in crate::joined) path: Path,
    /// By the numbers of the skeletons that have it, those of the first members first.
    pub(in crate::joined) specimens: Vec<Specimen<'m>>,
    /// The places in the kind of the members that have it, and of each which of these it has.
    members: Vec<(usize, usize)>,
}

/// The variable of a skeleton.
#[derive(Clone, Copy)]
pub(in crate::joined) struct Specimen<'m> {
    pub(in crate::joined) number: usize,
    pub(in crate::joined) skeleton: &'m Skeleton,
    /// Its number there.
    pub(in crate::joined) place: usize,
    pub(in crate::joined) variable: &'m Variable,
}

impl<'m> Specimen<'m> {
    /// What it is there for, and of what, by path.
    pub(in crate::joined) fn role(self) -> (bool, bool, Option<&'m [u8]>) {
        self.skeleton.role(self.variable)
    }
}

impl<'m> Compared<'m> {
    pub(in crate::joined) fn new(members: &'m Members, placed: &'m Arc<Placed>) -> Self {
        let mut compared = Compared {
            members,
            placed,
            variables: HashMap::new(),
            groups: HashMap::new(),
            of_skeleton: HashMap::new(),
            relatives: Relatives::new(),
        };
        for (place, &member) in placed.members.iter().enumerate() {
            let number = members.list[member].skeleton;
            let own = compared.of_skeleton.entry(number).or_default();
            own.push(place);
            if own.len() > 1 {
                continue;
            }
            let skeleton = &members.skeletons[number];
            relate(skeleton, &mut compared.relatives);
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

    /// A member, by its place in the kind, with its place along the axes.
    fn member(&self, place: usize) -> (&'m Member, &'m [usize]) {
        let (members, placed) = (self.members, self.placed);
        let member = &members.list[placed.members[place]];
        (member, &placed.placement.places[place])
    }

    /// The numbers of the skeletons, those of the first members first.
    fn skeletons(&self) -> Vec<usize> {
        let mut all: Vec<_> = self.of_skeleton.iter().collect();
        all.sort_by_key(|(_, members)| members.first());
        all.into_iter().map(|(number, _)| *number).collect()
    }

    /// The paths of all variables, in the order of the members.
    pub(in crate::joined) fn variables(&self) -> Vec<Path> {
        let mut known = HashSet::new();
        let skeletons = self.skeletons();
        let all = skeletons.iter();
        let all = all.flat_map(|&number| &self.members.skeletons[number].variables);
        let paths = all.map(|variable| &variable.path);
        paths.filter(|path| known.insert(*path)).cloned().collect()
    }

    /// What some member cannot show, by its path, and why.
    pub(in crate::joined) fn refused(&self) -> BTreeMap<Path, String> {
        let mut all = BTreeMap::new();
        for &member in &self.placed.members {
            let member = &self.members.list[member];
            for (path, why) in &member.refused {
                let reason = || format!("{why} ({})", member.name.escape_ascii());
                all.entry(Path::clone(path)).or_insert_with(reason);
            }
        }
        all
    }

    /// The paths of all groups, in the order of the members.
    pub(in crate::joined) fn groups(&self) -> Vec<Path> {
        let mut known = HashSet::new();
        let skeletons = self.skeletons();
        let all = skeletons.iter();
        let all = all.flat_map(|&number| &self.members.skeletons[number].groups);
        all.filter(|path| known.insert(*path)).cloned().collect()
    }

    /// The tables of all members, in the order of these.
    pub(in crate::joined) fn tables(&self) -> impl Iterator<Item = &'m Table> {
        let members = self.members;
        let all = self.skeletons().into_iter();
        all.flat_map(move |number| &members.skeletons[number].tables)
    }

    /// The attributes that all members which have the group or variable at `path` have alike there.
    pub(in crate::joined) fn attributes(&self, path: &Path) -> Vec<Named> {
        let none = Vec::new();
        let groups = self.groups.get(path).unwrap_or(&none).iter().copied();
        let variables = self.variables.get(path).unwrap_or(&none).iter();
        let behind = |number: usize| self.members.skeletons[number].groups.len();
        let variables = variables.map(|&(number, at)| (number, behind(number) + at));
        let mut common: Option<Vec<Named>> = None;
        for (number, at) in groups.chain(variables) {
            let Some(own) = self.members.common[number].attributes.get(at) else {
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

    /// The scalars of the tree that all members have alike.
    pub(in crate::joined) fn scalars(&self) -> crate::joined::members::scan::Common {
        let mut all = self
            .skeletons()
            .into_iter()
            .map(|number| &self.members.common[number]);
        let mut common = all.next().cloned().unwrap_or_default();
        common.attributes.clear();
        all.for_each(|other| common.keep(other));
        common
    }

    /// The path of the array whose bounds are at `path`, where these have no units of their own.
    pub(in crate::joined) fn bounded(&self, path: &Path) -> Option<&'m Path> {
        let (number, place) = *self.variables.get(path)?.first()?;
        let skeleton = &self.members.skeletons[number];
        let own = &skeleton.variables[place];
        let Role::Bounds(of) = own.role else {
            return None;
        };
        let bounded = skeleton.variables.get(of);
        bounded
            .filter(|_| own.mark(b"units").is_none())
            .map(|bounded| &bounded.path)
    }

    /// The variable at `path` of all members that have it.
    pub(in crate::joined) fn alike(&'m self, path: &Path) -> Alike<'m> {
        let of = self.variables.get(path).map_or(&[][..], |of| of);
        let specimens: Vec<Specimen<'m>> = of
            .iter()
            .map(|&(number, place)| {
                let skeleton = &*self.members.skeletons[number];
                Specimen {
                    number,
                    skeleton,
                    place,
                    variable: &skeleton.variables[place],
                }
            })
            .collect();
        let mut members: Vec<(usize, usize)> = Vec::new();
        for (at, specimen) in specimens.iter().enumerate() {
            let own = self.of_skeleton.get(&specimen.number);
            members.extend(own.into_iter().flatten().map(|&place| (place, at)));
        }
        members.sort_unstable();
        Alike {
            of: self,
            path: Path::clone(path),
            specimens,
            members,
        }
    }
}

impl<'m> Alike<'m> {
    /// The variable of the first member.
    pub(in crate::joined) fn first(&self) -> &'m Variable {
        self.specimens[0].variable
    }

    /// The dimensions of the first member's.
    pub(in crate::joined) fn dims(&self) -> impl Iterator<Item = &'m Dimension> {
        let first = self.specimens[0];
        first.skeleton.dims(first.variable)
    }

    pub(in crate::joined) fn variables(&self) -> impl Iterator<Item = &'m Variable> + '_ {
        self.specimens.iter().map(|specimen| specimen.variable)
    }

    /// The members that have it, with their places along the axes.
    pub(in crate::joined) fn each(
        &self,
    ) -> impl Iterator<Item = (&'m Member, &'m [usize], Specimen<'m>)> + '_ {
        self.members.iter().map(|&(place, at)| {
            let (member, along) = self.of.member(place);
            (member, along, self.specimens[at])
        })
    }

    /// How many members have it.
    pub(in crate::joined) fn count(&self) -> usize {
        self.members.len()
    }

    /// Whether all members have it.
    pub(in crate::joined) fn is_everywhere(&self) -> bool {
        self.count() == self.of.placed.members.len()
    }

    /// Whether its elements are the same in all members; `None` where that is not known.
    pub(in crate::joined) fn is_equal(&self) -> Option<bool> {
        if self.count() == 1 {
            return Some(true);
        }
        let first = self.first();
        if !self.variables().all(|own| own.means_the_same(first)) {
            return Some(false);
        }
        self.are_hashes_equal()
    }

    /// Whether all members have the same lengths and hashes; `None` where one has no hash.
    fn are_hashes_equal(&self) -> Option<bool> {
        let mut first = None;
        for (member, _, own) in self.each() {
            let hash = member.values.get(own.place).and_then(Known::hash)?;
            let own = (hash, member.lengths_of(own));
            if *first.get_or_insert_with(|| own.clone()) != own {
                return Some(false);
            }
        }
        Some(true)
    }

    /// The names of the first file that has it, and of the first that has it as this one.
    pub(in crate::joined) fn files(&self, other: Specimen<'_>) -> (String, String) {
        let name = |number: usize| {
            let members = self.of.of_skeleton.get(&number);
            let first = members.and_then(|members| members.first());
            let name = first.map(|&place| self.of.member(place).0.name.escape_ascii());
            name.map_or_else(String::new, |name| name.to_string())
        };
        (name(self.specimens[0].number), name(other.number))
    }

    /// The units of times, where all are times or some are.
    pub(in crate::joined) fn times(&self) -> Vec<TimeUnits> {
        self.variables()
            .filter_map(|variable| variable.meaning.time)
            .collect()
    }

    /// The times that the elements of a member are, in nanoseconds; `None` where these are not
    /// known, or one is no time.
    pub(in crate::joined) fn instants(member: &Member, own: Specimen<'_>) -> Option<Vec<i128>> {
        let Known::Elements(elements) = member.values.get(own.place)? else {
            return None;
        };
        let units = own.variable.meaning.time.as_ref()?;
        let packing = own.variable.meaning.packing.as_ref()?;
        let size = to_usize(own.variable.datatype.size.into()).ok()?.max(1);
        let each = elements.chunks_exact(size);
        each.map(|element| instant(units, packing.number(element)?).ok()?)
            .collect()
    }

    /// All of them in all members; the lowest of them is the first.
    pub(in crate::joined) fn all_instants(&self) -> Option<Vec<i128>> {
        /// So many that they take no more memory than a coordinate may.
        const MOST: u64 = limits::JOINED_INLINE / 8;
        let mut counts = self
            .each()
            .map(|(member, _, own)| product(&member.lengths_of(own)));
        let count = counts.try_fold(0_u64, |all, own| Some(all.with_more(own.ok()?)))?;
        if count > MOST {
            return None;
        }
        let mut all = Vec::new();
        for (member, _, own) in self.each() {
            all.extend(Self::instants(member, own)?);
        }
        Some(all)
    }
}

impl Member {
    /// The lengths of the dimensions of one of its variables.
    pub(in crate::joined) fn lengths_of(&self, own: Specimen<'_>) -> Vec<u64> {
        let dims = own.variable.dims.iter();
        dims.map(|&dim| self.lengths.get(dim).copied().unwrap_or(0))
            .collect()
    }
}
