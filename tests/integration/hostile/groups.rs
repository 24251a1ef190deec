//! Old-style and dense groups: trees, nodes, heaps.

use nix::errno::Errno;

use super::hdf5::*;
use super::tree::*;

/// An old-style group in a file, with known addresses of its parts.
struct Old {
    file: Hdf5,
    heap: u64,
    child: u64,
}

/// Creates a heap of names: an empty one at 0, `one` at 8, `two` at 16, `six` at 24.
fn old() -> Old {
    let mut file = Hdf5::new();
    let data = file.put(b"\0\0\0\0\0\0\0\0one\0\0\0\0\0two\0\0\0\0\0six\0\0\0\0\0");
    let heap = file.put(&local_heap(32, data));
    let child = file.put_bytes(b"child");
    Old { file, heap, child }
}

impl Old {
    fn finish(mut self, btree: u64) -> Vec<u8> {
        let bad = self.file.put(&old_group(btree, self.heap));
        self.file.beside_good(bad)
    }

    /// Finishes the file with one leaf of the tree and this symbol table node.
    fn with_symbols(mut self, node: &[u8]) -> Vec<u8> {
        let node = self.file.put(node);
        let btree = self.file.put(&group_node(0, 1, &[0, node, 16]));
        self.finish(btree)
    }
}

#[test]
fn an_old_group_as_it_should_be() {
    let old = old();
    let entries = [(8, old.child, 0), (16, old.child, 0)];
    let tree = good_is_good(old.with_symbols(&symbols(2, &entries)));
    assert_eq!(tree.content("bad/one"), Ok(b"child".to_vec()));
    assert_eq!(tree.content("bad/two"), Ok(b"child".to_vec()));
}

/// A lookup finds the first of them.
#[test]
fn equal_names_stand_once_in_whatever_order() {
    let mut old = old();
    let other = old.file.put_bytes(b"other");
    let (one, two, six) = (8, 16, 24);
    let entries = [one, six, one, two, six, two].map(|name| (name, old.child, 0));
    let mut entries = entries.to_vec();
    entries[2].1 = other;
    let tree = Tree::new(old.with_symbols(&symbols(6, &entries)));
    let names = tree.names("bad").unwrap();
    assert_eq!(names, [&b"one"[..], b"six", b"two"]);
    assert_eq!(tree.content("bad/one"), Ok(b"child".to_vec()));
}

#[test]
fn trees_whose_levels_do_not_fall() {
    for level in [1, 2, 255] {
        let mut old = old();
        let own = old.file.next();
        let btree = old.file.put(&group_node(level, 2, &[0, own, 8, own, 16]));
        bad_alone_is_bad(old.finish(btree));
    }
    let mut old = old();
    let first = old.file.next();
    let node = group_node(3, 1, &[0, 0, 16]);
    let second = first + node.len() as u64;
    let btree = old.file.put(&group_node(3, 1, &[0, second, 16]));
    old.file.put(&group_node(4, 1, &[0, first, 16]));
    bad_alone_is_bad(old.finish(btree));
}

#[test]
fn trees_that_claim_more_than_they_hold() {
    for (level, used) in [(0, u16::MAX), (0, 40), (200, u16::MAX)] {
        let mut old = old();
        let btree = old.file.put(&group_node(level, used, &[0, 0, 16]));
        bad_alone_is_bad(old.finish(btree));
    }
    let mut other = old();
    let mut node = group_node(0, 1, &[0, 0, 16]);
    node[4] = 1; // the tree type of chunks
    let btree = other.file.put(&node);
    bad_alone_is_bad(other.finish(btree));
    for address in [UNDEFINED, 1 << 60, 3] {
        bad_alone_is_bad(old().finish(address));
    }
}

/// The second key is less than the first, so a search is unreliable. Every listed name must be
/// found.
#[test]
fn trees_whose_keys_are_out_of_order() {
    let mut old = old();
    let child = old.child;
    let two = old.file.put(&symbols(1, &[(16, child, 0)]));
    let one = old.file.put(&symbols(1, &[(8, child, 0)]));
    let btree = old.file.put(&group_node(0, 2, &[0, two, 16, one, 8]));
    let tree = good_is_good(old.finish(btree));
    let (listed, outcome) = tree.listing("bad");
    assert_eq!(listed, [b"two".to_vec()]);
    assert_eq!(errno_of(outcome), Errno::EIO);
    for name in ["bad/one", "bad/two", "bad/six"] {
        assert_eq!(errno_of(tree.content(name)), Errno::EIO, "{name}");
    }
}

