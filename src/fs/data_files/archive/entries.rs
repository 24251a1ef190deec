//! The files and directories of an archive that the kernel knows, by inode number.
//!
//! The number of an entry is derived from its name and its directory's number. A name thus keeps
//! its number for the life of the mount, even if the kernel forgets it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use h5fs_reader::memory::lock::lock;

use crate::fs::stat::FileKind;
use crate::fs::state::inode::ROOT;
use crate::fs::state::inodes::table::InodeTable;
use crate::joined::choice;

/// Number of `.h5fs` at the root of an archive.
pub(super) const VIEWS: u64 = 2;

/// Number of the tree of the files' own bytes in `.h5fs`.
pub(super) const ORIGINAL: u64 = 3;

/// Numbers of the files in `.h5fs` about the mount.
pub(super) const STATUS: u64 = 4;
pub(super) const METRICS: u64 = 5;
pub(super) const ERRORS: u64 = 6;

/// Numbers of the joined file's directory, and of the link to its store.
pub(super) const JOINED: u64 = 7;
pub(super) const JOINED_STORE: u64 = 8;

/// The last number of an entry that always exists.
const LAST: u64 = JOINED_STORE;

/// The bit that marks the number of an entry. Inodes within data files do not have the bit.
const ENTRY: u64 = 1 << 63;

/// The type of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    Directory,
    /// A file of a known format, shown as a directory.
    DataFile,
    /// Many data files joined into one.
    Joined,
    /// Any other regular file, or the original bytes of any file.
    File,
    Symlink,
}

impl EntryKind {
    /// Returns whether the entry is a data file or a joined file.
    pub(super) fn has_objects(self) -> bool {
        matches!(self, EntryKind::DataFile | EntryKind::Joined)
    }

    /// Returns the kind of file in the mount.
    pub(super) fn file_kind(self) -> FileKind {
        match self {
            EntryKind::Directory | EntryKind::DataFile | EntryKind::Joined => FileKind::Directory,
            EntryKind::File => FileKind::File,
            EntryKind::Symlink => FileKind::Symlink,
        }
    }
}

/// Properties of an entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryProperties {
    pub(super) parent: u64,
    pub(super) kind: EntryKind,
    /// Whether the entry is in the tree of the files' own bytes.
    pub(super) is_original: bool,
    /// A hash of the state of the file for which `kind` was determined.
    pub(super) state: u32,
    /// Inode number of the file in its own filesystem.
    pub(super) file: u64,
}

/// All entries that the kernel knows.
#[derive(Debug, Default)]
pub(super) struct KnownEntries {
    table: Mutex<InodeTable<EntryProperties>>,
}

/// Returns whether `ino` is the number of an entry, including entries that always exist.
pub(super) fn is_entry(ino: u64) -> bool {
    ino & ENTRY != 0 || ino <= LAST
}

/// Returns the number of an entry before collisions are resolved: an FNV-1a hash.
pub(super) fn number(parent: u64, name: &[u8]) -> u64 {
    hash(parent, name) | ENTRY
}

/// Returns the number in the mount of the inode `local` of the data file `entry`, before collisions
/// are resolved.
pub(super) fn inner_number(entry: u64, local: u64) -> u64 {
    let hashed = hash(entry, &local.to_le_bytes()) & !ENTRY;
    hashed.max(LAST + 1)
}

/// Returns the next number to try after a hash collision.
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

impl KnownEntries {
    /// Counts a lookup of `name`, stores `properties` as its properties, and returns its number.
    pub(super) fn enter(&self, name: &[u8], place: EntryProperties) -> u64 {
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
                None => table.insert(ino, place, name),
            }
            if let Some(lookups) = table.lookups(ino) {
                *lookups = lookups.saturating_add(1);
            }
            return ino;
        }
    }

    /// Subtracts `count` lookups.
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

    /// Returns the properties of `name` in the directory `parent`, if known.
    pub(super) fn known_properties(&self, parent: u64, name: &[u8]) -> Option<EntryProperties> {
        let table = lock(&self.table);
        let (place, known) = table.get(number(parent, name))?;
        (place.parent == parent && known == name).then_some(place)
    }

    /// Returns the properties of the entry `ino`, and its path from the root of the archive.
    pub(super) fn get(&self, ino: u64) -> Option<(EntryProperties, PathBuf)> {
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

/// Returns the properties of a joined file in the directory `parent`.
pub(super) fn joined_properties(parent: u64) -> EntryProperties {
    EntryProperties {
        parent,
        kind: EntryKind::Joined,
        is_original: false,
        state: 0,
        file: 0,
    }
}

/// Returns the properties and the name of the entry `ino`. Entries that always exist are not in the
/// table.
fn place_of(table: &InodeTable<EntryProperties>, ino: u64) -> Option<(EntryProperties, &[u8])> {
    let fixed = |parent, is_original| EntryProperties {
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
        JOINED => Some((joined_properties(VIEWS), choice::NAME)),
        _ => table.get(ino),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(parent: u64) -> EntryProperties {
        EntryProperties {
            parent,
            kind: EntryKind::File,
            is_original: false,
            state: 0,
            file: 0,
        }
    }

    #[test]
    fn a_path_follows_from_the_numbers_on_its_way() {
        let entries = KnownEntries::default();
        let sub = entries.enter(b"sub", properties(ROOT));
        let file = entries.enter(b"run 1.h5", properties(sub));
        assert_eq!(entries.get(file).unwrap().1, Path::new("sub/run 1.h5"));
        assert_eq!(entries.get(ROOT).unwrap().1, Path::new(""));
        let original = entries.enter(b"sub", properties(ORIGINAL));
        assert_eq!(entries.get(original).unwrap().1, Path::new("sub"));
        assert_ne!(original, sub);
    }

    #[test]
    fn an_entry_is_forgotten_once_and_keeps_its_number() {
        let entries = KnownEntries::default();
        let first = entries.enter(b"a", properties(ROOT));
        assert_eq!(entries.enter(b"a", properties(ROOT)), first);
        entries.forget(first, 1);
        assert!(entries.get(first).is_some());
        entries.forget(first, 1);
        assert!(entries.get(first).is_none());
        assert_eq!(entries.enter(b"a", properties(ROOT)), first);
    }

    #[test]
    fn numbers_of_entries_and_of_inodes_within_do_not_meet() {
        for local in [1, 96, 1 << 62, u64::MAX] {
            let within = inner_number(number(ROOT, b"a"), local);
            assert!(!is_entry(within) && !is_entry(next(within)), "{local}");
        }
        assert!(is_entry(number(ROOT, b"a")) && is_entry(next(number(ROOT, b"a"))));
    }
}
