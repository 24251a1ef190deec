//! Which mount is ours, and how it is taken away without touching another one at the same place.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MntFlags, umount2};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::statvfs::fstatvfs;

use crate::cli::words::fusermount;
use crate::error::{Error, Result};
use crate::source::mounts::device::Device;
use crate::source::mounts::mount_id::{MountId, MountRoot};
use crate::source::mounts::mount_table::{MountEntry, MountTable};

/// Time that a mount waits for another mount that is being made at the same place.
const MOUNT_POINT_LOCK: Duration = Duration::from_secs(10);

fn table() -> Result<Vec<MountEntry>> {
    let entries = open_table()?.entries();
    entries.map_err(|error| Error::io(&error, MountTable::PATH))
}

fn open_table() -> Result<MountTable> {
    MountTable::open().map_err(|error| Error::io(&error, MountTable::PATH))
}

/// A directory on which nothing was mounted when it was looked at.
#[derive(Debug)]
pub(crate) struct FreePlace {
    /// An absolute path without links.
    point: PathBuf,
    /// The mount that the directory itself belongs to.
    around: u64,
}

impl FreePlace {
    /// The directory at `point`, an absolute path without links.
    ///
    /// # Errors
    /// `Usage` where something is mounted there, `Io` where it cannot be reached.
    pub(crate) fn at(point: &Path) -> Result<Self> {
        let seen = root_at(point)?.id;
        // It is a mount's root exactly if its mount was mounted there.
        if table()?.iter().any(|mount| mount.point == point) {
            return Err(is_taken());
        }
        Ok(FreePlace {
            point: point.to_owned(),
            around: seen.number,
        })
    }

    /// The mount of this program, of the filesystem `device` where that is known, that stands on
    /// this directory itself and not on another mount that was faster.
    ///
    /// # Errors
    /// Fails as [`FreePlace::at`] does.
    pub(crate) fn mounted(&self, device: Option<Device>) -> Result<OwnMount> {
        const KIND: &str = "fuse.h5fs";
        let is_here =
            |mount: &&MountEntry| mount.point == self.point && mount.parent == self.around;
        let is_own = |mount: &&MountEntry| {
            mount.kind == KIND && device.is_none_or(|own| own == mount.device)
        };
        let table = table()?;
        let taken_away = || Error::Usage("the mount was taken away at once".to_owned());
        let here = table.iter().find(is_here).ok_or_else(taken_away)?;
        let mount = Some(here).filter(is_own).ok_or_else(is_taken)?;
        // Covered already, it is known by the number alone.
        let seen = root_at(&self.point).ok().map(|root| root.id);
        Ok(OwnMount {
            point: self.point.clone(),
            number: mount.id,
            id: seen.filter(|seen| seen.number == mount.id),
            device: mount.device,
            filesystem: filesystem_of(mount.device).ok().flatten(),
        })
    }
}

fn is_taken() -> Error {
    Error::Usage("already a mount point".to_owned())
}

/// The mount that this program made.
#[derive(Debug, Clone)]
pub(crate) struct OwnMount {
    /// Where it was mounted.
    point: PathBuf,
    number: u64,
    /// Unless another mount covered it before it could be asked for.
    id: Option<MountId>,
    device: Device,
    /// Tells its filesystem from a later one with the same number; `None` where the system does not
    /// say.
    filesystem: Option<u64>,
}

/// Whether a mount can be seen where it stands.
enum Visibility {
    /// It is no more.
    Gone,
    /// Another mount stands on it, or on a directory that leads to it.
    Covered,
    /// It is what is seen there.
    Seen(PathBuf, MountRoot),
}

/// Whether a mount was taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Removal {
    Done,
    /// It cannot be reached as long as another mount covers it.
    Later,
}

impl OwnMount {
    /// The number of its filesystem.
    pub(crate) fn device(&self) -> Device {
        self.device
    }

    /// Whether the kernel has ended its filesystem: it is mounted nowhere, and no process has a file
    /// of it open. False where the system does not say.
    pub(crate) fn has_ended(&self) -> bool {
        let now = filesystem_of(self.device);
        self.filesystem.is_some() && now.is_ok_and(|now| now != self.filesystem)
    }

    fn visibility(&self, table: &[MountEntry]) -> Visibility {
        let is_own = |mount: &&MountEntry| (mount.id, mount.device) == (self.number, self.device);
        // The place's name may have changed since.
        let Some(mount) = table.iter().find(is_own) else {
            return Visibility::Gone;
        };
        match root_at(&mount.point) {
            Ok(root) if root.id.number != self.number => Visibility::Covered,
            Ok(root) if self.id.is_none_or(|own| own == root.id) => {
                Visibility::Seen(mount.point.clone(), root)
            }
            // The number was given to somebody else's mount.
            Ok(_) => Visibility::Gone,
            Err(_) => Visibility::Covered,
        }
    }

