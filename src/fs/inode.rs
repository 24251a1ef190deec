//! Inode numbers, and what they stand for.
//!
//! | number | what |
//! |---|---|
//! | 1 | the root |
//! | below 2^62 | an object of the source: its [`NodeId`] |
//! | bit 63 set | a link of the source that is no hard link: a hash of its group and name |
//! | bit 62 set | what stands beside the source's tree: 16 bits say in which tree, 46 what in it |
//!
//! The first three are the same in every mount of an unchanged file. In the trees beside it an object has its
//! `NodeId` below 2^45, all else a hash with bit 45 set.
//!
//! Once the source has changed, all numbers but the root's are turned into others, see
//! [`of_generation`]: a number that the kernel knows must not come to stand for something else
//! while somebody has the old one open.

mod table;

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::fs::lock;
use crate::model::NodeId;
use table::Table;

/// The root's number.
pub(super) const ROOT: u64 = 1;
/// The number of the directory of views, as those below in the first state of the source.
pub(super) const VIEWS: u64 = BESIDE;
/// The number of the status file in it.
pub(super) const STATUS: u64 = BESIDE | 1;
/// The number of the directory of other files in it.
pub(super) const EXTERNAL: u64 = BESIDE | 2;

/// The number of the text of an ASDF tree in it.
pub(super) const TREE_TEXT: u64 = BESIDE | 3;
/// The number of the directory of ASDF blocks in it.
pub(super) const BLOCKS: u64 = BESIDE | 4;

const LINK: u64 = 1 << 63;
const BESIDE: u64 = 1 << 62;
const TREE_SHIFT: u32 = 46;
const HASHED: u64 = 1 << 45;
const SHARDS: usize = 16;

/// The number of a tree.
pub(super) type Tree = u16;
/// The source's own tree.
pub(super) const SOURCE: Tree = 0;
/// Other spellings of other files' names.
pub(super) const SPELLINGS: Tree = 1;
/// The first of the trees of views, each of which has two numbers: for directories, and for files.
pub(super) const FIRST_VIEW: Tree = 2;
/// ASDF blocks.
pub(super) const BLOCK_FILES: Tree = 254;
/// Parts of arrays in the source's own tree.
pub(super) const SELECTIONS: Tree = 255;
/// The first of the trees of other files.
pub(super) const FIRST_FILE: Tree = 256;

/// What an inode stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A group, as a directory.
    Group,
    /// Any other object, or one that cannot be read, as a regular file.
    Object,
    /// A symbolic link; `node` is the group it is in.
    Link,
    /// A link that does not say where it leads, as a regular file; `node` is the group it is in.
    Damaged,
    /// An object that cannot be read now, as a directory, so that whoever goes down the tree is told; it is listed, and
    /// never looked up. `node` is the group it is in.
    Unread,
    /// The directory of views.
    Views,
    /// The status file.
    Status,
    /// The directory of other files.
    External,
    /// The text of an ASDF tree.
    TreeText,
    /// The directory of ASDF blocks.
    Blocks,
    /// An ASDF block, decoded.
    Block,
    /// Another spelling of an other file's name, as a symbolic link.
    Spelling,
    /// A directory in a tree of views.
    Mirror,
    /// A symbolic link in a tree of views; `node` is the group whose directory it is in.
    MirrorLink,
    /// A view of an object.
    View,
    /// An attribute of an object.
    Attribute,
    /// A part of an array, in any tree; `node` is the group that the array is in.
    Selection,
}

/// An inode that the kernel knows, or a group that has been met.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) what: What,
    /// The state of the source that it belongs to.
    pub(super) generation: u32,
    /// The tree that it stands in.
    pub(super) tree: Tree,
    /// The object, or the group that holds the link.
    pub(super) node: NodeId,
    /// The directory that it was first met in.
    pub(super) parent: u64,
    /// The name that it was first met under, as shown.
    pub(super) name: Box<[u8]>,
}

/// All inodes that the kernel knows, and every group that has been met in what is shown now, so that no group is a
/// directory in two places.
#[derive(Debug)]
pub(super) struct Inodes {
    shards: [Mutex<Table>; SHARDS],
    /// The state of the source that is shown.
    generation: AtomicU32,
}

impl Inodes {
    pub(super) fn new() -> Self {
        Inodes {
            shards: Default::default(),
            generation: AtomicU32::new(0),
        }
    }