/// The keys are in order, but a name is below the key of another name. A search would not find it,
/// so it is not listed.
#[test]
fn names_that_are_not_where_they_are_sought() {
    let symbols_of = |names: &[u64], old: &mut Old| {
        let entries: Vec<_> = names.iter().map(|&name| (name, old.child, 0)).collect();
        let count = u16::try_from(names.len()).expect("a few");
        old.file.put(&symbols(count, &entries))
    };
    // Below a leaf, and below a leaf whose own keys include the name but whose parent's keys do
    // not.
    for levels in [1, 2] {
        let mut old = old();
        let first = symbols_of(&[8, 16], &mut old);
        let second = symbols_of(&[24], &mut old);
        let mut children = [first, second];
        if levels == 2 {
            children = children.map(|leaf| old.file.put(&group_node(0, 1, &[0, leaf, 16])));
        }
        let [first, second] = children;
        let root = group_node(levels - 1, 2, &[0, first, 24, second, 16]);
        let btree = old.file.put(&root);
        let tree = good_is_good(old.finish(btree));
        let (listed, outcome) = tree.listing("bad");
        assert_eq!(listed, [b"one".to_vec()]);
        assert_eq!(errno_of(outcome), Errno::EIO);
        assert_eq!(tree.content("bad/one"), Ok(b"child".to_vec()));
        for name in ["bad/two", "bad/six"] {
            assert_eq!(errno_of(tree.content(name)), Errno::ENOENT, "{name}");
        }
    }
}

/// The same name twice in a node, and again in the next node. It leads to one object, and is listed
/// once.
#[test]
fn names_twice_in_an_old_group() {
    let mut old = old();
    let [child, other] = [old.child, old.file.put_bytes(b"other")];
    let first = [(8, child, 0), (8, other, 0), (16, child, 0)];
    let second = [(16, other, 0), (16, other, 0)];
    let nodes = [symbols(3, &first), symbols(2, &second)].map(|node| old.file.put(&node));
    let btree = old
        .file
        .put(&group_node(0, 2, &[0, nodes[0], 16, nodes[1], 16]));
    let tree = good_is_good(old.finish(btree));
    let names = [b"one".to_vec(), b"two".to_vec()];
    assert_eq!(tree.names("bad"), Ok(names.to_vec()));
    assert_eq!(tree.content("bad/one"), Ok(b"child".to_vec()));
    assert_eq!(tree.content("bad/two"), Ok(b"child".to_vec()));
}

/// 64 levels with two equal children each, which would be 2^64 paths.
#[test]
fn a_tree_that_branches_into_itself() {
    let mut old = old();
    let node = symbols(1, &[(8, old.child, 0)]);
    let mut below = old.file.put(&node);
    for level in 0..60 {
        below = old
            .file
            .put(&group_node(level, 2, &[0, below, 8, below, 16]));
    }
    let bytes = old.finish(below);
    let tree = Tree::new(bytes);
    soon(|| tree.names("bad")).expect_err("an end of the listing");
    assert_eq!(tree.content("good"), Ok(b"goodness".to_vec()));
}

/// Every entry of a leaf has the same symbol table node, so the listing would be longer than any
/// file permits.
#[test]
fn a_leaf_that_names_one_node_many_times() {
    let mut old = old();
    let entries = vec![(8, old.child, 0); 5000];
    let node = old.file.put(&symbols(5000, &entries));
    let mut keys = vec![0];
    for _ in 0..5000 {
        keys.extend([node, 16]);
    }
    let btree = old.file.put(&group_node(0, 5000, &keys));
    let bytes = old.finish(btree);
    let links = bytes.len() / 40;
    let tree = Tree::new(bytes);
    let (listed, outcome) = soon(|| tree.listing("bad"));
    assert!(listed.len() <= links, "{} of {links} links", listed.len());
    outcome.expect_err("a damaged index");
}

