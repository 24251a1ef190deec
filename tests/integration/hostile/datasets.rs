//! Dataspaces, datatypes, layouts, chunk indices, fill values.

use std::fs;

use h5fs_reader::error::Error;
use h5fs_tree::{Filesystem, Options, Requests, SeekKind};
use nix::errno::Errno;

use super::hdf5::*;
use super::tree::*;

/// Checks a dataset with this body of its message of type `kind`.
#[track_caller]
pub(super) fn bad_message(kind: u8, body: Vec<u8>) -> Error {
    bad_alone_is_bad(with_bad_dataset(vec![Message(kind, 0, body)]))
}

#[test]
fn extents_that_cannot_be() {
    bad_message(kind::DATASPACE, vec![2, 255, 0, 1]);
    bad_message(kind::DATASPACE, extent(&[1; 33]));
    bad_message(kind::DATASPACE, vec![2, 2, 0, 1, 9]);
    // scalar, but with a dimension
    bad_message(kind::DATASPACE, [vec![2, 1, 0, 0], words(&[4])].concat());
    for (rank, flags) in [(1, 0), (1, 1), (32, 0)] {
        let null = [vec![2, rank, flags, 2], words(&[4; 64])].concat();
        bad_message(kind::DATASPACE, null); // null dataspace, but with dimensions
    }
    // larger than its maximum
    bad_message(kind::DATASPACE, [vec![2, 1, 1, 1], words(&[5, 4])].concat());
    bad_message(kind::DATASPACE, vec![2, 0, 0, 9]);
    bad_message(kind::DATASPACE, vec![9, 0, 0, 0]);
    bad_message(kind::DATASPACE, Vec::new());
    bad_message(kind::DATASPACE, extent(&[u64::MAX, u64::MAX, 2]));
    bad_message(kind::DATASPACE, extent(&[u64::MAX]));
    bad_message(kind::DATASPACE, extent(&[1 << 63]));
}

#[test]
fn datatypes_that_cannot_be() {
    let bad = |body: Vec<u8>| bad_message(kind::DATATYPE, body);
    bad(Vec::new());
    bad(class_type(0x00, 0, 1, &[0, 0, 8, 0])); // version 0
    bad(class_type(0x1f, 0, 1, &[])); // class 15
    bad(class_type(0x10, 0, 0, &[0, 0, 8, 0])); // size 0
    bad(class_type(0x10, 0, u32::MAX, &[0, 0, 8, 0]));
    bad(class_type(0x10, 0, 1, &[0, 0, 200, 0])); // more bits than the size permits
    bad(class_type(0x14, 0, 1, &[255, 255, 255, 255]));
    bad(class_type(0x15, 255, 8, b"no end")); // unterminated tag
    bad(class_type(0x17, 0xff, 8, &[])); // an unknown kind of reference
    bad(class_type(0x47, 0x99, 8, &[]));
    bad(class_type(0x18, 0xffff, 1, &byte_type())); // 65535 members, none of which is present
    bad(class_type(0x19, 0xff, 16, &byte_type())); // an unknown kind of variable length
    bad(class_type(0x19, 0, 1, &byte_type()));
    bad(class_type(0x19, 0, 17, &byte_type()));
    // Arrays: more than 4 GiB, a size that contradicts the elements, rank 200.
    let dims = |dims: &[u32]| {
        let mut body = vec![dims.len() as u8];
        body.extend(dims.iter().flat_map(|dim| dim.to_le_bytes()));
        [body, byte_type()].concat()
    };
    bad(class_type(0x3a, 0, u32::MAX, &dims(&[1 << 31, 1 << 31, 4])));
    bad(class_type(0x3a, 0, 9, &dims(&[8])));
    bad(class_type(0x3a, 0, 9, &dims(&[1; 200])));
}

/// Elements of size 0, for each class whose elements contain their own size.
#[test]
fn datatypes_of_no_bytes() {
    let bad = |body: Vec<u8>| bad_message(kind::DATATYPE, body);
    bad(class_type(0x12, 0, 0, &[0, 0])); // time
    bad(class_type(0x13, 0, 0, &[])); // string
    bad(class_type(0x14, 0, 0, &[0, 0, 0, 0])); // bits
    bad(class_type(0x15, 0, 0, &[])); // opaque
    bad(class_type(0x36, 0, 0, &[])); // compound
    bad(class_type(0x17, 0, 0, &[])); // reference to an object
    bad(class_type(0x17, 1, 0, &[])); // reference to a region
    bad(class_type(0x47, 2, 0, &[])); // reference of HDF5 1.12
    let none = class_type(0x13, 0, 0, &[]);
    bad(class_type(
        0x3a,
        0,
        0,
        &[&[1, 8, 0, 0, 0][..], &none].concat(),
    )); // array of size-0 elements
    bad(compound(4, 0, &none));
}

