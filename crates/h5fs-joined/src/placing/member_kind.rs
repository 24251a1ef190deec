//! Divides members into kinds. The members of one kind are joined with each other. Two members
//! belong to the same kind if both have a data variable with the same path and the same dimension
//! names, or if a chain of such pairs connects them.

use std::collections::{BTreeSet, HashMap};

use crate::members::Members;
use crate::members::skeleton::{Skeleton, VariableRole};
use crate::paths::{Omission, Path, split_path};

/// A set of members that are joined with each other (a *kind*), sorted by name.
#[derive(Debug)]
pub(crate) struct MemberKind {
    /// Positions of the members in [`Members::list`].
    pub(crate) members: Vec<usize>,
    /// The paths of the data variables of these members.
    pub(crate) data_variables: BTreeSet<Path>,
}

impl MemberKind {
    /// Returns a name that consists of the names of the data variables. A group gets this name if
    /// the objects of the kind cannot be in the root group.
    pub(crate) fn name(&self) -> Vec<u8> {
        /// Length in bytes of the name at which no further variable is added to it.
        const ENOUGH: usize = 40;
        let mut name = Vec::new();
        for path in &self.data_variables {
            if name.len() > ENOUGH {
                break;
            }
            if !name.is_empty() {
                name.push(b'+');
            }
            name.extend_from_slice(split_path(path).1);
        }
        name
    }
}

/// Iterates over the data variables of a skeleton. Returns the path of each variable, and the names
/// of its dimensions.
fn data_variables(skeleton: &Skeleton) -> impl Iterator<Item = (Path, Vec<Option<Path>>)> + '_ {
    let data = skeleton.variables.iter();
    let data =
        data.filter(|variable| variable.role == VariableRole::Data && !variable.dims.is_empty());
    data.map(|variable| {
        (
            Path::clone(&variable.path),
            skeleton.dimension_names(variable),
        )
    })
}

/// Returns whether a member with this skeleton has a data variable, and therefore belongs to a
/// kind.
pub(crate) fn has_data(skeleton: &Skeleton) -> bool {
    data_variables(skeleton).next().is_some()
}

/// Divides the members into kinds. The kind of the first member comes first.
pub(crate) fn group_into_kinds(
    members: &Members,
    omissions: &mut Vec<Omission>,
) -> Vec<MemberKind> {
    // For each skeleton, a skeleton of the same kind with a lower number. The first skeleton of a
    // kind refers to itself.
    let mut others: Vec<usize> = (0..members.skeletons.len()).collect();
    let mut owners = HashMap::new();
    for (number, skeleton) in members.skeletons.iter().enumerate() {
        for variable in data_variables(skeleton) {
            let owner = *owners.entry(variable).or_insert(number);
            let (a, b) = (
                set_representative(&others, owner),
                set_representative(&others, number),
            );
            others[a.max(b)] = a.min(b);
        }
    }
    let mut kinds: Vec<MemberKind> = Vec::new();
    let mut numbers = HashMap::new();
    for (place, member) in members.list.iter().enumerate() {
        let skeleton = members.member_skeleton(member);
        let mut own = data_variables(skeleton).map(|(path, _)| path).peekable();
        if own.peek().is_none() {
            let what = member.name.escape_ascii().to_string();
            let reason = "has no data to join".to_owned();
            omissions.push(Omission {
                subject: what,
                reason,
            });
            continue;
        }
        let first = set_representative(&others, member.skeleton);
        let number = *numbers.entry(first).or_insert(kinds.len());
        if number == kinds.len() {
            kinds.push(MemberKind {
                members: Vec::new(),
                data_variables: BTreeSet::new(),
            });
        }
        let kind = &mut kinds[number];
        if kind
            .members
            .last()
            .is_none_or(|&last| members.list[last].skeleton != member.skeleton)
        {
            kind.data_variables.extend(own);
        }
        kind.members.push(place);
    }
    kinds
}

fn set_representative(others: &[usize], mut number: usize) -> usize {
    while others[number] != number {
        number = others[number];
    }
    number
}
