//! The inodes that the kernel knows, with the number of lookups that the kernel has not released.

pub(crate) mod table;

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use h5fs_reader::memory::lock::lock;
use h5fs_reader::model::NodeId;

use crate::state::inode::{Inode, NodeType, TreeNumber, is_hash, next_candidate};
use crate::state::inodes::table::InodeTable;

const SHARDS: usize = 16;

/// All inodes that the kernel knows, and the directory of every group found in the current state.
/// The directories ensure that no group is a directory in two places.
#[derive(Debug)]
pub(crate) struct Inodes {
    shards: Box<[Mutex<InodeTable<InodeRecord>>]>,
    /// The generation of the source.
    generation: AtomicU32,
}

/// An [`Inode`] as stored in the table: without its name, and with additional state.
#[derive(Debug, Clone, Copy)]
struct InodeRecord {
    node: NodeId,
    parent: u64,
    generation: u32,
    tree: TreeNumber,
    node_type: NodeType,
    /// Whether the last listing of the directory lacked entries that could not be read.
    is_incomplete: bool,
}

impl InodeRecord {
    fn from_inode(inode: &Inode) -> Self {
        InodeRecord {
            node: inode.node,
            parent: inode.parent,
            generation: inode.generation,
            tree: inode.tree,
            node_type: inode.node_type,
            is_incomplete: false,
        }
    }

    fn into_inode(self, name: &[u8]) -> Inode {
        Inode {
            node_type: self.node_type,
            generation: self.generation,
            tree: self.tree,
            node: self.node,
            parent: self.parent,
            name: name.into(),
        }
    }
}

/// Returns the inode with the number `ino` in the part `shard` of the table.
fn find_inode(shard: &InodeTable<InodeRecord>, ino: u64) -> Option<Inode> {
    shard.get(ino).map(|(found, name)| found.into_inode(name))
}

impl Inodes {
    /// Creates an empty table for a single mounted file.
    pub(crate) fn new() -> Self {
        Self::with_shards(SHARDS)
    }

    /// Creates an empty table for a data file of a mounted directory, which uses little memory.
    pub(crate) fn for_member() -> Self {
        Self::with_shards(1)
    }

    fn with_shards(count: usize) -> Self {
        Inodes {
            shards: (0..count).map(|_| Mutex::default()).collect(),
            generation: AtomicU32::new(0),
        }
    }

    fn shard(&self, ino: u64) -> &Mutex<InodeTable<InodeRecord>> {
        // Fibonacci hashing, because the numbers are addresses with similar low bits.
        let mixed = ino.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
        &self.shards[usize::try_from(mixed).unwrap_or(0) % self.shards.len()]
    }

    /// Returns the inode with the number `ino`.
    pub(crate) fn get(&self, ino: u64) -> Option<Inode> {
        find_inode(&lock(self.shard(ino)), ino)
    }

    /// Increments the lookup count of the inode `entry`, and stores it at its first lookup. `ino`
    /// is the inode number before collisions are resolved. Returns the inode number in use: after a
    /// hash collision, the next free one.
    pub(crate) fn add_lookup(&self, ino: u64, entry: &Inode) -> u64 {
        let mut ino = ino;
        loop {
            let mut shard = lock(self.shard(ino));
            match find_inode(&shard, ino) {
                Some(known) if known.generation == entry.generation => {
                    if is_hash(ino) && !known.is_same_link(entry) {
                        ino = next_candidate(ino);
                        continue;
                    }
                }
                _ => shard.insert(ino, InodeRecord::from_inode(entry), &entry.name),
            }
            if let Some(lookups) = shard.lookup_count_mut(ino) {
                *lookups = lookups.saturating_add(1);
            }
            return ino;
        }
    }

