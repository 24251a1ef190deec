//! Superblocks, their extensions, driver information.

use super::hdf5::*;
use super::tree::*;

/// Returns a valid file whose superblock `spoil` changes. The checksum is updated.
fn with_superblock(old: bool, spoil: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut file = Hdf5::new();
    let good = file.put_bytes(b"goodness");
    let root = file.put_group(&[(b"good", good)]);
    let mut bytes = if old {
        file.rooted_old(root)
    } else {
        file.rooted(root)
    };
    spoil(&mut bytes);
    if !old {
        let block = sealed(bytes[..44].to_vec());
        bytes[..48].copy_from_slice(&block);
    }
    bytes
}

#[test]
fn superblocks_of_impossible_versions_and_sizes_are_refused() {
    for old in [true, false] {
        good_is_good(with_superblock(old, |_| {}));
        for version in [4, 7, 0xff] {
            refused(with_superblock(old, |bytes| bytes[8] = version));
        }
        let (offsets, lengths) = if old { (13, 14) } else { (9, 10) };
        for size in [0, 3, 255] {
            refused(with_superblock(old, |bytes| bytes[offsets] = size));
            refused(with_superblock(old, |bytes| bytes[lengths] = size));
        }
        let root = if old { 64 } else { 36 };
        for address in [UNDEFINED, UNDEFINED - 1, 0, 1 << 40] {
            let bytes = with_superblock(old, |bytes| {
                bytes[root..root + 8].copy_from_slice(&address.to_le_bytes());
            });
            refused(bytes);
        }
    }
    let mut unsealed = with_superblock(false, |_| {});
    unsealed[44] ^= 1;
    refused(unsealed);
}

/// The superblock's end of file and base address are ignored, because the real ones are known.
#[test]
fn ends_and_bases_that_lie_change_nothing() {
    for end in [0, 1, 1 << 62, UNDEFINED - 1] {
        for (old, at) in [(true, 40), (false, 28)] {
            good_is_good(with_superblock(old, |bytes| {
                bytes[at..at + 8].copy_from_slice(&u64::to_le_bytes(end));
            }));
        }
    }
    for base in [512, 1 << 60, UNDEFINED] {
        for (version, at) in [(0, 24), (2, 12), (3, 12)] {
            good_is_good(with_superblock(version == 0, |bytes| {
                bytes[8] = version;
                bytes[at..at + 8].copy_from_slice(&u64::to_le_bytes(base));
            }));
        }
    }
}

#[test]
fn a_file_without_a_superblock_is_of_no_format() {
    refused(vec![0; 4096]);
    refused(Vec::new());
    refused(b"\x89HDF\r\n\x1a\n".to_vec());
}

#[test]
fn extensions_that_lead_to_themselves_or_nowhere_are_refused() {
    let at_extension = |extension: u64| {
        let (mut file, root) = rooted_good();
        let end = file.0.len() as u64;
        file.put_at(0, &superblock_2(2, 0, extension, end, root));
        file.0
    };
    good_is_good(at_extension(UNDEFINED));
    for nowhere in [0, 48, 1 << 50] {
        // the superblock itself, the bytes after it, and an address outside of the file
        refused(at_extension(nowhere));
    }
    let with_extension = |header: &[Message]| {
        let (file, root) = rooted_good();
        extended(file, root, header)
    };
    let (file, _) = rooted_good();
    let own = file.next();
    good_is_good(with_extension(&[]));
    refused(with_extension(&[continuation(own, 64)]));
    refused(with_extension(&[continuation(0, 48)]));
}

/// Returns a file with `good` in its root, and the address of the root.
fn rooted_good() -> (Hdf5, u64) {
    let mut file = Hdf5::new();
    let good = file.put_bytes(b"goodness");
    let root = file.put_group(&[(b"good", good)]);
    (file, root)
}

/// Returns the file with a superblock whose extension has these messages.
fn extended(mut file: Hdf5, root: u64, messages: &[Message]) -> Vec<u8> {
    let extension = file.put(&header_2(messages));
    let end = file.0.len() as u64;
    file.put_at(0, &superblock_2(2, 0, extension, end, root));
    file.0
}

/// Only writers need the free space and the layout of metadata.
#[test]
fn extensions_for_writers_are_not_parsed() {
    const FILE_SPACE_INFO: u8 = 0x17;
    const BTREE_K: u8 = 0x13;
    let managers = [
        vec![1, 0, 1],
        words(&[1, 4096]),
        vec![0, 0],
        words(&[8; 14]),
    ]
    .concat();
    for bogus in [managers, vec![0xff; 130], Vec::new()] {
        for kind in [FILE_SPACE_INFO, BTREE_K] {
            let (file, root) = rooted_good();
            good_is_good(extended(file, root, &[Message(kind, 0, bogus.clone())]));
        }
    }
}