#[test]
fn nodes_of_symbols_that_lie() {
    let child = old().child;
    let sound = symbols(1, &[(8, child, 0)]);
    let spoilt = |at: usize, byte: u8| {
        let mut node = sound.clone();
        node[at] = byte;
        node
    };
    bad_alone_is_bad(old().with_symbols(&spoilt(0, b'X')));
    bad_alone_is_bad(old().with_symbols(&spoilt(4, 9)));
    bad_alone_is_bad(old().with_symbols(&symbols(u16::MAX, &[(8, child, 0)])));
}

/// An entry that cannot be read does not affect the others.
#[test]
fn entries_that_lie_are_alone_in_it() {
    let child = old().child;
    let entries = [(8, child, 0), (16, UNDEFINED, 0), (24, child, 77)];
    let tree = good_is_good(old().with_symbols(&symbols(3, &entries)));
    assert_eq!(tree.content("bad/one"), Ok(b"child".to_vec()));
    tree.content("bad/two").expect_err("an object nowhere");
    assert_eq!(tree.content("bad/six"), Ok(b"child".to_vec()));

    for name in [32, 1 << 40, u64::MAX] {
        let tree =
            good_is_good(old().with_symbols(&symbols(2, &[(8, child, 0), (name, child, 0)])));
        assert_eq!(tree.content("bad/one"), Ok(b"child".to_vec()));
        tree.names("bad")
            .expect_err("a name that is not on the heap");
    }
}

/// The cached information in an entry is ignored. Only the object header counts.
#[test]
fn entries_that_cache_what_is_not_so() {
    const SOFT_LINK: u32 = 2;
    let child = old().child;
    let with_scratch = |kind: u32, scratch: [u8; 16]| {
        let mut node = symbols(2, &[(8, child, kind), (16, child, 0)]);
        node[8 + 24..8 + 40].copy_from_slice(&scratch);
        let tree = good_is_good(old().with_symbols(&node));
        assert_eq!(tree.content("bad/two"), Ok(b"child".to_vec()));
        tree
    };
    for kind in [0, 1, 3, u32::MAX] {
        let tree = with_scratch(kind, [0xff; 16]);
        assert_eq!(tree.content("bad/one"), Ok(b"child".to_vec()));
    }
    // The target of a soft link is only in the scratch space.
    for value in [32, u32::MAX] {
        let mut scratch = [0; 16];
        scratch[..4].copy_from_slice(&value.to_le_bytes());
        let tree = with_scratch(SOFT_LINK, scratch);
        assert_eq!(errno_of(tree.content("bad/one")), Errno::EIO);
    }
}

#[test]
fn heaps_that_lie() {
    let bad_heap = |heap: Vec<u8>| {
        let mut old = old();
        old.heap = old.file.put(&heap);
        let child = old.child;
        old.with_symbols(&symbols(1, &[(8, child, 0)]))
    };
    let spoilt = |at: usize, byte: u8| {
        let mut heap = local_heap(32, 96);
        heap[at] = byte;
        heap
    };
    bad_alone_is_bad(bad_heap(spoilt(0, b'X')));
    bad_alone_is_bad(bad_heap(spoilt(4, 7)));
    bad_alone_is_bad(bad_heap(local_heap(u64::MAX, 96)));
    bad_alone_is_bad(bad_heap(local_heap(1 << 40, u64::MAX - 8)));
    bad_alone_is_bad(bad_heap(local_heap(32, UNDEFINED)));
    bad_alone_is_bad(bad_heap(local_heap(0, 96)));

    // A name that extends to the end of the heap without a NUL.
    let mut old = old();
    let data = old.file.put(&[b'n'; 64]);
    old.heap = old.file.put(&local_heap(64, data));
    let child = old.child;
    bad_alone_is_bad(old.with_symbols(&symbols(1, &[(8, child, 0)])));

    // The data of the heap overlap its header.
    for before in [0, 24, 31] {
        let mut old = self::old();
        let own = old.file.next();
        old.heap = old.file.put(&local_heap(32, own - before));
        let child = old.child;
        bad_alone_is_bad(old.with_symbols(&symbols(1, &[(8, child, 0)])));
    }

    // A cyclic free list matters only to writers.
    let mut old = self::old();
    let data = old
        .file
        .put(b"\0\0\0\0\0\0\0\0one\0\0\0\0\0two\0\0\0\0\0\x18\0\0\0\0\0\0\0");
    let mut heap = local_heap(32, data);
    heap[16..24].copy_from_slice(&24_u64.to_le_bytes());
    old.heap = old.file.put(&heap);
    let child = old.child;
    let tree = good_is_good(old.with_symbols(&symbols(1, &[(8, child, 0)])));
    assert_eq!(tree.content("bad/one"), Ok(b"child".to_vec()));
}

