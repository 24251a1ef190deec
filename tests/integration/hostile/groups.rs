//! Groups of the three kinds: trees, nodes, heaps, names, links.

use h5fs::fs::Kind;

use super::hdf5::*;
use super::tree::*;

/// An old group in a file, its parts at known places.
struct Old {
    file: Hdf5,
    heap: u64,
    child: u64,
}

/// Names on the heap: nothing at 0, `one` at 8, `two` at 16, `six` at 24.
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

    /// With one leaf of the tree and one node of symbols, which `spoil` changes.
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
    node[4] = 1; // chunks
    let btree = other.file.put(&node);
    bad_alone_is_bad(other.finish(btree));
    for address in [UNDEFINED, 1 << 60, 3] {
        bad_alone_is_bad(old().finish(address));
    }
}

/// 64 levels of two children each, both the same, would be 2^64 ways.
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

/// One node of symbols under every entry of a leaf: a listing that is longer than the file can be.
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

/// An entry that cannot be read does not take the others with it.
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

    // A name that runs to the heap's end without a NUL.
    let mut old = old();
    let data = old.file.put(&[b'n'; 64]);
    old.heap = old.file.put(&local_heap(64, data));
    let child = old.child;
    bad_alone_is_bad(old.with_symbols(&symbols(1, &[(8, child, 0)])));

    // A free list that leads in a circle is the writers' business.
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

/// A sound index of names, for tests to spoil.
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

