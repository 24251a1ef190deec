//! Adds a dimension that no member has, if several members would otherwise have the same place.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use h5fs_conventions::time::TimeUnits;
use h5fs_reader::error::Error;
use h5fs_reader::wire::{Count, to_u64};

use crate::instants;
use crate::members::skeleton::Variable;
use crate::members::{Member, Members};
use crate::paths::{OmissionResult, Path, split_path};
use crate::placing::member_kind::MemberKind;
use crate::placing::placement::{
    JoinAxis, JoinedDimension, NewDimension, NewDimensionValues, Placement,
};

/// A new dimension, and the position of each member along it.
struct MemberPositions {
    dimension: NewDimension,
    member_blocks: Vec<usize>,
}

/// Inserts a new dimension before all other dimensions if several members have the same block on
/// every axis. With `by_name`, its coordinates are always taken from the file names.
///
/// # Errors
/// Fails if no property distinguishes these members.
pub(crate) fn add_new_dimension(
    members: &Members,
    kind: &MemberKind,
    placement: &mut Placement,
    by_name: bool,
) -> OmissionResult<()> {
    let mut at: HashMap<&[usize], Vec<usize>> = HashMap::new();
    for (number, place) in placement.member_blocks.iter().enumerate() {
        // A member without values occupies no place.
        if !placement.is_empty_at(place) {
            at.entry(place).or_default().push(number);
        }
    }
    let most = at.values().max_by_key(|together| together.len());
    let Some(together) = most.filter(|together| together.len() > 1) else {
        return Ok(());
    };
    let apart = if by_name {
        Some(split_by_name(members, kind))
    } else {
        let in_directories = split_by_directory(members, kind).filter(|apart| {
            at.values().all(|together| {
                let own: BTreeSet<usize> = together
                    .iter()
                    .map(|&number| apart.member_blocks[number])
                    .collect();
                own.len() == together.len()
            })
        });
        let is_alone = placement.axes.is_empty();
        match in_directories {
            None if is_alone => {
                let own = split_by_time(members, kind)?;
                own.or_else(|| Some(split_by_name(members, kind)))
            }
            own => own,
        }
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
    if !matches!(apart.dimension.values, NewDimensionValues::Times(_)) {
        apart.dimension.name = unused_name(members, kind, &apart.dimension.name);
    }
    let blocks = apart.dimension.values.len();
    for (place, own) in placement.member_blocks.iter_mut().zip(apart.member_blocks) {
        place.insert(0, own);
    }
    let dim = JoinedDimension {
        key: Path::clone(&apart.dimension.name),
        block_starts: (0..=to_u64(blocks)).collect(),
        is_first_element_omitted: false,
    };
    placement.axes.insert(
        0,
        JoinAxis {
            dims: vec![dim],
            block_count: blocks,
            new_dimension: Some(apart.dimension),
            has_overlap: false,
            has_tables: false,
        },
    );
    Ok(())
}

/// Returns the name of a new dimension. Appends underscores to `name` until no member has a
/// dimension or an object with this name.
fn unused_name(members: &Members, kind: &MemberKind, name: &Path) -> Path {
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

/// Returns a new dimension whose coordinates are the names of the members' directories. A directory
/// `member=r1` becomes the coordinate `r1` of a dimension `member`. Returns `None` if all members
/// are in one directory.
fn split_by_directory(members: &Members, kind: &MemberKind) -> Option<MemberPositions> {
    let directory = |&member: &usize| split_path(&members.list[member].name).0;
    let all: BTreeSet<&[u8]> = kind.members.iter().map(directory).collect();
    if all.len() < 2 {
        return None;
    }
    let named = |path: &[u8]| -> Option<(Vec<u8>, Vec<u8>)> {
        let name = split_path(path).1;
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
    Some(MemberPositions {
        member_blocks: of.collect(),
        dimension: NewDimension {
            name: name.into(),
            values: NewDimensionValues::Texts(values),
        },
    })
}

/// Returns whether a variable is a scalar time, which is the time of the whole file.
fn is_scalar_time(variable: &Variable) -> bool {
    let name = split_path(&variable.path).1;
    let is_called = matches!(name, b"time" | b"t")
        || variable.attribute_text(b"standard_name") == Some(b"time");
    variable.dims.is_empty() && variable.meaning.time.is_some() && is_called
}

/// Returns a new dimension with the values of a scalar time. Returns `None` unless all members have
/// such a time and all times are distinct.
///
/// # Errors
/// Fails if a time is missing or out of range, or the calendars differ, because another dimension
/// would hide this error.
fn split_by_time(members: &Members, kind: &MemberKind) -> OmissionResult<Option<MemberPositions>> {
    let Some(&first) = kind.members.first() else {
        return Ok(None);
    };
    let candidates = members
        .member_skeleton(&members.list[first])
        .variables
        .iter();
    for candidate in candidates.filter(|variable| is_scalar_time(variable)) {
        let all = kind.members.iter().map(|&member| &members.list[member]);
        let all: Option<Vec<MemberTime<'_>>> = all
            .map(|member| MemberTime::from_member(members, member, &candidate.path))
            .collect();
        let apart = match all {
            Some(all) => split_by_distinct_times(&candidate.path, &all)?,
            None => None,
        };
        if apart.is_some() {
            return Ok(apart);
        }
    }
    Ok(None)
}

/// The scalar time of one member.
struct MemberTime<'m> {
    member: &'m Member,
    units: TimeUnits,
    /// The time in nanoseconds since 1970-01-01.
    time: OmissionResult<i128>,
}

impl<'m> MemberTime<'m> {
    /// Returns the scalar time at `path` of a member, or `None` if the member has no such variable.
    fn from_member(members: &'m Members, member: &'m Member, path: &[u8]) -> Option<Self> {
        let mut variables = members.member_skeleton(member).variables.iter().enumerate();
        let (number, variable) = variables.find(|(_, variable)| &*variable.path == path)?;
        if !is_scalar_time(variable) {
            return None;
        }
        let units = variable.meaning.time?;
        let packing = variable.meaning.packing.as_ref()?;
        let elements = member.summaries.get(number)?.all_elements()?;
        let missing = || Error::unsupported("joined: a missing time", None);
        let number = packing.decode_number(elements).ok_or_else(missing);
        let time =
            number.and_then(|number| instants::to_nanoseconds(&units, number)?.ok_or_else(missing));
        Some(MemberTime {
            member,
            units,
            time: time.map_err(|error| error.to_string()),
        })
    }
}

/// Returns a new dimension whose values are the times of the members. Returns `None` if two times
/// are equal or no time is known.
fn split_by_distinct_times(
    path: &Path,
    all: &[MemberTime<'_>],
) -> OmissionResult<Option<MemberPositions>> {
    let known = all.iter().filter_map(|own| own.time.as_ref().ok().copied());
    let sorted: BTreeSet<i128> = known.clone().collect();
    if sorted.is_empty() || sorted.len() != known.clone().count() {
        return Ok(None);
    }
    let refused = |own: &MemberTime<'_>, why: &str| {
        let (path, name) = (path.escape_ascii(), own.member.name.escape_ascii());
        format!("{path} of {name}: {why}")
    };
    for own in all {
        own.time.as_ref().map_err(|why| refused(own, why))?;
    }
    let units: Vec<TimeUnits> = all.iter().map(|own| own.units).collect();
    if instants::common_calendar(&units, || sorted.first().copied()).is_none() {
        let calendar =
            |own: &&MemberTime<'_>| own.units.calendar_name() != units[0].calendar_name();
        let names = all.iter().take(1).chain(all.iter().find(calendar));
        let names: Vec<_> = names
            .map(|own| own.member.name.escape_ascii().to_string())
            .collect();
        let path = path.escape_ascii();
        return Err(format!("{path}: calendars differ ({})", names.join(", ")));
    }
    let sorted: Vec<i128> = sorted.into_iter().collect();
    let of = known.map(|time| sorted.binary_search(&time).unwrap_or(0));
    Ok(Some(MemberPositions {
        member_blocks: of.collect(),
        dimension: NewDimension {
            name: Path::clone(path),
            values: NewDimensionValues::Times(sorted),
        },
    }))
}

/// Returns the new dimension `file`. Its values are the names of the members without their common
/// prefix and suffix.
fn split_by_name(members: &Members, kind: &MemberKind) -> MemberPositions {
    let stems = kind
        .members
        .iter()
        .map(|&member| file_stem(split_path(&members.list[member].name).1));
    let stems: Vec<&[u8]> = stems.collect();
    let (begin, end) = common_affixes(&stems);
    let parts = stems
        .iter()
        .map(|stem| stem[begin..stem.len().minus_or_zero(end).max(begin)].to_vec());
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
    let numbers: Option<Vec<i64>> = parts.iter().map(|part| parse_number(part)).collect();
    let name = b"file"[..].into();
    let Some(numbers) = numbers else {
        let values = NewDimensionValues::Texts(parts);
        return MemberPositions {
            member_blocks: (0..kind.members.len()).collect(),
            dimension: NewDimension { name, values },
        };
    };
    // Order by number, so that 10 comes after 9.
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by_key(|&member| numbers[member]);
    let mut of = vec![0; numbers.len()];
    for (place, &member) in order.iter().enumerate() {
        of[member] = place;
    }
    let values =
        NewDimensionValues::Integers(order.iter().map(|&member| numbers[member]).collect());
    MemberPositions {
        member_blocks: of,
        dimension: NewDimension { name, values },
    }
}

fn file_stem(name: &[u8]) -> &[u8] {
    let dot = name.iter().rposition(|&byte| byte == b'.');
    &name[..dot.filter(|&dot| dot > 0).unwrap_or(name.len())]
}

/// Returns the length in bytes of the common prefix and of the common suffix of all names. Neither
/// ends within a sequence of digits.
fn common_affixes(stems: &[&[u8]]) -> (usize, usize) {
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

fn parse_number(part: &[u8]) -> Option<i64> {
    let is_number = !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(part).ok().filter(|_| is_number)?;
    text.parse().ok()
}

/// Returns whether a variable is the scalar time from which the new dimension takes its
/// coordinates.
pub(crate) fn is_new_dimension_time(new: &NewDimension, variable: &Variable) -> bool {
    matches!(new.values, NewDimensionValues::Times(_)) && new.name == variable.path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_affixes_of_names_are_removed() {
        let of = |names: &[&str]| {
            let stems: Vec<&[u8]> = names
                .iter()
                .map(|name| file_stem(name.as_bytes()))
                .collect();
            let (begin, end) = common_affixes(&stems);
            let part =
                |stem: &&[u8]| String::from_utf8(stem[begin..stem.len() - end].to_vec()).unwrap();
            stems.iter().map(part).collect::<Vec<_>>()
        };
        assert_eq!(of(&["tas_r1.nc", "tas_r2.nc"]), ["1", "2"]);
        assert_eq!(of(&["run_1.h5", "run_10.h5"]), ["1", "10"]);
        assert_eq!(of(&["a_2001_x.nc", "b_2001_x.nc"]), ["a", "b"]);
        assert_eq!(parse_number(b"007"), Some(7));
        assert_eq!(parse_number(b"-1"), None);
    }
    use crate::testing::{
        JoinedTest, TestAttributes, TestFile, days, f64s, i32s, join_files, number as one, text,
    };

    /// Joins images of one line each. The variable `time` of image i is the scalar `times[i]` with
    /// the attributes `marks[i]`.
    fn join_images(times: &[i32], marks: &[TestAttributes<'_>]) -> JoinedTest {
        let files = times.iter().zip(marks).map(|(&time, marks)| {
            let file = TestFile::new()
                .with_variable("x", &[("x", 2)], f64s(&[0.0, 1.0]), &[])
                .with_variable("time", &[], i32s(&[time]), &days(marks))
                .with_variable("v", &[("x", 2)], f64s(&[f64::from(time); 2]), &[]);
            ("image.nc", file)
        });
        join_files(files.collect())
    }

    #[test]
    fn packed_scalar_times_are_unpacked_and_lose_their_attributes() {
        let packed = [
            ("scale_factor", one(f64s(&[0.5]))),
            ("add_offset", one(f64s(&[2.0]))),
            ("missing_value", one(i32s(&[-1]))),
            ("valid_max", one(i32s(&[99]))),
            ("long_name", text("when")),
        ];
        let shown = join_images(&[6, 4], &[&packed, &packed]);
        // 2000-01-05 and 2000-01-06.
        assert_eq!(shown.numbers("time"), [10_961.0, 10_962.0]);
        assert_eq!(shown.numbers("v"), [4.0, 4.0, 6.0, 6.0]);
        assert_eq!(shown.texts("time", "long_name").unwrap(), ["when"]);
        for name in ["scale_factor", "add_offset", "missing_value", "valid_max"] {
            assert!(!shown.has_attribute("time", name), "{name}");
        }
        for missing in [-1, 100] {
            let shown = join_images(&[6, missing], &[&packed, &packed]);
            assert!(shown.names().is_empty());
            assert!(
                shown.omissions()[0].contains("a missing time"),
                "{:?}",
                shown.omissions()
            );
        }
    }

    #[test]
    fn scalar_times_of_two_calendars_are_refused() {
        let calendar = |name: &str| [("calendar", text(name))];
        let [standard, noleap, proleptic] =
            ["standard", "noleap", "proleptic_gregorian"].map(calendar);
        let shown = join_images(&[6, 7], &[&standard, &noleap]);
        assert!(shown.names().is_empty());
        assert!(
            shown.omissions()[0].contains("calendars differ"),
            "{:?}",
            shown.omissions()
        );
        // After the calendar reform, both calendars are equal.
        let shown = join_images(&[6, 7], &[&standard, &proleptic]);
        assert_eq!(shown.texts("time", "calendar").unwrap(), ["standard"]);
    }

    #[test]
    fn scalar_times_out_of_range_are_refused() {
        let far = [("scale_factor", one(f64s(&[1e9])))];
        let shown = join_images(&[0, 1], &[&far, &far]);
        assert!(shown.names().is_empty());
        assert!(
            shown.omissions()[0].contains("time of image.nc"),
            "{:?}",
            shown.omissions()
        );
    }

    #[test]
    fn equal_scalar_times_are_distinguished_by_file_name() {
        let shown = join_images(&[6, 6], &[&[], &[]]);
        assert_eq!(shown.names(), ["file", "time", "v", "x"]);
        assert_eq!(shown.numbers("time"), [6.0]);
    }
}
