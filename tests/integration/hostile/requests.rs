//! The cost of one request for metadata of any file: at most a second of processor time in a
//! release build.
//!
//! Elapsed time would depend on the load of the machine, so the processor time of all threads is
//! measured. Test builds get smaller files and a wider limit, because they check each calculation,
//! and another process on the same core can triple the processor time. A request with quadratic or
//! unlimited cost takes minutes in a test build too.
//!
//! A request that fails at once also costs little, so each test also checks the responses.

use std::time::Duration;

use h5fs_reader::error::Result;
use h5fs_tree::{FileKind, Filesystem, Ino, OpenedHandle, Requests, SeekKind};

use nix::errno::Errno;

use super::answers::GOOD;
use super::hdf5::*;
use super::processor::named_within;
use super::tree::*;
use super::values::heap_of;

const MOST: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 1 });

/// Returns the count, or a twentieth of it in test builds.
pub(super) const fn many(count: usize) -> usize {
    if cfg!(debug_assertions) {
        count / 20
    } else {
        count
    }
}

/// Number of objects of one tree for which every request is sent.
const OBJECTS: usize = 12;

/// A file whose requests are timed.
pub(super) struct Timed {
    pub(super) tree: Tree,
}

/// Sends every kind of request for all objects of the file. Each must cost little.
#[track_caller]
pub(super) fn costs_little(bytes: Vec<u8>) -> Timed {
    let mut timed = Timed {
        tree: Tree::new(bytes),
    };
    let root = timed.tree.0.root();
    timed.beneath(root, "");
    let views = timed.time("lookup", ".h5fs", |fs| fs.lookup(root, b".h5fs"));
    timed.beneath(views.expect("views").ino, ".h5fs");
    timed
}

impl Timed {
    #[track_caller]
    pub(super) fn time<T>(
        &mut self,
        what: &str,
        of: &str,
        request: impl FnOnce(&Filesystem) -> Result<T>,
    ) -> Option<T> {
        let tree = &self.tree.0;
        named_within(&format!("{what} {of}"), MOST, || request(tree)).ok()
    }

    #[track_caller]
    fn beneath(&mut self, ino: Ino, path: &str) {
        let mut pending = vec![(ino, path.to_owned())];
        let mut objects = 0;
        while let Some((directory, path)) = pending.pop() {
            self.object(directory, FileKind::Directory, &path);
            let brackets = [b"x".to_vec(), b"[0]".repeat(80)].concat();
            for absent in [&b"absent"[..], &brackets] {
                let found = self.time("lookup of nothing in", &path, |fs| {
                    fs.lookup(directory, absent)
                });
                assert!(found.is_none());
            }
            for name in self.names(directory, &path) {
                if objects >= OBJECTS {
                    return;
                }
                objects += 1;
                let below = format!("{path}/{}", name.escape_ascii());
                let Some(found) = self.time("lookup", &below, |fs| fs.lookup(directory, &name))
                else {
                    continue;
                };
                match found.attributes.kind {
                    FileKind::Directory => pending.push((found.ino, below)),
                    kind => self.object(found.ino, kind, &below),
                }
            }
        }
    }

    #[track_caller]
    pub(super) fn object(&mut self, ino: Ino, kind: FileKind, path: &str) {
        self.time("getattr", path, |fs| fs.getattr(ino));
        let names = match kind {
            FileKind::Symlink => {
                self.time("readlink", path, |fs| fs.readlink(ino));
                return;
            }
            _ => self.time("listxattr", path, |fs| fs.listxattr(ino)),
        };
        let absent = b"user.absent".to_vec();
        for name in names.unwrap_or_default().iter().take(20).chain([&absent]) {
            let what = format!("getxattr {}", name.escape_ascii());
            self.time(&what, path, |fs| fs.getxattr(ino, name));
        }
        if kind == FileKind::File
            && let Some(OpenedHandle { handle, .. }) =
                self.time("open", path, |fs| fs.open_file(ino))
        {
            self.time("lseek", path, |fs| fs.lseek(handle, 0, SeekKind::Hole));
            self.tree.0.release(handle);
        }
    }