/// A group with one link, `one`, on a heap.
fn dense(
    index: impl FnOnce(&mut Btree2),
    heap: impl FnOnce(&mut FractalHeap),
    id: impl FnOnce(&mut Vec<u8>),
) -> Vec<u8> {
    let mut file = Hdf5::new();
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
    let hash = h5fs::wire::checksum::lookup3(b"one").to_le_bytes();
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

#[test]
fn new_trees_that_lie() {
    let lies: [fn(&mut Btree2); 11] = [
        |tree| tree.depth = u16::MAX,
        |tree| tree.depth = 3,
        |tree| tree.node_size = 0,
        |tree| tree.node_size = 12,
        |tree| tree.record_size = 0,
        |tree| tree.record_type = 9,
        |tree| tree.total = u64::MAX,
        |tree| tree.total = 2,
        |tree| tree.used = u16::MAX,
        |tree| tree.root = UNDEFINED,
        |tree| tree.root = 1 << 61,
    ];
    for lie in lies {
        bad_alone_is_bad(dense(lie, |_| {}, |_| {}));
    }
}

/// A node that is its own child, on as many levels as the header claims.
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

#[test]
fn heap_ids_that_lie() {
    let lies: [fn(&mut Vec<u8>); 6] = [
        |id| id[1..5].fill(0xff),     // offset past the heap
        |id| id[5..8].fill(0xff),     // length past the block
        |id| *id = heap_id(500, 200), // over the block's end
        |id| id[0] = 0x10,            // a huge object, of which there are none
        |id| id[0] = 0x20,            // a tiny object: 1 byte, no link
        |id| id[0] = 0xf0,
    ];
    for lie in lies {
        bad_alone_is_bad(dense(|_| {}, |_| {}, lie));
    }
    let huge = |heap: &mut FractalHeap| heap.huge = 1 << 60;
    bad_alone_is_bad(dense(|_| {}, huge, |id| id[0] = 0x10));
}

/// A root of these links, and `good`.
fn root_of(links: &[Message]) -> Vec<u8> {
    let mut file = Hdf5::new();
    let good = file.put_bytes(b"goodness");
    let mut all = links.to_vec();
    all.push(hard_link(b"good", good));
    let root = file.put(&group(&all));
    file.rooted(root)
}

#[test]
fn names_that_no_filesystem_has() {
    let mut file = Hdf5::new();
    let good = file.put_bytes(b"goodness");
    let long = [b'l'; 60_000];
    let names: [&[u8]; 13] = [
        b"good",
        b"a/b",
        b".",
        b"..",
        b"\0",
        b"n\0ul",
        b"new\nline",
        b"\xff\xfe",
        b"%2F",
        b"%",
        &long,
        "caf\u{e9}".as_bytes(),
        "cafe\u{301}".as_bytes(),
    ];
    let links: Vec<(&[u8], u64)> = names.iter().map(|name| (*name, good)).collect();
    let root = file.put_group(&links);
    let tree = good_is_good(file.rooted(root));
    let shown = tree.names("/").expect("a listing");
    assert_eq!(shown.len(), names.len());
    let root = tree.0.root();
    for (i, name) in shown.iter().enumerate() {
        assert!(name.len() <= 255 && !name.contains(&b'/') && !name.contains(&0));
        assert!(!matches!(&name[..], b"" | b"." | b".."));
        assert!(!shown[..i].contains(name), "twice {}", name.escape_ascii());
        tree.0
            .lookup(root, name)
            .expect("lookup takes what readdir gives");
    }
}

#[test]
fn names_that_the_format_forbids_are_alone_in_it() {
    // An empty name; a name twice.
    let mut file = Hdf5::new();
    let good = file.put_bytes(b"goodness");
    let evil = file.put_bytes(b"evil");
    let root = file.put_group(&[(b"good", good), (b"good", evil), (b"", evil)]);
    let tree = Tree::new(file.rooted(root));
    assert_eq!(tree.content("good"), Ok(b"goodness".to_vec()));
}

#[test]
fn link_messages_that_lie() {
    let whole = link_body(b"x", 0, &[0; 8]);
    let mut version = whole.clone();
    version[0] = 9;
    let mut long = whole.clone();
    long[3..7].fill(0xff);
    for body in [version, long, Vec::new(), vec![1], whole[..9].to_vec()] {
        let tree = Tree::new(root_of(&[Message(kind::LINK, 0, body)]));
        assert_eq!(tree.content("good"), Ok(b"goodness".to_vec()));
    }
    // Types that nobody knows are links to nowhere.
    for link_type in [2, 63, 66, 255] {
        let body = link_body(b"odd", link_type, b"\x02\0xx");
        let tree = good_is_good(root_of(&[Message(kind::LINK, 0, body)]));
        tree.content("odd").expect_err("nothing to read");
    }
    // A link to what is no object.
    for at in [0, 8, 1 << 60, UNDEFINED - 1] {
        let tree = good_is_good(root_of(&[hard_link(b"odd", at)]));
        tree.content("odd").expect_err("nothing to read");
        assert_eq!(tree.kind("odd"), Ok(Kind::File));
    }
}

#[test]
fn soft_links_in_circles_and_out() {
    let long = b"x/".repeat(30_000);
    let tree = good_is_good(root_of(&[
        soft_link(b"self", b"self"),
        soft_link(b"a", b"b"),
        soft_link(b"b", b"a"),
        soft_link(b"dots", b"../../../../etc/passwd"),
        soft_link(b"root", b"/good"),
        soft_link(b"long", &long),
        soft_link(b"empty", b""),
    ]));
    for name in ["self", "a", "b"] {
        assert_eq!(errno_of(tree.content(name)), nix::errno::Errno::ELOOP);
    }
    assert_eq!(tree.content("root"), Ok(b"goodness".to_vec()));
    // `..` is a name like any other in HDF5: the text stays inside.
    let dots = tree.link("dots").expect("a text");
    assert!(!dots.contains("../") && !dots.starts_with('/'), "{dots}");
    assert_eq!(errno_of(tree.link("long")), nix::errno::Errno::ENAMETOOLONG);
    tree.content("empty").expect_err("no target");
}

/// What is outside is named, and nothing there is opened or told apart from what is not there.
#[test]
fn external_links_out_of_the_directory() {
    let tree = good_is_good(root_of(&[
        external_link(b"up", b"../../etc/x.h5", b"/"),
        external_link(b"absolute", b"/etc/passwd", b"/"),
        external_link(b"nul", b"", b""),
    ]));
    for name in ["up", "absolute"] {
        assert_eq!(tree.kind(name), Ok(Kind::Symlink));
        tree.content(name).expect_err("nothing is followed");
    }
}

/// Groups that hold each other are legal: each is a directory in one place only.
#[test]
fn groups_that_hold_themselves() {
    let mut file = Hdf5::new();
    let good = file.put_bytes(b"goodness");
    let inner = file.next();
    let refcount = Message(0x16, 0, vec![0, 9, 0, 0, 0]);
    let shape = group(&[hard_link(b"self", 0), hard_link(b"up", 0), refcount.clone()]);
    let root = inner + (shape.len() as u64).next_multiple_of(8);
    file.put(&group(&[
        hard_link(b"self", inner),
        hard_link(b"up", root),
        refcount.clone(),
    ]));
    let at = file.put(&group(&[
        hard_link(b"good", good),
        hard_link(b"in", inner),
        refcount,
    ]));
    assert_eq!(at, root);
    let tree = good_is_good(file.rooted(root));
    assert_eq!(tree.kind("in"), Ok(Kind::Directory));
    assert_eq!(tree.link("in/self"), Ok(".".to_owned()));
    assert_eq!(tree.link("in/up"), Ok("..".to_owned()));
}

/// Each of 60 groups holds the next one twice: 2^60 paths, 60 directories.
#[test]
fn two_names_on_each_of_sixty_levels() {
    let mut file = Hdf5::new();
    let good = file.put_bytes(b"goodness");
    let twice = Message(0x16, 0, vec![0, 2, 0, 0, 0]);
    let mut below = file.put_bytes(b"bottom");
    for _ in 0..60 {
        let links = [
            hard_link(b"a", below),
            hard_link(b"b", below),
            twice.clone(),
        ];
        below = file.put(&group(&links));
    }
    let root = file.put_group(&[(b"good", good), (b"top", below)]);
    let tree = Tree::new(file.rooted(root));
    let seen = soon(|| super::visit::walk(&tree.0, super::visit::Bounds::OWN));
    assert_eq!(seen.errors, 0);
    assert_eq!(seen.objects, 2 + 2 * 60);
}

/// What counts of names claim is shown within what `stat` can hold.
#[test]
fn link_counts_that_lie() {
    for count in [0, u32::MAX] {
        let count_message = Message(0x16, 0, [&[0][..], &count.to_le_bytes()].concat());
        let mut file = Hdf5::new();
        let data = file.put(b"readable");
        let bad = file.put(&dataset(
            &[8],
            &byte_type(),
            contiguous(data, 8),
            &[count_message],
        ));
        let tree = good_is_good(file.beside_good(bad));
        assert!(tree.0.resolve(b"bad").unwrap().attributes.links >= 1);
        assert_eq!(tree.content("bad"), Ok(b"readable".to_vec()));
    }
}
