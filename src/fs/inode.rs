//! Inode numbers, and what they stand for.
//!
//! | number | what |
//! |---|---|
//! | 1 | the root |
//! | below 2^62 | an object of the file: its [`NodeId`] |
//! | bit 63 set | a link that is no hard link: a hash of its group and name |
//! | bit 62 set | what stands beside the file's tree: views |
//!
//! The first three are the same in every mount of an unchanged file.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::fs::lock;
use crate::model::NodeId;

/// The root's number.
pub(super) const ROOT: u64 = 1;
/// The number of the directory of views.
pub(super) const VIEWS: u64 = BESIDE;
/// The number of the status file in it.
pub(super) const STATUS: u64 = BESIDE | 1;

const LINK: u64 = 1 << 63;
const BESIDE: u64 = 1 << 62;
const SHARDS: usize = 16;

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
    /// The directory of views.
    Views,
    /// The status file.
    Status,
}

/// An inode that the kernel knows, or a group that has been met.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) what: What,
    /// The state of the source that it belongs to.
    pub(super) generation: u32,
    /// The object, or the group that holds the link.
    pub(super) node: NodeId,
    /// The directory that it was first met in.
    pub(super) parent: u64,
    /// The name that it was first met under, as shown.
    pub(super) name: Box<[u8]>,
}

#[derive(Debug)]
struct Slot {
    entry: Entry,
    lookups: u32,
}

/// All inodes that the kernel knows, and every group that has been met, so that no group is a
/// directory in two places.
#[derive(Debug)]
pub(super) struct Inodes {
    shards: [Mutex<HashMap<u64, Slot>>; SHARDS],
}

impl Inodes {
    pub(super) fn new() -> Self {
        Inodes {
            shards: Default::default(),
        }
    }

    fn shard(&self, ino: u64) -> &Mutex<HashMap<u64, Slot>> {
        // Fibonacci hashing: the numbers are addresses, alike in their low bits.
        let mixed = ino.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
        &self.shards[usize::try_from(mixed).unwrap_or(0) % SHARDS]
    }

    /// What `ino` stands for.
    pub(super) fn get(&self, ino: u64) -> Option<Entry> {
        lock(self.shard(ino))
            .get(&ino)
            .map(|slot| slot.entry.clone())
    }

    /// Counts one lookup of `entry` under `ino`; the first one since it was forgotten writes it down.
    /// Gives the number it is known by: that of a link moves on where another has its hash.
    pub(super) fn enter(&self, ino: u64, entry: Entry) -> u64 {
        let mut ino = ino;
        loop {
            let mut shard = lock(self.shard(ino));
            match shard.get_mut(&ino) {
                None => {
                    shard.insert(ino, Slot { entry, lookups: 1 });
                    return ino;
                }
                Some(slot) if slot.entry.generation != entry.generation => {
                    slot.entry = entry;
                    slot.lookups = slot.lookups.saturating_add(1);
                    return ino;
                }
                Some(slot) if ino & LINK == 0 || slot.entry.is_same_link(&entry) => {
                    slot.lookups = slot.lookups.saturating_add(1);
                    return ino;
                }
                Some(_) => ino = ino.wrapping_add(1) | LINK,
            }
        }
    }

    /// The place where the group with number `ino` is a directory: `place` if it had none yet.
    pub(super) fn settle(&self, ino: u64, place: Entry) -> (u64, Box<[u8]>) {
        let mut shard = lock(self.shard(ino));
        if let Some(slot) = shard.get_mut(&ino) {
            if slot.entry.generation != place.generation || slot.entry.what != What::Group {
                slot.entry = place;
            }
            return (slot.entry.parent, slot.entry.name.clone());
        }
        let here = (place.parent, place.name.clone());
        let slot = Slot {
            entry: place,
            lookups: 0,
        };
        shard.insert(ino, slot);
        here
    }

    /// The place where the group with number `ino` is a directory, if it has been met.
    pub(super) fn home(&self, ino: u64, generation: u32) -> Option<(u64, Box<[u8]>)> {
        let shard = lock(self.shard(ino));
        let entry = &shard.get(&ino)?.entry;
        let met = entry.what == What::Group && entry.generation == generation;
        met.then(|| (entry.parent, entry.name.clone()))
    }

    /// Makes `entry` stand under `ino` from now on, counted or not.
    pub(super) fn pin(&self, ino: u64, entry: Entry) {
        let slot = Slot { entry, lookups: 0 };
        lock(self.shard(ino)).insert(ino, slot);
    }

    /// Takes back `lookups` lookups. A group keeps its place; all else that has none left is dropped.
    pub(super) fn forget(&self, ino: u64, lookups: u64) {
        let mut shard = lock(self.shard(ino));
        let Some(slot) = shard.get_mut(&ino) else {
            return;
        };
        let lookups = u32::try_from(lookups).unwrap_or(u32::MAX);
        slot.lookups = slot.lookups.saturating_sub(lookups);
        let passing = matches!(slot.entry.what, What::Object | What::Link | What::Damaged);
        if slot.lookups == 0 && passing {
            shard.remove(&ino);
        }
    }

    /// The numbers of all that belongs to another state of the source than `generation`.
    pub(super) fn outdated(&self, generation: Option<u32>) -> Vec<u64> {
        let mut outdated = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            let old = |slot: &Slot| Some(slot.entry.generation) != generation;
            outdated.extend(
                shard
                    .iter()
                    .filter(|(_, slot)| old(slot))
                    .map(|(ino, _)| ino),
            );
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
}

/// Whether an object's identity can be an inode number.
pub(super) fn is_object(node: NodeId) -> bool {
    node.0 > ROOT && node.0 < BESIDE
}

/// The number of the link shown as `name` in `group`: FNV-1a, so that every mount finds the same.
pub(super) fn of_link(group: NodeId, name: &[u8]) -> u64 {
    let group = group.0.to_le_bytes();
    let bytes = group.iter().chain(name);
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash | LINK
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(what: What, parent: u64, name: &[u8]) -> Entry {
        Entry {
            what,
            generation: 1,
            node: NodeId(parent),
            parent,
            name: name.into(),
        }
    }

    #[test]
    fn forgets_files_but_not_where_groups_are() {
        let inodes = Inodes::new();
        inodes.enter(96, entry(What::Object, 1, b"data"));
        inodes.enter(96, entry(What::Object, 7, b"same"));
        inodes.enter(800, entry(What::Group, 1, b"group"));
        inodes.forget(96, 1);
        assert_eq!(&*inodes.get(96).unwrap().name, b"data");
        inodes.forget(96, 1);
        inodes.forget(800, 1);
        assert!(inodes.get(96).is_none());
        let elsewhere = entry(What::Group, 7, b"other");
        assert_eq!(inodes.settle(800, elsewhere), (1, b"group"[..].into()));
    }

    #[test]
    fn links_with_one_hash_get_two_numbers() {
        let inodes = Inodes::new();
        let first = inodes.enter(LINK | 5, entry(What::Link, 1, b"a"));
        let second = inodes.enter(LINK | 5, entry(What::Link, 1, b"b"));
        assert_eq!((first, second), (LINK | 5, LINK | 6));
        assert_eq!(inodes.enter(LINK | 5, entry(What::Link, 1, b"b")), second);
    }
}