    fn shard(&self, ino: u64) -> &Mutex<Table> {
        // Fibonacci hashing: the numbers are addresses, alike in their low bits.
        let mixed = ino.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
        &self.shards[usize::try_from(mixed).unwrap_or(0) % SHARDS]
    }

    /// What `ino` stands for.
    pub(super) fn get(&self, ino: u64) -> Option<Entry> {
        lock(self.shard(ino)).get(ino)
    }

    /// Counts one lookup of `entry` under `ino`; the first one since it was forgotten writes it down.
    /// Gives the number it is known by: that of a link moves on where another has its hash.
    pub(super) fn enter(&self, ino: u64, entry: &Entry) -> u64 {
        let mut ino = ino;
        loop {
            let mut shard = lock(self.shard(ino));
            match shard.get(ino) {
                Some(known) if known.generation == entry.generation => {
                    if is_hash(ino) && !known.is_same_link(entry) {
                        ino = next_hash(ino);
                        continue;
                    }
                }
                _ => shard.put(ino, entry),
            }
            if let Some(lookups) = shard.lookups(ino) {
                *lookups = lookups.saturating_add(1);
            }
            return ino;
        }
    }

    /// The place where the group with number `ino` is a directory: `place` if it had none yet.
    pub(super) fn settle(&self, ino: u64, place: Entry) -> (u64, Box<[u8]>) {
        let mut shard = lock(self.shard(ino));
        let known = shard.get(ino);
        let settled = known.filter(|known| known.is_home(place.generation));
        let home = settled.unwrap_or_else(|| {
            shard.put(ino, &place);
            place
        });
        (home.parent, home.name)
    }

    /// The place where the group with number `ino` is a directory, if it has been met.
    pub(super) fn home(&self, ino: u64, generation: u32) -> Option<(u64, Box<[u8]>)> {
        let known = self.get(ino)?;
        let met = known.is_home(generation);
        met.then_some((known.parent, known.name))
    }

    /// Remembers whether the last listing of the directory `ino` lacks what could not be read then; what was remembered
    /// before.
    pub(super) fn set_unsure(&self, ino: u64, is_unsure: bool) -> bool {
        let mut shard = lock(self.shard(ino));
        let known = shard.unsure(ino);
        known.is_some_and(|known| std::mem::replace(known, is_unsure))
    }

    /// Makes `entry` stand under `ino` from now on, counted or not.
    pub(super) fn pin(&self, ino: u64, entry: &Entry) {
        let mut shard = lock(self.shard(ino));
        shard.put(ino, entry);
        if let Some(lookups) = shard.lookups(ino) {
            *lookups = 0;
        }
    }

    /// Takes back `lookups` lookups. A group of what is shown now keeps its place; all else that has none left is dropped.
    pub(super) fn forget(&self, ino: u64, lookups: u64) {
        let mut shard = lock(self.shard(ino));
        let Some(left) = shard.lookups(ino) else {
            return;
        };
        let lookups = u32::try_from(lookups).unwrap_or(u32::MAX);
        *left = left.saturating_sub(lookups);
        let now = self.generation.load(Ordering::Relaxed);
        if *left == 0 && shard.get(ino).is_some_and(|entry| !entry.stays(now)) {
            shard.remove(ino);
        }
    }

    /// Shows the state `generation` of the source: of the others there stays what the kernel knows, until it forgets that.
    pub(super) fn show(&self, generation: u32) {
        self.generation.store(generation, Ordering::Relaxed);
        for shard in &self.shards {
            lock(shard).drop_unknown(|old, _| old != generation);
        }
    }

    /// Ends a tree of another file: there stays what the kernel knows, until it forgets that, as if it were of an earlier
    /// state of the source.
    pub(super) fn end(&self, tree: Tree) {
        let before = self.generation.load(Ordering::Relaxed).wrapping_sub(1);
        for shard in &self.shards {
            let mut shard = lock(shard);
            shard.outdate(tree, before);
            shard.drop_unknown(|_, of| of == tree);
        }
    }

    /// The trees that something stands in.
    pub(super) fn trees(&self) -> HashSet<Tree> {
        let mut trees = HashSet::new();
        for shard in &self.shards {
            trees.extend(lock(shard).trees());
        }
        trees
    }

    /// The numbers of all that belongs to another state of the source than `generation`.
    pub(super) fn outdated(&self, generation: Option<u32>) -> Vec<u64> {
        let mut outdated = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            let old = shard.generations();
            let old = old.filter(|(_, of)| Some(*of) != generation);
            outdated.extend(old.map(|(ino, _)| ino));
        }
        outdated
    }

    /// The number of inodes that are known.
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }
}

