//! A guard for the mount that shows the source: the serving process must not access its own mount.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;

use crate::source::mounts::device::Device;
use crate::source::mounts::foreign::ForeignFilesystems;
use crate::wire::Count;

/// A mount that no path may lead to. The serving process would deadlock there, waiting for its own
/// reply.
#[derive(Debug, Clone)]
pub struct MountGuard {
    /// The mount point, an absolute path without symbolic links.
    pub mount_point: PathBuf,
    /// The device of the mount. The same filesystem may be mounted at other places (`mount
    /// --bind`).
    pub device: Option<Device>,
    /// Other filesystems that may block on the mount.
    pub foreign: Option<Arc<ForeignFilesystems>>,
}

impl MountGuard {
    /// Returns whether an absolute path, with symbolic links followed, passes through this mount or
    /// one that may block on it. The walk stops before such a mount, and where the path ends.
    pub fn is_crossed_by(&self, path: &Path) -> bool {
        /// Maximum number of symbolic links that Linux follows in one path.
        const LINKS: usize = 40;
        let parts = |path: &Path| -> Vec<OsString> {
            let parts = path.components().rev();
            parts.map(|part| part.as_os_str().to_owned()).collect()
        };
        let mut ahead = parts(path);
        let mut real = PathBuf::from("/");
        let mut links = 0_usize;
        while let Some(part) = ahead.pop() {
            if part == ".." {
                real.pop();
                continue;
            }
            real.push(part);
            if self.is_mount_point(&real) {
                return true;
            }
            match real.read_link() {
                Ok(target) => {
                    links = links.plus_one();
                    if links > LINKS {
                        return false;
                    }
                    real.pop();
                    ahead.extend(parts(&target));
                }
                Err(error) if means_absent(&error) => return false,
                Err(_) => {}
            }
        }
        false
    }

    fn is_mount_point(&self, path: &Path) -> bool {
        let is_guarded = |(there, mount)| {
            let foreign = self.foreign.as_ref();
            self.device == Some(there)
                || foreign.is_some_and(|foreign| foreign.may_block(there, mount))
        };
        *path == *self.mount_point || Device::from_path_with_mount(path).is_some_and(is_guarded)
    }
}

/// Returns whether the error means that no entry can exist at the path or below it.
fn means_absent(error: &std::io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(
        errno,
        Some(Errno::ENOENT | Errno::ENOTDIR | Errno::ENAMETOOLONG)
    )
}
