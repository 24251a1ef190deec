//! Filesystems that other programs serve, and that may wait for ours: FUSE.
//!
//! Two mounts whose sources name files in each other would wait for each other for ever. So no mount looks into
//! another one that it does not stand on: as that is older, no circle of them comes about.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::source::device::Device;
use crate::wire::to_u64;

/// All FUSE filesystems but those on the way to the source.
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

    /// Whether `device` is one of them.
    pub fn include(&self, device: Device) -> bool {
        if !device.is_virtual() || self.on_the_way.contains(&device) {
            return false;
        }
        // The table comes in pieces, between which a line can be lost when others mount and unmount.
        (0..2).any(|_| {
            let table = self.table().unwrap_or_default();
            let mut lines = table.split(|byte| *byte == b'\n');
            lines.any(|line| is_fuse(line, device))
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

/// Whether this line of the table is of a FUSE filesystem of this number:
/// `36 35 0:57 / /mnt/data ro,nosuid shared:1 - fuse.h5fs data.h5 ro,user_id=0`
fn is_fuse(line: &[u8], device: Device) -> bool {
    let text = |field: &[u8]| std::str::from_utf8(field).ok().map(str::to_owned);
    let mut fields = line.split(|byte| *byte == b' ');
    let number = fields.nth(2).and_then(text);
    let kind = fields
        .skip_while(|field| *field != b"-")
        .nth(1)
        .and_then(text);
    number.and_then(|number| number.parse().ok()) == Some(device)
        && kind.is_some_and(|kind| kind == "fuse" || kind.starts_with("fuse."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_serve_is_told_from_what_the_kernel_does() {
        let line = b"36 35 0:57 / /mnt/data ro shared:1 - fuse.h5fs data.h5 ro,user_id=0";
        let number = |text: &str| text.parse::<Device>().unwrap();
        assert!(is_fuse(line, number("0:57")));
        assert!(!is_fuse(line, number("0:58")));
        assert!(!is_fuse(
            b"36 35 0:57 / /a rw - tmpfs fuse rw",
            number("0:57")
        ));
        assert!(!is_fuse(b"", number("0:57")));
        let strangers = Strangers::of(Path::new("/proc/self/mountinfo")).unwrap();
        assert!(!strangers.table().unwrap().is_empty());
        for path in ["/", "/proc", "/sys"] {
            let device = Device::at(Path::new(path)).unwrap();
            assert!(!strangers.include(device), "{path}");
        }
    }
}