/// Elements of 4 GiB minus one byte, in a file with 64 bytes of data.
#[test]
fn datatypes_of_four_gibibytes() {
    let bad = |body: Vec<u8>| bad_message(kind::DATATYPE, body);
    bad(class_type(0x13, 0, u32::MAX, &[]));
    bad(class_type(0x15, 0, u32::MAX, &[]));
    bad(class_type(0x36, 0, u32::MAX, &[]));
    bad(class_type(0x17, 0, u32::MAX, &[]));
    let giant = class_type(0x13, 0, u32::MAX, &[]);
    for content in [&[][..], b"some"] {
        let tree = good_is_good(attributed(&attribute(b"giant", &giant, &[1], content)));
        assert_eq!(tree.content("bad"), Ok(vec![7; 64]));
        assert!(tree.attribute("bad", "user.giant").is_err());
    }
}

/// Returns a file with a dataset `bad` that has this attribute.
fn attributed(body: &[u8]) -> Vec<u8> {
    with_bad_dataset(vec![Message(kind::ATTRIBUTE, 0, body.to_vec())])
}

/// Returns a compound type with one member.
fn compound(size: u32, offset: u8, member: &[u8]) -> Vec<u8> {
    class_type(0x36, 1, size, &[b"m\0", &[offset][..], member].concat())
}

#[test]
fn compounds_that_do_not_hold_their_members() {
    bad_message(kind::DATATYPE, compound(4, 200, &byte_type()));
    bad_message(kind::DATATYPE, compound(4, 4, &byte_type()));
    bad_message(kind::DATATYPE, class_type(0x36, 0xffff, 4, b"m\0\0"));
    bad_message(
        kind::DATATYPE,
        class_type(0x36, 1, 4, b"no end of the name"),
    );
}

/// Datatypes nested as deep as a message permits. A recursive reader would overflow its stack.
#[test]
fn datatypes_nested_without_end() {
    let mut nested = byte_type();
    while nested.len() < 60_000 {
        nested = class_type(0x19, 0, 16, &nested);
    }
    bad_message(kind::DATATYPE, nested);
    let mut nested = byte_type();
    while nested.len() < 60_000 {
        nested = compound(1, 0, &nested);
    }
    bad_message(kind::DATATYPE, nested);
    let mut nested = byte_type();
    while nested.len() < 60_000 {
        nested = class_type(0x3a, 0, 1, &[&[1, 1, 0, 0, 0][..], &nested].concat());
    }
    bad_message(kind::DATATYPE, nested);
}

#[test]
fn data_in_one_piece_that_is_not_there() {
    let bad = |at, size, dim: u64| {
        bad_alone_is_bad(with_bad_dataset(vec![
            dataspace(&[dim]),
            contiguous(at, size),
        ]))
    };
    bad(1 << 40, 64, 64);
    bad(u64::MAX - 8, 64, 64);
    bad(96, u64::MAX, 1 << 40);
    bad(96, 8, 64); // less than the extent
}

/// If layout and dataspace contradict each other about the size, either may be damaged.
#[test]
fn extents_that_are_not_those_of_their_data() {
    for elements in [0, 1, 63, 65] {
        let compact = [&[3, 0, 64, 0][..], &[7; 64]].concat();
        let mut file = Hdf5::new();
        let data = file.put(&[7; 64]);
        let layouts = [contiguous(data, 64), Message(kind::LAYOUT, 0, compact)];
        for layout in layouts {
            let mut file = file.clone();
            let bad = file.put(&dataset(&[elements], &byte_type(), layout, &[]));
            bad_alone_is_bad(file.beside_good(bad));
        }
    }
}