/// Returns a valid index of names, which a test damages.
fn names_index(root: u64) -> Btree2 {
    Btree2 {
        record_type: 5,
        node_size: 512,
        record_size: 11,
        depth: 0,
        root,
        used: 1,
        total: 1,
    }
}

/// Returns a dense group with one link, `one`, in a heap. The arguments change the structures.
fn dense(
    index: impl FnOnce(&mut Btree2),
    heap: impl FnOnce(&mut FractalHeap),
    id: impl FnOnce(&mut Vec<u8>),
) -> Vec<u8> {
    dense_in(Hdf5::new(), index, heap, id)
}

/// Appends such a group to a file.
fn dense_in(
    mut file: Hdf5,
    index: impl FnOnce(&mut Btree2),
    heap: impl FnOnce(&mut FractalHeap),
    id: impl FnOnce(&mut Vec<u8>),
) -> Vec<u8> {
    let child = file.put_bytes(b"child");
    let link = link_body(b"one", 0, &child.to_le_bytes());
    let header = file.next();
    let length = FractalHeap::small(512, 0).header().len() as u64;
    let block = (header + length).next_multiple_of(8);
    let mut description = FractalHeap::small(512, block);
    heap(&mut description);
    assert_eq!(file.put(&description.header()), header);
    assert_eq!(file.put(&direct_block(header, 512, &link)), block);
    let mut heap_id = heap_id(DIRECT_PREFIX, link.len() as u64);
    id(&mut heap_id);
    let hash = h5fs_reader::wire::checksum::lookup3(b"one").to_le_bytes();
    let record = [&hash[..], &heap_id[..7]].concat();
    let mut tree = names_index(0);
    tree.root = file.put(&tree.leaf(&record));
    index(&mut tree);
    let tree = file.put(&tree.header());
    let bad = file.put(&dense_group(header, tree));
    file.beside_good(bad)
}

#[test]
fn a_dense_group_as_it_should_be() {
    let tree = good_is_good(dense(|_| {}, |_| {}, |_| {}));
    assert_eq!(tree.names("bad"), Ok(vec![b"one".to_vec()]));
    assert_eq!(tree.content("bad/one"), Ok(b"child".to_vec()));
}

/// Two records with the same name.
#[test]
fn a_name_twice_in_a_dense_group() {
    let mut file = Hdf5::new();
    let (child, other) = (file.put_bytes(b"child"), file.put_bytes(b"other"));
    let links = [child, other].map(|at| link_body(b"one", 0, &at.to_le_bytes()));
    let heap = super::values::heap_of(&mut file, &links.concat());
    let hash = h5fs_reader::wire::checksum::lookup3(b"one").to_le_bytes();
    let length = links[0].len() as u64;
    let records = [0, length].map(|behind| {
        let id = heap_id(DIRECT_PREFIX + behind, length);
        [&hash[..], &id[..7]].concat()
    });
    let tree = Btree2 {
        used: 2,
        total: 2,
        ..names_index(0)
    };
    let root = file.put(&tree.leaf(&records.concat()));
    let tree = file.put(&Btree2 { root, ..tree }.header());
    let bad = file.put(&dense_group(heap, tree));
    let tree = good_is_good(file.beside_good(bad));
    assert_eq!(tree.names("bad"), Ok(vec![b"one".to_vec()]));
    assert_eq!(tree.content("bad/one"), Ok(b"child".to_vec()));
}

