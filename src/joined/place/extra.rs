//! A dimension that no member has: several members lie at one place, and something tells them apart.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::joined::instants;
use crate::joined::members::skeleton::Variable;
use crate::joined::members::{Member, Members};
use crate::joined::paths::{Path, Sure, split};
use crate::joined::place::kind::Kind;
use crate::joined::place::placement::{Axis, JoinedDimension, NewDimension, Placement, Values};
use crate::wire::{Count, to_u64};

/// The members of a kind that are in a directory of their own, or have a time of their own, by what
/// tells them apart, and of each member which one it is.
struct Apart {
    new: NewDimension,
    of: Vec<usize>,
}

/// Puts a new dimension before all others where several members lie at one place.
///
/// # Errors
/// Fails if nothing tells these members apart.
pub(in crate::joined) fn separate(
    members: &Members,
    kind: &Kind,
    placement: &mut Placement,
    by_name: bool,
) -> Sure<()> {
    let mut at: HashMap<&[usize], Vec<usize>> = HashMap::new();
    for (number, place) in placement.places.iter().enumerate() {
        // One without values takes no place.
        if !placement.is_empty_at(place) {
            at.entry(place).or_default().push(number);
        }
    }
    let most = at.values().max_by_key(|together| together.len());
    let Some(together) = most.filter(|together| together.len() > 1) else {
        return Ok(());
    };
    let apart = if by_name {
        Some(names(members, kind))
    } else {
        let in_directories = directories(members, kind).filter(|apart| {
            at.values().all(|together| {
                let own: BTreeSet<usize> =
                    together.iter().map(|&number| apart.of[number]).collect();
                own.len() == together.len()
            })
        });
        let or_times = || {
            placement
                .axes
                .is_empty()
                .then(|| times(members, kind))
                .flatten()
        };
        let or_names = || placement.axes.is_empty().then(|| names(members, kind));
        in_directories.or_else(or_times).or_else(or_names)
    };
    let Some(mut apart) = apart else {
        let names = together.iter().take(3).map(|&number| {
            members.list[kind.members[number]]
                .name
                .escape_ascii()
                .to_string()
        });
        let names: Vec<_> = names.collect();
        return Err(format!(
            "several files for the same place: {}",
            names.join(", ")
        ));
    };
    if !matches!(apart.new.values, Values::Times(_)) {
        apart.new.name = free_name(members, kind, &apart.new.name);
    }
    let blocks = apart.new.values.len();
    for (place, own) in placement.places.iter_mut().zip(apart.of) {
        place.insert(0, own);
    }
    let dim = JoinedDimension {
        key: Path::clone(&apart.new.name),
        starts: (0..=to_u64(blocks)).collect(),
    };
    placement.axes.insert(
        0,
        Axis {
            dims: vec![dim],
            blocks,
            new: Some(apart.new),
            overlaps: false,
        },
    );
    Ok(())
}

/// The name, with as many `_` behind it as no member has a dimension or an object of.
fn free_name(members: &Members, kind: &Kind, name: &Path) -> Path {
    let mut taken: BTreeSet<&[u8]> = BTreeSet::new();
    let skeletons: BTreeSet<usize> = kind
        .members
        .iter()
        .map(|&member| members.list[member].skeleton)
        .collect();
    for number in skeletons {
        let skeleton = &members.skeletons[number];
        taken.extend(skeleton.variables.iter().map(|variable| &*variable.path));
        taken.extend(skeleton.dimensions.iter().map(|dim| &*dim.key));
        taken.extend(skeleton.groups.iter().map(|group| &**group));
    }
    let mut free = name.to_vec();
    while taken.contains(&*free) {
        free.push(b'_');
    }
    free.into()
}

/// The directories in which members are; `None` where they are in one. `member=r1` is value `r1` of
/// the dimension `member`.
fn directories(members: &Members, kind: &Kind) -> Option<Apart> {
    let directory = |&member: &usize| split(&members.list[member].name).0;
    let all: BTreeSet<&[u8]> = kind.members.iter().map(directory).collect();
    if all.len() < 2 {
        return None;
    }
    let named = |path: &[u8]| -> Option<(Vec<u8>, Vec<u8>)> {
        let name = split(path).1;
        let equals = name.iter().position(|&byte| byte == b'=')?;
        Some((name[..equals].to_vec(), name[equals + 1..].to_vec()))
    };
    let pairs: Option<Vec<_>> = all.iter().map(|path| named(path)).collect();
    let pairs = pairs.filter(|pairs| pairs.iter().all(|(name, _)| *name == pairs[0].0));
    let (name, values) = match pairs {
        Some(pairs) => (
            pairs[0].0.clone(),
            pairs.into_iter().map(|(_, value)| value).collect(),
        ),
        None => (
            b"directory".to_vec(),
            all.iter().map(|path| path.to_vec()).collect(),
        ),
    };
    let numbers: BTreeMap<&[u8], usize> = all.iter().copied().zip(0..).collect();
    let of = kind.members.iter().map(|member| numbers[directory(member)]);
    Some(Apart {
        of: of.collect(),
        new: NewDimension {
            name: name.into(),
            values: Values::Texts(values),
        },
    })
}

/// Whether a variable is the time of a whole file.
fn is_time(variable: &Variable) -> bool {
    let name = split(&variable.path).1;
    let is_called =
        matches!(name, b"time" | b"t") || variable.text(b"standard_name") == Some(b"time");
    variable.dims.is_empty() && variable.meaning.time.is_some() && is_called
}