/// Pointers are read in blocks. A block of elements with the maximum size would exceed any memory.
#[test]
fn pointers_of_four_gibibytes() {
    let elements = contiguous(UNDEFINED, 0);
    for class in [0x19, 0x49] {
        for (bits, base) in [(0, byte_type()), (1, class_type(0x13, 0, 1, &[]))] {
            let datatype = class_type(class, bits, u32::MAX, &base);
            bad_alone_is_bad(with_bad_dataset(vec![
                dataspace(&[4096]),
                Message(kind::DATATYPE, 0, datatype),
                elements.clone(),
            ]));
        }
    }
}

/// The existing part is readable. A read of the missing part is an error, and not zeros.
#[test]
fn data_that_is_cut_off() {
    let mut file = Hdf5::new();
    let good = file.put_bytes(b"goodness");
    let data_at = 4096;
    let header = dataset(&[100], &byte_type(), contiguous(data_at, 100), &[]);
    let bad = file.put(&header);
    let root = file.put_group(&[(b"bad", bad), (b"good", good)]);
    file.0.resize(data_at as usize, 0);
    file.0.extend([9; 50]);
    let tree = good_is_good(file.rooted(root));
    assert_eq!(tree.part("bad", 0, 50), Ok(vec![9; 50]));
    tree.part("bad", 0, 51).expect_err("the rest is not there");
    tree.part("bad", 60, 10).expect_err("none of it is there");
    assert_eq!(tree.size("bad"), Ok(100));
}

#[test]
fn layouts_that_cannot_be() {
    let bad = |body: Vec<u8>| bad_message(kind::LAYOUT, body);
    bad(Vec::new());
    bad(vec![9, 1]);
    bad(vec![3, 200]);
    bad([&[3, 0, 64, 0][..], &[7; 10]].concat()); // compact, and truncated
    bad([&[3, 0, 10, 0][..], &[7; 10]].concat()); // compact, and smaller than the extent
    bad([&[3, 0, 0xff, 0xff][..], &[7; 10]].concat());
    bad(vec![1, 1, 2]);
    bad(vec![4, 3]); // virtual, and truncated
    bad(chunked_4(4, &[64, 1], &[1], SOME).2); // an unknown flag
}

/// Returns a dataset of 64 bytes in chunks of 16, with a version 1 B-tree as index.
fn chunk_tree(node: &[u8], pipeline: &[Message]) -> Vec<u8> {
    let mut file = Hdf5::new();
    let tree = file.put(node);
    let layout = chunked(tree, &[16, 1]);
    let bad = file.put(&dataset(&[64], &byte_type(), layout, pipeline));
    file.beside_good(bad)
}

/// Returns a key: stored size, mask, and offset of the chunk.
fn key(size: u64, start: u64) -> [u64; 3] {
    [size, start, 0]
}

/// The bit in the first word of a key that skips the first filter.
const SKIPPED: u64 = 1 << 32;

#[test]
fn chunk_grids_that_cannot_be() {
    for dims in [&[0, 1][..], &[16, 0], &[16, 2], &[16, 16, 1], &[16]] {
        bad_alone_is_bad(with_bad_dataset(vec![chunked(UNDEFINED, dims)]));
    }
    let mut zero = chunked(UNDEFINED, &[16, 1]);
    for dimensionality in [0, 34, 255] {
        zero.2[2] = dimensionality;
        bad_alone_is_bad(with_bad_dataset(vec![zero.clone()]));
    }
    bad_alone_is_bad(with_bad_dataset(vec![chunked(UNDEFINED, &[u32::MAX; 9])]));
    for width in [0, 9, 255] {
        let mut layout = chunked_4(0, &[16, 1], &[1], 96);
        layout.2[4] = width;
        bad_alone_is_bad(with_bad_dataset(vec![layout]));
    }
    bad_alone_is_bad(with_bad_dataset(vec![chunked_4(0, &[16, 1], &[9], 96)]));
}