/// Returns a dense group with two links. Their records have these hashes, in this order.
fn filed_under(names: [(&[u8; 3], u32); 2]) -> Vec<u8> {
    let mut file = Hdf5::new();
    let child = file.put_bytes(b"child");
    let links = names.map(|(name, _)| link_body(name, 0, &child.to_le_bytes()));
    let heap = super::values::heap_of(&mut file, &links.concat());
    let length = links[0].len() as u64;
    let record = |hash: u32, before: u64| {
        let id = heap_id(DIRECT_PREFIX + before, length);
        [&hash.to_le_bytes()[..], &id[..7]].concat()
    };
    let records = [record(names[0].1, 0), record(names[1].1, length)];
    let mut tree = names_index(0);
    (tree.used, tree.total) = (2, 2);
    tree.root = file.put(&tree.leaf(&records.concat()));
    let tree = file.put(&tree.header());
    let bad = file.put(&dense_group(heap, tree));
    file.beside_good(bad)
}

/// Every listed name can be opened. The missing rest of the listing is an error.
#[test]
fn names_under_wrong_hashes() {
    let hash = |name: &[u8; 3]| h5fs_reader::wire::checksum::lookup3(name);
    let (mut first, mut last) = (b"one", b"two");
    if hash(first) > hash(last) {
        (first, last) = (last, first);
    }
    let sound = [(first, hash(first)), (last, hash(last))];
    let tree = good_is_good(filed_under(sound));
    assert_eq!(tree.names("bad"), Ok(vec![first.to_vec(), last.to_vec()]));
    let wrong = [
        [(first, hash(first)), (last, hash(last) + 1)],
        [(first, hash(first) + 1), (last, hash(last))],
        [(first, hash(last)), (last, hash(first))],
        [(last, hash(last)), (first, hash(first))],
    ];
    for names in wrong {
        let tree = good_is_good(filed_under(names));
        let (listed, end) = tree.listing("bad");
        assert!(listed.len() < 2, "{listed:?}");
        assert_eq!(errno_of(end), Errno::EIO, "{names:?}");
        for name in listed {
            let path = format!("bad/{}", String::from_utf8_lossy(&name));
            assert_eq!(tree.content(&path), Ok(b"child".to_vec()), "{path}");
        }
    }
}

#[test]
fn new_trees_that_lie() {
    let lies: [fn(&mut Btree2); 13] = [
        |tree| tree.node_size = u32::MAX,
        |tree| tree.depth = u16::MAX,
        |tree| tree.depth = 3,
        |tree| tree.node_size = 0,
        |tree| tree.node_size = 12,
        |tree| tree.record_size = 0,
        |tree| tree.record_type = 9,
        |tree| tree.total = u64::MAX,
        |tree| tree.total = 2,
        |tree| tree.total = 0,
        |tree| tree.used = u16::MAX,
        |tree| tree.root = UNDEFINED,
        |tree| tree.root = 1 << 61,
    ];
    for lie in lies {
        bad_alone_is_bad(dense(lie, |_| {}, |_| {}));
    }
}

/// Returns a valid group in which `spoil` changes the first block with this signature. The checksum
/// is updated.
fn dense_but(signature: &[u8; 4], sealed_bytes: usize, spoil: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut bytes = dense(|_| {}, |_| {}, |_| {});
    let at = bytes.windows(4).position(|four| four == signature);
    let block = &mut bytes[at.expect("a block")..][..sealed_bytes];
    spoil(block);
    let sound = sealed(block[..sealed_bytes - 4].to_vec());
    block.copy_from_slice(&sound);
    bytes
}

/// Only writers need the split and merge percents of nodes, and the free space of a heap.
#[test]
fn fields_for_writers_are_not_parsed() {
    let tree = names_index(0).header().len();
    let heap = FractalHeap::small(512, 0).header().len();
    let percents = [0, 101, 255]
        .map(|percent| dense_but(b"BTHD", tree, |header| header[14..16].fill(percent)));
    let managers = [0, 96, 1 << 60].map(|manager: u64| {
        dense_but(b"FRHP", heap, |header| {
            header[30..38].copy_from_slice(&u64::MAX.to_le_bytes()); // number of free bytes
            header[38..46].copy_from_slice(&manager.to_le_bytes());
        })
    });
    for bytes in percents.into_iter().chain(managers) {
        let tree = good_is_good(bytes);
        assert_eq!(tree.names("bad"), Ok(vec![b"one".to_vec()]));
        assert_eq!(tree.content("bad/one"), Ok(b"child".to_vec()));
    }
}