/// A scalar time that all members have, and no two the same.
fn times(members: &Members, kind: &Kind) -> Option<Apart> {
    let first = &members.list[*kind.members.first()?];
    let mut candidates = members
        .skeleton(first)
        .variables
        .iter()
        .filter(|variable| is_time(variable));
    candidates.find_map(|candidate| {
        let own: Option<Vec<i128>> = kind
            .members
            .iter()
            .map(|&member| time(members, &members.list[member], &candidate.path))
            .collect();
        let own = own?;
        let sorted: BTreeSet<i128> = own.iter().copied().collect();
        if sorted.len() != own.len() {
            return None;
        }
        let sorted: Vec<i128> = sorted.into_iter().collect();
        let of = own
            .iter()
            .map(|time| sorted.binary_search(time).unwrap_or(0));
        Some(Apart {
            of: of.collect(),
            new: NewDimension {
                name: Path::clone(&candidate.path),
                values: Values::Times(sorted),
            },
        })
    })
}

/// The time of a whole member.
fn time(members: &Members, member: &Member, path: &[u8]) -> Option<i128> {
    let mut variables = members.skeleton(member).variables.iter().enumerate();
    let (number, variable) = variables.find(|(_, variable)| &*variable.path == path)?;
    if !is_time(variable) {
        return None;
    }
    let elements = member.values.get(number)?.elements()?;
    let packing = variable.meaning.packing.as_ref()?;
    let units = variable.meaning.time.as_ref()?;
    instants::instant(units, packing.number(elements)?).ok()?
}

/// The dimension `file`: what the names of the members have between their common beginning and end.
fn names(members: &Members, kind: &Kind) -> Apart {
    let stems = kind
        .members
        .iter()
        .map(|&member| stem(split(&members.list[member].name).1));
    let stems: Vec<&[u8]> = stems.collect();
    let (begin, end) = common(&stems);
    let parts = stems
        .iter()
        .map(|stem| stem[begin..stem.len().left_after(end).max(begin)].to_vec());
    let parts: Vec<Vec<u8>> = parts.collect();
    let distinct: BTreeSet<&Vec<u8>> = parts.iter().collect();
    let parts = if distinct.len() == parts.len() {
        parts
    } else {
        let names = kind
            .members
            .iter()
            .map(|&member| members.list[member].name.to_vec());
        names.collect()
    };
    let numbers: Option<Vec<i64>> = parts.iter().map(|part| number(part)).collect();
    let name = b"file"[..].into();
    let Some(numbers) = numbers else {
        let values = Values::Texts(parts);
        return Apart {
            of: (0..kind.members.len()).collect(),
            new: NewDimension { name, values },
        };
    };
    // 10 comes behind 9, whatever the order of the names.
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by_key(|&member| numbers[member]);
    let mut of = vec![0; numbers.len()];
    for (place, &member) in order.iter().enumerate() {
        of[member] = place;
    }
    let values = Values::Integers(order.iter().map(|&member| numbers[member]).collect());
    Apart {
        of,
        new: NewDimension { name, values },
    }
}

fn stem(name: &[u8]) -> &[u8] {
    let dot = name.iter().rposition(|&byte| byte == b'.');
    &name[..dot.filter(|&dot| dot > 0).unwrap_or(name.len())]
}

/// Bytes of the beginning and of the end that all have; neither ends within digits.
fn common(stems: &[&[u8]]) -> (usize, usize) {
    let Some((first, others)) = stems.split_first() else {
        return (0, 0);
    };
    let alike = |a: &[u8], b: &[u8]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let mut begin = others
        .iter()
        .map(|other| alike(first, other))
        .min()
        .unwrap_or(0);
    while begin > 0 && first[begin - 1].is_ascii_digit() {
        begin -= 1;
    }
    let reversed = |text: &[u8]| text[begin..].iter().rev().copied().collect::<Vec<u8>>();
    let own = reversed(first);
    let mut end = others
        .iter()
        .map(|other| alike(&own, &reversed(other)))
        .min()
        .unwrap_or(0);
    while end > 0 && own[end - 1].is_ascii_digit() {
        end -= 1;
    }
    (begin, end)
}

fn number(part: &[u8]) -> Option<i64> {
    let is_number = !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(part).ok().filter(|_| is_number)?;
    text.parse().ok()
}

/// Whether a variable is the time of a whole file that becomes the coordinate of a dimension.
pub(in crate::joined) fn is_of_times(new: &NewDimension, variable: &Variable) -> bool {
    matches!(new.values, Values::Times(_)) && new.name == variable.path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_between_their_common_ends() {
        let of = |names: &[&str]| {
            let stems: Vec<&[u8]> = names.iter().map(|name| stem(name.as_bytes())).collect();
            let (begin, end) = common(&stems);
            let part =
                |stem: &&[u8]| String::from_utf8(stem[begin..stem.len() - end].to_vec()).unwrap();
            stems.iter().map(part).collect::<Vec<_>>()
        };
        assert_eq!(of(&["tas_r1.nc", "tas_r2.nc"]), ["1", "2"]);
        assert_eq!(of(&["run_1.h5", "run_10.h5"]), ["1", "10"]);
        assert_eq!(of(&["a_2001_x.nc", "b_2001_x.nc"]), ["a", "b"]);
        assert_eq!(number(b"007"), Some(7));
        assert_eq!(number(b"-1"), None);
    }
}