#[test]
fn chunk_trees_that_lie() {
    let bad = |node: Vec<u8>, pipeline: &[Message]| bad_alone_is_bad(chunk_tree(&node, pipeline));
    bad(chunk_node(0, u16::MAX, &key(16, 0)), &[]);
    bad(group_node(0, 0, &[0]), &[]);
    let own = Hdf5::new().next();
    let entry = [&key(16, 0)[..], &[own], &key(16, 64)].concat();
    bad(chunk_node(1, 1, &entry), &[]);
    bad(chunk_node(255, 1, &entry), &[]);
    for at in [1 << 50, u64::MAX - 4] {
        let entry = [&key(16, 0)[..], &[at], &key(16, 64)].concat();
        bad(chunk_node(0, 1, &entry), &[]);
    }
    // The filter is skipped, and the stored size is less than a chunk.
    for stored in [0, 1, 15] {
        let entry = [&key(stored | SKIPPED, 0)[..], &[own], &key(16, 64)].concat();
        bad(chunk_node(0, 1, &entry), &[filters(&[(1, &[6])])]);
    }
    // With filters, the stored size in the key counts.
    for size in [0, 1 << 20, u64::from(u32::MAX)] {
        let entry = [&key(size, 0)[..], &[own], &key(16, 64)].concat();
        bad(chunk_node(0, 1, &entry), &[filters(&[(1, &[6])])]);
    }
}

/// A chunk or data that overlap another structure. An overlap with the superblock is an error, and
/// any other overlap reads those bytes.
#[test]
fn chunks_and_data_that_overlap_headers() {
    let own = Hdf5::new().next();
    let plain: [(u64, &[Message], u64); 3] = [
        (16, &[], 0),
        (16, &[], own),
        (16 | SKIPPED, &[filters(&[(1, &[6])])], own),
    ];
    for (size, pipeline, at) in plain {
        let entry = [&key(size, 0)[..], &[at], &key(16, 64)].concat();
        let bytes = chunk_tree(&chunk_node(0, 1, &entry), pipeline);
        let there = bytes[at as usize..][..16].to_vec();
        let tree = good_is_good(bytes);
        match tree.part("bad", 0, 16) {
            Ok(first) => assert_eq!((at, first), (own, there)),
            error => assert_eq!((at, errno_of(error)), (0, Errno::EIO)),
        }
        assert_eq!(tree.part("bad", 16, 48), Ok(vec![0; 48]));
    }
    let entry = [&key(16, 0)[..], &[0], &key(16, 64)].concat();
    bad_alone_is_bad(chunk_tree(
        &chunk_node(0, 1, &entry),
        &[filters(&[(1, &[6])])],
    ));

    for at in [0, 8, 47] {
        bad_alone_is_bad(with_bad_dataset(vec![contiguous(at, 64)]));
    }
}

/// A chunk at an offset between grid positions or outside of the extent is ignored, and the others
/// are read. If a chunk is not found, its key may be the damaged one, so the chunk is not treated
/// as unwritten.
#[test]
fn chunks_beside_the_grid_are_ignored() {
    let mut file = Hdf5::new();
    let data = file.put(&[5; 16]);
    let entries = [
        &key(16, 0)[..],
        &[data],
        &key(16, 17),
        &[data],
        &key(16, 1 << 40),
        &[data],
        &key(16, 1 << 41),
    ]
    .concat();
    let tree = file.put(&chunk_node(0, 3, &entries));
    let bad = file.put(&dataset(&[64], &byte_type(), chunked(tree, &[16, 1]), &[]));
    let tree = good_is_good(file.beside_good(bad));
    assert_eq!(tree.part("bad", 0, 16), Ok(vec![5; 16]));
    tree.part("bad", 32, 32).expect_err("not found");
}

/// Two entries of the same chunk. Either may be wrong, so neither is read.
#[test]
fn a_chunk_twice() {
    let mut file = Hdf5::new();
    let one = file.put(&[1; 16]);
    let two = file.put(&[2; 16]);
    let entries = [&key(16, 0)[..], &[one], &key(16, 0), &[two], &key(16, 16)].concat();
    let tree = file.put(&chunk_node(0, 2, &entries));
    let bad = file.put(&dataset(&[16], &byte_type(), chunked(tree, &[16, 1]), &[]));
    bad_alone_is_bad(file.beside_good(bad));
}

/// If a dataset's filter message is lost, filtered bytes are not treated as elements.
#[test]
fn chunks_that_have_lost_their_filters() {
    for size in [0, 8, 15, 17, 1 << 20] {
        let entry = [&key(size, 0)[..], &[SOME], &key(16, 64)].concat();
        bad_alone_is_bad(chunk_tree(&chunk_node(0, 1, &entry), &[]));
    }
}

