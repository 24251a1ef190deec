//! A directory, and all that lies beneath it: looked at by paths that never leave it.
//!
//! Each path is relative to the directory. The kernel resolves it beneath the directory, without a
//! symbolic link on the way (openat2(2)), so that nobody who changes the directory meanwhile can
//! lead a look elsewhere.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat2, readlinkat};
use nix::sys::stat::Mode;
use nix::sys::statfs::fstatfs;
use rustix::fs::{FileType, RawDir, SeekFrom, seek};

use crate::source::acl::Acl;
use crate::source::audience::Audience;

/// The directory.
#[derive(Debug)]
pub struct Beneath {
    path: PathBuf,
    handle: OwnedFd,
}

/// A name in a directory, as the system lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed<'a> {
    /// The name.
    pub name: &'a [u8],
    /// Whether the system says that a directory stands there. Where it does not, only a look
    /// tells.
    pub is_directory: bool,
    /// The position of the listing behind it.
    pub next: u64,
}

/// Bytes of a part of a listing.
const LISTING: usize = 32 << 10;

impl Beneath {
    /// Opens the directory at `path`, which is absolute and without symbolic links.
    ///
    /// # Errors
    /// As the system says.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        Ok(Beneath {
            path: path.to_path_buf(),
            handle: open(path, flags, Mode::empty())?,
        })
    }

    /// The directory's own path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The absolute path of what stands at `path` beneath it.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        match path.as_os_str().is_empty() {
            true => self.path.clone(),
            false => self.path.join(path),
        }
    }

    /// The metadata of what stands at `path`; of a symbolic link, its own.
    ///
    /// # Errors
    /// As the system says; `EXDEV` or `ELOOP` where the way leads out of the directory.
    pub fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let there = self.at(path, OFlag::O_PATH | OFlag::O_NOFOLLOW)?;
        File::from(there).metadata()
    }

    /// The metadata of what stands at `path`, and the users other than its owner that may read it.
    ///
    /// # Errors
    /// As [`metadata`](Self::metadata).
    pub fn audience(&self, path: &Path) -> io::Result<(Metadata, Audience)> {
        let there = File::from(self.at(path, OFlag::O_PATH | OFlag::O_NOFOLLOW)?);
        let metadata = there.metadata()?;
        // A descriptor that only names a file has no attributes; the path to it leads there.
        let named = format!("/proc/self/fd/{}", there.as_raw_fd());
        let acl = match metadata.is_symlink() {
            true => None,
            false => Acl::of_path(Path::new(&named)),
        };
        let audience = Audience::of(&metadata, acl);
        Ok((metadata, audience))
    }

    /// The text of the symbolic link at `path`.
    ///
    /// # Errors
    /// As [`metadata`](Self::metadata).
    pub fn read_link(&self, path: &Path) -> io::Result<OsString> {
        let link = self.at(path, OFlag::O_PATH | OFlag::O_NOFOLLOW)?;
        Ok(readlinkat(link.as_fd(), "")?)
    }

    /// The file at `path`, opened for reading. Nothing is waited for that another process has to
    /// do.
    ///
    /// # Errors
    /// As [`metadata`](Self::metadata).
    pub fn open_file(&self, path: &Path) -> io::Result<File> {
        let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_NOFOLLOW;
        Ok(File::from(self.at(path, flags)?))
    }

    /// The directory at `path`, opened to be listed.
    ///
    /// # Errors
    /// As [`metadata`](Self::metadata).
    pub fn open_directory(&self, path: &Path) -> io::Result<OwnedFd> {
        self.at(path, OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW)
    }

    /// Bytes of the filesystem that the directory is on: all, and those that are free.
    ///
    /// # Errors
    /// As the system says.
    pub fn capacity(&self) -> io::Result<(u64, u64)> {
        let found = fstatfs(&self.handle)?;
        let unit = u64::try_from(found.block_size()).unwrap_or(0);
        let bytes = |blocks: u64| blocks.saturating_mul(unit);
        Ok((bytes(found.blocks()), bytes(found.blocks_free())))
    }

    fn at(&self, path: &Path, flags: OFlag) -> io::Result<OwnedFd> {
        let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).resolve(
            ResolveFlag::RESOLVE_BENEATH
                | ResolveFlag::RESOLVE_NO_SYMLINKS
                | ResolveFlag::RESOLVE_NO_MAGICLINKS,
        );
        let name = match path.as_os_str().is_empty() {
            true => Path::new("."),
            false => path,
        };
        Ok(openat2(self.handle.as_fd(), name, how)?)
    }
}

/// Hands the names of an open directory from `position` on (0: from the first) to `visit` until
/// it answers `true`; that name is not taken. `.` and `..` are among the names.
///
/// # Errors
/// As the system says.
pub fn list(
    directory: &OwnedFd,
    position: u64,
    visit: &mut dyn FnMut(&Listed<'_>) -> bool,
) -> io::Result<()> {
    seek(directory, SeekFrom::Start(position))?;
    let mut buffer = Vec::with_capacity(LISTING);
    let mut names = RawDir::new(directory, buffer.spare_capacity_mut());
    while let Some(entry) = names.next() {
        let entry = entry?;
        let listed = Listed {
            name: entry.file_name().to_bytes(),
            is_directory: entry.file_type() == FileType::Directory,
            next: entry.next_entry_cookie(),
        };
        if visit(&listed) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_path_leaves_the_directory() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().canonicalize().unwrap().join("in");
        std::fs::create_dir_all(inner.join("sub")).unwrap();
        std::fs::write(outer.path().join("secret"), "outside").unwrap();
        std::fs::write(inner.join("sub/file"), "inside").unwrap();
        symlink("../secret", inner.join("out")).unwrap();
        symlink("sub", inner.join("alias")).unwrap();
        let beneath = Beneath::open(&inner).unwrap();
        assert_eq!(beneath.metadata(Path::new("sub/file")).unwrap().len(), 6);
        assert!(beneath.metadata(Path::new("out")).unwrap().is_symlink());
        assert_eq!(beneath.read_link(Path::new("out")).unwrap(), "../secret");
        for path in [
            "../secret",
            "out",
            "alias/file",
            "/etc/passwd",
            "sub/../../secret",
        ] {
            assert!(beneath.open_file(Path::new(path)).is_err(), "{path}");
        }
        let absent = beneath.metadata(Path::new("none")).unwrap_err();
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_listing_goes_on_at_any_position() {
        let directory = tempfile::tempdir().unwrap();
        for i in 0..3000 {
            std::fs::write(directory.path().join(format!("file {i}")), "").unwrap();
        }
        let beneath = Beneath::open(directory.path()).unwrap();
        let open = beneath.open_directory(Path::new("")).unwrap();
        let mut names = Vec::new();
        let mut position = 0;
        loop {
            let before = names.len();
            let from = position;
            list(&open, from, &mut |listed| {
                let is_full = names.len() - before == 7;
                if !is_full {
                    names.push(listed.name.to_vec());
                    position = listed.next;
                }
                is_full
            })
            .unwrap();
            if names.len() == before {
                break;
            }
        }
        assert_eq!(names.len(), 3002);
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 3002);
    }
}
