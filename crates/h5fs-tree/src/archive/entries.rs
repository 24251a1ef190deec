//! The files and directories of an archive that the kernel knows, by inode number.
//!
//! An inode number is a hash of the entry's name and of the inode number of its directory. A name
//! thus keeps its inode number for the life of the mount, even if the kernel forgets the inode.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use h5fs_joined::choice;
use h5fs_reader::memory::lock::lock;

use crate::stat::FileKind;
use crate::state::inode::ROOT;
use crate::state::inodes::table::InodeTable;

/// Inode number of the directory `.h5fs` at the root of an archive.
pub(super) const VIEWS: u64 = 2;

/// Inode number of the directory `.h5fs/original`.
pub(super) const ORIGINAL: u64 = 3;

/// First of the consecutive inode numbers of the text files in `.h5fs` about the mount.
pub(super) const STATUS: u64 = 4;
pub(super) const METRICS: u64 = 5;
pub(super) const ERRORS: u64 = 6;

/// Inode number of the directory of the joined file of all data files. `JOINED_STORE` is the inode
/// number of the symbolic link to its Zarr store.
pub(super) const JOINED: u64 = 7;
pub(super) const JOINED_STORE: u64 = 8;

/// Inode number of `.h5fs/README.txt`.
pub(super) const README: u64 = 9;

/// Highest inode number of the entries that exist in every archive.
const LAST_FIXED: u64 = README;

/// The bit that is set in the inode numbers of files and directories of the archive, and clear in
/// those of inodes within data files.
const ENTRY_BIT: u64 = 1 << 63;

/// The type of a file or directory of an archive.
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

    /// Returns whether the mount shows an entry of this type as a directory, a regular file or a
    /// symbolic link.
    pub(super) fn file_kind(self) -> FileKind {
        match self {
            EntryKind::Directory | EntryKind::DataFile | EntryKind::Joined => FileKind::Directory,
            EntryKind::File => FileKind::File,
            EntryKind::Symlink => FileKind::Symlink,
        }
    }
}

/// Properties of a file or directory of an archive.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryProperties {
    pub(super) parent: u64,
    pub(super) kind: EntryKind,
    /// Whether the entry is in the directory `.h5fs/original`, where no file is shown as a
    /// directory of objects.
    pub(super) is_original: bool,
    /// A hash of the state of the file for which `kind` was determined.
    pub(super) state_hash: u32,
    /// Inode number of the file in the filesystem that contains it, not in the mount.
    pub(super) file_ino: u64,
}

/// The files and directories of an archive with lookups that the kernel has not released.
#[derive(Debug, Default)]
pub(super) struct KnownEntries {
    table: Mutex<InodeTable<EntryProperties>>,
}

/// Returns whether `ino` is the inode number of a file or directory of the archive, not of an inode
/// within a data file. Entries that exist in every archive count too.
pub(super) fn is_entry(ino: u64) -> bool {
    ino & ENTRY_BIT != 0 || ino <= LAST_FIXED
}

/// Returns the inode number of `name` in the directory `parent`: an FNV-1a hash.
/// [`KnownEntries::add_lookup`] resolves collisions.
pub(super) fn entry_inode_number(parent: u64, name: &[u8]) -> u64 {
    hash(parent, name) | ENTRY_BIT
}

/// Returns the inode number in the mount for the inode `local` of the data file `entry`. The caller
/// resolves collisions with other inodes.
pub(super) fn member_inode_number(entry: u64, local: u64) -> u64 {
    let hashed = hash(entry, &local.to_le_bytes()) & !ENTRY_BIT;
    hashed.max(LAST_FIXED + 1)
}

