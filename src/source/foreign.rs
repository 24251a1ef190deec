//! Filesystems that may wait for ours: those that other programs serve, FUSE, and those that are made of other filesystems, as
//! an overlay of ours is.
//!
//! Two mounts whose sources name files in each other would wait for each other for ever. So no mount looks into
//! another one that it does not stand on: as that is older, no circle of them comes about.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::source::device::Device;
use crate::wire::to_u64;

/// All such filesystems but those on the way to the source.
#[derive(Debug)]
pub struct Strangers {
    /// The mounts of this process's namespace (proc(5)), read anew each time: no filesystem is asked for that.
    mounts: File,
    on_the_way: Vec<Device>,
}

impl Strangers {
    /// Those of the source at `source`, an absolute path without symbolic links, as it is reached now.
    ///
    /// # Errors
    /// As the system says where there is no table of mounts.
    pub fn of(source: &Path) -> io::Result<Self> {
        Ok(Strangers {
            mounts: File::open("/proc/self/mountinfo")?,
            on_the_way: source.ancestors().filter_map(Device::at).collect(),
        })
    }

    /// Whether what is on `device`, and is reached by `mount` if that is known, is of one of them.
    pub fn include(&self, device: Device, mount: Option<u64>) -> bool {
        if !device.is_virtual() || self.on_the_way.contains(&device) {
            return false;
        }
        // The table comes in pieces, between which a line can be lost when others mount and unmount.
        (0..2).any(|_| {
            let table = self.table().unwrap_or_default();
            let mut lines = table.split(|byte| *byte == b'\n').filter_map(Line::parse);
            lines.any(|line| {
                // A file of a stacked filesystem may tell another number than that.
                let is_it = mount.map_or(line.device == device, |mount| line.mount == mount);
                is_it && line.may_wait && !self.on_the_way.contains(&line.device)
            })
        })
    }

    fn table(&self) -> io::Result<Vec<u8>> {
        let mut table = Vec::new();
        let mut piece = [0; 4096];
        loop {
            let length = self.mounts.read_at(&mut piece, to_u64(table.len()))?;
            match piece.get(..length) {
                None | Some([]) => return Ok(table),
                Some(bytes) => table.extend_from_slice(bytes),
            }
        }
    }
}

/// A line of the table of mounts:
/// `36 35 0:57 / /mnt/data ro,nosuid shared:1 - fuse.h5fs data.h5 ro,user_id=0`
#[derive(Debug, PartialEq, Eq)]
struct Line {
    mount: u64,
    device: Device,
    /// Whether its answers may wait for another process's: it is FUSE, or is made of other filesystems.
    may_wait: bool,
}

impl Line {
    fn parse(line: &[u8]) -> Option<Self> {
        // Names, which come in between, have no spaces here.
        let mut fields = line.split(|byte| *byte == b' ').map(std::str::from_utf8);
        let mount = fields.next()?.ok()?.parse().ok()?;
        let device = fields.nth(1)?.ok()?.parse().ok()?;
        let kind = fields.skip_while(|field| *field != Ok("-")).nth(1)?.ok()?;
        let may_wait = STACKED.contains(&kind) || kind == "fuse" || kind.starts_with("fuse.");
        Some(Line {
            mount,
            device,
            may_wait,
        })
    }
}

/// Filesystems whose files are those of other filesystems.
const STACKED: [&str; 4] = ["aufs", "ecryptfs", "overlay", "unionfs"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_serve_is_told_from_what_the_kernel_does() {
        let parse = |line: &str| Line::parse(line.as_bytes());
        let line = |device: &str, may_wait| {
            Some(Line {
                mount: 36,
                device: device.parse().unwrap(),
                may_wait,
            })
        };
        for (text, wanted) in [
            (
                "36 35 0:57 / /mnt/data ro shared:1 - fuse.h5fs data.h5 ro",
                line("0:57", true),
            ),
            (
                "36 35 0:58 / /a rw - overlay overlay rw,lowerdir=/b",
                line("0:58", true),
            ),
            ("36 35 0:57 / /a rw - tmpfs fuse rw", line("0:57", false)),
            ("36 35 0:57 / /a rw", None),
            ("", None),
        ] {
            assert_eq!(parse(text), wanted, "{text}");
        }
        let strangers = Strangers::of(Path::new("/proc/self/mountinfo")).unwrap();
        assert!(!strangers.table().unwrap().is_empty());
        for path in ["/", "/proc", "/sys"] {
            let (device, mount) = Device::and_mount_at(Path::new(path)).unwrap();
            assert!(mount.is_some(), "{path}");
            assert!(!strangers.include(device, mount), "{path}");
        }
    }
}
