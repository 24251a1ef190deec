//! The inodes that the kernel knows, with a count of its lookups.

pub(in crate::fs) mod table;

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::fs::state::inode::{Inode, NodeType, Tree, is_hash, next_hash};
use crate::fs::state::inodes::table::Table;
use crate::memory::lock::lock;
use crate::model::NodeId;

const SHARDS: usize = 16;

/// All inodes that the kernel knows, and every group that has been met in what is shown now, so
/// that no group is a directory in two places.
#[derive(Debug)]
pub(in crate::fs) struct Inodes {
    shards: Box<[Mutex<Table<Numbered>>]>,
    /// The state of the source that is shown.
    generation: AtomicU32,
}

/// An [`Inode`] without its name, and what belongs to it.
#[derive(Debug, Clone, Copy)]
struct Numbered {
    node: NodeId,
    parent: u64,
    generation: u32,
    tree: Tree,
    node_type: NodeType,
    /// Of a directory: its last listing was not whole.
    unsure: bool,
}

impl Numbered {
    fn of(inode: &Inode) -> Self {
        Numbered {
            node: inode.node,
            parent: inode.parent,
            generation: inode.generation,
            tree: inode.tree,
            node_type: inode.node_type,
            unsure: false,
        }
    }

    fn named(self, name: &[u8]) -> Inode {
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

/// The inode with the number `ino` in `shard`.
fn find(shard: &Table<Numbered>, ino: u64) -> Option<Inode> {
    shard.get(ino).map(|(found, name)| found.named(name))
}

impl Inodes {
    /// None yet, of the one file that is mounted.
    pub(in crate::fs) fn new() -> Self {
        Self::in_shards(SHARDS)
    }

    /// None yet, of one of many files, in as little room as can be.
    pub(in crate::fs) fn of_a_member() -> Self {
        Self::in_shards(1)
    }

    fn in_shards(count: usize) -> Self {
        Inodes {
            shards: (0..count).map(|_| Mutex::default()).collect(),
            generation: AtomicU32::new(0),
        }
    }

    fn shard(&self, ino: u64) -> &Mutex<Table<Numbered>> {
        // Fibonacci hashing: the numbers are addresses, alike in their low bits.
        let mixed = ino.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
        &self.shards[usize::try_from(mixed).unwrap_or(0) % self.shards.len()]
    }

    /// The inode with the number `ino`.
    pub(in crate::fs) fn get(&self, ino: u64) -> Option<Inode> {
        find(&lock(self.shard(ino)), ino)
    }

    /// Counts one lookup of `entry` under `ino`; the first one since it was forgotten writes it
    /// down. Gives the number it is known by: that of a link moves on where another has its hash.
    pub(in crate::fs) fn enter(&self, ino: u64, entry: &Inode) -> u64 {
        let mut ino = ino;
        loop {
            let mut shard = lock(self.shard(ino));
            match find(&shard, ino) {
                Some(known) if known.generation == entry.generation => {
                    if is_hash(ino) && !known.is_same_link(entry) {
                        ino = next_hash(ino);
                        continue;
                    }
                }
                _ => shard.put(ino, Numbered::of(entry), &entry.name),
            }
            if let Some(lookups) = shard.lookups(ino) {
                *lookups = lookups.saturating_add(1);
            }
            return ino;
        }
    }

    /// The place where the group with number `ino` is a directory: `place` if it had none yet.
    pub(in crate::fs) fn settle(&self, ino: u64, place: Inode) -> (u64, Box<[u8]>) {
        let mut shard = lock(self.shard(ino));
        let known = find(&shard, ino);
        let settled = known.filter(|known| known.is_home(place.generation));
        let home = settled.unwrap_or_else(|| {
            shard.put(ino, Numbered::of(&place), &place.name);
            place
        });
        (home.parent, home.name)
    }

    /// The place where the group with number `ino` is a directory, if it has been met.
    pub(in crate::fs) fn home(&self, ino: u64, generation: u32) -> Option<(u64, Box<[u8]>)> {
        let known = self.get(ino)?;
        let met = known.is_home(generation);
        met.then_some((known.parent, known.name))
    }

    /// Remembers whether the last listing of the directory `ino` lacks what could not be read then;
    /// what was remembered before.
    pub(in crate::fs) fn set_unsure(&self, ino: u64, is_unsure: bool) -> bool {
        let mut shard = lock(self.shard(ino));
        let known = shard.entry(ino);
        known.is_some_and(|known| std::mem::replace(&mut known.unsure, is_unsure))
    }

    /// Makes `entry` stand under `ino` from now on, counted or not.
    pub(in crate::fs) fn pin(&self, ino: u64, entry: &Inode) {
        let mut shard = lock(self.shard(ino));
        shard.put(ino, Numbered::of(entry), &entry.name);
        if let Some(lookups) = shard.lookups(ino) {
            *lookups = 0;
        }
    }

    /// Takes back `lookups` lookups. A group of what is shown now keeps its place; all else that
    /// has none left is dropped.
    pub(in crate::fs) fn forget(&self, ino: u64, lookups: u64) {
        let mut shard = lock(self.shard(ino));
        let Some(left) = shard.lookups(ino) else {
            return;
        };
        let lookups = u32::try_from(lookups).unwrap_or(u32::MAX);
        *left = left.saturating_sub(lookups);
        let now = self.generation.load(Ordering::Relaxed);
        if *left == 0 && find(&shard, ino).is_some_and(|entry| !entry.stays(now)) {
            shard.remove(ino);
        }
    }

    /// Shows the state `generation` of the source: of the others there stays what the kernel knows,
    /// until it forgets that.
    pub(in crate::fs) fn show(&self, generation: u32) {
        self.generation.store(generation, Ordering::Relaxed);
        for shard in &self.shards {
            lock(shard).drop_unknown(|old| old.generation != generation);
        }
    }

    /// Ends a tree of another file: there stays what the kernel knows, until it forgets that, as if
    /// it were of an earlier state of the source.
    pub(in crate::fs) fn end(&self, tree: Tree) {
        let before = self.generation.load(Ordering::Relaxed).wrapping_sub(1);
        for shard in &self.shards {
            let mut shard = lock(shard);
            let ended = shard.entries_mut().filter(|entry| entry.tree == tree);
            ended.for_each(|entry| entry.generation = before);
            shard.drop_unknown(|entry| entry.tree == tree);
        }
    }

    /// The trees that something stands in.
    pub(in crate::fs) fn trees(&self) -> HashSet<Tree> {
        let mut trees = HashSet::new();
        for shard in &self.shards {
            trees.extend(lock(shard).entries().map(|(_, entry)| entry.tree));
        }
        trees
    }

    /// The numbers of all that belongs to another state of the source than `generation`.
    pub(in crate::fs) fn outdated(&self, generation: Option<u32>) -> Vec<u64> {
        let mut outdated = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            let old = shard.entries();
            let old = old.filter(|(_, entry)| Some(entry.generation) != generation);
            outdated.extend(old.map(|(ino, _)| ino));
        }
        outdated
    }

    /// The number of inodes that are known.
    pub(in crate::fs) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::state::inode::{FIRST_FILE, LINK, SOURCE, of_node};

    #[test]
    fn an_inode_has_forty_bytes() {
        assert_eq!(size_of::<table::Slot<Numbered>>(), 40);
    }

    fn entry(node_type: NodeType, parent: u64, name: &[u8]) -> Inode {
        Inode {
            node_type,
            generation: 1,
            tree: SOURCE,
            node: NodeId::of(parent),
            parent,
            name: name.into(),
        }
    }

    #[test]
    fn forgets_files_but_not_where_groups_are() {
        let inodes = Inodes::new();
        inodes.show(1);
        inodes.enter(96, &entry(NodeType::Object, 1, b"data"));
        inodes.enter(96, &entry(NodeType::Object, 7, b"same"));
        inodes.enter(800, &entry(NodeType::Group, 1, b"group"));
        inodes.forget(96, 1);
        assert_eq!(&*inodes.get(96).unwrap().name, b"data");
        inodes.forget(96, 1);
        inodes.forget(800, 1);
        assert!(inodes.get(96).is_none());
        let elsewhere = entry(NodeType::Group, 7, b"other");
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
                let group = Inode {
                    generation,
                    ..entry(NodeType::Group, 1, b"group")
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
                let group = Inode {
                    tree,
                    ..entry(NodeType::Group, 1, b"group")
                };
                inodes.enter(of_node(1, tree, NodeId::of(node)), &group);
                inodes.forget(of_node(1, tree, NodeId::of(node)), u64::from(node != 150));
            }
        }
        let known = of_node(1, FIRST_FILE, NodeId::of(150));
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
        let first = inodes.enter(LINK | 5, &entry(NodeType::Link, 1, b"a"));
        let second = inodes.enter(LINK | 5, &entry(NodeType::Link, 1, b"b"));
        assert_eq!((first, second), (LINK | 5, LINK | 6));
        assert_eq!(
            inodes.enter(LINK | 5, &entry(NodeType::Link, 1, b"b")),
            second
        );
    }
}
