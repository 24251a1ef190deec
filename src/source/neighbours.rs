//! Files beside the source that it may name: members of a family, external raw files, virtual sources,
//! external links. What may be opened is the user's choice, never the file's.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::sys::stat::Mode;

use crate::error::{Error, Result};
use crate::source::file::FileSource;

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

/// The directory of a source, and what may be opened from there.
#[derive(Debug)]
pub struct Neighbours {
    directory: PathBuf,
    name: OsString,
    handle: Option<OwnedFd>,
    policy: Policy,
}

impl Neighbours {
    /// The neighbours of the file at `source`, an absolute path without symbolic links.
    ///
    /// # Errors
    /// `Io` where its directory cannot be opened although `policy` needs it.
    pub fn of(source: &Path, policy: Policy) -> Result<Self> {
        let directory = source.parent().unwrap_or(Path::new("/")).to_path_buf();
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let handle = match policy {
            Policy::None => None,
            _ => Some(
                open(&directory, flags, Mode::empty()).map_err(|errno| io(errno, &directory))?,
            ),
        };
        let name = source.file_name().unwrap_or_default().to_owned();
        Ok(Neighbours {
            directory,
            name,
            handle,
            policy,
        })
    }

    /// For a source that has no directory: nothing may be opened.
    pub fn none() -> Self {
        let (directory, name) = (PathBuf::new(), OsString::new());
        Neighbours {
            directory,
            name,
            handle: None,
            policy: Policy::None,
        }
    }

    /// The source's own file name.
    pub fn own_name(&self) -> &[u8] {
        self.name.as_bytes()
    }

    /// Opens the file that the source calls `name`; `None` where there is no such file.
    ///
    /// An absolute name that leads nowhere is tried once more by its last component, in the source's
    /// directory, as the HDF5 library does: files move together.
    ///
    /// # Errors
    /// `Io` where the policy forbids it or the system does: not a regular file, no permission.
    pub fn open(&self, name: &[u8]) -> Result<Option<FileSource>> {
        let name = Path::new(OsStr::from_bytes(name));
        if name.as_os_str().is_empty() || name.as_os_str().as_bytes().contains(&0) {
            return Ok(None);
        }
        if self.policy == Policy::None {
            return Err(refused(name, "external=none"));
        }
        if name.is_relative() {
            return self.open_relative(name);
        }
        match self.open_absolute(name)? {
            Some(file) => Ok(Some(file)),
            None => match name.file_name() {
                Some(last) => self.open_relative(Path::new(last)),
                None => Ok(None),
            },
        }
    }

    fn open_absolute(&self, name: &Path) -> Result<Option<FileSource>> {
        match self.policy {
            Policy::Any => self.open_beneath(Path::new("/"), name, ResolveFlag::empty()),
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

    fn open_relative(&self, name: &Path) -> Result<Option<FileSource>> {
        let climbs = name
            .components()
            .any(|component| component == Component::ParentDir);
        match self.policy {
            Policy::Within if climbs => Err(refused(
                name,
                "external=within: it climbs out of the source's directory",
            )),
            Policy::Within => {
                let flags = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS;
                self.open_beneath(&self.directory, name, flags)
            }
            _ => self.open_beneath(&self.directory, name, ResolveFlag::empty()),
        }
    }

    fn open_beneath(
        &self,
        directory: &Path,
        name: &Path,
        resolve: ResolveFlag,
    ) -> Result<Option<FileSource>> {
        let Some(handle) = &self.handle else {
            return Err(refused(name, "external=none"));
        };
        // A FIFO without a writer, or a terminal, must not make this wait or become ours.
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let how = OpenHow::new().flags(flags).resolve(resolve);
        match openat2(handle.as_fd(), name, how) {
            Ok(file) => FileSource::from_file(File::from(file), &directory.join(name)).map(Some),
            Err(Errno::ENOENT | Errno::ENOTDIR) => Ok(None),
            Err(Errno::EXDEV | Errno::ELOOP) => Err(refused(
                name,
                "external=within: it leads out of the source's directory",
            )),
            Err(errno) => Err(unreadable(&directory.join(name), errno.desc())),
        }
    }
}

/// `name` may not be opened, as the policy called `why` says.
fn refused(name: &Path, why: &str) -> Error {
    unreadable(name, why)
}

/// `name` cannot be had. Its reader asked for something else, which has the right to be read, and lacks this part.
fn unreadable(name: &Path, why: &str) -> Error {
    let what = format!("{} ({why})", name.display().to_string().escape_debug());
    Error::io(&Errno::EIO.into(), what)
}

fn io(errno: Errno, path: &Path) -> Error {
    Error::io(&errno.into(), path.display().to_string())
}
