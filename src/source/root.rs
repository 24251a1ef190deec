//! The directory of the source that is mounted, and what may be opened there or elsewhere for its
//! sake.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::sys::stat::Mode;

use crate::error::{Cause, Error};
use crate::source::changes::Changes;
use crate::source::file::FileSource;
use crate::source::mount_guard::MountGuard;

/// Which other files a source may bring in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// None.
    None,
    /// Regular files inside the source's own directory, resolved beneath it: no `..`, no absolute
    /// path that leads elsewhere, no symbolic link out.
    #[default]
    Within,
    /// Every regular file.
    Any,
}

/// Why a file is not opened.
#[derive(Debug, Clone)]
pub enum Unopened {
    /// It may not be.
    Refused(Error),
    /// It may be, and cannot be; where it was sought.
    Failed(PathBuf, Error),
}

impl Unopened {
    /// The reason.
    pub fn error(self) -> Error {
        match self {
            Unopened::Refused(error) | Unopened::Failed(_, error) => error,
        }
    }
}

/// A file, and the path by which it was opened; `None` where there is none.
pub(super) type Opened = Result<Option<(FileSource, PathBuf)>, Unopened>;

/// The directory of the source that is mounted, whose policy is everyone's.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) directory: PathBuf,
    /// Or why the directory cannot be entered.
    handle: Result<OwnedFd, Errno>,
    pub(super) policy: Policy,
    /// Nothing is looked up there.
    guard: Option<MountGuard>,
    /// Watches what is opened.
    pub(super) changes: Option<Arc<Changes>>,
}

impl Root {
    /// The directory of the file at `source`, an absolute path without symbolic links. One that
    /// cannot be entered makes each file there unreadable. Nothing is looked up in the mount that
    /// `guard` tells of.
    pub(super) fn of(source: &Path, policy: Policy, guard: Option<MountGuard>) -> Self {
        let directory = source.parent().unwrap_or(Path::new("/")).to_path_buf();
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let handle = match policy {
            Policy::None => Err(Errno::EACCES),
            _ if guard
                .as_ref()
                .is_some_and(|guard| guard.is_on_the_way(&directory)) =>
            {
                Err(Errno::EDEADLK)
            }
            _ => open(&directory, flags, Mode::empty()),
        };
        Root {
            directory,
            handle,
            policy,
            guard,
            changes: None,
        }
    }

    /// No directory.
    pub(super) fn none() -> Self {
        Root {
            directory: PathBuf::new(),
            handle: Err(Errno::EACCES),
            policy: Policy::None,
            guard: None,
            changes: None,
        }
    }

    fn open_path(&self, path: &Path) -> Opened {
        match path.is_absolute() {
            true => self.open_absolute(path),
            false => self.open_relative(path),
        }
    }

    /// Opens what stands at `path`. Of what stands beside a link to the source, in another
    /// directory, `Within` allows what is itself a link into the source's.
    pub(super) fn open_beside(&self, path: &Path) -> Opened {
        if self.policy == Policy::Within && path.is_absolute() {
            self.keep_out(path)?;
            if let Ok(real) = path.canonicalize()
                && let Ok(relative) = real.strip_prefix(&self.directory)
            {
                let found = self.open_relative(relative)?;
                return Ok(found.map(|(file, _)| (file, path.to_path_buf())));
            }
        }
        self.open_path(path)
    }

    /// Opens what stands at the absolute path `name`.
    pub(super) fn open_absolute(&self, name: &Path) -> Opened {
        self.keep_out(name)?;
        match self.policy {
            Policy::Any => self.open_beneath(name, ResolveFlag::empty()),
            _ => match name.strip_prefix(&self.directory) {
                Ok(relative) => self.open_relative(relative),
                Err(_) if name.symlink_metadata().is_ok() => Err(refused(
                    name,
                    "external=within: it is outside the source's directory",
                )),
                Err(_) => Ok(None),
            },
        }
    }

    /// Opens `name`, which is relative to the root's directory.
    fn open_relative(&self, name: &Path) -> Opened {
        self.keep_out(&self.directory.join(name))?;
        match self.policy {
            Policy::Within if climbs_out(name) => {
                let there = self.directory.join(name).symlink_metadata();
                match there.is_ok() {
                    true => Err(refused(
                        name,
                        "external=within: it climbs out of the source's directory",
                    )),
                    false => Ok(None),
                }
            }
            Policy::Within => {
                let flags = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS;
                self.open_beneath(name, flags)
            }
            _ => self.open_beneath(name, ResolveFlag::empty()),
        }
    }

    /// Fails for a path that leads where nothing is looked up.
    fn keep_out(&self, path: &Path) -> Result<(), Unopened> {
        match &self.guard {
            Some(guard) if guard.is_on_the_way(path) => {
                let why =
                    "it leads into the mount itself, or into another FUSE filesystem or overlay";
                Err(refused(path, why))
            }
            _ => Ok(()),
        }
    }

    fn open_beneath(&self, name: &Path, resolve: ResolveFlag) -> Opened {
        let path = self.directory.join(name);
        let failed = |why: &str| Unopened::Failed(path.clone(), unreadable(&path, why));
        let handle = self.handle.as_ref();
        let handle = handle.map_err(|errno| match errno {
            Errno::EDEADLK => refused(&path, errno.desc()),
            _ => failed(errno.desc()),
        })?;
        // To open a device, or a FIFO that somebody waits at, can do something.
        if path.metadata().is_ok_and(|there| !there.is_file()) {
            return Err(failed("no regular file"));
        }
        // One that takes its place just now must not make this wait or become ours.
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let how = OpenHow::new().flags(flags).resolve(resolve);
        match openat2(handle.as_fd(), name, how) {
            Ok(file) => {
                match FileSource::from_file(File::from(file), &path, self.changes.as_ref()) {
                    Ok(file) => Ok(Some((file, path))),
                    Err(_) => Err(failed("no regular file")),
                }
            }
            Err(Errno::ENOENT | Errno::ENOTDIR) => Ok(None),
            Err(Errno::EXDEV | Errno::ELOOP) => Err(refused(
                name,
                "external=within: it leads out of the source's directory",
            )),
            Err(errno) => Err(failed(errno.desc())),
        }
    }
}

/// Whether a relative path goes above the directory that it begins in, on its way or at its end.
/// The system sees to symbolic links on that way.
fn climbs_out(path: &Path) -> bool {
    let mut depth = 0_usize;
    for component in path.components() {
        match component {
            Component::Normal(_) => depth = depth.saturating_add(1),
            Component::ParentDir => match depth.checked_sub(1) {
                Some(above) => depth = above,
                None => return true,
            },
            _ => {}
        }
    }
    false
}

/// `name` may not be had.
pub(super) fn refused(name: &Path, why: &str) -> Unopened {
    Unopened::Refused(unreadable(name, why))
}

/// `name` cannot be had: `why` is what the policy says, or the system. Its reader asked for
/// something else, which has the right to be read, and lacks this part.
pub(super) fn unreadable(name: &Path, why: &str) -> Error {
    let what = format!("{} ({why})", name.display().to_string().escape_debug());
    Error::caused(Cause::Failed, what)
}
