//! The files and directories of an archive that the kernel knows, by their numbers.
//!
//! A name gets its number from its directory's number and itself, so that a mount gives a name the
//! same number as long as it lasts, whatever the kernel has forgotten meanwhile.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::fs::stat::Kind;
use crate::fs::state::inode::ROOT;
use crate::fs::state::inodes::table::Table;
use crate::joined::choice;
use crate::memory::lock::lock;

/// The number of `.h5fs` at the root of an archive.
pub(super) const VIEWS: u64 = 2;

/// The number of the tree of the files' own bytes in it.
pub(super) const ORIGINAL: u64 = 3;

/// The numbers of the files there that tell what the mount does.
pub(super) const STATUS: u64 = 4;
pub(super) const METRICS: u64 = 5;
pub(super) const ERRORS: u64 = 6;

/// The numbers of the directory of all files as one, and of the link to its store.
pub(super) const JOINED: u64 = 7;
pub(super) const JOINED_STORE: u64 = 8;

/// The last number that stands always.
const LAST: u64 = JOINED_STORE;

/// The bit of the numbers of entries; the inodes within a data file do not have it.
const ENTRY: u64 = 1 << 63;

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    Directory,
    /// A file of a known format, which is a directory in the mount.
    DataFile,
    /// Many data files as one.
    Joined,
    /// Any other regular file, or the own bytes of any.
    File,
    Symlink,
}

impl EntryKind {
    /// Whether a data file stands there, or several as one.
    pub(super) fn has_objects(self) -> bool {
        matches!(self, EntryKind::DataFile | EntryKind::Joined)
    }

    /// The kind of file that it is in the mount.
    pub(super) fn shown(self) -> Kind {
        match self {
            EntryKind::Directory | EntryKind::DataFile | EntryKind::Joined => Kind::Directory,
            EntryKind::File => Kind::File,
            EntryKind::Symlink => Kind::Symlink,
        }
    }
}

/// What is known of an entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) parent: u64,
    pub(super) kind: EntryKind,
    /// Whether it stands in the tree of the files' own bytes.
    pub(super) is_original: bool,
    /// A hash of the state of the file that `kind` was found in.
    pub(super) state: u32,
    /// The number of the file in its filesystem.
    pub(super) file: u64,
}

/// All entries that the kernel knows.
#[derive(Debug, Default)]
pub(super) struct Entries {
    table: Mutex<Table<Place>>,
}

/// Whether `ino` is the number of an entry, or one of the numbers that stand always.
pub(super) fn is_entry(ino: u64) -> bool {
    ino & ENTRY != 0 || ino <= LAST
}

/// The number that an entry has unless another one has the same hash: FNV-1a.
pub(super) fn number(parent: u64, name: &[u8]) -> u64 {
    hash(parent, name) | ENTRY
}

/// The number of the inode that has the number `local` in the data file with the number `entry`,
/// unless another one has the same hash.
pub(super) fn number_within(entry: u64, local: u64) -> u64 {
    let hashed = hash(entry, &local.to_le_bytes()) & !ENTRY;
    hashed.max(LAST + 1)
}

/// The number to try after that of another with the same hash.
pub(super) fn next(ino: u64) -> u64 {
    match ino & ENTRY {
        0 => (ino.wrapping_add(1) & !ENTRY).max(LAST + 1),
        _ => ino.wrapping_add(1) | ENTRY,
    }
}