/// The form of a later version may differ, so the structure is not read.
#[test]
fn later_versions_of_file_structures_are_named() {
    const SHARED_MESSAGE_TABLE: u8 = 0x0f;
    let driver = [
        b"\x09NCSAfami",
        &8_u16.to_le_bytes()[..],
        &words(&[1 << 20]),
    ]
    .concat();
    let image = [vec![9], words(&[96, 64])].concat();
    let table = [vec![9], words(&[96]), vec![1]].concat();
    for (kind, body) in [
        (kind::DRIVER_INFO, driver),
        (kind::CACHE_IMAGE, image),
        (SHARED_MESSAGE_TABLE, table),
    ] {
        let (file, root) = rooted_good();
        let error = refused(extended(file, root, &[Message(kind, 0, body)])).to_string();
        assert!(error.contains("version 9 is not supported"), "{error}");
    }
    let (mut file, root) = rooted_good();
    let block = [
        &[9, 0, 0, 0, 8, 0, 0, 0],
        &b"NCSAfami"[..],
        &words(&[1 << 20]),
    ]
    .concat();
    let driver = file.put(&block);
    let end = file.0.len() as u64;
    file.put_at(0, &superblock_0(end, driver, root));
    let error = refused(file.0).to_string();
    assert!(error.contains("version 9 is not supported"), "{error}");
}

/// Addresses of the superblock, of bytes in it, and of the root group.
#[test]
fn driver_information_that_is_none_is_refused() {
    let (file, root) = rooted_good();
    for driver in [0, 48, root, 1 << 60] {
        let mut file = file.clone();
        let end = file.0.len() as u64;
        file.put_at(0, &superblock_0(end, driver, root));
        refused(file.0);
    }
}

/// Returns driver information with two members: the file itself under any name, and `other` after
/// it. The first member contains the superblock's usage type, and the second contains the other
/// five.
pub(crate) fn multi_driver(other: &[u8]) -> Vec<u8> {
    let padded = |name: &[u8]| {
        let mut text = [name, &[0]].concat();
        text.resize(text.len().next_multiple_of(8), 0);
        text
    };
    let starts = words(&[0, 1 << 20, 1 << 20, 2 << 20]);
    [
        &[1, 2, 2, 2, 2, 2, 0, 0][..],
        &starts,
        &padded(b"%s.h5"),
        &padded(other),
    ]
    .concat()
}

/// Returns the file with the information of a driver of many files, in a block or in the
/// superblock's extension.
pub(crate) fn in_many_files(information: &[u8], old: bool) -> Vec<u8> {
    let (mut file, root) = rooted_good();
    let length = information.len() as u16;
    if !old {
        let message = [b"\0NCSAmult", &length.to_le_bytes()[..], information].concat();
        return extended(file, root, &[Message(kind::DRIVER_INFO, 0, message)]);
    }
    let prefix = [&[0; 4][..], &u32::from(length).to_le_bytes(), b"NCSAmult"].concat();
    let driver = file.put(&[&prefix, information].concat());
    let end = file.0.len() as u64;
    file.put_at(0, &superblock_0(end, driver, root));
    file.0
}

/// A file in memory never opens another file. Tests any names, truncated information, and unknown
/// drivers.
#[test]
fn drivers_of_several_files_are_refused() {
    let whole = multi_driver(b"/etc/passwd");
    for old in [true, false] {
        for length in 0..=whole.len() {
            refused(in_many_files(&whole[..length], old));
        }
    }
    let (mut file, root) = rooted_good();
    let driver = file.put(&[0xff; 64]);
    let end = file.0.len() as u64;
    file.put_at(0, &superblock_0(end, driver, root));
    refused(file.0);
}

/// Returns a file whose superblock extension refers to a metadata cache image with these
/// structures, given as address and bytes. The root contains `good`, and `bad`, whose header is
/// only in the image.
fn with_image(structures: &[(u64, &[u8])]) -> Vec<u8> {
    let mut file = Hdf5::new();
    let good = file.put_bytes(b"goodness");
    let bad = file.put(&[0; 256]);
    let root = file.put_group(&[(b"bad", bad), (b"good", good)]);
    let header = dataset(&[1 << 20], &byte_type(), contiguous(1 << 40, 1 << 20), &[]);
    let all = [&[(bad, &header[..])][..], structures].concat();
    let mut image = [&b"MDCI\0\0"[..], &[0; 8], &(all.len() as u32).to_le_bytes()].concat();
    for (at, bytes) in all {
        image.extend([0; 14]); // type to rank
        image.extend(words(&[at, bytes.len() as u64]));
        image.extend(bytes);
    }
    let image = sealed(image);
    let at = file.put(&image);
    let message = [vec![0], words(&[at, image.len() as u64])].concat();
    let extension = file.put(&header_2(&[Message(kind::CACHE_IMAGE, 0, message)]));
    let end = file.0.len() as u64;
    file.put_at(0, &superblock_2(3, 0, extension, end, root));
    file.0
}

/// The structures of a cache image apply at their addresses, and do not extend the file.
#[test]
fn cache_images_that_lie() {
    let end = with_image(&[]).len() as u64;
    bad_alone_is_bad(with_image(&[]));
    bad_alone_is_bad(with_image(&[(90, b"x"), (91, b"y"), (92, b"")]));
    for lie in [
        &[(1 << 60, &b"x"[..])][..],
        &[(end + 4096, b"x")],
        &[(90, b"xy"), (91, b"z")],
        &[(90, b"x"), (90, b"x")],
    ] {
        refused(with_image(lie));
    }
}

/// A structure count that would exhaust the program's memory, with empty structures.
#[test]
fn a_cache_image_of_many_structures() {
    let structures: Vec<(u64, &[u8])> = (0..100_000).map(|_| (90, &b""[..])).collect();
    refused(with_image(&structures));
}
