//! Inodes by number, in as little room as a million of them should take: 50 bytes for each, and its
//! name.
//!
//! `find` and `ls -l` look up every name of a directory, and the kernel forgets none of them before
//! it needs the memory. So the entries stand close together, and their names behind one another.

use crate::fs::inode::{Inode, NodeType, Tree};
use crate::memory::name_arena::{NameArena, NameAt};
use crate::memory::positions::Positions;
use crate::model::NodeId;

/// Bytes of removed names that are not worth the work of moving the others together.
const WASTE: usize = 64 << 10;

/// Entries, each under a number of its own, with a count.
#[derive(Debug, Default)]
pub(super) struct Table {
    positions: Positions,
    slots: Vec<Slot>,
    names: NameArena,
    /// Bytes of names that no entry has any more.
    unused: usize,
}

/// An [`Inode`] and what belongs to it.
#[derive(Debug)]
struct Slot {
    ino: u64,
    node: NodeId,
    parent: u64,
    generation: u32,
    lookups: u32,
    /// Where the name stands among the names.
    name: NameAt,
    tree: Tree,
    node_type: NodeType,
    /// Of a directory: its last listing was not whole.
    unsure: bool,
}

impl Table {
    fn position(&self, ino: u64) -> Option<usize> {
        let found = self.positions.get(ino, |at| number(&self.slots, at));
        found.map(index)
    }

    /// The inode under `ino`.
    pub(super) fn get(&self, ino: u64) -> Option<Inode> {
        let slot = &self.slots[self.position(ino)?];
        Some(Inode {
            node_type: slot.node_type,
            generation: slot.generation,
            tree: slot.tree,
            node: slot.node,
            parent: slot.parent,
            name: self.names.get(slot.name).into(),
        })
    }

    /// The count of what stands under `ino`.
    pub(super) fn lookups(&mut self, ino: u64) -> Option<&mut u32> {
        let at = self.position(ino)?;
        Some(&mut self.slots[at].lookups)
    }

    /// Whether the last listing of what stands under `ino` was not whole.
    pub(super) fn unsure(&mut self, ino: u64) -> Option<&mut bool> {
        let at = self.position(ino)?;
        Some(&mut self.slots[at].unsure)
    }

    /// Has `entry` stand under `ino`. The count of what stood there stays; else it is 0.
    pub(super) fn put(&mut self, ino: u64, entry: &Inode) {
        // No directory shows a name that is too long, and no memory holds too many.
        let Some(name) = self.names.put(&entry.name) else {
            return;
        };
        let old = self.position(ino);
        let mut slot = Slot {
            ino,
            node: entry.node,
            parent: entry.parent,
            generation: entry.generation,
            lookups: 0,
            name,
            tree: entry.tree,
            node_type: entry.node_type,
            unsure: false,
        };
        match old {
            Some(at) => {
                let old = &mut self.slots[at];
                slot.lookups = old.lookups;
                let old = std::mem::replace(old, slot);
                self.waste(old.name);
            }
            None => {
                // Four billion entries in one of the tables have no room in memory.
                let Ok(at) = u32::try_from(self.slots.len()) else {
                    return;
                };
                self.slots.push(slot);
                self.positions.insert(ino, at, |at| number(&self.slots, at));
            }
        }
    }

    /// Takes out what stands under `ino`.
    pub(super) fn remove(&mut self, ino: u64) {
        let find = |table: &Self, ino| table.positions.get(ino, |at| number(&table.slots, at));
        let Some(at) = find(self, ino) else { return };
        let last = self
            .slots
            .last()
            .and_then(|slot| Some((slot.ino, find(self, slot.ino)?)));
        self.positions.remove(ino, at);
        // The last one moves into the gap.
        if let Some((moved, from)) = last
            && from != at
        {
            self.positions.replace(moved, from, at);
        }
        let removed = self.slots.swap_remove(index(at));
        self.waste(removed.name);
    }

    /// Counts the name as unused; where most of them are, moves the others together.
    fn waste(&mut self, name: NameAt) {
        self.unused += self.names.bytes_of(name);
        if self.unused < WASTE + self.names.weight() / 2 {
            return;
        }
        let old = std::mem::take(&mut self.names);
        self.unused = 0;
        for slot in &mut self.slots {
            // There is room for a part of the names where there was for all.
            if let Some(name) = self.names.put(old.get(slot.name)) {
                slot.name = name;
            }
        }
        self.shrink();
    }

    fn shrink(&mut self) {
        self.slots.shrink_to_fit();
        self.positions.shrink(|at| number(&self.slots, at));
    }

    /// The numbers, each with the state of the source that its entry belongs to.
    pub(super) fn generations(&self) -> impl Iterator<Item = (u64, u32)> {
        self.slots.iter().map(|slot| (slot.ino, slot.generation))
    }

    /// The tree of each entry.
    pub(super) fn trees(&self) -> impl Iterator<Item = Tree> {
        self.slots.iter().map(|slot| slot.tree)
    }

    /// Has what stands in `tree` belong to the state `generation`.
    pub(super) fn outdate(&mut self, tree: Tree, generation: u32) {
        let slots = self.slots.iter_mut();
        for slot in slots.filter(|slot| slot.tree == tree) {
            slot.generation = generation;
        }
    }

    /// Takes out what is counted 0 and `is_gone` accepts by its state of the source and its tree.
    pub(super) fn drop_unknown(&mut self, is_gone: impl Fn(u32, Tree) -> bool) {
        let slots = self.slots.iter();
        let gone = slots.filter(|slot| slot.lookups == 0 && is_gone(slot.generation, slot.tree));
        let gone: Vec<u64> = gone.map(|slot| slot.ino).collect();
        for ino in gone {
            self.remove(ino);
        }
        if self.slots.len() < self.slots.capacity() / 2 {
            self.shrink();
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}

fn number(slots: &[Slot], position: u32) -> u64 {
    slots[index(position)].ino
}

fn index(position: u32) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> Inode {
        Inode {
            node_type: NodeType::Object,
            generation: 1,
            tree: 0,
            node: NodeId::of(7),
            parent: 1,
            name: name.as_bytes().into(),
        }
    }

    fn name(i: u64) -> String {
        format!("entry number {i}")
    }

    #[test]
    fn what_is_put_is_found() {
        let mut table = Table::default();
        table.put(800, &entry("a"));
        *table.lookups(800).unwrap() += 3;
        table.put(800, &entry("another"));
        assert_eq!(*table.get(800).unwrap().name, *b"another");
        assert_eq!(table.lookups(800), Some(&mut 3));
        assert!(table.get(801).is_none() && table.lookups(801).is_none());
        table.remove(801);
        assert_eq!(table.len(), 1);
    }

    /// Every third stays; room is given back for the others.
    #[test]
    fn what_is_removed_leaves_room() {
        let mut table = Table::default();
        for i in 0..30_000 {
            table.put(i * 64, &entry(&name(i)));
        }
        let full = table.names.weight();
        for i in (0..30_000).filter(|i| i % 3 != 0) {
            table.remove(i * 64);
        }
        assert_eq!(table.len(), 10_000);
        assert!(table.names.weight() < full * 2 / 3);
        for i in 0..30_000 {
            let found = table.get(i * 64).map(|entry| entry.name);
            let wanted = (i % 3 == 0).then(|| name(i).into_bytes().into_boxed_slice());
            assert_eq!(found, wanted, "{i}");
        }
    }

    #[test]
    fn a_slot_has_forty_bytes() {
        assert_eq!(size_of::<Slot>(), 40);
    }
}
