//! The directory or prefix of the mounted source, and the rules for opening other files.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::sys::stat::Mode;

use crate::error::{Cause, Error};
use crate::memory::cancel::WantedCheck;
use crate::source::identity::{Fingerprint, Identity};
use crate::source::local::acl::Acl;
use crate::source::local::audience::Audience;
use crate::source::local::changes::ChangeWatcher;
use crate::source::local::file::{FileSource, open_path_descriptor};
use crate::source::mounts::mount_guard::MountGuard;
use crate::source::neighbours::policy::{
    OpenRefusal, OpenedPath, OtherFilesPolicy, refusal, unreadable_error,
};
use crate::source::remote::prefix::Prefix;
use crate::wire::Count;

/// The reason for an error of a system that cannot open a file beneath a directory.
pub(super) const NO_OPENAT2: &str =
    "this kernel or container has no openat2(2), which Linux has since version 5.6";

/// The directory or prefix of the mounted source.
#[derive(Debug)]
pub(in crate::source) enum Root {
    /// Directory of a file.
    Directory(SourceDirectory),
    /// Prefix of an object.
    Prefix(Prefix),
}

impl Root {
    /// Returns the path of the directory, or the URL of the prefix.
    pub(in crate::source) fn path(&self) -> &Path {
        match self {
            Root::Directory(directory) => &directory.path,
            Root::Prefix(prefix) => prefix.path(),
        }
    }

    /// Returns the policy for all files reached from this root.
    pub(in crate::source) fn policy(&self) -> OtherFilesPolicy {
        match self {
            Root::Directory(directory) => directory.policy,
            Root::Prefix(prefix) => prefix.policy(),
        }
    }

    /// Returns whether opening a file needs a request to a server.
    pub(in crate::source) fn is_remote(&self) -> bool {
        matches!(self, Root::Prefix(_))
    }

    /// Returns the watcher of the files that are opened, or `None` if changes are not watched.
    pub(in crate::source) fn changes(&self) -> Option<&Arc<ChangeWatcher>> {
        match self {
            Root::Directory(directory) => directory.changes.as_ref(),
            Root::Prefix(_) => None,
        }
    }

    /// Opens the file at the absolute path `name`.
    pub(in crate::source) fn open_absolute(&self, name: &Path) -> OpenedPath {
        match self {
            Root::Directory(directory) => directory.open_absolute(name),
            // An absolute path refers to the machine where the file was written, not to the store.
            Root::Prefix(_) => Ok(None),
        }
    }

    /// Opens the file at `path`, next to the source or next to a link to the source. Stops waiting
    /// for a server if `is_wanted` returns false.
    pub(in crate::source) fn open_next_to_source(
        &self,
        path: &Path,
        is_wanted: &WantedCheck<'_>,
    ) -> OpenedPath {
        match self {
            Root::Directory(directory) => directory.open_next_to_source(path),
            Root::Prefix(prefix) => prefix.open(path, is_wanted),
        }
    }

    /// Returns an absolute path to the file at `path`, where only the last component may be a
    /// symbolic link.
    ///
    /// # Errors
    /// `Io` with the system's error.
    pub(in crate::source) fn resolve_parent(&self, path: &Path) -> crate::error::Result<PathBuf> {
        match self {
            Root::Directory(_) => with_real_directory(path),
            Root::Prefix(_) => Ok(path.to_path_buf()),
        }
    }

    /// Returns the absolute path without symbolic links of the file that was opened by `path` with
    /// the identity `opened`.
    ///
    /// # Errors
    /// `ESTALE` if another file exists there now.
    pub(in crate::source) fn real_path(
        &self,
        path: &Path,
        opened: &Identity,
    ) -> crate::error::Result<PathBuf> {
        match self {
            Root::Directory(_) => real_path(path, opened),
            Root::Prefix(_) => Ok(path.to_path_buf()),
        }
    }

