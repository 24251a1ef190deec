//! The mount that shows the source: a process that serves the mount must not look into it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;

use crate::source::mounts::device::Device;
use crate::source::mounts::foreign::ForeignFilesystems;
use crate::wire::Count;

/// The mount that shows the source, as a place that no path may lead to: a process that looks there
/// waits for an answer from itself.
#[derive(Debug, Clone)]
pub struct MountGuard {
    /// Where it was mounted, absolute and without symbolic links.
    pub point: PathBuf,
    /// Its number; it may stand at other places as well (`mount --bind`).
    pub device: Option<Device>,
    /// Other filesystems that may wait for it.
    pub foreign: Option<Arc<ForeignFilesystems>>,
}

impl MountGuard {
    /// Whether the way along an absolute path, symbolic links followed, comes by this mount or by
    /// one that may wait for it. The look stops before such a mount, and where the way ends.
    pub fn is_on_the_way(&self, path: &Path) -> bool {
        /// Linux follows no more.
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
            if self.stands_at(&real) {
                return true;
            }
            match real.read_link() {
                Ok(target) => {
                    links = links.one_more();
                    if links > LINKS {
                        return false;
                    }
                    real.pop();
                    ahead.extend(parts(&target));
                }
                Err(error) if is_no_way(&error) => return false,
                Err(_) => {}
            }
        }
        false
    }

    fn stands_at(&self, path: &Path) -> bool {
        let is_guarded = |(there, mount)| {
            let foreign = self.foreign.as_ref();
            self.device == Some(there)
                || foreign.is_some_and(|foreign| foreign.include(there, mount))
        };
        *path == *self.point || Device::and_mount_at(path).is_some_and(is_guarded)
    }
}

/// Whether nothing can stand there or beneath.
fn is_no_way(error: &std::io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(
        errno,
        Some(Errno::ENOENT | Errno::ENOTDIR | Errno::ENAMETOOLONG)
    )
}
