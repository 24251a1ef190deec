//! Relations between the time variables of a file: a coordinate, its bounds or climatology, and its
//! ancillary times.

use std::collections::{HashMap, HashSet};

use crate::members::skeleton::{Skeleton, Variable, VariableRole};
use crate::paths::{Path, child_path, split_path};

/// For the path of each time variable, the paths of related time variables: those that it names in
/// its attributes, and those whose attributes name it.
pub(super) type RelatedTimes<'m> = HashMap<&'m Path, HashSet<&'m Path>>;

/// Adds the relations between the time variables of a skeleton to `relatives`.
pub(super) fn add_relations<'m>(skeleton: &'m Skeleton, relatives: &mut RelatedTimes<'m>) {
    let times = skeleton.variables.iter();
    let times = times.filter(|variable| variable.meaning.time.is_some());
    let known: HashMap<&Path, &Path> = times.clone().map(|time| (&time.path, &time.path)).collect();
    for time in times {
        for named in related_paths(skeleton, time) {
            let Some(&other) = known.get(&named).filter(|other| ***other != time.path) else {
                continue;
            };
            relatives.entry(&time.path).or_default().insert(other);
            relatives.entry(other).or_default().insert(&time.path);
        }
    }
}

/// Iterates over the paths of the variables to which a variable is related: its bounds, its
/// climatology, its ancillary variables, and the variable that it bounds.
fn related_paths<'s>(
    skeleton: &'s Skeleton,
    variable: &'s Variable,
) -> impl Iterator<Item = Path> + 's {
    let bounded = match variable.role {
        VariableRole::Bounds(of) => skeleton.variables.get(of),
        _ => None,
    };
    let marks = [&b"bounds"[..], b"climatology", b"ancillary_variables"];
    let texts = marks
        .into_iter()
        .filter_map(|mark| variable.attribute_text(mark));
    let names = texts.flat_map(|text| text.split(u8::is_ascii_whitespace));
    let group = split_path(&variable.path).0;
    let names = names.filter(|name| !name.is_empty());
    let bounded = bounded.map(|bounded| Path::clone(&bounded.path));
    names.map(|name| child_path(group, name)).chain(bounded)
}
