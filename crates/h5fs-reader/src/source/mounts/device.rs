//! The filesystem at a path.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

/// The number of a filesystem. The number is unique among mounted filesystems, and the same at all
/// mount points of the filesystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    major: u32,
    minor: u32,
}

impl Device {
    /// Returns the device of the filesystem at `path`, without following a symbolic link at the
    /// end. Returns `None` if the path does not exist or cannot be reached.
    ///
    /// The call does not contact a filesystem mounted at `path`, whose server may be dead.
    pub fn from_path(path: &Path) -> Option<Self> {
        Some(Self::from_path_with_mount(path)?.0)
    }

    /// Returns the device like [`from_path`](Self::from_path), and the number of the mount at
    /// `path` if the kernel reports it.
    pub(crate) fn from_path_with_mount(path: &Path) -> Option<(Self, Option<u64>)> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
        let seen = statx(CWD, path, flags, StatxFlags::MNT_ID).ok()?;
        let device = Device {
            major: seen.stx_dev_major,
            minor: seen.stx_dev_minor,
        };
        let is_told = seen.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        Some((device, is_told.then_some(seen.stx_mnt_id)))
    }

    /// Returns whether the filesystem is not on a disk: a process serves it, or it is on a network
    /// or in memory.
    pub(crate) fn is_virtual(self) -> bool {
        self.major == 0
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for Device {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, minor) = text.split_once(':').ok_or(())?;
        Ok(Device {
            major: major.parse().map_err(drop)?,
            minor: minor.parse().map_err(drop)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn the_device_of_a_path_agrees_with_stat() {
        for path in ["/", "/proc", "/proc/self", "/dev/null"] {
            let path = Path::new(path);
            let told = path.symlink_metadata().unwrap().dev();
            let number = format!(
                "{}:{}",
                nix::sys::stat::major(told),
                nix::sys::stat::minor(told)
            );
            assert_eq!(
                Device::from_path(path),
                number.parse().ok(),
                "{}",
                path.display()
            );
        }
        assert_eq!(Device::from_path(Path::new("/nowhere")), None);
    }
}
