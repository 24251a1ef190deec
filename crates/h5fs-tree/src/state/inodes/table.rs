//! A compact table of named entries by inode number. Each inode needs only 50 bytes in addition to
//! its name, because there may be millions of inodes.
//!
//! `find` and `ls -l` look up every name of a directory, and the kernel forgets names only when it
//! needs memory. So entries are stored contiguously, and so are names.

use h5fs_reader::memory::name_arena::{NameArena, NamePosition};
use h5fs_reader::memory::positions::PositionMap;

/// Total length of removed names, in bytes, below which names are not compacted.
const MAX_UNUSED_NAME_BYTES: usize = 64 << 10;

/// A table of entries by inode number, each with a name and a lookup count.
#[derive(Debug)]
pub(crate) struct InodeTable<E> {
    positions: PositionMap,
    slots: Vec<Slot<E>>,
    names: NameArena,
    /// Total length of the removed names that still occupy memory, in bytes.
    unused: usize,
}

/// An entry with its inode number, lookup count and name.
#[derive(Debug)]
pub(super) struct Slot<E> {
    ino: u64,
    entry: E,
    lookups: u32,
    /// Position of the name in the buffer of all names.
    name: NamePosition,
}

impl<E> Default for InodeTable<E> {
    fn default() -> Self {
        InodeTable {
            positions: PositionMap::default(),
            slots: Vec::new(),
            names: NameArena::default(),
            unused: 0,
        }
    }
}

impl<E: Copy> InodeTable<E> {
    fn position(&self, ino: u64) -> Option<usize> {
        let found = self.positions.get(ino, |at| number(&self.slots, at));
        found.map(index)
    }

    /// Returns the entry with the inode number `ino`, and its name.
    pub(crate) fn get(&self, ino: u64) -> Option<(E, &[u8])> {
        let slot = &self.slots[self.position(ino)?];
        Some((slot.entry, self.names.get(slot.name)))
    }

    /// Returns a mutable reference to the entry with the inode number `ino`.
    pub(crate) fn entry_mut(&mut self, ino: u64) -> Option<&mut E> {
        let at = self.position(ino)?;
        Some(&mut self.slots[at].entry)
    }

    /// Returns a mutable reference to the lookup count of the inode `ino`.
    pub(crate) fn lookup_count_mut(&mut self, ino: u64) -> Option<&mut u32> {
        let at = self.position(ino)?;
        Some(&mut self.slots[at].lookups)
    }

    /// Stores `entry` under the inode number `ino`. If the number had an entry, its lookup count
    /// stays; otherwise the lookup count is 0.
    pub(crate) fn insert(&mut self, ino: u64, entry: E, name: &[u8]) {
        // The arena refuses only names longer than a directory can show, and more names than memory
        // can hold.
        let Some(name) = self.names.put(name) else {
            return;
        };
        let old = self.position(ino);
        let mut slot = Slot {
            ino,
            entry,
            lookups: 0,
            name,
        };
        match old {
            Some(at) => {
                let old = &mut self.slots[at];
                slot.lookups = old.lookups;
                let old = std::mem::replace(old, slot);
                self.mark_name_unused(old.name);
            }
            None => {
                // Four billion entries of one table would not fit into memory.
                let Ok(at) = u32::try_from(self.slots.len()) else {
                    return;
                };
                self.slots.push(slot);
                self.positions.insert(ino, at, |at| number(&self.slots, at));
            }
        }
    }

    /// Removes the entry with the inode number `ino`.
    pub(crate) fn remove(&mut self, ino: u64) {
        let find = |table: &Self, ino| table.positions.get(ino, |at| number(&table.slots, at));
        let Some(at) = find(self, ino) else { return };
        let last = self
            .slots
            .last()
            .and_then(|slot| Some((slot.ino, find(self, slot.ino)?)));
        self.positions.remove(ino, at);
        // The last entry moves into the gap.
        if let Some((moved, from)) = last
            && from != at
        {
            self.positions.replace(moved, from, at);
        }
        let removed = self.slots.swap_remove(index(at));
        self.mark_name_unused(removed.name);
    }

    /// Marks the memory of a name as unused. Compacts the buffer of names if most of it is unused.
    fn mark_name_unused(&mut self, name: NamePosition) {
        self.unused += self.names.stored_bytes(name);
        if self.unused < MAX_UNUSED_NAME_BYTES + self.names.weight() / 2 {
            return;
        }
        let old = std::mem::take(&mut self.names);
        self.unused = 0;
        for slot in &mut self.slots {
            // The insertion always succeeds, because all of the old names fitted before.
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

    /// Iterates over all entries and their inode numbers.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u64, &E)> {
        self.slots.iter().map(|slot| (slot.ino, &slot.entry))
    }

    /// Iterates over all entries mutably.
    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = &mut E> {
        self.slots.iter_mut().map(|slot| &mut slot.entry)
    }

    /// Removes all entries without lookups for which `is_gone` returns true.
    pub(super) fn remove_unreferenced(&mut self, is_gone: impl Fn(&E) -> bool) {
        let slots = self.slots.iter();
        let gone = slots.filter(|slot| slot.lookups == 0 && is_gone(&slot.entry));
        let gone: Vec<u64> = gone.map(|slot| slot.ino).collect();
        for ino in gone {
            self.remove(ino);
        }
        if self.slots.len() < self.slots.capacity() / 2 {
            self.shrink();
        }
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }
}

fn number<E>(slots: &[Slot<E>], position: u32) -> u64 {
    slots[index(position)].ino
}

fn index(position: u32) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(i: u64) -> String {
        format!("entry number {i}")
    }

    #[test]
    fn inserted_entries_are_found() {
        let mut table = InodeTable::default();
        table.insert(800, 'a', b"a");
        *table.lookup_count_mut(800).unwrap() += 3;
        table.insert(800, 'b', b"another");
        assert_eq!(table.get(800), Some(('b', &b"another"[..])));
        assert_eq!(table.lookup_count_mut(800), Some(&mut 3));
        assert!(table.get(801).is_none() && table.lookup_count_mut(801).is_none());
        table.remove(801);
        assert_eq!(table.len(), 1);
    }

    /// Every third entry stays. The memory of the others is freed.
    #[test]
    fn removed_entries_free_memory() {
        let mut table = InodeTable::default();
        for i in 0..30_000 {
            table.insert(i * 64, i, name(i).as_bytes());
        }
        let full = table.names.weight();
        for i in (0..30_000).filter(|i| i % 3 != 0) {
            table.remove(i * 64);
        }
        assert_eq!(table.len(), 10_000);
        assert!(table.names.weight() < full * 2 / 3);
        for i in 0..30_000 {
            let found = table
                .get(i * 64)
                .map(|(entry, name)| (entry, name.to_vec()));
            let wanted = (i % 3 == 0).then(|| (i, name(i).into_bytes()));
            assert_eq!(found, wanted, "{i}");
        }
    }
}