impl Entry {
    fn is_same_link(&self, other: &Entry) -> bool {
        self.node == other.node && self.name == other.name
    }

    /// Whether this is where a group is a directory.
    fn is_home(&self, generation: u32) -> bool {
        self.what == What::Group && self.generation == generation
    }

    /// Whether it is kept though the kernel has forgotten it, where the state `generation` of the source is shown.
    fn stays(&self, generation: u32) -> bool {
        let fixed = matches!(
            self.what,
            What::Group | What::Views | What::Status | What::External
        );
        // So do the roots of the trees of views.
        let views = of_generation(generation, VIEWS);
        self.generation == generation && (fixed || self.parent == views)
    }
}

/// Whether an object's identity can be an inode number in `tree`.
pub(super) fn is_object(tree: Tree, node: NodeId) -> bool {
    node.0 > ROOT && node.0 < if tree == SOURCE { BESIDE } else { HASHED }
}

/// What stands under `number` in the first state of the source has this number in the state
/// `generation`, and the reverse.
///
/// It differs from the numbers of states before, but for objects so far on in their files that the
/// bits of a generation reach theirs; these are turned around, so that after few changes that is
/// beyond terabytes.
pub(super) fn of_generation(generation: u32, number: u64) -> u64 {
    let shift = match number & (LINK | BESIDE) {
        BESIDE => HASHED.trailing_zeros() - u32::BITS,
        _ => BESIDE.trailing_zeros() - u32::BITS,
    };
    match number ^ (u64::from(generation.reverse_bits()) << shift) {
        // No object has its number; the one that would get it is left the one that it has.
        ROOT => number,
        turned => turned,
    }
}

/// The number of an object in `tree`, which is not the root of the source.
pub(super) fn of_node(generation: u32, tree: Tree, node: NodeId) -> u64 {
    let first = match tree {
        SOURCE => node.0,
        _ => within(tree) | (node.0 & (HASHED - 1)),
    };
    of_generation(generation, first)
}

/// The object of a number; the reverse of [`of_node`].
pub(super) fn node_of(generation: u32, ino: u64) -> NodeId {
    let first = of_generation(generation, ino);
    match first & BESIDE {
        0 => NodeId(first),
        _ => NodeId(first & (HASHED - 1)),
    }
}

/// The number of what is shown as `name` in `group` of `tree` and is no object: FNV-1a, so that every mount
/// finds the same.
pub(super) fn of_link(generation: u32, tree: Tree, group: NodeId, name: &[u8]) -> u64 {
    let group = group.0.to_le_bytes();
    let bytes = group.iter().chain(name);
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let first = match tree {
        SOURCE => hash | LINK,
        _ => within(tree) | HASHED | (hash & (HASHED - 1)),
    };
    of_generation(generation, first)
}

fn within(tree: Tree) -> u64 {
    BESIDE | (u64::from(tree) << TREE_SHIFT)
}

/// Whether a number is a hash, which others may have too.
fn is_hash(ino: u64) -> bool {
    ino & LINK != 0 || ino & BESIDE != 0 && ino & HASHED != 0
}