    /// Returns the inode number of the parent and the name of the directory that shows the group
    /// `ino`. If the group has no directory yet, `place` becomes its directory.
    pub(crate) fn directory_location(&self, ino: u64, place: Inode) -> (u64, Box<[u8]>) {
        let mut shard = lock(self.shard(ino));
        let known = find_inode(&shard, ino);
        let settled = known.filter(|known| known.is_group_directory(place.generation));
        let home = settled.unwrap_or_else(|| {
            shard.insert(ino, InodeRecord::from_inode(&place), &place.name);
            place
        });
        (home.parent, home.name)
    }

    /// Returns the inode number of the parent and the name of the directory that shows the group
    /// `ino`, if the group has a directory.
    pub(crate) fn parent_and_name(&self, ino: u64, generation: u32) -> Option<(u64, Box<[u8]>)> {
        let known = self.get(ino)?;
        let met = known.is_group_directory(generation);
        met.then_some((known.parent, known.name))
    }

    /// Records whether the last listing of the directory `ino` lacked entries that could not be
    /// read. Returns the value that was recorded for the listing before.
    pub(crate) fn set_incomplete(&self, ino: u64, is_unsure: bool) -> bool {
        let mut shard = lock(self.shard(ino));
        let known = shard.entry_mut(ino);
        known.is_some_and(|known| std::mem::replace(&mut known.is_incomplete, is_unsure))
    }

    /// Stores `entry` under the inode number `ino` with a lookup count of 0.
    pub(crate) fn insert_unreferenced(&self, ino: u64, entry: &Inode) {
        let mut shard = lock(self.shard(ino));
        shard.insert(ino, InodeRecord::from_inode(entry), &entry.name);
        if let Some(lookups) = shard.lookup_count_mut(ino) {
            *lookups = 0;
        }
    }

    /// Subtracts `lookups` from the lookup count of the inode `ino`. An inode without lookups is
    /// removed, unless it is the directory of a group in the current state.
    pub(crate) fn forget(&self, ino: u64, lookups: u64) {
        let mut shard = lock(self.shard(ino));
        let Some(left) = shard.lookup_count_mut(ino) else {
            return;
        };
        let lookups = u32::try_from(lookups).unwrap_or(u32::MAX);
        *left = left.saturating_sub(lookups);
        let now = self.generation.load(Ordering::Relaxed);
        if *left == 0 && find_inode(&shard, ino).is_some_and(|entry| !entry.is_retained(now)) {
            shard.remove(ino);
        }
    }

    /// Switches to the state `generation` of the source. Inodes of other states stay until the
    /// kernel forgets them.
    pub(crate) fn set_generation(&self, generation: u32) {
        self.generation.store(generation, Ordering::Relaxed);
        for shard in &self.shards {
            lock(shard).remove_unreferenced(|old| old.generation != generation);
        }
    }

    /// Ends the tree with the number `tree`, because the externally linked file that it shows has
    /// changed. The inodes of the tree stay until the kernel forgets them, as if they belonged to
    /// an earlier state of the source.
    pub(crate) fn end_tree(&self, tree: TreeNumber) {
        let before = self.generation.load(Ordering::Relaxed).wrapping_sub(1);
        for shard in &self.shards {
            let mut shard = lock(shard);
            let ended = shard.entries_mut().filter(|entry| entry.tree == tree);
            ended.for_each(|entry| entry.generation = before);
            shard.remove_unreferenced(|entry| entry.tree == tree);
        }
    }

    /// Returns the numbers of the trees that contain inodes.
    pub(crate) fn tree_numbers(&self) -> HashSet<TreeNumber> {
        let mut trees = HashSet::new();
        for shard in &self.shards {
            trees.extend(lock(shard).entries().map(|(_, entry)| entry.tree));
        }
        trees
    }

