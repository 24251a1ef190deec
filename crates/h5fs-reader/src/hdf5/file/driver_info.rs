//! Driver information: the distribution of the address space over several files (HDF5 3.0, II.B and
//! IV.A.2.u). The specification does not define the names of member files, so this module uses the
//! names that the HDF5 library uses.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::file::number_form::{Address, MOVED_HEADER_RANGE};
use crate::hdf5::file::superblock::find_signature;
use crate::hdf5::object_header::RawMessage;
use crate::limits;
use crate::memory::cancel::WantedCheck;
use crate::source::SharedSource;
use crate::source::concatenation::Concatenation;
use crate::source::neighbours::Neighbours;
use crate::wire::{Count, Cursor, Extent};

/// Number of usages that the multi driver distinguishes: superblock, B-tree, raw data, global heap,
/// local heap, object header.
const USAGES: usize = 6;

/// A whole file, assembled from several files if a driver distributes it.
pub(crate) struct AssembledFile {
    pub(crate) source: SharedSource,
    /// The original start address of the object headers, if they were moved; see
    /// `AddressEncoding::original_header_start`.
    pub(crate) original_header_start: Option<u64>,
}

impl From<SharedSource> for AssembledFile {
    fn from(source: SharedSource) -> Self {
        AssembledFile {
            source,
            original_header_start: None,
        }
    }
}

/// Reads the driver information block (version 0) at absolute offset `at`, and opens the member
/// files of its driver.
pub(crate) fn open_members_from_block(
    metadata: &Metadata,
    at: Address,
    neighbours: &Neighbours,
) -> Result<AssembledFile> {
    const WHAT: &str = "driver information block";
    let prefix = metadata.unverified_block(at, 16, WHAT)?;
    let mut cursor = Cursor::new(&prefix, at, WHAT);
    cursor.read_version(0..=0)?;
    cursor.skip(3)?; // reserved
    let length = u64::from(cursor.u32()?).plus(16);
    let block = metadata.unverified_block(at, length, WHAT)?;
    let mut cursor = Cursor::new(&block, at, WHAT);
    cursor.skip(8)?;
    let driver = cursor.read_array()?;
    open_members(metadata, &driver, &mut cursor, neighbours)
}

/// Reads the driver info message of the superblock extension, and opens the member files of its
/// driver.
pub(crate) fn open_members_from_message(
    metadata: &Metadata,
    message: &RawMessage<'_>,
    neighbours: &Neighbours,
) -> Result<AssembledFile> {
    let mut cursor = Cursor::new(message.data, message.at, "driver info message");
    cursor.read_version(0..=0)?;
    let driver = cursor.read_array()?;
    cursor.skip(2)?; // size of the information
    open_members(metadata, &driver, &mut cursor, neighbours)
}

fn open_members(
    metadata: &Metadata,
    driver: &[u8; 8],
    information: &mut Cursor<'_>,
    neighbours: &Neighbours,
) -> Result<AssembledFile> {
    let cancel = metadata.budget().cancel_token();
    let is_wanted = || !cancel.is_cancelled();
    match driver {
        b"NCSAfami" => open_family(metadata.source(), information, neighbours, &is_wanted)
            .map(AssembledFile::from),
        b"NCSAmult" => open_multi(information, neighbours, &is_wanted),
        driver => Err(information.unsupported(&format!("driver {}", driver.escape_ascii()))),
    }
}

/// Opens the members of a file family. Member i contains the bytes from i times the member size on.
/// The members' names are not stored. In the name of the first member, a run of zero digits is the
/// member number 0.
fn open_family(
    first: &SharedSource,
    information: &mut Cursor<'_>,
    neighbours: &Neighbours,
    is_wanted: &WantedCheck<'_>,
) -> Result<SharedSource> {
    let member_size = information.u64()?;
    if member_size == 0 {
        return Err(information.corrupt("members of 0 bytes"));
    }
    let members = open_family_members(first, member_size, neighbours, is_wanted)?;
    let members = members
        .ok_or_else(|| information.corrupt("the file's name has no number 0: open member 0"))?;
    Ok(Arc::new(Concatenation::new(members)?))
}

/// The start of a member file's part of the address space, and the file.
type MemberFile = (u64, SharedSource);

