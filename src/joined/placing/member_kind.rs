//! Divides members into kinds. Two members have the same kind if both have a data variable with the
//! same path and the same dimension names. A chain of such pairs also belongs to one kind.

use std::collections::{BTreeSet, HashMap};

use crate::joined::members::Members;
use crate::joined::members::skeleton::{Role, Skeleton};
use crate::joined::paths::{Omission, Path, split};

/// The members of one kind, sorted by name.
#[derive(Debug)]
pub(in crate::joined) struct MemberKind {
    /// Positions of the members in [`Members::list`].
    pub(in crate::joined) members: Vec<usize>,
    /// The paths of the data variables of these members.
    pub(in crate::joined) data: BTreeSet<Path>,
}

impl MemberKind {
    /// Returns a name that consists of the names of the data variables. A group gets this name if
    /// the objects of the kind cannot be in the root group.
    pub(in crate::joined) fn name(&self) -> Vec<u8> {
        /// Length in bytes beyond which no further variable is added to the name.
        const ENOUGH: usize = 40;
        let mut name = Vec::new();
        for path in &self.data {
            if name.len() > ENOUGH {
                break;
            }
            if !name.is_empty() {
                name.push(b'+');
            }
            name.extend_from_slice(split(path).1);
        }
        name
    }
}

/// Iterates over the data variables of a skeleton. Returns the path of each variable, and the names
/// of its dimensions.
fn data(skeleton: &Skeleton) -> impl Iterator<Item = (Path, Vec<Option<Path>>)> + '_ {
    let data = skeleton.variables.iter();
    let data = data.filter(|variable| variable.role == Role::Data && !variable.dims.is_empty());
    data.map(|variable| (Path::clone(&variable.path), skeleton.names(variable)))
}

/// Returns whether a member with this skeleton has a data variable, and therefore belongs to a
/// kind.
pub(in crate::joined) fn has_data(skeleton: &Skeleton) -> bool {
    data(skeleton).next().is_some()
}

/// Divides the members into kinds. The kind of the first member comes first.
pub(in crate::joined) fn kinds(members: &Members, told: &mut Vec<Omission>) -> Vec<MemberKind> {
    // For each skeleton, a skeleton of the same kind with a lower number. The first skeleton of a
    // kind refers to itself.
    let mut others: Vec<usize> = (0..members.skeletons.len()).collect();
    let mut owners = HashMap::new();
    for (number, skeleton) in members.skeletons.iter().enumerate() {
        for variable in data(skeleton) {
            let owner = *owners.entry(variable).or_insert(number);
            let (a, b) = (first_of(&others, owner), first_of(&others, number));
            others[a.max(b)] = a.min(b);
        }
    }
    let mut kinds: Vec<MemberKind> = Vec::new();
    let mut numbers = HashMap::new();
    for (place, member) in members.list.iter().enumerate() {
        let skeleton = members.skeleton(member);
        let mut own = data(skeleton).map(|(path, _)| path).peekable();
        if own.peek().is_none() {
            let what = member.name.escape_ascii().to_string();
            let reason = "has no data to join".to_owned();
            told.push(Omission { what, reason });
            continue;
        }
        let first = first_of(&others, member.skeleton);
        let number = *numbers.entry(first).or_insert(kinds.len());
        if number == kinds.len() {
            kinds.push(MemberKind {
                members: Vec::new(),
                data: BTreeSet::new(),
            });
        }
        let kind = &mut kinds[number];
        if kind
            .members
            .last()
            .is_none_or(|&last| members.list[last].skeleton != member.skeleton)
        {
            kind.data.extend(own);
        }
        kind.members.push(place);
    }
    kinds
}

fn first_of(others: &[usize], mut number: usize) -> usize {
    while others[number] != number {
        number = others[number];
    }
    number
}
