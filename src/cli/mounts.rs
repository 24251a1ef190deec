//! The mounts of this process's namespace, as /proc/self/mountinfo lists them (proc(5)), and how one is
//! taken away without touching another that stands at the same place.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};
use nix::sys::statvfs::statvfs;

use crate::error::{Error, Result};
use crate::source::device::Device;

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    id: u32,
    parent: u32,
    device: Device,
    point: PathBuf,
    /// `fuse.h5fs`, `ext4`, …
    kind: String,
}

/// The table comes in pieces, and between two of them others may mount and unmount, so that some kernels
/// leave a line out. What is read twice the same is whole.
fn table() -> Result<Vec<Mount>> {
    const TABLE: &str = "/proc/self/mountinfo";
    const READINGS: usize = 16;
    // Mount points are bytes, not text.
    let read = || std::fs::read(TABLE).map_err(|error| Error::io(&error, TABLE));
    let mut bytes = read()?;
    for _ in 1..READINGS {
        let again = read()?;
        if again == bytes {
            break;
        }
        bytes = again;
    }
    Ok(bytes
        .split(|byte| *byte == b'\n')
        .filter_map(parse)
        .collect())
}

/// `36 35 0:57 / /mnt/data ro,nosuid shared:1 - fuse.h5fs data.h5 ro,user_id=0`
fn parse(line: &[u8]) -> Option<Mount> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let text = |index: usize| std::str::from_utf8(fields.get(index)?).ok();
    let separator = fields.iter().position(|field| *field == b"-")?;
    Some(Mount {
        id: text(0)?.parse().ok()?,
        parent: text(1)?.parse().ok()?,
        device: text(2)?.parse().ok()?,
        point: OsString::from_vec(unescape(fields.get(4)?)).into(),
        kind: text(separator + 1)?.to_owned(),
    })
}

/// Undoes the table's `\040` for a blank and the like.
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

/// What is seen at `point`: of several mounts there, the one that none of the others covers.
fn topmost<'a>(table: &'a [Mount], point: &Path) -> Option<&'a Mount> {
    let mut there = table.iter().filter(|mount| mount.point == point);
    there.find(|mount| {
        !table
            .iter()
            .any(|other| other.point == point && other.parent == mount.id && other.id != mount.id)
    })
}

/// Whether `point`, an absolute path without links, is where something is mounted.
pub(crate) fn is_mount_point(point: &Path) -> Result<bool> {
    Ok(topmost(&table()?, point).is_some())
}

/// The number of the FUSE filesystem that is seen at `point`, an absolute path without links. It need not be
/// served yet.
///
/// # Errors
/// `NotFound` where there is none.
pub(crate) fn fuse_device(point: &Path) -> Result<Device> {
    let table = table()?;
    let seen = topmost(&table, point).filter(|mount| is_fuse(mount));
    seen.map(|mount| mount.device).ok_or(Error::NotFound)
}

/// Makes the kernel read as far ahead on `device` as it asks for at a time; by itself it reads 128 KiB ahead.
/// Only root may.
pub(crate) fn raise_read_ahead(device: Device) {
    const KIBIBYTES: &str = "1024";
    let setting = format!("/sys/class/bdi/{device}/read_ahead_kb");
    if let Err(error) = std::fs::write(&setting, KIBIBYTES) {
        log::debug!("{setting}: {error}");
    }
}

fn is_fuse(mount: &Mount) -> bool {
    mount.kind == "fuse" || mount.kind.starts_with("fuse.")
}

/// Asks the filesystem at `point` something that the kernel cannot answer from what it keeps.
///
/// # Errors
/// `ENOTCONN` where nobody serves it any more.
pub(crate) fn ask(point: &Path) -> nix::Result<()> {
    statvfs(point).map(drop)
}

/// Takes away every mount of `device`, which is being served, lazily: who has a file open keeps it.
///
/// # Errors
/// `Io` or `Usage` with the reason and the place.
pub(crate) fn unmount(device: Device) -> Result<()> {
    remove(|mount| mount.device == device)
}

/// Takes away every mount of `device` that nobody serves any more; without a number, the one at `point`.
///
/// Numbers are used again: once ours is gone, the same one may be that of somebody else's mount at the same
/// place, but that one answers.
///
/// # Errors
/// As [`unmount`].
pub(crate) fn unmount_dead(device: Option<Device>, point: &Path) -> Result<()> {
    remove(|mount| {
        let ours = device.map_or(mount.point == point, |device| mount.device == device);
        ours && ask(&mount.point) == Err(Errno::ENOTCONN)
    })
}

/// Takes away the FUSE mounts that are `wanted` and can be reached.
fn remove(wanted: impl Fn(&Mount) -> bool) -> Result<()> {
    let table = table()?;
    let mut outcome = Ok(());
    for mount in table.iter().filter(|mount| is_fuse(mount) && wanted(mount)) {
        let seen = topmost(&table, &mount.point);
        let result = if seen.is_some_and(|seen| seen.device == mount.device) {
            detach(&mount.point)
        } else {
            let point = mount.point.display();
            Err(Error::Usage(format!("{point}: covered by another mount")))
        };
        outcome = outcome.and(result);
    }
    outcome
}

fn detach(point: &Path) -> Result<()> {
    match umount2(point, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW) {
        // Somebody was faster.
        Ok(()) | Err(Errno::EINVAL | Errno::ENOENT) => Ok(()),
        Err(Errno::EPERM) => fusermount(point),
        Err(errno) => Err(Error::io(&errno.into(), point.display().to_string())),
    }
}

/// Asks the setuid helper of fuse3, which lets a user unmount what the user mounted.
fn fusermount(point: &Path) -> Result<()> {
    let helper = find_fusermount()?;
    let output = Command::new(&helper)
        .args(["-u", "-z", "--"])
        .arg(point)
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::io(&error, helper.display().to_string()))?;
    if output.status.success() || !is_mount_point(point)? {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&output.stderr);
    Err(Error::Usage(format!(
        "{}: {}",
        point.display(),
        reason.trim()
    )))
}

/// Where the setuid helper of fuse3 is.
///
/// # Errors
/// `Usage` where it is not installed.
pub(crate) fn find_fusermount() -> Result<PathBuf> {
    if let Some(chosen) = std::env::var_os("FUSERMOUNT_PATH") {
        return Ok(chosen.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/bin".into(), "/usr/bin".into(), "/sbin".into()])
        .flat_map(|folder| ["fusermount3", "fusermount"].map(|name| folder.join(name)))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| Error::Usage("no fusermount3 (it comes with the package fuse3)".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_table() {
        // The example of proc(5), with a blank in the mount point.
        let line =
            br"36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let expected = Mount {
            id: 36,
            parent: 35,
            device: "98:0".parse().unwrap(),
            point: "/mnt 2".into(),
            kind: "ext3".to_owned(),
        };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn the_mount_on_top_is_the_one_that_is_seen() {
        let table: Vec<Mount> = [
            "20 1 8:1 / / rw - ext4 a rw",
            "31 30 0:50 / /mnt rw - fuse.h5fs b rw",
            "30 20 0:49 / /mnt rw - fuse.h5fs c rw",
        ]
        .iter()
        .filter_map(|line| parse(line.as_bytes()))
        .collect();
        let seen = |point: &str| topmost(&table, Path::new(point)).map(|mount| mount.id);
        assert_eq!(seen("/mnt"), Some(31));
        assert_eq!(seen("/"), Some(20));
        assert_eq!(seen("/mnt/x"), None);
    }
}
