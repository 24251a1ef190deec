//! Identifies this program's own mount, and unmounts it without touching another mount at the same
//! path.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::mounts::device::Device;
use h5fs_reader::source::mounts::mount_id::{MountId, MountRoot};
use h5fs_reader::source::mounts::mount_table::{MountEntry, MountTable};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MntFlags, MsFlags, umount2};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::statvfs::fstatvfs;

use crate::cli::text::fusermount;

/// Filesystem type of this program's mounts in the mount table.
const KIND: &str = "fuse.h5fs";

/// Time limit for waiting until another process has finished mounting at the same path.
const MOUNT_POINT_LOCK: Duration = Duration::from_secs(10);

fn read_mount_table() -> Result<Vec<MountEntry>> {
    let entries = open_table()?.entries();
    entries.map_err(|error| Error::from_io(&error, MountTable::PATH))
}

fn open_table() -> Result<MountTable> {
    MountTable::open().map_err(|error| Error::from_io(&error, MountTable::PATH))
}

/// A directory on which no filesystem was mounted at the time of the check.
#[derive(Debug)]
pub(crate) struct FreeMountPoint {
    /// Absolute path without symbolic links.
    point: PathBuf,
    /// Mount ID of the mount that contains the directory.
    parent_mount_id: u64,
}

impl FreeMountPoint {
    /// Checks the directory at `point`, an absolute path without symbolic links.
    ///
    /// # Errors
    /// `Usage` if a filesystem is mounted there, `Io` if the directory cannot be reached.
    pub(crate) fn check(point: &Path) -> Result<Self> {
        let seen = root_at(point)?.id;
        // A path is the root of a mount exactly if the mount table lists it as a mount point.
        if read_mount_table()?.iter().any(|mount| mount.point == point) {
            return Err(occupied_error());
        }
        Ok(FreeMountPoint {
            point: point.to_owned(),
            parent_mount_id: seen.number,
        })
    }

    /// Finds this program's mount that was made directly on this directory. `device` is the
    /// filesystem's device number, if known. If another program has mounted on the directory first,
    /// this program's mount is rejected.
    ///
    /// # Errors
    /// Fails as [`FreeMountPoint::check`] does.
    pub(crate) fn find_own_mount(&self, device: Option<Device>) -> Result<OwnMount> {
        let is_here =
            |mount: &&MountEntry| mount.point == self.point && mount.parent == self.parent_mount_id;
        let is_own = |mount: &&MountEntry| {
            mount.kind == KIND && device.is_none_or(|own| own == mount.device)
        };
        let table = read_mount_table()?;
        let taken_away = || Error::Usage("the mount was unmounted at once".to_owned());
        let here = table.iter().find(is_here).ok_or_else(taken_away)?;
        let mount = Some(here).filter(is_own).ok_or_else(occupied_error)?;
        // If another mount already covers this mount, only the mount's number is known.
        let seen = root_at(&self.point).ok().map(|root| root.id);
        Ok(OwnMount {
            point: self.point.clone(),
            number: mount.id,
            id: seen.filter(|seen| seen.number == mount.id),
            device: mount.device,
            bdi_inode: bdi_inode(mount.device).ok().flatten(),
        })
    }
}

/// Unmounts a dead mount at `point`: one that this program made for the same user, and that no
/// process serves any more. All other mounts stay.
///
/// # Errors
/// Fails if the mount table cannot be read, or if the mount cannot be unmounted.
pub(in crate::cli) fn clear_dead_mount(point: &Path) -> Result<()> {
    let Some(point) = resolve_parent(point) else {
        return Ok(());
    };
    let user = nix::unistd::geteuid().as_raw();
    let is_own = |mount: &&MountEntry| mount.kind == KIND && mount.user == Some(user);
    loop {
        let table = read_mount_table()?;
        let topmost = table.iter().rfind(|mount| mount.point == point);
        let Some(mount) = topmost.filter(is_own) else {
            return Ok(());
        };
        let is_dead = MountRoot::at(&point).is_ok_and(|root| {
            root.id.number == mount.id && probe(&root.root) == Err(Errno::ENOTCONN)
        });
        if !is_dead {
            return Ok(());
        }
        log::info!("{}: clearing a dead mount", point.display());
        detach(&point)?;
    }
}

