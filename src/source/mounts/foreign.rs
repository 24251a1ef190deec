//! Filesystems that may wait for ours: those that other programs serve, FUSE, and those that are
//! made of other filesystems, as an overlay of ours is.
//!
//! Two mounts whose sources name files in each other would wait for each other for ever. So no
//! mount looks into another one that it does not stand on: as that is older, no circle of them
//! comes about.

use std::io;
use std::path::Path;

use crate::source::mounts::device::Device;
use crate::source::mounts::mount_table::{MountEntry, MountTable};

/// All such filesystems but those on the way to the source.
#[derive(Debug)]
pub struct ForeignFilesystems {
    mounts: MountTable,
    on_the_way: Vec<Device>,
}

impl ForeignFilesystems {
    /// The filesystems around the source at `source`, an absolute path without symbolic links,
    /// as it is reached now.
    ///
    /// # Errors
    /// Fails with the system's error where there is no table of mounts.
    pub fn of(source: &Path) -> io::Result<Self> {
        Ok(ForeignFilesystems {
            mounts: MountTable::open()?,
            on_the_way: source.ancestors().filter_map(Device::at).collect(),
        })
    }

    /// Whether a file on `device`, reached by `mount` if that is known, is on one of them.
    pub fn include(&self, device: Device, mount: Option<u64>) -> bool {
        if !device.is_virtual() || self.on_the_way.contains(&device) {
            return false;
        }
        let entries = self.mounts.entries().unwrap_or_default();
        entries.iter().any(|entry| {
            // A file of a stacked filesystem may tell another number than that.
            let is_it = mount.map_or(entry.device == device, |mount| entry.id == mount);
            is_it && may_wait(entry) && !self.on_the_way.contains(&entry.device)
        })
    }
}

/// Whether the answers of this mount may wait for another process.
fn may_wait(entry: &MountEntry) -> bool {
    /// Filesystems whose files are those of other filesystems.
    const STACKED: [&str; 4] = ["aufs", "ecryptfs", "overlay", "unionfs"];
    let kind = entry.kind.as_str();
    STACKED.contains(&kind) || kind == "fuse" || kind.starts_with("fuse.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_filesystems_are_told_from_those_of_the_kernel() {
        let entry = |kind: &str| MountEntry {
            id: 36,
            parent: 35,
            device: "0:57".parse().unwrap(),
            point: "/mnt/fuse".into(),
            kind: kind.to_owned(),
            source: "".into(),
        };
        for kind in ["fuse.h5fs", "fuse", "overlay"] {
            assert!(may_wait(&entry(kind)), "{kind}");
        }
        for kind in ["tmpfs", "ext4", "fuseblk"] {
            assert!(!may_wait(&entry(kind)), "{kind}");
        }
        let foreign = ForeignFilesystems::of(Path::new(MountTable::PATH)).unwrap();
        for path in ["/", "/proc", "/sys"] {
            let (device, mount) = Device::and_mount_at(Path::new(path)).unwrap();
            assert!(mount.is_some(), "{path}");
            assert!(!foreign.include(device, mount), "{path}");
        }
    }
}