    /// Returns the first names of a directory. Also lists the directory from later positions, and
    /// with attributes.
    #[track_caller]
    fn names(&mut self, ino: Ino, path: &str) -> Vec<Vec<u8>> {
        const IN_AN_ANSWER: usize = 50;
        let mut names = Vec::new();
        let handle = self.tree.0.opendir(ino).expect("a directory").handle;
        for cookie in [0, 1 << 19, i64::MAX as u64] {
            let mut taken = 0;
            self.time(&format!("readdir from {cookie}"), path, |fs| {
                fs.readdir(handle, cookie, &mut |entry| {
                    if cookie == 0 && !matches!(entry.name, b"." | b"..") {
                        names.push(entry.name.to_vec());
                    }
                    taken += 1;
                    taken > IN_AN_ANSWER
                })
            });
        }
        let mut taken = 0;
        self.time("readdirplus", path, |fs| {
            fs.readdir_plus(handle, 0, &mut |_, _| {
                taken += 1;
                taken > IN_AN_ANSWER
            })
        });
        self.tree.0.release(handle);
        names
    }
}

/// Puts an old-style group with `count` entries, which `entry` returns.
pub(super) fn old_group_of(
    file: &mut Hdf5,
    names: &[u8],
    count: usize,
    entry: impl Fn(u64) -> (u64, u64, u32),
) -> u64 {
    let entries: Vec<_> = (0..count as u64).map(entry).collect();
    old_group_in_nodes(file, names, &entries, 50_000)
}

/// Puts an old-style group with these entries, `in_a_node` per node.
pub(crate) fn old_group_in_nodes(
    file: &mut Hdf5,
    names: &[u8],
    entries: &[(u64, u64, u32)],
    in_a_node: usize,
) -> u64 {
    let names_at = file.put(names);
    let heap = file.put(&local_heap(names.len() as u64, names_at));
    let mut leaf = vec![0];
    for entries in entries.chunks(in_a_node) {
        let node = file.put(&symbols(entries.len() as u16, entries));
        leaf.extend([node, entries.last().expect("an entry").0]);
    }
    let btree = file.put(&group_node(0, (leaf.len() / 2) as u16, &leaf));
    file.put(&old_group(btree, heap))
}

/// More links than the search for paths follows, each to an object with a reference count of two.
/// One link leads to an object with a path, which the others lack.
#[test]
fn a_group_of_half_a_million_objects() {
    let count = many(550_000);
    let mut file = Hdf5::new();
    let two_links = Message(kind::REFERENCE_COUNT, 0, vec![0, 2, 0, 0, 0]);
    let layout = contiguous(UNDEFINED, 1);
    let mut object = dataset(&[1], &byte_type(), layout, &[two_links]);
    object.resize(object.len().next_multiple_of(8), 0);
    let first = file.put(&object.repeat(count));
    let layout = contiguous(UNDEFINED, 16);
    let last = file.put(&dataset(&[1], &sequence_type(), layout, &[]));
    let names: Vec<u8> = (0..=count)
        .flat_map(|i| format!("{i:07}\0").into_bytes())
        .collect();
    let apart = object.len() as u64;
    let names = [&[0; 8], &names[..]].concat();
    let bad = old_group_of(&mut file, &names, count + 1, |i| {
        if i == count as u64 {
            (8 + 8 * i, last, 0)
        } else {
            (8 + 8 * i, first + i * apart, 0)
        }
    });
    let timed = costs_little(file.beside_good(bad));
    let last = format!("{count:07}").into_bytes();
    assert_eq!(timed.tree.names(".h5fs/offsets/bad"), Ok(vec![last]));
}

/// Returns a group of a million entries: a thousand keys that share one node of sixty thousand
/// entries. Their names alternate between a text and the text without its first byte. If the
/// entries are soft links, all have the same path.
fn one_node_many_times(text: &[u8], cached: u32) -> Vec<u8> {
    let mut file = Hdf5::new();
    let names_at = file.put(&[&[0; 8], text].concat());
    let heap = file.put(&local_heap(8 + text.len() as u64, names_at));
    let child = file.put_bytes(b"child");
    let symbols_of_node = many(60_000);
    let by_turns = [(8, child, cached), (9, child, cached)];
    let entries = by_turns.repeat(symbols_of_node / 2);
    let mut node = symbols(symbols_of_node as u16, &entries);
    for entry in node[8..].chunks_mut(40) {
        entry[24] = 8; // offset of the soft link's path
    }
    let node = file.put(&node);
    let mut leaf = vec![0];
    leaf.extend([node, 8].repeat(1000));
    let btree = file.put(&group_node(0, 1000, &leaf));
    let bad = file.put(&old_group(btree, heap));
    file.put(&vec![0; many(40 << 20)]); // a file of this length may contain a million entries
    file.beside_good(bad)
}