/// Returns the absolute path without symbolic links in its parent directories. The last name can be
/// a dead mount, which cannot be resolved.
fn resolve_parent(point: &Path) -> Option<PathBuf> {
    let point = std::path::absolute(point).ok()?;
    let parent = point.parent()?.canonicalize().ok()?;
    Some(parent.join(point.file_name()?))
}

fn occupied_error() -> Error {
    Error::Usage("already a mount point".to_owned())
}

/// The mount that this program made.
#[derive(Debug, Clone)]
pub(crate) struct OwnMount {
    /// Path at which the filesystem was mounted.
    point: PathBuf,
    number: u64,
    /// Unique mount ID. `None` if another mount covered this mount before the ID could be queried.
    id: Option<MountId>,
    device: Device,
    /// Inode number of the filesystem's directory in sysfs. It distinguishes the filesystem from a
    /// later one with the same device number. `None` if the system does not provide this number.
    bdi_inode: Option<u64>,
}

/// Whether a path reaches the mount.
enum MountVisibility {
    /// The mount no longer exists.
    Gone,
    /// Another mount covers the mount, or covers a directory on its path.
    Covered,
    /// The mount is the topmost one at this path. Its root directory is open.
    Visible(PathBuf, MountRoot),
}

/// The result of an attempt to unmount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum UnmountResult {
    Done,
    /// Not unmounted: the mount cannot be reached while another mount covers it.
    Deferred,
}

impl OwnMount {
    /// Returns the device number of the mount's filesystem.
    pub(crate) fn device(&self) -> Device {
        self.device
    }

    /// Returns whether the kernel has ended the mount's filesystem. A filesystem ends once it is
    /// mounted nowhere and no process has one of its files open. Returns false if sysfs does not
    /// show the filesystem.
    pub(crate) fn has_ended(&self) -> bool {
        let now = bdi_inode(self.device);
        self.bdi_inode.is_some() && now.is_ok_and(|now| now != self.bdi_inode)
    }

    fn visibility(&self, table: &[MountEntry]) -> MountVisibility {
        let is_own = |mount: &&MountEntry| (mount.id, mount.device) == (self.number, self.device);
        // The mount point may have been renamed since.
        let Some(mount) = table.iter().find(is_own) else {
            return MountVisibility::Gone;
        };
        match root_at(&mount.point) {
            Ok(root) if root.id.number != self.number => MountVisibility::Covered,
            Ok(root) if self.id.is_none_or(|own| own == root.id) => {
                MountVisibility::Visible(mount.point.clone(), root)
            }
            // The mount number was reused for a mount of another program.
            Ok(_) => MountVisibility::Gone,
            Err(_) => MountVisibility::Covered,
        }
    }

    /// Opens the root directory of the mount. While it is open, the filesystem does not end.
    /// Returns `None` if no path reaches the mount.
    pub(crate) fn root(&self) -> Option<File> {
        // The mount is usually at its original path, and reading the mount table may be slow.
        let seen = root_at(&self.point).ok();
        if let Some(root) = seen.filter(|root| self.id == Some(root.id)) {
            return Some(root.root);
        }
        match self.visibility(&read_mount_table().ok()?) {
            MountVisibility::Visible(_, root) => Some(root.root),
            MountVisibility::Gone | MountVisibility::Covered => None,
        }
    }

    /// Returns whether the mount exists but no process serves it.
    pub(crate) fn is_dead(&self) -> bool {
        self.root()
            .is_some_and(|root| probe(&root) == Err(Errno::ENOTCONN))
    }