/// A damaged key between others hides its chunk. The chunk is an error, or unwritten if the key may
/// be right. If a damaged key leads the search for other chunks astray, these are errors too.
#[test]
fn keys_of_chunks_out_of_order() {
    for damaged in 0..4 {
        for start in [8, 17, 1 << 40, (1 << 40) + 1] {
            let mut file = Hdf5::new();
            let mut starts = [0, 16, 32, 48];
            starts[damaged] = start;
            let mut entries = Vec::new();
            for (number, start) in starts.into_iter().enumerate() {
                let data = file.put(&[number as u8 + 1; 16]);
                entries.extend(key(16, start));
                entries.push(data);
            }
            entries.extend(key(16, 64));
            let tree = file.put(&chunk_node(0, 4, &entries));
            let bad = file.put(&dataset(&[64], &byte_type(), chunked(tree, &[16, 1]), &[]));
            let tree = good_is_good(file.beside_good(bad));
            let in_order = starts.is_sorted() && start % 16 == 0;
            for number in 0..4 {
                let chunk = tree.part("bad", number * 16, 16);
                let right = Ok(vec![number as u8 + 1; 16]);
                if number != damaged as u64 {
                    let is_passed = chunk.is_err() && !in_order;
                    assert!(chunk == right || is_passed, "{starts:?} {number}");
                } else if in_order {
                    assert_eq!(chunk, Ok(vec![0; 16]), "{starts:?}");
                } else {
                    chunk.expect_err("its key is damaged");
                }
            }
        }
    }
}

/// Returns a dataset of 64 bytes in chunks of 16, with an index of a version 4 layout message.
fn indexed(number: &[u8], blocks: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Hdf5::new();
    let places: Vec<u64> = blocks.iter().map(|block| file.put(block)).collect();
    let at = places.last().copied().unwrap_or(1 << 50);
    let layout = chunked_4(0, &[16, 1], number, at);
    let dims = [vec![2, 1, 1, 1], words(&[64, UNDEFINED])].concat();
    let max = if number[0] == 4 { dims } else { extent(&[64]) };
    let messages = [
        Message(kind::DATASPACE, 0, max),
        Message(kind::DATATYPE, 0, byte_type()),
        layout,
    ];
    let bad = file.put(&header_2(&messages));
    file.beside_good(bad)
}

const FIXED: &[u8] = &[3, 10];
const EXTENSIBLE: &[u8] = &[4, 32, 4, 4, 16, 10];

/// Returns the header of a fixed array: size of an entry, page bits, number of entries, and address
/// of the data block.
fn fixed_array(entry: u8, bits: u8, entries: u64, data: u64) -> Vec<u8> {
    sealed([&b"FAHD\0\0"[..], &[entry, bits], &words(&[entries, data])].concat())
}

#[test]
fn fixed_arrays_that_lie() {
    let bad = |header: Vec<u8>| bad_alone_is_bad(indexed(FIXED, &[header]));
    bad(fixed_array(8, 10, u64::MAX, 96));
    bad(fixed_array(8, 10, 1 << 58, 96));
    bad(fixed_array(8, 255, 4, 96));
    bad(fixed_array(8, 0, 1 << 40, 96));
    bad(fixed_array(0, 10, 4, 96));
    bad(fixed_array(255, 10, 4, 96));
    bad(fixed_array(8, 10, 0, 96));
    bad(fixed_array(8, 10, 4, 1 << 60));
    bad(fixed_array(8, 10, 4, 0)); // the address of the superblock
    let mut unsealed = fixed_array(8, 10, 4, 96);
    unsealed[6] ^= 1;
    bad(unsealed);
    bad_alone_is_bad(indexed(FIXED, &[]));
    // The data block of another array.
    let block = sealed([&b"FADB\0\0"[..], &words(&[77, 96, 96, 96, 96])].concat());
    bad_alone_is_bad(indexed(FIXED, &[block, fixed_array(8, 10, 4, 96)]));
}

/// Returns the header of an extensible array: the five sizes, and the address of the index block.
fn extensible_array(sizes: [u8; 5], index: u64) -> Vec<u8> {
    let statistics = words(&[0; 6]);
    let prefix = [&b"EAHD\0\0\x08"[..], &sizes].concat();
    sealed([prefix, statistics, words(&[index])].concat())
}

