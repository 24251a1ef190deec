//! A local directory tree.
//!
//! Each path is relative to the directory. The kernel resolves it beneath the directory and refuses
//! symbolic links (openat2(2)). A concurrent change of the directory thus cannot redirect a lookup
//! to another directory.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat2, readlinkat};
use nix::sys::stat::Mode;
use nix::sys::statfs::fstatfs;
use rustix::fs::{FileType, RawDir, SeekFrom, seek};

use crate::error::{Error, Result};
use crate::memory::cancel::WantedCheck;
use crate::source::attributes::FileAttributes;
use crate::source::directory::{
    Directory, DirectoryEntries, EntryType, EntryVisitor, ListedEntry, OpenContent, OpenedSource,
    PathInfo,
};
use crate::source::identity::{Fingerprint, Identity};
use crate::source::local::acl::Acl;
use crate::source::local::audience::{Audience, Readers};
use crate::source::local::file::open_path_descriptor;
use crate::source::local::root::NO_OPENAT2;
use crate::source::mounts::mount_guard::MountGuard;
use crate::source::neighbours::Neighbours;
use crate::source::neighbours::policy::OtherFilesPolicy;
use crate::wire::Count;

/// A local directory, with an open handle.
#[derive(Debug)]
pub struct LocalDirectory {
    path: PathBuf,
    handle: OwnedFd,
}

/// Number of bytes of a directory listing that are read at a time.
const LISTING_BUFFER_BYTES: usize = 32 << 10;

impl LocalDirectory {
    /// Opens the directory at `path`, an absolute path without symbolic links.
    ///
    /// # Errors
    /// Fails with the system's error, or if the kernel has no openat2(2).
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let directory = LocalDirectory {
            path: path.to_path_buf(),
            handle: open(path, flags, Mode::empty())?,
        };
        // An error without a number is the missing system call. It concerns the whole directory,
        // and not the first path that is opened in it.
        match directory.metadata(Path::new("")) {
            Err(error) if error.raw_os_error().is_none() => Err(error),
            _ => Ok(directory),
        }
    }

    /// Returns the metadata of the entry at `path`, without following a symbolic link.
    ///
    /// # Errors
    /// Fails with the system's error; `EXDEV` or `ELOOP` if the path leads out of the directory.
    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let there = self.open_beneath(path, OFlag::O_PATH | OFlag::O_NOFOLLOW)?;
        File::from(there).metadata()
    }

    /// Returns the metadata of the entry at `path`, and the users other than its owner who may read
    /// it.
    ///
    /// # Errors
    /// Fails as [`metadata`](Self::metadata) does.
    fn audience(&self, path: &Path) -> io::Result<(Metadata, Audience)> {
        let there = File::from(self.open_beneath(path, OFlag::O_PATH | OFlag::O_NOFOLLOW)?);
        let metadata = there.metadata()?;
        // An `O_PATH` descriptor does not give access to extended attributes, but its path in
        // `/proc` does.
        let named = format!("/proc/self/fd/{}", there.as_raw_fd());
        let acl = if metadata.is_symlink() {
            None
        } else {
            Acl::from_path(Path::new(&named))
        };
        let audience = Audience::new(&metadata, acl);
        Ok((metadata, audience))
    }

    fn open_beneath(&self, path: &Path, flags: OFlag) -> io::Result<OwnedFd> {
        let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).resolve(
            ResolveFlag::RESOLVE_BENEATH
                | ResolveFlag::RESOLVE_NO_SYMLINKS
                | ResolveFlag::RESOLVE_NO_MAGICLINKS,
        );
        let name = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        openat2(self.handle.as_fd(), name, how).map_err(|errno| match errno {
            Errno::ENOSYS => io::Error::other(NO_OPENAT2),
            errno => errno.into(),
        })
    }
}

impl Directory for LocalDirectory {
    fn path(&self) -> &Path {
        &self.path
    }

    fn check_exists(&self) -> Result<()> {
        let own = Path::new("");
        match convert_result(self.metadata(own), own)?.nlink() {
            0 => Err(Error::NotFound),
            _ => Ok(()),
        }
    }

    fn path_info(&self, path: &Path, for_others: bool) -> Result<PathInfo> {
        let look = || -> io::Result<PathInfo> {
            if !for_others {
                return Ok(path_info(&self.metadata(path)?));
            }
            let (metadata, audience) = self.audience(path)?;
            let mut there = path_info(&metadata);
            there.attributes.mode = audience.mode();
            Ok(there)
        };
        convert_result(look(), path)
    }

    fn read_link(&self, path: &Path) -> Result<OsString> {
        let link = self.open_beneath(path, OFlag::O_PATH | OFlag::O_NOFOLLOW);
        let text = link.and_then(|link| Ok(readlinkat(link.as_fd(), "")?));
        convert_result(text, path)
    }