/// The number to try after that of another with the same hash.
fn next_hash(ino: u64) -> u64 {
    if ino & LINK != 0 {
        return ino.wrapping_add(1) | LINK;
    }
    let hash = HASHED - 1;
    (ino & !hash) | (ino.wrapping_add(1) & hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(what: What, parent: u64, name: &[u8]) -> Entry {
        Entry {
            what,
            generation: 1,
            tree: SOURCE,
            node: NodeId(parent),
            parent,
            name: name.into(),
        }
    }

    #[test]
    fn forgets_files_but_not_where_groups_are() {
        let inodes = Inodes::new();
        inodes.show(1);
        inodes.enter(96, &entry(What::Object, 1, b"data"));
        inodes.enter(96, &entry(What::Object, 7, b"same"));
        inodes.enter(800, &entry(What::Group, 1, b"group"));
        inodes.forget(96, 1);
        assert_eq!(&*inodes.get(96).unwrap().name, b"data");
        inodes.forget(96, 1);
        inodes.forget(800, 1);
        assert!(inodes.get(96).is_none());
        let elsewhere = entry(What::Group, 7, b"other");
        assert_eq!(inodes.settle(800, elsewhere), (1, b"group"[..].into()));
    }

    /// A thousand groups that the kernel has forgotten, and one that it knows, of each state.
    #[test]
    fn groups_go_with_their_state_of_the_source() {
        let inodes = Inodes::new();
        let other = inodes.len();
        for generation in 0..8 {
            inodes.show(generation);
            let met = |ino| {
                let group = Entry {
                    generation,
                    ..entry(What::Group, 1, b"group")
                };
                inodes.settle(ino, group.clone());
                inodes.enter(ino, &group)
            };
            let first = 100_000 * u64::from(generation + 1);
            for ino in first..first + 1000 {
                met(ino);
                inodes.forget(ino, 1);
            }
            met(first + 1000);
            let known = usize::try_from(generation).unwrap() + 1;
            assert_eq!(inodes.len(), other + 1000 + known);
        }
        inodes.show(8);
        assert_eq!(inodes.len(), other + 8);
        for generation in 0..8 {
            inodes.forget(100_000 * (generation + 1) + 1000, 1);
        }
        assert_eq!(inodes.len(), other);
    }

    #[test]
    fn groups_go_with_their_tree() {
        let inodes = Inodes::new();
        inodes.show(1);
        for tree in [FIRST_FILE, FIRST_FILE + 1] {
            for node in 100..200 {
                let group = Entry {
                    tree,
                    ..entry(What::Group, 1, b"group")
                };
                inodes.enter(of_node(1, tree, NodeId(node)), &group);
                inodes.forget(of_node(1, tree, NodeId(node)), u64::from(node != 150));
            }
        }
        let known = of_node(1, FIRST_FILE, NodeId(150));
        inodes.end(FIRST_FILE);
        assert_eq!(inodes.len(), 101);
        assert_eq!(inodes.trees(), HashSet::from([FIRST_FILE, FIRST_FILE + 1]));
        assert_ne!(inodes.get(known).unwrap().generation, 1);
        inodes.forget(known, 1);
        assert_eq!(inodes.trees(), HashSet::from([FIRST_FILE + 1]));
        assert_eq!(inodes.len(), 100);
    }

    #[test]
    fn links_with_one_hash_get_two_numbers() {
        let inodes = Inodes::new();
        let first = inodes.enter(LINK | 5, &entry(What::Link, 1, b"a"));
        let second = inodes.enter(LINK | 5, &entry(What::Link, 1, b"b"));
        assert_eq!((first, second), (LINK | 5, LINK | 6));
        assert_eq!(inodes.enter(LINK | 5, &entry(What::Link, 1, b"b")), second);
    }

    #[test]
    fn numbers_of_trees_do_not_meet() {
        let node = NodeId(HASHED - 1);
        for tree in [1, FIRST_FILE, Tree::MAX] {
            for generation in [0, 1, 7, u32::MAX] {
                let object = of_node(generation, tree, node);
                let link = of_link(generation, tree, node, b"x");
                assert_eq!((object >> TREE_SHIFT) & 0xffff, u64::from(tree));
                assert_eq!(node_of(generation, object), node);
                assert!(!is_hash(object) && is_hash(link) && is_hash(next_hash(link)));
                assert!(object < LINK && link < LINK && object >= BESIDE);
            }
        }
        let last = within(7) | HASHED | (HASHED - 1);
        assert_eq!(next_hash(last), within(7) | HASHED);
        assert_eq!(of_node(0, SOURCE, NodeId(800)), 800);
    }

    #[test]
    fn states_of_the_source_have_numbers_of_their_own() {
        let far = NodeId((1 << 32) - 1);
        for tree in [SOURCE, FIRST_VIEW, FIRST_FILE] {
            let mut numbers = HashSet::new();
            for generation in 0..1000 {
                for node in [NodeId(2), NodeId(800), far] {
                    let number = of_node(generation, tree, node);
                    assert_eq!(node_of(generation, number), node);
                    assert!(numbers.insert(number) && number != ROOT);
                }
                assert!(numbers.insert(of_link(generation, tree, far, b"x")));
                assert!(numbers.insert(of_generation(generation, VIEWS)) || tree != SOURCE);
            }
        }
        // An object that a file claims where its number would be the root's.
        let claimed = NodeId(ROOT ^ (1 << 61));
        assert_eq!(of_node(1, SOURCE, claimed), claimed.0);
        assert_eq!(node_of(1, claimed.0), claimed);
    }
}