/// Opens the family whose first member lacks driver information, because old libraries did not
/// write it. Returns `None` if the files that are numbered like the first one do not form one file
/// that ends at `end_of_file`. This check is needed because unrelated files are often numbered from
/// 0, and the first of them may be truncated.
pub(crate) fn open_unmarked_family(
    first: &SharedSource,
    end_of_file: u64,
    neighbours: &Neighbours,
    is_wanted: &WantedCheck<'_>,
) -> Result<Option<SharedSource>> {
    match open_family_members(first, first.length(), neighbours, is_wanted)? {
        Some(members) if form_one_file(&members, end_of_file) => {
            Ok(Some(Arc::new(Concatenation::new(members)?)))
        }
        _ => Ok(None),
    }
}

/// Returns whether the members form one file. All members except the last must be full, and the
/// file must end within the last one. Only the first member may be an HDF5 file by itself.
fn form_one_file(members: &[MemberFile], end_of_file: u64) -> bool {
    let [(_, first), others @ ..] = members else {
        return false;
    };
    let Some(((last_start, last), full)) = others.split_last() else {
        return false;
    };
    let size = first.length();
    let Some(ends) = Extent::checked(*last_start, last.length()) else {
        return false;
    };
    full.iter().all(|(_, member)| member.length() == size)
        && last.length() <= size
        && (ends.start()..=ends.end()).contains(&end_of_file)
        && others
            .iter()
            .all(|(_, member)| find_signature(&**member).is_none())
}

/// Returns all members of a family, or `None` if no name of the first member contains a number 0. A
/// file that was opened by a symbolic link has two names. Of them, the name for which another
/// member exists is used.
fn open_family_members(
    first: &SharedSource,
    member_size: u64,
    neighbours: &Neighbours,
    is_wanted: &WantedCheck<'_>,
) -> Result<Option<Vec<MemberFile>>> {
    let mut members = None;
    for name in neighbours
        .referencing_file_names()
        .filter_map(split_family_name)
    {
        let found = open_members_called(name, first, member_size, neighbours, is_wanted)?;
        if found.len() > 1 {
            return Ok(Some(found));
        }
        members = Some(found);
    }
    Ok(members)
}

fn open_members_called(
    (before, digits, after): FamilyName<'_>,
    first: &SharedSource,
    member_size: u64,
    neighbours: &Neighbours,
    is_wanted: &WantedCheck<'_>,
) -> Result<Vec<MemberFile>> {
    let mut members: Vec<MemberFile> = vec![(0, Arc::clone(first))];
    for number in 1..=limits::FAMILY_MEMBERS {
        let number_text = format!("{number:0digits$}");
        let name = [before, number_text.as_bytes(), after].concat();
        let Some(member) = neighbours.open(&name, is_wanted)? else {
            return Ok(members);
        };
        let start = member_size.checked_mul(number);
        let start = start.ok_or_else(|| Error::limit("size of a family", u64::MAX))?;
        members.push((start, member));
    }
    Err(Error::limit("members of a family", limits::FAMILY_MEMBERS))
}

/// The parts of a family member's name: the bytes before its number, the number of digits, and the
/// bytes after its number.
type FamilyName<'a> = (&'a [u8], usize, &'a [u8]);

/// Returns the parts of `name` around its last number that consists only of zeros, or `None` if
/// there is no such number.
fn split_family_name(name: &[u8]) -> Option<FamilyName<'_>> {
    let is_zeros = |run: &[u8]| run.iter().all(|&byte| byte == b'0');
    let mut end = name.len();
    while let Some(last) = name.get(..end)?.iter().rposition(u8::is_ascii_digit) {
        let before = name
            .get(..last)?
            .iter()
            .rposition(|byte| !byte.is_ascii_digit());
        let start = before.map_or(0, Count::plus_one);
        let after = last.plus_one();
        let run = name.get(start..after)?;
        if is_zeros(run) {
            return Some((name.get(..start)?, run.len(), name.get(after..)?));
        }
        end = start;
    }
    None
}