/// Measures listings of a group with this name in every node, in two trees, and a lookup of a
/// missing name.
fn long_names_many_times(text: &[u8]) -> Tree {
    let mut timed = Timed {
        tree: Tree::new(one_node_many_times(text, 0)),
    };
    for path in ["bad", ".h5fs/npy/bad"] {
        let bad = timed.tree.0.resolve(path.as_bytes()).expect("a group").ino;
        timed.names(bad, path);
    }
    let bad = timed.tree.0.resolve(b"bad").expect("a group").ino;
    let cut = [&[b'n'; 246][..], b"~deadbeef"].concat();
    let found = timed.time("lookup of a cut name", "bad", |fs| fs.lookup(bad, &cut));
    assert!(found.is_none());
    timed.tree
}

/// The listing shows each name once, cut, and passes over the other nodes. A name without a NUL
/// exceeds the length limit of names.
#[test]
fn long_names_a_million_times() {
    let has_end = [&[b'n'; 60_000][..], &[0]].concat();
    let tree = long_names_many_times(&has_end);
    // A line shows sixty bytes of a name.
    let shown = format!("{}… (255 bytes)", "n".repeat(60));
    let most = h5fs_reader::limits::PASSED_NODES;
    let passed = format!("skipped nodes of a group is over the limit of {most}");
    let answer = format!("directory: {shown}, {shown}; error: {passed}");
    tree.answers(&[("bad", &answer), (".h5fs/npy/bad", &answer), GOOD]);
    let tree = long_names_many_times(&[b'n'; 1 << 20]);
    tree.names("bad").expect_err("names that are too long");
    tree.answers(&[GOOD]);
}

/// Soft links to themselves, to a missing object by a long path, and to their own group.
#[test]
fn soft_links_a_million_times() {
    let far = [b"n/".repeat(30_000), vec![0]].concat();
    let here = [b"./".repeat(30_000), vec![0]].concat();
    for (text, answer) in [
        (
            b"self\0".to_vec(),
            "directory: self, elf; error: skipped nodes of a group*",
        ),
        (far, "directory: n%2Fn%2F*"),
        (here, "directory: .%2F.%2F*"),
    ] {
        let timed = costs_little(one_node_many_times(&text, 2));
        timed.tree.answers(&[("bad", answer), GOOD]);
    }
}

/// Each entry's object is the group itself, and a path goes through a thousand of them.
#[test]
fn soft_links_through_the_same_group() {
    let mut file = Hdf5::new();
    let count = many(60_000);
    let names = [&[0; 8][..], b"a\0\0\0\0\0\0\0", &b"a/".repeat(1000), &[0]].concat();
    let own = file.next() + names.len().next_multiple_of(8) as u64;
    // The heap, node and tree are before the header of the group.
    let own = own + 32 + (8 + 40 * count) as u64 + 24 + 24;
    let names_at = file.put(&names);
    let heap = file.put(&local_heap(names.len() as u64, names_at));
    let by_turns = [(16, own, 2), (18, own, 2)];
    let mut node = symbols(count as u16, &by_turns.repeat(count / 2));
    for entry in node[8..].chunks_mut(40) {
        entry[24] = 16;
    }
    let last = node.len() - 40;
    node[last..last + 20].copy_from_slice(&[&words(&[8, own])[..], &[0; 4]].concat());
    let node = file.put(&node);
    let btree = file.put(&group_node(0, 1, &[0, node, 16]));
    let bad = file.put(&old_group(btree, heap));
    assert_eq!(bad, own);
    let timed = costs_little(file.beside_good(bad));
    timed
        .tree
        .answers(&[("bad", "directory: a%2Fa%2F*"), ("bad/a", "link: ."), GOOD]);
}

