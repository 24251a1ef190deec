//! Superblocks, their extensions, driver information.

use super::hdf5::*;
use super::tree::*;

/// A sound file whose superblock `spoil` changes; the checksum is made right.
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

/// The end of file that a superblock claims is a claim; the base address that it claims is not where it stands.
#[test]
fn ends_and_bases_that_lie_change_nothing() {
    for end in [0, 1, 1 << 62, UNDEFINED - 1] {
        for (old, at) in [(true, 40), (false, 28)] {
            good_is_good(with_superblock(old, |bytes| {
                bytes[at..at + 8].copy_from_slice(&u64::to_le_bytes(end));
            }));
        }
    }
    good_is_good(with_superblock(true, |bytes| {
        bytes[24..32].copy_from_slice(&u64::to_le_bytes(1 << 60));
    }));
}

#[test]
fn a_file_without_a_superblock_is_of_no_format() {
    refused(vec![0; 4096]);
    refused(Vec::new());
    refused(b"\x89HDF\r\n\x1a\n".to_vec());
}

#[test]
fn extensions_that_lead_to_themselves_or_nowhere_are_refused() {
    let build = |extension: u64, header: Vec<u8>| {
        let mut file = Hdf5::new();
        let good = file.put_bytes(b"goodness");
        let root = file.put_group(&[(b"good", good)]);
        let at = file.put(&header);
        let extension = if extension == 0 { at } else { extension };
        let end = file.0.len() as u64;
        file.put_at(0, &superblock_2(2, 0, extension, end, root));
        (at, file.0)
    };
    good_is_good(build(UNDEFINED, Vec::new()).1);
    refused(build(1 << 50, Vec::new()).1);
    let (at, _) = build(0, header_2(&[continuation(0, 64)]));
    refused(build(0, header_2(&[continuation(at, 64)])).1);
}

/// A driver that would open other files is told from its name; no path in it is opened from here.
#[test]
fn drivers_of_several_files_are_refused() {
    let multi = [
        b"\0\0\0\0\x20\0\0\0NCSAmult".to_vec(),
        b"/etc/passwd\0".to_vec(),
    ]
    .concat();
    for block in [multi, vec![0xff; 64]] {
        let mut file = Hdf5::new();
        let root = file.put_group(&[]);
        let driver = file.put(&block);
        let end = file.0.len() as u64;
        file.put_at(0, &superblock_0(end, driver, root));
        refused(file.0);
    }
    let mut file = Hdf5::new();
    let root = file.put_group(&[]);
    let info = [b"\0NCSAmult\x0b\0".to_vec(), b"/etc/passwd".to_vec()].concat();
    let extension = file.put(&header_2(&[Message(kind::DRIVER_INFO, 0, info)]));
    let end = file.0.len() as u64;
    file.put_at(0, &superblock_2(2, 0, extension, end, root));
    refused(file.0);
}

/// A file cut anywhere: refused, or what is there is right.
#[test]
fn cut_at_every_byte() {
    let whole = with_superblock(false, |_| {});
    let mut served = 0;
    for length in 0..whole.len() {
        let Ok(filesystem) = soon(|| super::visit::filesystem(whole[..length].to_vec())) else {
            continue;
        };
        match Tree(filesystem).content("good") {
            Ok(bytes) => {
                assert_eq!(bytes, b"goodness");
                served += 1;
            }
            Err(error) => _ = errno_of::<()>(Err(error)),
        }
    }
    assert_eq!(served, 0, "the root is the last that the file holds");
}