/// Opens a multi or split file, which has one file for each usage or group of usages, each at its
/// own address.
fn open_multi(
    information: &mut Cursor<'_>,
    neighbours: &Neighbours,
    is_wanted: &WantedCheck<'_>,
) -> Result<AssembledFile> {
    let map: [u8; USAGES] = information.read_array()?;
    information.skip(2)?;
    let numbers = distinct_members(map);
    let starts = numbers
        .iter()
        .map(|_| {
            let start = information.u64()?;
            information.skip(8)?; // the member's end, relative to itself
            Ok(start)
        })
        .collect::<Result<Vec<_>>>()?;
    let templates = starts
        .iter()
        .map(|_| {
            let template = information.read_text()?;
            let length = template.len().plus_one();
            information.skip(length.next_multiple_of(8).minus_or_zero(length))?;
            Ok(template)
        })
        .collect::<Result<Vec<_>>>()?;
    let mut problem = "the file's name does not match the names of its members".to_owned();
    let names = neighbours.referencing_file_names();
    for stem in names.filter_map(|name| match_template(name, &templates)) {
        let mut members: Vec<MemberFile> = Vec::new();
        for (start, template) in starts.iter().zip(&templates) {
            let name = replace_stem(template, stem);
            match neighbours.open(&name, is_wanted)? {
                Some(member) => members.push((*start, member)),
                None => problem = format!("member {} is missing", name.escape_ascii()),
            }
        }
        if members.len() == starts.len() {
            let headers = numbers
                .iter()
                .position(|&number| number == header_member(map));
            let far_headers = headers.and_then(|headers| move_header_member(&mut members, headers));
            let source: SharedSource = Arc::new(Concatenation::new(members)?);
            return Ok(AssembledFile {
                source,
                original_header_start: far_headers,
            });
        }
    }
    Err(information.corrupt(&problem))
}

/// Moves the member with the object headers to [`MOVED_HEADER_RANGE`], if it starts after that
/// range and no other member overlaps the range. Returns the original start.
fn move_header_member(members: &mut [MemberFile], headers: usize) -> Option<u64> {
    let is_elsewhere = |(start, source): &MemberFile| {
        *start >= MOVED_HEADER_RANGE.end
            || Extent::saturating(*start, source.length()).end() <= MOVED_HEADER_RANGE.start
    };
    if !members.iter().all(is_elsewhere) {
        return None;
    }
    let (start, _) = members.get_mut(headers)?;
    (*start >= MOVED_HEADER_RANGE.end).then(|| std::mem::replace(start, MOVED_HEADER_RANGE.start))
}

/// Returns the member number of each usage. A usage with the value 0 in `map` has a member of its
/// own, whose number is the usage's number, counted from 1.
fn members_by_usage(map: [u8; USAGES]) -> impl Iterator<Item = u8> {
    let own = |(usage, member)| if member == 0 { usage } else { member };
    (1..).zip(map).map(own)
}

/// Returns each member number once, in the order of first use.
fn distinct_members(map: [u8; USAGES]) -> Vec<u8> {
    let mut distinct = Vec::new();
    for member in members_by_usage(map) {
        if !distinct.contains(&member) {
            distinct.push(member);
        }
    }
    distinct
}

/// Returns the number of the member with the object headers, which are the last usage.
fn header_member(map: [u8; USAGES]) -> u8 {
    members_by_usage(map).last().unwrap_or(0)
}

/// Returns the text that replaces `%s` in the members' names, if `name` matches one of the
/// `templates`.
fn match_template<'a>(name: &'a [u8], templates: &[&[u8]]) -> Option<&'a [u8]> {
    templates.iter().find_map(|template| {
        let (before, after) = split_template(template)?;
        name.strip_prefix(before)?.strip_suffix(after)
    })
}

fn replace_stem(template: &[u8], stem: &[u8]) -> Vec<u8> {
    match split_template(template) {
        Some((before, after)) => [before, stem, after].concat(),
        None => template.to_vec(),
    }
}

/// Returns the parts of `template` before and after `%s`, or `None` without `%s`.
fn split_template(template: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = template.windows(2).position(|pair| pair == b"%s")?;
    Some((template.get(..at)?, template.get(at.plus(2)..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_in_a_family_name_is_found() {
        assert_eq!(
            split_family_name(b"f00000.h5"),
            Some((&b"f"[..], 5, &b".h5"[..]))
        );
        assert_eq!(
            split_family_name(b"run7_0.h5"),
            Some((&b"run7_"[..], 1, &b".h5"[..]))
        );
        assert_eq!(split_family_name(b"run10.h5"), None);
    }

    #[test]
    fn the_stem_of_a_multi_name_is_found() {
        let templates: [&[u8]; 2] = [b"%s-s.h5", b"%s-r.h5"];
        assert_eq!(match_template(b"x-s.h5", &templates), Some(&b"x"[..]));
        assert_eq!(replace_stem(templates[1], b"x"), b"x-r.h5");
    }

    #[test]
    fn members_are_in_order_of_first_use() {
        assert_eq!(distinct_members([1, 1, 3, 1, 1, 1]), [1, 3]);
        assert_eq!(distinct_members([0; 6]), [1, 2, 3, 4, 5, 6]);
        assert_eq!(header_member([0; 6]), 6);
        assert_eq!(header_member([1, 1, 3, 1, 1, 1]), 1);
    }
}