    /// Returns the audiences of all directories above the path `real`, which has no symbolic links.
    /// Returns none for a prefix.
    pub(in crate::source) fn directory_audiences(&self, real: &Path) -> Vec<Audience> {
        let look = |directory: &Path| match directory.metadata() {
            Ok(metadata) => Audience::new(&metadata, Acl::from_path(directory)),
            Err(_) => Audience::only_owner(),
        };
        match self {
            Root::Directory(_) => real.ancestors().skip(1).map(look).collect(),
            Root::Prefix(_) => Vec::new(),
        }
    }
}

/// Returns an absolute path to the file at `path`, where only the last component may be a symbolic
/// link.
///
/// # Errors
/// `Io` with the system's error.
pub fn with_real_directory(path: &Path) -> crate::error::Result<PathBuf> {
    let failed = |error: std::io::Error| Error::from_io(&error, path.display().to_string());
    match (path.parent(), path.file_name()) {
        (Some(directory), Some(name)) => Ok(directory.canonicalize().map_err(failed)?.join(name)),
        _ => path.canonicalize().map_err(failed),
    }
}

fn real_path(path: &Path, opened: &Identity) -> crate::error::Result<PathBuf> {
    let failed = |error: std::io::Error| Error::from_io(&error, path.display().to_string());
    let real = path.canonicalize().map_err(failed)?;
    let there = real.symlink_metadata().map_err(failed)?;
    if Identity::File(Fingerprint::from_metadata(&there)).is_of_same_file(opened) {
        Ok(real)
    } else {
        Err(Error::from_cause(Cause::Stale, path.display().to_string()))
    }
}

/// The directory of the mounted source. Its policy applies to all files that are opened through it.
#[derive(Debug)]
pub(in crate::source) struct SourceDirectory {
    path: PathBuf,
    /// The open directory, or the reason why it cannot be entered.
    handle: Result<OwnedFd, Errno>,
    policy: OtherFilesPolicy,
    /// The mount where no file may be looked up.
    guard: Option<MountGuard>,
    /// The watcher of the opened files.
    changes: Option<Arc<ChangeWatcher>>,
}

impl SourceDirectory {
    /// Opens the directory of the file at `source`, an absolute path without symbolic links. If the
    /// directory cannot be entered, each file there is unreadable. No file is looked up in the
    /// mount of `guard`.
    pub(in crate::source) fn open(
        source: &Path,
        policy: OtherFilesPolicy,
        guard: Option<MountGuard>,
    ) -> Self {
        let directory = source.parent().unwrap_or(Path::new("/")).to_path_buf();
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let handle = match policy {
            OtherFilesPolicy::None => Err(Errno::EACCES),
            _ if guard
                .as_ref()
                .is_some_and(|guard| guard.is_crossed_by(&directory)) =>
            {
                Err(Errno::EDEADLK)
            }
            _ => open(&directory, flags, Mode::empty()),
        };
        SourceDirectory {
            path: directory,
            handle,
            policy,
            guard,
            changes: None,
        }
    }

    /// Returns a placeholder for a source without a directory: no file can be opened.
    pub(in crate::source) fn absent() -> Self {
        SourceDirectory {
            path: PathBuf::new(),
            handle: Err(Errno::EACCES),
            policy: OtherFilesPolicy::None,
            guard: None,
            changes: None,
        }
    }

    /// Sets the watcher of the files that are opened.
    pub(in crate::source) fn watched_by(self, changes: Option<Arc<ChangeWatcher>>) -> Self {
        SourceDirectory { changes, ..self }
    }

    fn open_path(&self, path: &Path) -> OpenedPath {
        if path.is_absolute() {
            self.open_absolute(path)
        } else {
            self.open_relative(path)
        }
    }

    /// Opens the file at `path`. The policy [`WithinDirectory`](OtherFilesPolicy::WithinDirectory)
    /// also allows a file next to a link to the source, in another directory, if that file is a
    /// link into the source's directory.
    fn open_next_to_source(&self, path: &Path) -> OpenedPath {
        if self.policy == OtherFilesPolicy::WithinDirectory && path.is_absolute() {
            self.check_not_guarded(path)?;
            if let Ok(real) = path.canonicalize()
                && let Ok(relative) = real.strip_prefix(&self.path)
            {
                let found = self.open_relative(relative)?;
                return Ok(found.map(|(file, _)| (file, path.to_path_buf())));
            }
        }
        self.open_path(path)
    }

