//! Superblocks, object headers, shared messages.

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

/// A file whose superblock extension leads to a metadata cache image of these structures: where each belongs, and its
/// bytes. In its root are `good`, and `bad`, whose header is nowhere but in the image.
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

/// What a cache image holds is in its place, and makes the file no longer than it is.
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

/// Structures enough to take the memory of the program, one byte each.
#[test]
fn a_cache_image_of_many_structures() {
    let structures: Vec<(u64, &[u8])> = (0..100_000).map(|_| (90, &b""[..])).collect();
    refused(with_image(&structures));
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

/// A sound header of version 1, for tests to spoil.
fn old_header() -> Vec<u8> {
    header_1(&[
        dataspace(&[4]),
        Message(kind::DATATYPE, 0, byte_type()),
        contiguous(0, 4),
    ])
}

#[test]
fn old_headers_whose_sizes_do_not_fit() {
    let spoilt = |at: usize, bytes: &[u8]| {
        let mut header = old_header();
        header[at..at + bytes.len()].copy_from_slice(bytes);
        header
    };
    bad_alone_is_bad(with_bad(&spoilt(0, &[3])));
    bad_alone_is_bad(with_bad(&spoilt(8, &[0xff; 4]))); // size of the header
    bad_alone_is_bad(with_bad(&spoilt(8, &[16, 0, 0, 0])));
    bad_alone_is_bad(with_bad(&spoilt(18, &[0xff, 0xff]))); // size of the first message
    bad_alone_is_bad(with_bad(&spoilt(18, &[3, 0]))); // not a multiple of 8: what follows is no message
    // The number of messages is no more than a hint.
    let mut file = Hdf5::new();
    let many = file.put(&spoilt(2, &[0xff, 0xff]));
    good_is_good(file.beside_good(many));
}

#[test]
fn new_headers_are_bounded_and_sealed() {
    let sound = dataset(&[4], &byte_type(), contiguous(0, 4), &[]);
    let mut unsealed = sound.clone();
    let last = unsealed.len() - 1;
    unsealed[last] ^= 1;
    bad_alone_is_bad(with_bad(&unsealed));
    let mut long = sound.clone();
    long[6..10].copy_from_slice(&[0xff; 4]);
    bad_alone_is_bad(with_bad(&long));
    let longest = sealed([&b"OHDR\x02\x03"[..], &[0xff; 8], &[0; 16]].concat());
    bad_alone_is_bad(with_bad(&longest));
    bad_alone_is_bad(with_bad(b"OHDR"));
    bad_alone_is_bad(with_bad(&sealed(b"OHDR\x03\x00\x00".to_vec())));
    // A gap of less than a message's prefix is no message.
    let gap = {
        let mut body = sound[10..sound.len() - 4].to_vec();
        body.extend([0, 0, 0]);
        let length = u32::try_from(body.len()).expect("short").to_le_bytes();
        sealed([&b"OHDR\x02\x02"[..], &length, &body].concat())
    };
    let mut file = Hdf5::new();
    let gap = file.put(&gap);
    good_is_good(file.beside_good(gap));
}

#[test]
fn continuations_in_circles() {
    // To itself, of both versions.
    let mut file = Hdf5::new();
    let own = file.next();
    let length = header_2(&[continuation(0, 0)]).len() as u64;
    let bad = file.put(&header_2(&[continuation(own, length)]));
    bad_alone_is_bad(file.beside_good(bad));
    let mut file = Hdf5::new();
    let own = file.next();
    let bad = file.put(&header_1(&[continuation(own, 40)]));
    bad_alone_is_bad(file.beside_good(bad));

    // From one to the other and back.
    let mut file = Hdf5::new();
    let (first, length) = (
        file.next(),
        continuation_2(&[continuation(0, 0)]).len() as u64,
    );
    let second = (first + length).next_multiple_of(8);
    file.put(&continuation_2(&[continuation(second, length)]));
    file.put(&continuation_2(&[continuation(first, length)]));
    let bad = file.put(&header_2(&[continuation(first, length)]));
    bad_alone_is_bad(file.beside_good(bad));
}

#[test]
fn continuations_to_nothing() {
    for (at, length) in [
        (0, 0),
        (0, u64::MAX),
        (UNDEFINED, 64),
        (1 << 62, 64),
        (8, 3),
        (0, 64),
    ] {
        bad_alone_is_bad(with_bad(&header_2(&[continuation(at, length)])));
    }
    bad_alone_is_bad(with_bad(&header_1(&[continuation(1 << 62, 64)])));
    // Into another header: its signature is not a continuation's.
    let mut file = Hdf5::new();
    let other = header_2(&[]);
    let at = file.put(&other);
    let bad = file.put(&header_2(&[continuation(at, other.len() as u64)]));
    bad_alone_is_bad(file.beside_good(bad));
}

/// One byte apart, each leads to the next ones: more blocks than any header has.
#[test]
fn a_million_continuations() {
    let mut file = Hdf5::new();
    let messages: Vec<Message> = (0..2700)
        .map(|i| continuation(4096 + i, 65536 - i))
        .collect();
    let at = file.put(&header_1(&messages));
    file.0.resize(200_000, 0);
    bad_alone_is_bad(file.beside_good(at));
    let mut file = Hdf5::new();
    let places: Vec<u64> = (0..5000).map(|i| 4096 + 24 * i).collect();
    file.0.resize(4096, 0);
    for at in &places {
        assert_eq!(file.put(&messages_1(&[continuation(at + 24, 24)])), *at);
    }
    let bad = file.put(&header_1(&[continuation(4096, 24)]));
    bad_alone_is_bad(file.beside_good(bad));
}

/// The body of a shared message that stands in the header at `at`.
fn shared_in(at: u64) -> Vec<u8> {
    [vec![3, 2], words(&[at])].concat()
}

#[test]
fn shared_messages_that_lead_to_themselves() {
    let shared = |body: Vec<u8>| {
        header_2(&[
            dataspace(&[4]),
            Message(kind::DATATYPE, 2, body),
            contiguous(0, 4),
        ])
    };
    let mut file = Hdf5::new();
    let own = file.next();
    let bad = file.put(&shared(shared_in(own)));
    bad_alone_is_bad(file.beside_good(bad));

    let mut file = Hdf5::new();
    let first = file.next();
    let second = first + (shared(shared_in(0)).len() as u64).next_multiple_of(8);
    let bad = file.put(&shared(shared_in(second)));
    file.put(&shared(shared_in(first)));
    bad_alone_is_bad(file.beside_good(bad));
}

#[test]
fn shared_messages_that_lead_nowhere() {
    let shared = |body: Vec<u8>| {
        with_bad(&header_2(&[
            dataspace(&[4]),
            Message(kind::DATATYPE, 2, body),
            contiguous(0, 4),
        ]))
    };
    bad_alone_is_bad(shared(shared_in(1 << 60)));
    bad_alone_is_bad(shared(vec![9, 2]));
    bad_alone_is_bad(shared(Vec::new()));
    // On a heap that the file does not have.
    bad_alone_is_bad(shared(vec![3, 1, 0, 0, 0, 0, 0, 0, 0, 0]));
    // In a header that holds no message of the type.
    let mut file = Hdf5::new();
    let other = file.put(&header_2(&[dataspace(&[4])]));
    let bad = file.put(&header_2(&[
        dataspace(&[4]),
        Message(kind::DATATYPE, 2, shared_in(other)),
        contiguous(0, 4),
    ]));
    bad_alone_is_bad(file.beside_good(bad));
}

/// What only writers need is not even looked at.
#[test]
fn messages_for_writers_are_not_parsed() {
    let garbage = vec![0xff; 40];
    let nonsense: Vec<Message> = [0x0e, 0x12, 0x17, 0x18, 0x13]
        .map(|kind| Message(kind, 0, garbage.clone()))
        .into();
    let mut file = Hdf5::new();
    let data = file.put(b"readable");
    let bad = file.put(&dataset(&[8], &byte_type(), contiguous(data, 8), &nonsense));
    let tree = good_is_good(file.beside_good(bad));
    assert_eq!(tree.content("bad"), Ok(b"readable".to_vec()));
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