/// Returns a tree of two levels. All sixteen children are the same leaf, whose records alternate
/// between two links of the same length. The links are adjacent.
fn links_on_a_heap(links: [&[u8]; 2], offset: u64) -> Vec<u8> {
    const CHILDREN: usize = 16;
    let in_a_leaf = many(60_000);
    let mut file = Hdf5::new();
    let heap = heap_of(&mut file, &links.concat());
    let hash = h5fs_reader::wire::checksum::lookup3(&[b'n'; 60_000]).to_le_bytes();
    let length = links[0].len() as u64;
    let by_turns = [offset, offset + length].map(|offset| {
        let id = heap_id(offset, length);
        [&hash[..], &id[..7]].concat()
    });
    let [record, _] = &by_turns;
    let total = in_a_leaf * CHILDREN + CHILDREN - 1;
    let mut tree = Btree2 {
        record_type: 5,
        node_size: 1 << 20,
        record_size: 11,
        depth: 1,
        root: 0,
        used: (CHILDREN - 1) as u16,
        total: total as u64,
    };
    let leaf = file.put(&tree.leaf(&by_turns.concat().repeat(in_a_leaf / 2)));
    let mut node = [&b"BTIN\0\x05"[..], &record.repeat(CHILDREN - 1)].concat();
    for _ in 0..CHILDREN {
        node.extend(leaf.to_le_bytes());
        node.extend(&(in_a_leaf as u64).to_le_bytes()[..3]);
    }
    tree.root = file.put(&sealed(node));
    let tree = file.put(&tree.header());
    let bad = file.put(&dense_group(heap, tree));
    file.put(&vec![0; 11 * total]);
    file.beside_good(bad)
}

#[test]
fn a_million_links_on_a_heap() {
    let [n, m] = [b'n', b'm'].map(|byte| link_body(&[byte; 60_000], 0, &96_u64.to_le_bytes()));
    let short = link_body(b"n", 0, &96_u64.to_le_bytes());
    let too_many = "directory: ; error: links of one name or hash is over the limit of 4096";
    let reaches = "directory: ; error: fractal heap ID: reaches past its block*";
    for (links, offset, answer) in [
        ([&n[..], &m], DIRECT_PREFIX, "directory: nnn*"),
        // All links have one name.
        ([&n, &n], DIRECT_PREFIX, "directory: nnn*"),
        ([&short, &short], DIRECT_PREFIX, too_many),
        // The objects are not links, or not in the heap.
        (
            [&[0xff; 60]; 2],
            DIRECT_PREFIX,
            "directory: ; error: link message: version 255 is not supported*",
        ),
        ([&n, &m], 1 << 30, reaches),
    ] {
        let timed = costs_little(links_on_a_heap(links, offset));
        timed.tree.answers(&[("bad", answer), GOOD]);
    }
}

/// Returns a dataset of `length` chunks of one byte, with one leaf of chunks below each of `leaves`
/// entries.
fn chunks(length: u64, first: u64, leaves: usize) -> Vec<u8> {
    let in_a_leaf = many(60_000);
    let mut file = Hdf5::new();
    let data = file.put(&[1]);
    let mut leaf = Vec::new();
    for i in 0..in_a_leaf as u64 {
        leaf.extend([1, first + i, 0, data]);
    }
    leaf.extend([1, first + in_a_leaf as u64, 0]);
    let leaf = chunk_node(0, in_a_leaf as u16, &leaf);
    let leaf_at = file.put(&leaf);
    let key = |number: usize| [1, first + (number * in_a_leaf) as u64, 0];
    let keys = (0..leaves).flat_map(|number| [&key(number)[..], &[leaf_at]].concat());
    let node: Vec<u64> = keys.chain(key(leaves)).collect();
    let root = file.put(&chunk_node(1, leaves as u16, &node));
    let layout = chunked(root, &[1, 1]);
    let bad = file.put(&dataset(&[length], &byte_type(), layout, &[]));
    // The file is at least as long as all nodes together.
    file.put(&vec![0; leaves * leaf.len()]);
    file.beside_good(bad)
}

/// Returns the blocks that `stat` reports and the first hole that `lseek` finds.
fn blocks_and_hole(tree: &Tree, path: &str) -> (u64, u64) {
    let found = tree.0.resolve(path.as_bytes()).expect("a file");
    let handle = tree.0.open_file(found.ino).expect("a file").handle;
    let hole = tree.0.lseek(handle, 0, SeekKind::Hole).expect("a hole");
    tree.0.release(handle);
    let attributes = tree.0.getattr(found.ino).expect("attributes").attributes;
    (attributes.blocks, hole)
}

