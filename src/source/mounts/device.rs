//! Which filesystem stands at a path.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

/// The number of a filesystem: no two share one as long as they are mounted, and it is the same at
/// each place where one is mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    major: u32,
    minor: u32,
}

impl Device {
    /// The device that `path` stands on, its last part not followed where it is a symbolic link;
    /// `None` where there is nothing, or it cannot be reached.
    ///
    /// The filesystem itself is not asked where `path` is the place at which it is mounted: nobody
    /// may answer.
    pub fn at(path: &Path) -> Option<Self> {
        Some(Self::and_mount_at(path)?.0)
    }

    /// The same, and the number of the mount by which it is reached there, where the kernel tells.
    pub fn and_mount_at(path: &Path) -> Option<(Self, Option<u64>)> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
        let seen = statx(CWD, path, flags, StatxFlags::MNT_ID).ok()?;
        let device = Device {
            major: seen.stx_dev_major,
            minor: seen.stx_dev_minor,
        };
        let is_told = seen.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        Some((device, is_told.then_some(seen.stx_mnt_id)))
    }

    /// Whether it is no disk: one that some process serves, over a network, or in memory.
    pub fn is_virtual(self) -> bool {
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
    fn a_path_stands_on_the_filesystem_that_stat_tells() {
        for path in ["/", "/proc", "/proc/self", "/dev/null"] {
            let path = Path::new(path);
            let told = path.symlink_metadata().unwrap().dev();
            let number = format!(
                "{}:{}",
                nix::sys::stat::major(told),
                nix::sys::stat::minor(told)
            );
            assert_eq!(Device::at(path), number.parse().ok(), "{}", path.display());
        }
        assert_eq!(Device::at(Path::new("/nowhere")), None);
    }
}