#[test]
fn extensible_arrays_that_lie() {
    let bad = |sizes, index| {
        bad_alone_is_bad(indexed(EXTENSIBLE, &[extensible_array(sizes, index)]));
    };
    bad([255, 4, 16, 4, 10], 96);
    bad([32, 4, 0, 4, 10], 96);
    bad([32, 4, 3, 4, 10], 96);
    bad([32, 4, 16, 0, 10], 96);
    bad([32, 4, 16, 255, 10], 96);
    bad([0, 0, 128, 128, 0], 96);
    bad([64, 255, 1, 128, 255], 96);
    bad([32, 4, 16, 4, 10], 1 << 60);
    bad([32, 4, 16, 4, 10], 0);
    bad_alone_is_bad(indexed(EXTENSIBLE, &[]));
}

#[test]
fn new_trees_of_chunks_that_lie() {
    let tree = Btree2 {
        record_type: 10,
        node_size: 512,
        record_size: 16,
        depth: 0,
        root: 1 << 50,
        used: 1,
        total: 1,
    };
    let bad = |tree: Btree2| bad_alone_is_bad(indexed(&[5, 0, 2, 0, 0, 100, 40], &[tree.header()]));
    bad(Btree2 { ..tree });
    bad(Btree2 {
        record_size: 3,
        ..tree
    });
    bad(Btree2 {
        record_type: 5,
        ..tree
    });
    bad(Btree2 {
        depth: 9999,
        ..tree
    });
    bad(Btree2 {
        total: u64::MAX,
        ..tree
    });
}

/// Returns a dataset of four chunks of 16 bytes in a version 2 B-tree. Chunk `n` contains bytes `n
/// + 1`. `leaves` has the numbers of the chunks in each leaf. If there are several leaves,
/// `between` has the chunks in the root.
fn in_new_tree(leaves: &[&[u64]], between: &[u64]) -> Vec<u8> {
    let mut file = Hdf5::new();
    let chunks = [1, 2, 3, 4].map(|byte| file.put(&[byte; 16]));
    let records = |numbers: &[u64]| {
        let record = |&number: &u64| words(&[chunks[number as usize % 4], number]);
        numbers.iter().flat_map(record).collect::<Vec<_>>()
    };
    let total: usize = leaves.iter().map(|leaf| leaf.len()).sum();
    let mut tree = Btree2 {
        record_type: 10,
        node_size: 512,
        record_size: 16,
        depth: 0,
        root: 0,
        used: leaves[0].len() as u16,
        total: (total + between.len()) as u64,
    };
    let mut root = [b"BTIN\0\x0a".to_vec(), records(between)].concat();
    for leaf in leaves {
        tree.root = file.put(&tree.leaf(&records(leaf)));
        root.extend(tree.root.to_le_bytes());
        root.push(leaf.len() as u8);
    }
    if leaves.len() > 1 {
        tree.depth = 1;
        tree.used = between.len() as u16;
        tree.root = file.put(&sealed(root));
    }
    let at = file.put(&tree.header());
    let layout = chunked_4(0, &[16, 1], &[5, 0, 2, 0, 0, 100, 40], at);
    let bad = file.put(&dataset(&[64], &byte_type(), layout, &[]));
    file.beside_good(bad)
}

/// Records out of order hide existing chunks, and of two records of one chunk, one is wrong. A leaf
/// with such records, or with records that do not fit between those of its parent, is not read.
#[test]
fn records_of_chunks_out_of_order() {
    let read = |bytes: Vec<u8>| {
        let tree = good_is_good(bytes);
        [0, 1, 2, 3].map(|number| tree.part("bad", number * 16, 16))
    };
    let all = [1, 2, 3, 4].map(|byte| Ok(vec![byte; 16]));
    assert_eq!(read(in_new_tree(&[&[0, 1, 2, 3]], &[])), all);
    assert_eq!(read(in_new_tree(&[&[0, 1], &[3]], &[2])), all);
    let absent = read(in_new_tree(&[&[0], &[3]], &[1]));
    assert_eq!(absent[2], Ok(vec![0; 16]));

    for leaf in [[1, 0, 2, 3], [0, 3, 2, 1], [0, 1, 1, 3], [0, 3, 3, 3]] {
        for chunk in read(in_new_tree(&[&leaf], &[])) {
            chunk.expect_err("its leaf is out of order");
        }
    }
    // The record of chunk 2 is in the root, which is sound.
    for (number, chunk) in read(in_new_tree(&[&[3], &[0, 1]], &[2]))
        .into_iter()
        .enumerate()
    {
        if number == 2 {
            assert_eq!(chunk, all[2]);
        } else {
            chunk.expect_err("its leaf belongs elsewhere");
        }
    }
}