    /// Unmounts the filesystem lazily, at its mount point and at all other paths where it is
    /// visible (`mount --bind`). A process that has a file open can still read it.
    ///
    /// # Errors
    /// `Io` or `Usage` with the reason and the path.
    pub(crate) fn unmount(&self) -> Result<UnmountResult> {
        let table = read_mount_table()?;
        match self.visibility(&table) {
            MountVisibility::Gone => Ok(UnmountResult::Done),
            MountVisibility::Covered => Ok(UnmountResult::Deferred),
            MountVisibility::Visible(point, root) => {
                // While this mount exists, its filesystem's number is not reused.
                let mut copies = table
                    .iter()
                    .filter(|mount| mount.device == self.device && mount.id != self.number);
                let copies = copies.try_for_each(detach_if_topmost);
                drop(root);
                detach(&point).and(copies)?;
                // Another program may have mounted at this path after the check. In that case the
                // call has unmounted that mount instead.
                match self.visibility(&read_mount_table()?) {
                    MountVisibility::Gone => Ok(UnmountResult::Done),
                    MountVisibility::Covered | MountVisibility::Visible(..) => {
                        Ok(UnmountResult::Deferred)
                    }
                }
            }
        }
    }

    /// Waits until no other mount covers this one, and then unmounts.
    ///
    /// # Errors
    /// Fails as [`OwnMount::unmount`] does.
    pub(crate) fn unmount_when_uncovered(&self) -> Result<()> {
        // Interval in milliseconds, in case the kernel reports no change.
        const LOOK_AGAIN: u16 = 10_000;
        let changes = open_table()?;
        while self.unmount()? == UnmountResult::Deferred {
            let mut change = [PollFd::new(changes.as_fd(), PollFlags::POLLPRI)];
            let _ = poll(&mut change, LOOK_AGAIN);
        }
        Ok(())
    }
}

/// Unmounts the mount if it is the topmost one at its path.
fn detach_if_topmost(mount: &MountEntry) -> Result<()> {
    let seen = root_at(&mount.point).map(|root| root.id.number);
    if seen.is_ok_and(|number| number == mount.id) {
        detach(&mount.point)?;
    }
    Ok(())
}