    /// Returns the numbers of all inodes that belong to a state of the source other than
    /// `generation`.
    pub(crate) fn outdated_numbers(&self, generation: Option<u32>) -> Vec<u64> {
        let mut outdated = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            let old = shard.entries();
            let old = old.filter(|(_, entry)| Some(entry.generation) != generation);
            outdated.extend(old.map(|(ino, _)| ino));
        }
        outdated
    }

    /// Returns the number of known inodes.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::inode::{FIRST_FILE, LINK_BIT, SOURCE, node_number};

    #[test]
    fn an_inode_has_forty_bytes() {
        assert_eq!(size_of::<table::Slot<InodeRecord>>(), 40);
    }

    fn entry(node_type: NodeType, parent: u64, name: &[u8]) -> Inode {
        Inode {
            node_type,
            generation: 1,
            tree: SOURCE,
            node: NodeId::for_test(parent),
            parent,
            name: name.into(),
        }
    }

    #[test]
    fn forgotten_groups_keep_their_location() {
        let inodes = Inodes::new();
        inodes.set_generation(1);
        inodes.add_lookup(96, &entry(NodeType::Object, 1, b"data"));
        inodes.add_lookup(96, &entry(NodeType::Object, 7, b"same"));
        inodes.add_lookup(800, &entry(NodeType::Group, 1, b"group"));
        inodes.forget(96, 1);
        assert_eq!(&*inodes.get(96).unwrap().name, b"data");
        inodes.forget(96, 1);
        inodes.forget(800, 1);
        assert!(inodes.get(96).is_none());
        let elsewhere = entry(NodeType::Group, 7, b"other");
        assert_eq!(
            inodes.directory_location(800, elsewhere),
            (1, b"group"[..].into())
        );
    }

    /// For each state, adds a thousand groups that the kernel has forgotten, and one that the
    /// kernel knows.
    #[test]
    fn groups_are_removed_with_their_source_state() {
        let inodes = Inodes::new();
        let other = inodes.len();
        for generation in 0..8 {
            inodes.set_generation(generation);
            let met = |ino| {
                let group = Inode {
                    generation,
                    ..entry(NodeType::Group, 1, b"group")
                };
                inodes.directory_location(ino, group.clone());
                inodes.add_lookup(ino, &group)
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
        inodes.set_generation(8);
        assert_eq!(inodes.len(), other + 8);
        for generation in 0..8 {
            inodes.forget(100_000 * (generation + 1) + 1000, 1);
        }
        assert_eq!(inodes.len(), other);
    }

    #[test]
    fn groups_are_removed_with_their_tree() {
        let inodes = Inodes::new();
        inodes.set_generation(1);
        for tree in [FIRST_FILE, FIRST_FILE + 1] {
            for node in 100..200 {
                let group = Inode {
                    tree,
                    ..entry(NodeType::Group, 1, b"group")
                };
                inodes.add_lookup(node_number(1, tree, NodeId::for_test(node)), &group);
                inodes.forget(
                    node_number(1, tree, NodeId::for_test(node)),
                    u64::from(node != 150),
                );
            }
        }
        let known = node_number(1, FIRST_FILE, NodeId::for_test(150));
        inodes.end_tree(FIRST_FILE);
        assert_eq!(inodes.len(), 101);
        assert_eq!(
            inodes.tree_numbers(),
            HashSet::from([FIRST_FILE, FIRST_FILE + 1])
        );
        assert_ne!(inodes.get(known).unwrap().generation, 1);
        inodes.forget(known, 1);
        assert_eq!(inodes.tree_numbers(), HashSet::from([FIRST_FILE + 1]));
        assert_eq!(inodes.len(), 100);
    }

    #[test]
    fn links_with_one_hash_get_two_numbers() {
        let inodes = Inodes::new();
        let first = inodes.add_lookup(LINK_BIT | 5, &entry(NodeType::Link, 1, b"a"));
        let second = inodes.add_lookup(LINK_BIT | 5, &entry(NodeType::Link, 1, b"b"));
        assert_eq!((first, second), (LINK_BIT | 5, LINK_BIT | 6));
        assert_eq!(
            inodes.add_lookup(LINK_BIT | 5, &entry(NodeType::Link, 1, b"b")),
            second
        );
    }
}