#[test]
fn single_and_implicit_chunks_that_are_not_there() {
    bad_alone_is_bad(indexed(&[2], &[]));
    let filtered = |size: u64| {
        let index = [&[1][..], &words(&[size]), &[0; 4]].concat();
        let messages = vec![chunked_4(2, &[64, 1], &index, 96), filters(&[(1, &[6])])];
        bad_alone_is_bad(with_bad_dataset(messages));
    };
    for size in [0, 1 << 40, u64::MAX] {
        filtered(size);
    }
    // A single-chunk index for a dataset with several chunks.
    bad_alone_is_bad(indexed(&[1], &[vec![0; 16]]));
}

#[test]
fn fill_values_that_cannot_be() {
    let bad = |body: &[u8]| bad_message(kind::FILL_VALUE, body.to_vec());
    bad(&[]);
    bad(&[9, 0]);
    bad(&[3, 0x20, 0, 0, 0, 0x7f]); // size of 2 GiB
    bad(&[3, 0x20, 4, 0, 0, 0, 1, 2, 3, 4]); // four bytes for elements of one byte
    bad(&[2, 2, 2, 1, 0xfe, 0xff, 0xff, 0xff]);
    bad(&[3, 0x20, 1, 0, 0, 0]); // truncated
    bad(&[3, 0x20, 0, 0, 0, 0]); // defined, but of size 0
    bad(&[3, 0x20, 0xff, 0xff, 0xff, 0xff]);
    bad(&[3, 0x30, 1, 0, 0, 0, 7]); // defined and undefined at the same time
    bad(&[3, 0x60, 1, 0, 0, 0, 7]); // an unknown flag
    // An undefined fill value permits any content, so it is zeros.
    let mut file = Hdf5::new();
    let undefined = Message(kind::FILL_VALUE, 0, vec![3, 0x10]);
    let bad = file.put(&dataset(
        &[8],
        &byte_type(),
        contiguous(UNDEFINED, 8),
        &[undefined],
    ));
    let tree = good_is_good(file.beside_good(bad));
    assert_eq!(tree.content("bad"), Ok(vec![0; 8]));
}

/// Unwritten chunks are filled from the fill value each time, and are not cached as decoded chunks.
#[test]
fn chunks_that_are_not_there_are_not_cached() {
    for (fill, pipeline) in [(0, vec![]), (7, vec![]), (0, vec![filters(&[(1, &[6])])])] {
        let value = Message(kind::FILL_VALUE, 0, vec![3, 0x20, 1, 0, 0, 0, fill]);
        let mut file = Hdf5::new();
        // One chunk is stored, and the others are not.
        let stored = super::bounded::zeros_deflated(1 << 16);
        let [data, size] = if pipeline.is_empty() {
            [file.put(&vec![9; 1 << 16]), 1 << 16]
        } else {
            [file.put(&stored), stored.len() as u64]
        };
        let last = (1 << 26) - (1 << 16);
        let entry = [&key(size, last)[..], &[data], &key(1 << 16, 1 << 26)].concat();
        let index = file.put(&chunk_node(0, 1, &entry));
        let more = [pipeline.clone(), vec![value]].concat();
        let layout = chunked(index, &[1 << 16, 1]);
        let bad = file.put(&dataset(&[1 << 26], &byte_type(), layout, &more));
        let tree = good_is_good(file.beside_good(bad));
        let fact = |name: &str| {
            let status = String::from_utf8(tree.content(".h5fs/status").expect("facts"));
            let status = status.expect("text");
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.expect(name).parse::<u64>().expect("a number")
        };
        let kept = || [fact("chunks decoded: "), fact("cache bytes: ")];
        let before = kept();
        for at in (0..last).step_by(1 << 20) {
            let length = (last - at).min(1 << 20) as usize;
            let part = tree.part("bad", at, length);
            assert_eq!(part, Ok(vec![fill; length]));
        }
        assert_eq!(kept(), before);
    }
}