/// A node that is its own child on every level of the header's depth.
#[test]
fn a_new_tree_that_is_its_own_child() {
    let mut file = Hdf5::new();
    let heap = file.next();
    let block = file.put(&FractalHeap::small(512, heap + 200).header());
    assert_eq!(block, heap);
    file.put(&direct_block(heap, 512, b""));
    for depth in [1, 5, 60] {
        let mut file = file.clone();
        let root = file.next();
        let mut node = b"BTIN\0\x05".to_vec();
        node.extend([0; 11]);
        for _ in 0..2 {
            node.extend(root.to_le_bytes());
            node.extend([1, 1, 0, 0]);
        }
        file.put(&sealed(node));
        let tree = Btree2 {
            depth,
            total: 30,
            ..names_index(root)
        };
        let tree = file.put(&tree.header());
        let bad = file.put(&dense_group(heap, tree));
        bad_alone_is_bad(file.beside_good(bad));
    }
}

#[test]
fn fractal_heaps_that_lie() {
    let lies: [fn(&mut FractalHeap); 9] = [
        |heap| heap.width = 0,
        |heap| heap.width = 3,
        |heap| heap.block_size = 0,
        |heap| heap.block_size = 1 << 40,
        |heap| heap.most_direct = 0,
        |heap| heap.bits = 65,
        |heap| heap.bits = 0xffff,
        |heap| heap.root = UNDEFINED,
        |heap| heap.rows = u16::MAX,
    ];
    for lie in lies {
        bad_alone_is_bad(dense(|_| {}, lie, |_| {}));
    }
}

/// If the offset in a heap block is wrong, the block may be another one.
#[test]
fn blocks_at_another_place_of_their_heap() {
    for at in 13..17 {
        let mut bytes = dense(|_| {}, |_| {}, |_| {});
        let block = bytes.windows(4).position(|four| four == b"FHDB");
        bytes[block.expect("a block") + at] ^= 1;
        let error = bad_alone_is_bad(bytes);
        assert!(
            error
                .to_string()
                .contains("its offset in the heap is wrong"),
            "{error}"
        );
    }
}

/// Links are either in a heap or in the header. If the message has only a heap or only an index,
/// the storage is unknown, and an empty listing would be wrong.
#[test]
fn heaps_without_an_index_of_names() {
    let with_info = |flags: u8, heap: u64, index: u64| {
        let mut file = Hdf5::new();
        let info = [vec![0, flags], words(&[heap, index])].concat();
        let bad = file.put(&header_2(&[Message(kind::LINK_INFO, 0, info)]));
        file.beside_good(bad)
    };
    bad_alone_is_bad(with_info(0, SOME, UNDEFINED));
    bad_alone_is_bad(with_info(0, UNDEFINED, SOME));
    bad_alone_is_bad(with_info(4, UNDEFINED, UNDEFINED)); // an unknown flag
    let tree = good_is_good(with_info(0, UNDEFINED, UNDEFINED));
    assert_eq!(tree.names("bad"), Ok(Vec::new()));
}

/// Link messages without a link info message do not make a group, because that message tells
/// whether they are complete.
#[test]
fn links_without_a_link_info_message() {
    let link = hard_link(b"one", SOME);
    bad_alone_is_bad(with_bad(&header_2(&[link])));
}

