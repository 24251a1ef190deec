//! Filesystems that may block on our mount: FUSE filesystems of other programs, and filesystems
//! stacked on others, such as an overlay of our mount.
//!
//! Two mounts whose sources name files in each other would wait for each other forever. Therefore
//! no mount opens files of another such mount, unless its own source is on that mount. That mount
//! is always the older one, so cycles cannot arise.

use std::io;
use std::path::Path;

use crate::source::mounts::device::Device;
use crate::source::mounts::mount_table::{MountEntry, MountTable};

/// All filesystems that may block, except those on the path to the source.
#[derive(Debug)]
pub struct ForeignFilesystems {
    mounts: MountTable,
    devices_on_path: Vec<Device>,
}

impl ForeignFilesystems {
    /// Determines the filesystems on the path to `source`, an absolute path without symbolic links.
    ///
    /// # Errors
    /// Fails with the system's error if the table of mounts cannot be opened.
    pub fn find_on_path_to(source: &Path) -> io::Result<Self> {
        Ok(ForeignFilesystems {
            mounts: MountTable::open()?,
            devices_on_path: source.ancestors().filter_map(Device::from_path).collect(),
        })
    }

    /// Returns whether a file on `device` is on a filesystem that may block. `mount` is the number
    /// of the file's mount, if known.
    pub(crate) fn may_block(&self, device: Device, mount: Option<u64>) -> bool {
        if !device.is_virtual() || self.devices_on_path.contains(&device) {
            return false;
        }
        let entries = self.mounts.entries().unwrap_or_default();
        entries.iter().any(|entry| {
            // A file on a stacked filesystem may report a different device than the filesystem.
            let is_it = mount.map_or(entry.device == device, |mount| entry.id == mount);
            is_it && is_fuse_or_stacked(entry) && !self.devices_on_path.contains(&entry.device)
        })
    }
}

/// Returns whether requests to the mount of this entry may wait for another process.
fn is_fuse_or_stacked(entry: &MountEntry) -> bool {
    /// Filesystem types whose files come from other filesystems.
    const STACKED: [&str; 4] = ["aufs", "ecryptfs", "overlay", "unionfs"];
    let kind = entry.kind.as_str();
    STACKED.contains(&kind) || kind == "fuse" || kind.starts_with("fuse.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuse_and_stacked_filesystems_are_recognized() {
        let entry = |kind: &str| MountEntry {
            id: 36,
            parent: 35,
            device: "0:57".parse().unwrap(),
            point: "/mnt/fuse".into(),
            kind: kind.to_owned(),
            source: "".into(),
            user: None,
        };
        for kind in ["fuse.h5fs", "fuse", "overlay"] {
            assert!(is_fuse_or_stacked(&entry(kind)), "{kind}");
        }
        for kind in ["tmpfs", "ext4", "fuseblk"] {
            assert!(!is_fuse_or_stacked(&entry(kind)), "{kind}");
        }
        let foreign = ForeignFilesystems::find_on_path_to(Path::new(MountTable::PATH)).unwrap();
        for path in ["/", "/proc", "/sys"] {
            let (device, mount) = Device::from_path_with_mount(Path::new(path)).unwrap();
            assert!(mount.is_some(), "{path}");
            assert!(!foreign.may_block(device, mount), "{path}");
        }
    }
}
