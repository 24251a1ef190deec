//! The mounts of this process's namespace: /proc/self/mountinfo, proc(5).

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::source::mounts::device::Device;
use crate::wire::to_u64;

/// The open table of mounts. The kernel generates the table for each read, without contacting any
/// filesystem.
#[derive(Debug)]
pub struct MountTable(File);

/// One line of the mount table: one mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountEntry {
    /// The number of the mount, which is reused after the mount is gone.
    pub id: u64,
    /// The number of the parent mount.
    pub parent: u64,
    /// The device of the filesystem.
    pub device: Device,
    /// The mount point: an absolute path without symbolic links.
    pub point: PathBuf,
    /// The type of the filesystem: `fuse.h5fs`, `ext4`, …
    pub kind: String,
    /// The name of the filesystem's source, as the filesystem reports it.
    pub source: OsString,
    /// ID of the user who mounted a FUSE filesystem.
    pub user: Option<u32>,
}

impl MountTable {
    /// Path of the mount table.
    pub const PATH: &str = "/proc/self/mountinfo";

    /// Opens the mount table.
    ///
    /// # Errors
    /// Fails with the system's error.
    pub fn open() -> io::Result<Self> {
        File::open(Self::PATH).map(MountTable)
    }

    /// Returns the current mounts.
    ///
    /// The table is read in pieces. If another process mounts or unmounts between two pieces, some
    /// kernels omit a line. Two equal readings in a row are taken as complete.
    ///
    /// # Errors
    /// Fails with the system's error.
    pub fn entries(&self) -> io::Result<Vec<MountEntry>> {
        const READINGS: usize = 16;
        let mut table = self.read()?;
        for _ in 1..READINGS {
            let again = self.read()?;
            if again == table {
                break;
            }
            table = again;
        }
        let lines = table.split(|byte| *byte == b'\n');
        Ok(lines.filter_map(MountEntry::parse).collect())
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        let mut table = Vec::new();
        let mut piece = [0; 4096];
        loop {
            let length = self.0.read_at(&mut piece, to_u64(table.len()))?;
            match piece.get(..length) {
                None | Some([]) => return Ok(table),
                Some(bytes) => table.extend_from_slice(bytes),
            }
        }
    }
}

/// The descriptor reports `POLLPRI` when a mount is added or removed.
impl AsFd for MountTable {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl MountEntry {
    /// Parses `36 35 0:57 / /mnt/data ro,nosuid shared:1 - fuse.h5fs data.h5 ro,user_id=0`.
    fn parse(line: &[u8]) -> Option<Self> {
        // Mount points are bytes, not text.
        let mut fields = line.split(|byte| *byte == b' ');
        let mut text = || std::str::from_utf8(fields.next()?).ok();
        let (id, parent, device) = (text()?, text()?, text()?);
        let point = fields.nth(1)?;
        let mut rest = fields.skip_while(|field| *field != b"-").skip(1);
        let kind = rest.next()?;
        let source = rest.next().unwrap_or_default();
        let mut options = rest.next().unwrap_or_default().split(|byte| *byte == b',');
        let user = options.find_map(|option| option.strip_prefix(b"user_id="));
        Some(MountEntry {
            id: id.parse().ok()?,
            parent: parent.parse().ok()?,
            device: device.parse().ok()?,
            point: OsString::from_vec(unescape(point)).into(),
            kind: std::str::from_utf8(kind).ok()?.to_owned(),
            source: OsString::from_vec(unescape(source)),
            user: user.and_then(|user| std::str::from_utf8(user).ok()?.parse().ok()),
        })
    }
}

/// Decodes the table's escapes, such as `\040` for a blank.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'\\')
            .then(|| after.split_at_checked(3))
            .flatten()
            .and_then(|(digits, after)| Some((octal(digits)?, after)));
        let (byte, after) = escaped.unwrap_or((*first, after));
        plain.push(byte);
        rest = after;
    }
    plain
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_mount_table_is_parsed() {
        // The example of proc(5), with a blank in the mount point.
        let line =
            br"36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let expected = MountEntry {
            id: 36,
            parent: 35,
            device: "98:0".parse().unwrap(),
            point: "/mnt 2".into(),
            kind: "ext3".to_owned(),
            source: "/dev/root".into(),
            user: None,
        };
        assert_eq!(MountEntry::parse(line), Some(expected));
        let line = b"36 35 0:57 / /mnt/data ro,nosuid shared:1 - fuse.h5fs data.h5 ro,user_id=1000,group_id=0";
        assert_eq!(MountEntry::parse(line).unwrap().user, Some(1000));
        for incomplete in ["", "36 35 0:57 / /a rw", "36 35 0:57 / /a rw -"] {
            assert_eq!(MountEntry::parse(incomplete.as_bytes()), None);
        }
    }

    #[test]
    fn the_table_contains_proc() {
        let entries = MountTable::open().unwrap().entries().unwrap();
        let is_proc = |entry: &MountEntry| entry.kind == "proc" && *entry.point == *"/proc";
        assert!(entries.iter().any(is_proc));
    }
}