    /// Its root, which is held by that; `None` where it cannot be reached.
    pub(crate) fn root(&self) -> Option<File> {
        // Mostly it is where it was, and the table may be long.
        let seen = root_at(&self.point).ok();
        if let Some(root) = seen.filter(|root| self.id == Some(root.id)) {
            return Some(root.root);
        }
        match self.visibility(&table().ok()?) {
            Visibility::Seen(_, root) => Some(root.root),
            Visibility::Gone | Visibility::Covered => None,
        }
    }

    /// Whether nobody serves it any more.
    pub(crate) fn is_dead(&self) -> bool {
        self.root()
            .is_some_and(|root| ask(&root) == Err(Errno::ENOTCONN))
    }

    /// Takes it away lazily, with other places where its filesystem is seen (`mount --bind`): a
    /// process that has a file open keeps it.
    ///
    /// # Errors
    /// `Io` or `Usage` with the reason and the place.
    pub(crate) fn take_away(&self) -> Result<Removal> {
        let table = table()?;
        match self.visibility(&table) {
            Visibility::Gone => Ok(Removal::Done),
            Visibility::Covered => Ok(Removal::Later),
            Visibility::Seen(point, root) => {
                // As long as this mount is there, its filesystem's number is nobody else's.
                let mut copies = table
                    .iter()
                    .filter(|mount| mount.device == self.device && mount.id != self.number);
                let copies = copies.try_for_each(detach_if);
                drop(root);
                detach(&point).and(copies)?;
                // Between the look and the call somebody may have mounted there, and lost that
                // mount instead.
                match self.visibility(&self::table()?) {
                    Visibility::Gone => Ok(Removal::Done),
                    Visibility::Covered | Visibility::Seen(..) => Ok(Removal::Later),
                }
            }
        }
    }

    /// Takes it away as soon as it is not covered any more.
    ///
    /// # Errors
    /// Fails as [`OwnMount::take_away`] does.
    pub(crate) fn take_away_when_uncovered(&self) -> Result<()> {
        // In case the kernel does not tell.
        const LOOK_AGAIN: u16 = 10_000;
        let changes = open_table()?;
        while self.take_away()? == Removal::Later {
            let mut change = [PollFd::new(changes.as_fd(), PollFlags::POLLPRI)];
            let _ = poll(&mut change, LOOK_AGAIN);
        }
        Ok(())
    }
}

/// Takes this very mount away, if it is what is seen at its place.
fn detach_if(mount: &MountEntry) -> Result<()> {
    let seen = root_at(&mount.point).map(|root| root.id.number);
    if seen.is_ok_and(|number| number == mount.id) {
        detach(&mount.point)?;
    }
    Ok(())
}

/// Returns the inode number of the directory that the kernel keeps in sysfs for the filesystem with
/// this number, or `None` if no such filesystem exists. A later filesystem's directory has another
/// one.
///
/// # Errors
/// Fails if the directory cannot be read, or if sysfs is not mounted.
fn filesystem_of(device: Device) -> io::Result<Option<u64>> {
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

/// Changes of the table of mounts.
#[derive(Debug)]
pub(crate) struct MountChanges(MountTable);

impl MountChanges {
    /// Changes from now on.
    ///
    /// # Errors
    /// `Io` if the table cannot be opened.
    pub(crate) fn watch() -> Result<Self> {
        open_table().map(MountChanges)
    }

    /// Waits for a change. Returns whether one came within this time.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let time = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
        let mut change = [PollFd::new(self.0.as_fd(), PollFlags::POLLPRI)];
        poll(&mut change, time).is_ok_and(|changes| changes > 0)
    }
}

fn root_at(point: &Path) -> Result<MountRoot> {
    MountRoot::at(point).map_err(|error| Error::io(&error, point.display().to_string()))
}

/// Keeps other processes of this program from mounting at `point` until it is dropped: they would
/// not see each other. A lock that is held for long is ignored.
pub(crate) fn lock(point: &Path) -> Option<Flock<File>> {
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

/// Makes the kernel read as far ahead on `device` as it asks for at a time; by itself it reads 128
/// KiB ahead. Only root may.
pub(crate) fn raise_read_ahead(device: Device) {
    const KIBIBYTES: &str = "1024";
    let setting = format!("/sys/class/bdi/{device}/read_ahead_kb");
    if let Err(error) = std::fs::write(&setting, KIBIBYTES) {
        log::debug!("{setting}: {error}");
    }
}

/// Asks the filesystem with this root something that the kernel cannot answer from what it keeps.
///
/// # Errors
/// `ENOTCONN` where nobody serves it any more.
pub(crate) fn ask(root: &File) -> nix::Result<()> {
    fstatvfs(root).map(drop)
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
    if output.status.success() || table()?.iter().all(|mount| mount.point != point) {
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
        .ok_or_else(|| {
            let system = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
            let is_conda = std::env::var_os("CONDA_PREFIX").is_some();
            Error::Usage(fusermount::missing(&system, is_conda))
        })
}