    /// Opens the file at the absolute path `name`.
    fn open_absolute(&self, name: &Path) -> OpenedPath {
        self.check_not_guarded(name)?;
        match self.policy {
            OtherFilesPolicy::Any => self.open_beneath(name, ResolveFlag::empty()),
            _ => match name.strip_prefix(&self.path) {
                Ok(relative) => self.open_relative(relative),
                Err(_) if name.symlink_metadata().is_ok() => Err(refusal(
                    name,
                    "external=within: it is outside the source's directory",
                )),
                Err(_) => Ok(None),
            },
        }
    }

    /// Opens `name`, a path relative to the root's directory.
    fn open_relative(&self, name: &Path) -> OpenedPath {
        self.check_not_guarded(&self.path.join(name))?;
        match self.policy {
            OtherFilesPolicy::WithinDirectory if is_outside(name) => {
                let there = self.path.join(name).symlink_metadata();
                if there.is_ok() {
                    Err(refusal(
                        name,
                        "external=within: it leads outside the source's directory",
                    ))
                } else {
                    Ok(None)
                }
            }
            OtherFilesPolicy::WithinDirectory => {
                let flags = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS;
                self.open_beneath(name, flags)
            }
            _ => self.open_beneath(name, ResolveFlag::empty()),
        }
    }

    /// Fails if `path` leads into a guarded mount.
    fn check_not_guarded(&self, path: &Path) -> Result<(), OpenRefusal> {
        match &self.guard {
            Some(guard) if guard.is_crossed_by(path) => {
                let why =
                    "it leads into the mount itself, or into another FUSE filesystem or overlay";
                Err(refusal(path, why))
            }
            _ => Ok(()),
        }
    }

    fn open_beneath(&self, name: &Path, resolve: ResolveFlag) -> OpenedPath {
        let path = self.path.join(name);
        let failed = |why: &str| OpenRefusal::Failed(path.clone(), unreadable_error(&path, why));
        let handle = self.handle.as_ref();
        let handle = handle.map_err(|errno| match errno {
            Errno::EDEADLK => refusal(&path, errno.desc()),
            _ => failed(errno.desc()),
        })?;
        let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
        let how = OpenHow::new().flags(flags).resolve(resolve);
        match openat2(handle.as_fd(), name, how) {
            Ok(named) => match open_path_descriptor(&File::from(named)) {
                Ok(file) => match FileSource::from_file(file, &path, self.changes.as_ref()) {
                    Ok(file) => Ok(Some((Arc::new(file), path))),
                    Err(_) => Err(failed("not a regular file")),
                },
                Err(error) => match error.raw_os_error().map(Errno::from_raw) {
                    Some(Errno::EINVAL | Errno::EISDIR) => Err(failed("not a regular file")),
                    errno => Err(failed(errno.unwrap_or(Errno::EIO).desc())),
                },
            },
            Err(Errno::ENOENT | Errno::ENOTDIR) => Ok(None),
            Err(Errno::EXDEV | Errno::ELOOP) => Err(refusal(
                name,
                "external=within: it leads outside the source's directory",
            )),
            Err(Errno::ENOSYS) => Err(failed(NO_OPENAT2)),
            Err(errno) => Err(failed(errno.desc())),
        }
    }
}

/// Returns whether any prefix of a relative path leads above its starting directory. The system
/// checks symbolic links on the path.
fn is_outside(path: &Path) -> bool {
    let mut depth = 0_usize;
    for component in path.components() {
        match component {
            Component::Normal(_) => depth = depth.plus_one(),
            Component::ParentDir => match depth.checked_sub(1) {
                Some(above) => depth = above,
                None => return true,
            },
            _ => {}
        }
    }
    false
}