    fn open(&self, path: &Path, _is_wanted: &WantedCheck<'_>) -> Result<OpenedSource> {
        let named = convert_result(
            self.open_beneath(path, OFlag::O_PATH | OFlag::O_NOFOLLOW),
            path,
        )?;
        let file = convert_result(open_path_descriptor(&File::from(named)), path)?;
        let number = convert_result(file.metadata(), path)?.ino();
        let content = OpenContent::File(file);
        Ok(OpenedSource {
            content,
            entry_id: number,
        })
    }

    fn list(&self, path: &Path) -> Result<Box<dyn DirectoryEntries>> {
        let opened = self.open_beneath(path, OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW);
        let handle = convert_result(opened, path)?;
        let path = path.to_path_buf();
        Ok(Box::new(OpenDirectory { path, handle }))
    }

    fn neighbours(
        &self,
        policy: OtherFilesPolicy,
        guard: Option<MountGuard>,
        readers: Readers,
    ) -> Neighbours {
        // The neighbours are the same for every file of the directory, so any file name will do.
        Neighbours::new(&self.path.join("first"), policy, guard, readers)
    }

    fn total_and_free_bytes(&self) -> (u64, u64) {
        let Ok(found) = fstatfs(&self.handle) else {
            return (0, 0);
        };
        let unit = u64::try_from(found.block_size()).unwrap_or(0);
        let bytes = |blocks: u64| blocks.times(unit);
        (bytes(found.blocks()), bytes(found.blocks_free()))
    }
}

/// A directory that is open for listing.
struct OpenDirectory {
    path: PathBuf,
    handle: OwnedFd,
}

impl DirectoryEntries for OpenDirectory {
    fn visit(&mut self, position: u64, visit: &mut EntryVisitor<'_>) -> Result<()> {
        convert_result(list(&self.handle, position, visit), &self.path)
    }
}

fn list(directory: &OwnedFd, position: u64, visit: &mut EntryVisitor<'_>) -> io::Result<()> {
    seek(directory, SeekFrom::Start(position))?;
    let mut buffer = Vec::with_capacity(LISTING_BUFFER_BYTES);
    let mut names = RawDir::new(directory, buffer.spare_capacity_mut());
    while let Some(entry) = names.next() {
        let entry = entry?;
        let listed = ListedEntry {
            name: entry.file_name().to_bytes(),
            is_directory: entry.file_type() == FileType::Directory,
            info: None,
            next: entry.next_entry_cookie(),
        };
        if visit(&listed) {
            break;
        }
    }
    Ok(())
}

fn path_info(metadata: &Metadata) -> PathInfo {
    let kind = if metadata.is_dir() {
        EntryType::Directory
    } else if metadata.is_symlink() {
        EntryType::Symlink
    } else if metadata.is_file() {
        EntryType::File
    } else {
        EntryType::Other
    };
    PathInfo {
        kind,
        attributes: FileAttributes::from(metadata),
        blocks: metadata.blocks(),
        identity: Identity::File(Fingerprint::from_metadata(metadata)),
        entry_id: metadata.ino(),
    }
}

/// Converts the system's result for the entry at `path`: `ENOENT` and `ENOTDIR` become `NotFound`.
fn convert_result<T>(result: io::Result<T>, path: &Path) -> Result<T> {
    result.map_err(|error| match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT | Errno::ENOTDIR) => Error::NotFound,
        _ => Error::from_io(&error, path.display().to_string()),
    })
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
        let beneath = LocalDirectory::open(&inner).unwrap();
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
            assert!(beneath.open(Path::new(path), &|| true).is_err(), "{path}");
        }
        let absent = beneath.path_info(Path::new("none"), false).unwrap_err();
        assert_eq!(absent, Error::NotFound);
    }

    /// Checks that a FIFO is not even opened briefly: another process may wait for that.
    #[test]
    fn a_fifo_in_place_of_a_file_is_not_opened() {
        use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        nix::unistd::mkfifo(&fifo, Mode::S_IRUSR).unwrap();
        let told = Inotify::init(InitFlags::IN_NONBLOCK).unwrap();
        told.add_watch(&fifo, AddWatchFlags::IN_OPEN).unwrap();
        let beneath = LocalDirectory::open(directory.path()).unwrap();
        assert!(beneath.open(Path::new("fifo"), &|| true).is_err());
        assert_eq!(told.read_events().unwrap_err(), Errno::EAGAIN);
    }

    #[test]
    fn a_listing_continues_at_any_position() {
        let directory = tempfile::tempdir().unwrap();
        for i in 0..3000 {
            std::fs::write(directory.path().join(format!("file {i}")), "").unwrap();
        }
        let beneath = LocalDirectory::open(directory.path()).unwrap();
        let mut open = beneath.list(Path::new("")).unwrap();
        let mut names = Vec::new();
        let mut position = 0;
        loop {
            let before = names.len();
            let from = position;
            open.visit(from, &mut |listed| {
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