fn hash(number: u64, bytes: &[u8]) -> u64 {
    let number = number.to_le_bytes();
    let bytes = number.iter().chain(bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Entries {
    /// Counts a lookup of `name`, which is known as `place` from now on; its number.
    pub(super) fn enter(&self, name: &[u8], place: Place) -> u64 {
        let mut table = lock(&self.table);
        let mut ino = number(place.parent, name);
        loop {
            match table.get(ino) {
                Some((known, other)) if known.parent != place.parent || other != name => {
                    ino = next(ino);
                    continue;
                }
                Some(_) => {
                    if let Some(known) = table.entry(ino) {
                        *known = place;
                    }
                }
                None => table.put(ino, place, name),
            }
            if let Some(lookups) = table.lookups(ino) {
                *lookups = lookups.saturating_add(1);
            }
            return ino;
        }
    }

    /// Takes back `count` lookups.
    pub(super) fn forget(&self, ino: u64, count: u64) {
        let mut table = lock(&self.table);
        let Some(left) = table.lookups(ino) else {
            return;
        };
        *left = left.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
        if *left == 0 {
            table.remove(ino);
        }
    }

    /// What is known of `name` in the directory `parent`.
    pub(super) fn known(&self, parent: u64, name: &[u8]) -> Option<Place> {
        let table = lock(&self.table);
        let (place, known) = table.get(number(parent, name))?;
        (place.parent == parent && known == name).then_some(place)
    }

    /// What is known of the entry `ino`, and its path from the root of the archive.
    pub(super) fn get(&self, ino: u64) -> Option<(Place, PathBuf)> {
        let table = lock(&self.table);
        let (place, _) = place_of(&table, ino)?;
        let mut names = Vec::new();
        let mut at = ino;
        while at > ORIGINAL {
            let (place, name) = place_of(&table, at)?;
            names.push(OsStr::from_bytes(name));
            at = place.parent;
        }
        Some((place, names.iter().rev().map(Path::new).collect()))
    }
}

/// The place of files as one in a directory.
pub(super) fn joined_at(parent: u64) -> Place {
    Place {
        parent,
        kind: EntryKind::Joined,
        is_original: false,
        state: 0,
        file: 0,
    }
}

/// The entry `ino`; those that stand always are no part of the table.
fn place_of(table: &Table<Place>, ino: u64) -> Option<(Place, &[u8])> {
    let fixed = |parent, is_original| Place {
        parent,
        kind: EntryKind::Directory,
        is_original,
        state: 0,
        file: 0,
    };
    match ino {
        ROOT => Some((fixed(ROOT, false), b"")),
        VIEWS => Some((fixed(ROOT, false), b".h5fs")),
        ORIGINAL => Some((fixed(VIEWS, true), b"original")),
        JOINED => Some((joined_at(VIEWS), choice::NAME)),
        _ => table.get(ino),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(parent: u64) -> Place {
        Place {
            parent,
            kind: EntryKind::File,
            is_original: false,
            state: 0,
            file: 0,
        }
    }

    #[test]
    fn a_path_follows_from_the_numbers_on_its_way() {
        let entries = Entries::default();
        let sub = entries.enter(b"sub", place(ROOT));
        let file = entries.enter(b"run 1.h5", place(sub));
        assert_eq!(entries.get(file).unwrap().1, Path::new("sub/run 1.h5"));
        assert_eq!(entries.get(ROOT).unwrap().1, Path::new(""));
        let original = entries.enter(b"sub", place(ORIGINAL));
        assert_eq!(entries.get(original).unwrap().1, Path::new("sub"));
        assert_ne!(original, sub);
    }

    #[test]
    fn an_entry_is_forgotten_once_and_keeps_its_number() {
        let entries = Entries::default();
        let first = entries.enter(b"a", place(ROOT));
        assert_eq!(entries.enter(b"a", place(ROOT)), first);
        entries.forget(first, 1);
        assert!(entries.get(first).is_some());
        entries.forget(first, 1);
        assert!(entries.get(first).is_none());
        assert_eq!(entries.enter(b"a", place(ROOT)), first);
    }

    #[test]
    fn numbers_of_entries_and_of_inodes_within_do_not_meet() {
        for local in [1, 96, 1 << 62, u64::MAX] {
            let within = number_within(number(ROOT, b"a"), local);
            assert!(!is_entry(within) && !is_entry(next(within)), "{local}");
        }
        assert!(is_entry(number(ROOT, b"a")) && is_entry(next(number(ROOT, b"a"))));
    }
}