#[test]
fn heap_ids_that_lie() {
    let lies: [fn(&mut Vec<u8>); 6] = [
        |id| id[1..5].fill(0xff),     // offset past the heap
        |id| id[5..8].fill(0xff),     // length past the block
        |id| *id = heap_id(500, 200), // past the block's end
        |id| id[0] = 0x10,            // a huge object, but there are none
        |id| id[0] = 0x20,            // a tiny object: 1 byte, not a link
        |id| id[0] = 0xf0,
    ];
    for lie in lies {
        bad_alone_is_bad(dense(|_| {}, |_| {}, lie));
    }
    let huge = |heap: &mut FractalHeap| heap.huge = 1 << 60;
    bad_alone_is_bad(dense(|_| {}, huge, |id| id[0] = 0x10));
    // Too short for a managed, a huge, and a tiny object.
    for length in [0, 1, 4] {
        for first in [0, 0x10, 0x20] {
            let short = |heap: &mut FractalHeap| heap.id_length = length;
            bad_alone_is_bad(dense(|_| {}, short, |id| id[0] = first));
        }
    }
}

/// The B-tree of a heap's huge objects has itself as child.
#[test]
fn a_tree_of_huge_objects_that_is_its_own_child() {
    const HUGE_OBJECT: u8 = 0x10;
    for depth in [1, 2, 9] {
        let mut file = Hdf5::new();
        let root = file.next();
        let mut node = b"BTIN\0\x01".to_vec();
        node.extend(words(&[96, 8, 7])); // address, length, ID
        for _ in 0..2 {
            node.extend(root.to_le_bytes());
            node.push(1);
            node.extend(vec![1; depth - 1]);
        }
        file.put(&sealed(node));
        let tree = Btree2 {
            record_type: 1,
            record_size: 24,
            depth: depth as u16,
            total: 3,
            ..names_index(root)
        };
        let tree = file.put(&tree.header());
        let heap = |heap: &mut FractalHeap| heap.huge = tree;
        let first = |id: &mut Vec<u8>| id[0] = HUGE_OBJECT;
        bad_alone_is_bad(dense_in(file, |_| {}, heap, first));
    }
}

/// Returns a group with one link, `one`, in a heap with one filtered block. `stored` makes the
/// block's bytes from the heap's address and the link.
fn dense_filtered(
    block_size: u64,
    mask: u32,
    stored: impl FnOnce(u64, &[u8]) -> Vec<u8>,
) -> Vec<u8> {
    let mut file = Hdf5::new();
    let child = file.put_bytes(b"child");
    let link = link_body(b"one", 0, &child.to_le_bytes());
    let pipeline = filters(&[(1, &[6])]).2;
    let heap = file.next();
    let length = FractalHeap::small(512, 0).header().len() + 12 + pipeline.len();
    let stored = stored(heap, &link);
    let root = (heap + length as u64).next_multiple_of(8);
    let mut header = FractalHeap::small(block_size, root).header();
    header.truncate(header.len() - 4);
    header[7..9].copy_from_slice(&(pipeline.len() as u16).to_le_bytes());
    header.extend(words(&[stored.len() as u64]));
    header.extend(mask.to_le_bytes());
    header.extend(pipeline);
    file.put(&sealed(header));
    assert_eq!(file.put(&stored), root);
    let hash = h5fs_reader::wire::checksum::lookup3(b"one").to_le_bytes();
    let id = heap_id(DIRECT_PREFIX, link.len() as u64);
    let mut tree = names_index(0);
    tree.root = file.put(&tree.leaf(&[&hash[..], &id[..7]].concat()));
    let tree = file.put(&tree.header());
    let bad = file.put(&dense_group(heap, tree));
    file.beside_good(bad)
}

/// A filtered root block that decodes to more than the block size, or exactly to it but all zeros.
#[test]
fn filtered_root_blocks_that_are_bombs() {
    const NOT_APPLIED: u32 = 1;
    let plain = |heap: u64, link: &[u8]| direct_block(heap, 512, link);
    let tree = good_is_good(dense_filtered(512, NOT_APPLIED, plain));
    assert_eq!(tree.content("bad/one"), Ok(b"child".to_vec()));
    bad_alone_is_bad(dense_filtered(512, 0, plain));
    let bomb = super::bounded::zeros_deflated(1 << 24);
    for block_size in [512, 1 << 20, 1 << 24, 1 << 40] {
        bad_alone_is_bad(dense_filtered(block_size, 0, |_, _| bomb.clone()));
    }
}