/// Returns the inode number of the filesystem's directory in sysfs, or `None` if no filesystem has
/// the device number. A later filesystem with the same device number has a directory with another
/// inode number.
///
/// # Errors
/// Fails if the directory cannot be read, or if sysfs is not mounted.
fn bdi_inode(device: Device) -> io::Result<Option<u64>> {
    const FILESYSTEMS: &str = "/sys/class/bdi";
    match std::fs::metadata(format!("{FILESYSTEMS}/{device}")) {
        Ok(directory) => Ok(Some(directory.ino())),
        Err(error)
            if error.kind() == io::ErrorKind::NotFound && Path::new(FILESYSTEMS).is_dir() =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// A watch on the mount table.
#[derive(Debug)]
pub(crate) struct MountChanges(MountTable);

impl MountChanges {
    /// Starts watching the mount table for changes.
    ///
    /// # Errors
    /// `Io` if the mount table cannot be opened.
    pub(crate) fn watch() -> Result<Self> {
        open_table().map(MountChanges)
    }

    /// Waits until the mount table changes, at most for the time `time`. Returns whether it
    /// changed.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let time = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
        let mut change = [PollFd::new(self.0.as_fd(), PollFlags::POLLPRI)];
        poll(&mut change, time).is_ok_and(|changes| changes > 0)
    }
}

fn root_at(point: &Path) -> Result<MountRoot> {
    MountRoot::at(point).map_err(|error| Error::from_io(&error, point.display().to_string()))
}

/// Locks the mount point `point` against other processes of this program. Two processes that mount
/// there at the same time would not see each other's mount. The lock is released when it is
/// dropped. Returns `None` if the directory cannot be opened, or if another process holds the lock
/// for too long.
pub(crate) fn lock_mount_point(point: &Path) -> Option<Flock<File>> {
    const PAUSE: Duration = Duration::from_millis(10);
    let end = Instant::now() + MOUNT_POINT_LOCK;
    let mut directory = File::open(point).ok()?;
    loop {
        match Flock::lock(directory, FlockArg::LockExclusiveNonblock) {
            Ok(locked) => return Some(locked),
            Err((unlocked, Errno::EWOULDBLOCK)) if Instant::now() < end => directory = unlocked,
            Err(_) => return None,
        }
        thread::sleep(PAUSE);
    }
}

/// Raises the kernel's read-ahead for the filesystem with this device number. It is raised from 128
/// KiB to the size of the largest read request. Only root may do this.
pub(crate) fn raise_read_ahead(device: Device) {
    const KIBIBYTES: &str = "1024";
    let setting = format!("/sys/class/bdi/{device}/read_ahead_kb");
    if let Err(error) = std::fs::write(&setting, KIBIBYTES) {
        log::debug!("{setting}: {error}");
    }
}

/// Sends a request to the filesystem that the kernel cannot answer from its caches.
///
/// # Errors
/// `ENOTCONN` if no process serves the filesystem.
pub(crate) fn probe(root: &File) -> nix::Result<()> {
    fstatvfs(root).map(drop)
}

fn detach(point: &Path) -> Result<()> {
    match umount2(point, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW) {
        // Another process has already unmounted the filesystem.
        Ok(()) | Err(Errno::EINVAL | Errno::ENOENT) => Ok(()),
        Err(Errno::EPERM) => unmount_by_fusermount(point),
        Err(errno) => Err(Error::from_io(&errno.into(), point.display().to_string())),
    }
}

/// Unmounts `point` by the setuid program of fuse3 (fusermount3), which permits users to unmount
/// their own mounts.
fn unmount_by_fusermount(point: &Path) -> Result<()> {
    let helper = find_fusermount()?;
    let output = Command::new(&helper)
        .args(["-u", "-z", "--"])
        .arg(point)
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::from_io(&error, helper.display().to_string()))?;
    if output.status.success() || read_mount_table()?.iter().all(|mount| mount.point != point) {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&output.stderr);
    Err(Error::Usage(format!(
        "{}: {}",
        point.display(),
        reason.trim()
    )))
}

/// Finds the setuid program of fuse3 (fusermount3).
///
/// # Errors
/// `Usage` if the helper is not installed.
pub(crate) fn find_fusermount() -> Result<PathBuf> {
    if let Some(chosen) = std::env::var_os("FUSERMOUNT_PATH") {
        return Ok(chosen.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/bin".into(), "/usr/bin".into(), "/sbin".into()])
        .flat_map(|folder| ["fusermount3", "fusermount"].map(|name| folder.join(name)))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| {
            let system = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
            let is_conda = std::env::var_os("CONDA_PREFIX").is_some();
            Error::Usage(fusermount::missing_message(&system, is_conda))
        })
}
/// Makes the kernel follow no symbolic link in the mount at `point`, which it does since Linux 5.10.
/// fuser and fusermount3 do not know this option.
///
/// # Errors
/// `Usage` if the user must not change the mount, because only root can. `Io` if the kernel does not
/// know the option.
pub(super) fn forbid_symlinks(point: &Path, no_exec: bool) -> Result<()> {
    const MS_NOSYMFOLLOW: MsFlags = MsFlags::from_bits_retain(256);
    let mut flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    flags |= MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MS_NOSYMFOLLOW;
    flags.set(MsFlags::MS_NOEXEC, no_exec);
    let none = None::<&str>;
    nix::mount::mount(none, point, none, flags, none).map_err(|errno| match errno {
        Errno::EPERM => Error::Usage("-o nosymfollow: only root can set this option".to_owned()),
        errno => Error::from_io(&errno.into(), "-o nosymfollow"),
    })
}
