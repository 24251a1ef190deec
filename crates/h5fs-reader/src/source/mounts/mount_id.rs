//! The mount that is visible at a path; statx(2), proc(5).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, statx};

/// The identity of one mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MountId {
    /// The first field of a line in the table of mounts (proc(5)). The number is reused after the
    /// mount is gone.
    pub number: u64,
    /// A number that is never reused, available since Linux 6.8.
    unique: Option<u64>,
}

/// The root of a mount, held open. Until it is dropped, only a lazy unmount can remove the mount.
#[derive(Debug)]
pub struct MountRoot {
    /// The root directory, opened with `O_PATH`.
    pub root: File,
    /// The identity of the mount.
    pub id: MountId,
}

impl MountRoot {
    /// Opens the root of the mount at `path`, without following a symbolic link at the end. The
    /// call does not contact the filesystem's server.
    ///
    /// # Errors
    /// Fails with the system's error if `path` cannot be reached.
    pub fn at(path: &Path) -> io::Result<Self> {
        // With musl, the standard library would drop the flag `PATH`.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        let id = MountId::from_root(&root)?;
        Ok(MountRoot { root, id })
    }
}

impl MountId {
    fn from_root(root: &File) -> io::Result<Self> {
        /// `STATX_MNT_ID_UNIQUE`; rustix does not define it.
        const UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        // The call fails on another user's FUSE filesystem.
        let told = statx(root, "", flags, UNIQUE).ok();
        let unique = told.filter(|told| told.stx_mask & UNIQUE.bits() != 0);
        Ok(MountId {
            number: read_fdinfo_field(root.as_fd(), "mnt_id")?,
            unique: unique.map(|told| told.stx_mnt_id),
        })
    }
}

/// Returns a number that the kernel reports about an open file; proc(5), /proc/PID/fdinfo.
///
/// # Errors
/// `Unsupported` if this kernel does not report the number.
pub fn read_fdinfo_field(file: BorrowedFd<'_>, field: &str) -> io::Result<u64> {
    let told = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    let value = |line: &str| {
        line.strip_prefix(field)?
            .strip_prefix(':')?
            .trim()
            .parse()
            .ok()
    };
    let mut values = told.lines().filter_map(value);
    values
        .next()
        .ok_or_else(|| io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::mounts::mount_table::MountTable;

    #[test]
    fn mount_ids_agree_with_the_mount_table() {
        let table = MountTable::open().unwrap().entries().unwrap();
        let proc = table
            .iter()
            .rfind(|entry| entry.point == Path::new("/proc"));
        let at = |path: &str| MountRoot::at(Path::new(path)).unwrap().id;
        assert_eq!(at("/proc").number, proc.expect("proc").id);
        assert_eq!(at("/proc"), at("/proc/self/"));
        assert_ne!(at("/proc"), at("/"));
        assert!(MountRoot::at(Path::new("/nowhere")).is_err());
    }
}
