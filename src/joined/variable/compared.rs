//! A variable of the members of a kind, side by side.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::joined::Path;
use crate::joined::instants::{Unit, instant};
use crate::joined::mapped::Placed;
use crate::joined::members::content::Known;
use crate::joined::members::skeleton::{Dimension, Named, Skeleton, Variable};
use crate::joined::members::{Member, Members};
use crate::model::attribute::AttributeContent;
use crate::view::cf::time::TimeUnits;
use crate::wire::to_usize;

/// The members of a kind, where they lie, and the variables of their skeletons by path.
pub(in crate::joined) struct Compared<'m> {
    pub(in crate::joined) members: &'m Members,
    pub(in crate::joined) placed: &'m Arc<Placed>,
    paths: HashMap<usize, HashMap<&'m [u8], usize>>,
}

/// A variable of several members.
pub(in crate::joined) struct Alike<'m> {
    pub(in crate::joined) of: &'m Compared<'m>,
    pub(in crate::joined) path: Path,
    /// By the numbers of the skeletons that have it, those of the first members first.
    pub(in crate::joined) specimens: Vec<Specimen<'m>>,
    /// Which of these is of a skeleton.
    numbers: HashMap<usize, usize>,
    /// How many members have it.
    pub(in crate::joined) count: usize,
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

impl<'m> Compared<'m> {
    pub(in crate::joined) fn new(members: &'m Members, placed: &'m Arc<Placed>) -> Self {
        let mut paths = HashMap::new();
        for &member in &placed.members {
            let number = members.list[member].skeleton;
            paths
                .entry(number)
                .or_insert_with(|| members.skeletons[number].by_path());
        }
        Compared {
            members,
            placed,
            paths,
        }
    }

    /// The members, each with its place along the axes.
    pub(in crate::joined) fn all(
        &self,
    ) -> impl Iterator<Item = (&'m Member, &'m [usize])> + use<'m> {
        let (members, placed) = (self.members, self.placed);
        let all = placed.members.iter().zip(&placed.placement.places);
        all.map(move |(&member, place)| (&members.list[member], &**place))
    }

    /// The numbers of the skeletons, those of the first members first.
    fn skeletons(&self) -> Vec<usize> {
        let mut known = HashSet::new();
        let all = self.all().map(|(member, _)| member.skeleton);
        all.filter(|number| known.insert(*number)).collect()
    }

    /// The paths of all variables, in the order of the members.
    pub(in crate::joined) fn variables(&self) -> Vec<Path> {
        let mut known = HashSet::new();
        let skeletons = self.skeletons();
        let all = skeletons
            .iter()
            .flat_map(|&number| &self.members.skeletons[number].variables);
        let paths = all.map(|variable| &variable.path);
        paths
            .filter(|path| known.insert(Path::clone(path)))
            .cloned()
            .collect()
    }

    /// The paths of all groups, in the order of the members.
    pub(in crate::joined) fn groups(&self) -> Vec<Path> {
        let mut known = HashSet::new();
        let skeletons = self.skeletons();
        let all = skeletons
            .iter()
            .flat_map(|&number| &self.members.skeletons[number].groups);
        all.filter(|path| known.insert(Path::clone(path)))
            .cloned()
            .collect()
    }

    /// The attributes that all members which have the group or variable at `path` have alike there.
    pub(in crate::joined) fn attributes(&self, path: &[u8]) -> Vec<Named> {
        let mut common: Option<Vec<Named>> = None;
        for number in self.skeletons() {
            let skeleton = &self.members.skeletons[number];
            let groups = skeleton.groups.len();
            let variable = self.paths.get(&number).and_then(|paths| paths.get(path));
            let at = match variable {
                Some(variable) => Some(groups + variable),
                None => skeleton.groups.iter().position(|group| &**group == path),
            };
            let Some(own) = at.and_then(|at| self.members.common[number].attributes.get(at)) else {
                continue;
            };
            match &mut common {
                None => common = Some(own.clone()),
                Some(common) => common.retain(|attribute| own.contains(attribute)),
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

    /// The variable at `path` of all members that have it.
    pub(in crate::joined) fn alike(&'m self, path: &Path) -> Alike<'m> {
        let specimens = self.skeletons().into_iter().filter_map(|number| {
            let skeleton = &*self.members.skeletons[number];
            let place = *self.paths.get(&number)?.get(&**path)?;
            Some(Specimen {
                number,
                skeleton,
                place,
                variable: &skeleton.variables[place],
            })
        });
        let specimens: Vec<Specimen<'m>> = specimens.collect();
        let numbers = specimens.iter().enumerate();
        let mut alike = Alike {
            of: self,
            path: Path::clone(path),
            numbers: numbers
                .map(|(at, specimen)| (specimen.number, at))
                .collect(),
            specimens,
            count: 0,
        };
        alike.count = alike.each().count();
        alike
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
        self.of.all().filter_map(|(member, place)| {
            let own = self.specimens[*self.numbers.get(&member.skeleton)?];
            Some((member, place, own))
        })
    }

    /// Whether all members have it.
    pub(in crate::joined) fn is_everywhere(&self) -> bool {
        self.count == self.of.placed.members.len()
    }

    /// Whether its elements are the same in all members; `None` where that is not known.
    pub(in crate::joined) fn is_equal(&self) -> Option<bool> {
        let mut hashes = self.each().map(|(member, _, own)| {
            let known = member.values.get(own.place)?;
            Some((known.hash()?, member.lengths_of(own)))
        });
        let first = hashes.next()??;
        for other in hashes {
            if other? != first {
                return Some(false);
            }
        }
        Some(true)
    }

    /// The first and another value of an attribute that is not alike in all.
    pub(in crate::joined) fn differing(
        &self,
        name: &[u8],
    ) -> Option<[Option<&'m AttributeContent>; 2]> {
        let first = self.first().mark(name);
        let mut others = self.variables().map(|variable| variable.mark(name));
        others
            .find(|other| *other != first)
            .map(|other| [first, other])
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
        let mut all = Vec::new();
        for (member, _, own) in self.each() {
            all.extend(Self::instants(member, own)?);
        }
        Some(all)
    }

    /// The unit in which its times and those of its bounds are whole.
    pub(in crate::joined) fn unit(&self, bounds: Option<&Alike<'_>>) -> Option<Unit> {
        let own = self.all_instants()?;
        let bounds = bounds.map_or(Some(Vec::new()), Alike::all_instants)?;
        Some(Unit::of(own.into_iter().chain(bounds)))
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