/// More chunks than the limit for counting, and chunks outside of the dataset, which do not count.
#[test]
fn indices_of_two_million_chunks() {
    const COUNTED: usize = h5fs_reader::limits::ALLOCATION_WALK;
    const PASSED: usize = h5fs_reader::limits::STRAY_CHUNKS;
    let leaves = |chunks: usize| chunks / many(60_000) + 1;
    let file = chunks(1 << 40, 0, leaves(COUNTED));
    let length = file.len() as u64;
    let all = costs_little(file);
    let stored = "file of 1099511627776 bytes: [1, 1, 1, …]";
    all.tree.answers(&[("bad", stored), GOOD]);
    // The allocated size is limited by the length of the file, and no hole is known.
    let stored = (length.div_ceil(512), 1 << 40);
    assert_eq!(blocks_and_hole(&all.tree, "bad"), stored);
    let none = costs_little(chunks(1 << 10, 1 << 30, leaves(PASSED)));
    let unwritten = "file of 1024 bytes: [0, 0, 0, …]";
    none.tree.answers(&[("bad", unwritten), GOOD]);
    // `stat` reports one block, because the dataset may contain data.
    assert_eq!(blocks_and_hole(&none.tree, "bad"), (1, 1 << 10));
}

/// Nested groups. Each is found after many others, by a name that is too long to be shown and
/// cached.
#[test]
fn a_path_of_names_that_are_cut() {
    let others = many(10_000);
    let mut file = Hdf5::new();
    let mut below = file.put_bytes(b"child");
    for _ in 0..50 {
        let mut links: Vec<Message> = (0..others)
            .map(|i| soft_link(format!("{i:06}").as_bytes(), b"."))
            .collect();
        links.push(hard_link(&[b'n'; 60_000], below));
        let parts: Vec<Message> = links
            .chunks(others / 2 + 1)
            .map(continuation_2)
            .map(|block| continuation(file.put(&block), block.len() as u64))
            .collect();
        below = file.put(&group(&parts));
    }
    let mut timed = costs_little(file.beside_good(below));
    let mut at = timed.tree.0.resolve(b"bad").expect("the first").ino;
    loop {
        let shown = h5fs_tree::name::escape(&[b'n'; 60_000], false);
        let next = timed.tree.0.lookup(at, &shown).expect("the next");
        at = next.ino;
        if next.attributes.kind == FileKind::File {
            break;
        }
    }
    timed.object(at, FileKind::File, "the last");
    let tree = &timed.tree.0;
    // Fifty names of sixty thousand bytes are too long for an extended attribute.
    let path = tree.getxattr(at, b"user.h5fs.path");
    assert_eq!(errno_of(path), Errno::ENODATA);
}

/// A deep chain of groups. The test requests the path of the innermost one.
#[test]
fn a_path_of_thirty_thousand_names() {
    let depth = many(30_000);
    let mut file = Hdf5::new();
    let two_links = Message(kind::REFERENCE_COUNT, 0, vec![0, 2, 0, 0, 0]);
    let layout = contiguous(UNDEFINED, 1);
    let deepest = file.put(&dataset(&[1], &byte_type(), layout, &[two_links]));
    let mut below = file.put_group(&[(b"bottom", deepest)]);
    for _ in 0..depth {
        below = file.put_group(&[(b"g", below)]);
    }
    let mut timed = costs_little(file.beside_good(below));
    let mut at = timed.tree.0.resolve(b"bad").expect("the first").ino;
    for _ in 0..depth {
        at = timed.tree.0.lookup(at, b"g").expect("the next").ino;
    }
    let bottom = timed.tree.0.lookup(at, b"bottom").expect("the last").ino;
    timed.object(bottom, FileKind::File, "bottom");
    timed.object(at, FileKind::Directory, "the last group");
    let path = |ino| {
        timed
            .tree
            .0
            .getxattr(ino, b"user.h5fs.path")
            .expect("a path")
    };
    let last = format!("/bad{}", "/g".repeat(depth));
    assert_eq!(path(at), last.as_bytes());
    assert_eq!(path(bottom), format!("{last}/bottom").as_bytes());
}