/// A dataset of 2^60 bytes without stored chunks.
#[test]
fn a_dataset_of_an_exabyte() {
    let exabyte = 1_u64 << 60;
    for fill in [0, 7] {
        let value = Message(kind::FILL_VALUE, 0, vec![3, 0x20, 1, 0, 0, 0, fill]);
        for layout in [
            contiguous(UNDEFINED, exabyte),
            chunked(UNDEFINED, &[1 << 16, 1]),
            chunked(UNDEFINED, &[1, 1]),
        ] {
            let mut file = Hdf5::new();
            let bad = file.put(&dataset(
                &[exabyte],
                &byte_type(),
                layout,
                std::slice::from_ref(&value),
            ));
            let tree = good_is_good(file.beside_good(bad));
            assert_eq!(soon(|| tree.size("bad")), Ok(exabyte));
            let middle = soon(|| tree.part("bad", (1 << 59) - 7, 100_000));
            assert_eq!(middle, Ok(vec![fill; 100_000]));
            let bad = tree.0.resolve(b"bad").unwrap().ino;
            let handle = tree.0.open_file(bad).unwrap().handle;
            let data = soon(|| tree.0.lseek(handle, 5, SeekKind::Data));
            let hole = soon(|| tree.0.lseek(handle, 5, SeekKind::Hole));
            match fill {
                0 => assert_eq!((data.is_err(), hole), (true, Ok(5))),
                _ => assert_eq!((data, hole), (Ok(5), Ok(exabyte))),
            }
        }
    }
}

/// Returns a file with a dataset of 64 bytes in the raw file with this name, at this offset and
/// size.
fn in_raw_file(name: &[u8], offset: u64, size: u64) -> Vec<u8> {
    let mut file = Hdf5::new();
    let data = file.put(&[&[0; 8][..], name, &[0; 8]].concat());
    let heap = file.put(&local_heap(16 + name.len() as u64, data));
    let mut list = [vec![1, 0, 0, 0, 1, 0, 1, 0], words(&[heap])].concat();
    list.extend(words(&[8, offset, size]));
    let list = Message(kind::EXTERNAL_FILES, 0, list);
    let bad = file.put(&dataset(
        &[64],
        &byte_type(),
        contiguous(UNDEFINED, 64),
        &[list],
    ));
    file.beside_good(bad)
}

/// Raw files with arbitrary names. A file in memory opens none of them, and each read fails.
#[test]
fn raw_files_anywhere() {
    for name in [
        &b"/etc/passwd"[..],
        b"../../etc/passwd",
        b"/dev/zero",
        b"/proc/self/mem",
        b"",
    ] {
        for (offset, size) in [(0, 64), (1 << 63, 64), (u64::MAX, u64::MAX)] {
            bad_alone_is_bad(in_raw_file(name, offset, size));
        }
    }
    bad_message(
        kind::EXTERNAL_FILES,
        vec![1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 96, 0, 0, 0, 0, 0, 0, 0],
    );
    bad_message(kind::EXTERNAL_FILES, Vec::new());
}

/// Segments of an existing raw file. A read after the end of the file returns zeros at any
/// distance.
#[test]
fn places_in_a_raw_file_that_is_there() {
    let directory = tempfile::tempdir().expect("directory");
    fs::write(directory.path().join("raw"), [5; 80]).expect("write");
    let path = directory.path().join("main.h5");
    let at = |offset: u64, size: u64| {
        fs::write(&path, in_raw_file(b"raw", offset, size)).expect("write");
        let tree = Tree(soon(|| Filesystem::open(&path, &Options::default())).expect("a mount"));
        assert_eq!(tree.content("good"), Ok(b"goodness".to_vec()));
        tree.content("bad")
    };
    assert_eq!(at(16, 64), Ok(vec![5; 64]));
    assert_eq!(at(0, u64::MAX), Ok(vec![5; 64])); // an unlimited segment
    assert_eq!(at(48, 64), Ok([[5; 32], [0; 32]].concat()));
    for far in [80, 1 << 40, (1 << 63) - 64, (1 << 63) - 1, 1 << 63] {
        assert_eq!(at(far, 64), Ok(vec![0; 64]), "{far}");
    }
    for past in [u64::MAX - 62, u64::MAX] {
        assert_eq!(errno_of(at(past, 64)), Errno::EIO, "{past}");
    }
    assert_eq!(errno_of(at(16, 63)), Errno::EIO); // one byte too few
}
