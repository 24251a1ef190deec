//! Inodes that the kernel has forgotten and may request again by number.
//!
//! An NFS server gives its clients handles, which outlive the kernel's inodes. For such a handle,
//! the kernel looks up `.` in the inode, and `..` in a directory, to find the path to the root. So
//! a limited number of forgotten inodes stays available; the oldest are removed first.

use std::num::NonZeroUsize;
use std::sync::Mutex;

use h5fs_reader::error::Result;
use h5fs_reader::memory::lock::lock;
use lru::LruCache;

use crate::errno::stale_error;
use crate::limits;
use crate::requests::{Ino, Requests};
use crate::stat::LookupEntry;

const MAX_INODES: NonZeroUsize = NonZeroUsize::new(limits::FORGOTTEN_INODES).unwrap();

/// For each forgotten inode, the number of lookups that the kernel has released, minus the number
/// of lookups of `.` and `..` since then.
#[derive(Debug)]
pub(super) struct ReleasedLookups(Mutex<LruCache<Ino, i64>>);

impl ReleasedLookups {
    pub(super) fn new() -> Self {
        ReleasedLookups(Mutex::new(LruCache::sparse(MAX_INODES)))
    }

    /// Keeps the inode `ino`, of which the kernel has released `count` lookups. If the limit is
    /// exceeded, returns the oldest inode and its number of lookups, which the caller must forget.
    pub(super) fn add_released(&self, ino: Ino, count: u64) -> Option<(Ino, u64)> {
        self.add(ino, i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Looks up `name`, which is `.` or `..`, in the inode `ino`. Increments the lookup count of
    /// the resulting inode.
    pub(super) fn find(&self, tree: &dyn Requests, ino: Ino, name: &[u8]) -> Result<LookupEntry> {
        let found = match name {
            b"." => ino,
            _ => parent(tree, ino)?,
        };
        let entry = tree.getattr(found)?;
        if let Some((ino, count)) = self.add(found, -1) {
            tree.forget(ino, count);
        }
        Ok(entry)
    }

    fn add(&self, ino: Ino, count: i64) -> Option<(Ino, u64)> {
        let mut kept = lock(&self.0);
        let sum = kept.get(&ino).copied().unwrap_or(0).saturating_add(count);
        let (last, left) = kept.push(ino, sum)?;
        let left = u64::try_from(left).ok().filter(|_| last != ino)?;
        (left > 0).then_some((last, left))
    }
}

fn parent(tree: &dyn Requests, ino: Ino) -> Result<Ino> {
    let handle = tree.opendir(ino)?.handle;
    let mut parent = None;
    let listed = tree.readdir(handle, 0, &mut |entry| {
        if entry.name == b".." {
            parent = Some(entry.ino);
        }
        entry.name != b"." && entry.name != b".."
    });
    tree.release(handle);
    listed?;
    parent.ok_or_else(stale_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_kept() {
        let forgotten = ReleasedLookups::new();
        assert_eq!(forgotten.add_released(1, 3), None);
        assert_eq!(forgotten.add_released(1, 2), None);
        // The kernel has found the inode again and holds one lookup.
        assert_eq!(forgotten.add(1, -1), None);
        for ino in 2..=u64::try_from(limits::FORGOTTEN_INODES).unwrap() {
            assert_eq!(forgotten.add_released(ino, 1), None);
        }
        assert_eq!(forgotten.add_released(0, 1), Some((1, 4)));
        assert_eq!(forgotten.add_released(2, 1), None);
    }
}