/// Returns the inode number to try next if `ino` belongs to another entry with the same hash.
pub(super) fn next_candidate_number(ino: u64) -> u64 {
    match ino & ENTRY_BIT {
        0 => (ino.wrapping_add(1) & !ENTRY_BIT).max(LAST_FIXED + 1),
        _ => ino.wrapping_add(1) | ENTRY_BIT,
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
    /// Increments the lookup count of `name`, stores the properties `place` for it, and returns its
    /// inode number.
    pub(super) fn add_lookup(&self, name: &[u8], place: EntryProperties) -> u64 {
        let mut table = lock(&self.table);
        let mut ino = entry_inode_number(place.parent, name);
        loop {
            match table.get(ino) {
                Some((known, other)) if known.parent != place.parent || other != name => {
                    ino = next_candidate_number(ino);
                    continue;
                }
                Some(_) => {
                    if let Some(known) = table.entry_mut(ino) {
                        *known = place;
                    }
                }
                None => table.insert(ino, place, name),
            }
            if let Some(lookups) = table.lookup_count_mut(ino) {
                *lookups = lookups.saturating_add(1);
            }
            return ino;
        }
    }

    /// Subtracts `count` from the lookup count of the inode `ino`. Removes the inode if no lookup
    /// remains.
    pub(super) fn forget(&self, ino: u64, count: u64) {
        let mut table = lock(&self.table);
        let Some(left) = table.lookup_count_mut(ino) else {
            return;
        };
        *left = left.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
        if *left == 0 {
            table.remove(ino);
        }
    }

    /// Returns the properties of `name` in the directory `parent` from its last lookup, unless the
    /// kernel has forgotten it.
    pub(super) fn known_properties(&self, parent: u64, name: &[u8]) -> Option<EntryProperties> {
        let table = lock(&self.table);
        let (place, known) = table.get(entry_inode_number(parent, name))?;
        (place.parent == parent && known == name).then_some(place)
    }

    /// Returns the properties of the file or directory with the inode number `ino`, and its path
    /// from the root of the archive.
    pub(super) fn get(&self, ino: u64) -> Option<(EntryProperties, PathBuf)> {
        let table = lock(&self.table);
        let (place, _) = properties_and_name(&table, ino)?;
        let mut names = Vec::new();
        let mut at = ino;
        while at > ORIGINAL {
            let (place, name) = properties_and_name(&table, at)?;
            names.push(OsStr::from_bytes(name));
            at = place.parent;
        }
        Some((place, names.iter().rev().map(Path::new).collect()))
    }
}

/// Returns the properties of a joined file whose directory is in the directory `parent`.
pub(super) fn joined_properties(parent: u64) -> EntryProperties {
    EntryProperties {
        parent,
        kind: EntryKind::Joined,
        is_original: false,
        state_hash: 0,
        file_ino: 0,
    }
}

/// Returns the properties and the name for the inode number `ino`. The table does not contain the
/// entries that exist in every archive; their properties are built in.
fn properties_and_name(
    table: &InodeTable<EntryProperties>,
    ino: u64,
) -> Option<(EntryProperties, &[u8])> {
    let fixed = |parent, is_original| EntryProperties {
        parent,
        kind: EntryKind::Directory,
        is_original,
        state_hash: 0,
        file_ino: 0,
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
            state_hash: 0,
            file_ino: 0,
        }
    }

    #[test]
    fn a_path_follows_from_the_entry_numbers() {
        let entries = KnownEntries::default();
        let sub = entries.add_lookup(b"sub", properties(ROOT));
        let file = entries.add_lookup(b"run 1.h5", properties(sub));
        assert_eq!(entries.get(file).unwrap().1, Path::new("sub/run 1.h5"));
        assert_eq!(entries.get(ROOT).unwrap().1, Path::new(""));
        let original = entries.add_lookup(b"sub", properties(ORIGINAL));
        assert_eq!(entries.get(original).unwrap().1, Path::new("sub"));
        assert_ne!(original, sub);
    }

    #[test]
    fn an_entry_is_forgotten_once_and_keeps_its_number() {
        let entries = KnownEntries::default();
        let first = entries.add_lookup(b"a", properties(ROOT));
        assert_eq!(entries.add_lookup(b"a", properties(ROOT)), first);
        entries.forget(first, 1);
        assert!(entries.get(first).is_some());
        entries.forget(first, 1);
        assert!(entries.get(first).is_none());
        assert_eq!(entries.add_lookup(b"a", properties(ROOT)), first);
    }

    #[test]
    fn entry_and_member_inode_numbers_are_disjoint() {
        for local in [1, 96, 1 << 62, u64::MAX] {
            let within = member_inode_number(entry_inode_number(ROOT, b"a"), local);
            assert!(
                !is_entry(within) && !is_entry(next_candidate_number(within)),
                "{local}"
            );
        }
        assert!(
            is_entry(entry_inode_number(ROOT, b"a"))
                && is_entry(next_candidate_number(entry_inode_number(ROOT, b"a")))
        );
    }
}
