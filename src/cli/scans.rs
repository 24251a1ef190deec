//! Cache files for scan results of the data files of a directory, so that the next join of these
//! data files is faster.
//!
//! Each directory or prefix has one cache file, whose name is a hash of its path. The file is in
//! `$XDG_CACHE_HOME/h5fs/joined`, or in `h5fs-joined` in the directory of `disk_cache`. The process
//! opens the file before it enters its sandbox, where only open files can be written. Each cache
//! file may be deleted at any time.
//!
//! A process that uses a cache file holds a shared lock on it. A file without scan results is
//! deleted if no process has locked it.
//!
//! This module deletes only its own cache files, which have the right name, owner, mode and first
//! bytes. A symbolic link to their directory is never followed.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use h5fs_joined::kept;
use h5fs_reader::source::location::Location;
use nix::fcntl::OFlag;
use nix::unistd::geteuid;
use ring::rand::{SecureRandom, SystemRandom};
use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, flock, openat, unlinkat};
use sha2::{Digest, Sha256};

use crate::cli::options::Settings;
use crate::limits;

/// Name of the directory of the cache files within this program's cache directory.
const USER_DIRECTORY: &str = "joined";
/// Name of the directory of the cache files within the directory of `disk_cache`.
const DISK_CACHE_DIRECTORY: &str = "h5fs-joined";

/// Number of bytes of the hash in the name of a cache file.
const NAME_HASH_BYTES: usize = 16;

/// Size in bytes of a cache file without scan results.
const EMPTY_LENGTH: u64 = kept::HEADER_LENGTH as u64;

/// Size in bytes from which a cache file is cleared when it is opened, because the results for one
/// more data file may not fit.
const FULL_LENGTH: u64 = limits::JOINED_KEPT / 8 * 7;

/// Returns the path of the cache file for scan results of a source. Returns `None` unless the
/// source is a directory of files or a prefix, and this user has a cache directory.
pub(in crate::cli) fn cache_path(source: &Location, disk_cache: Option<&Path>) -> Option<PathBuf> {
    let name = match source {
        Location::Path(path) if path.is_dir() => path.canonicalize().ok()?,
        Location::Url(url) if url.is_prefix() => url.to_string().into(),
        Location::Path(_) | Location::Url(_) => return None,
    };
    let directory = match disk_cache {
        Some(directory) => std::path::absolute(directory)
            .ok()?
            .join(DISK_CACHE_DIRECTORY),
        None => user_cache()?.join("h5fs").join(USER_DIRECTORY),
    };
    let mut file = String::new();
    for byte in &Sha256::digest(name.as_os_str().as_bytes())[..NAME_HASH_BYTES] {
        let _ = write!(file, "{byte:02x}");
    }
    Some(directory.join(file))
}

/// Returns the path of the cache file for a mount of the source with these settings. Returns `None`
/// in the same cases as [`cache_path`], and if the mount has no `.h5fs`, because then no files are
/// joined.
pub(in crate::cli) fn mount_cache_path(source: &Location, settings: &Settings) -> Option<PathBuf> {
    let disk_cache = settings.remote.disk_cache.as_deref();
    (!settings.no_views).then(|| cache_path(source, disk_cache))?
}

/// Returns the user's cache directory (XDG Base Directory Specification). Returns `None` if neither
/// `XDG_CACHE_HOME` nor `HOME` contains an absolute path.
fn user_cache() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let is_whole = |path: &PathBuf| path.is_absolute();
    variable("XDG_CACHE_HOME")
        .filter(is_whole)
        .or_else(|| Some(variable("HOME").filter(is_whole)?.join(".cache")))
}

/// Opens the cache file at `place`, and creates it if necessary. Returns `None` if `place` is
/// `None` or opening fails. Then all data files are scanned again.
pub(in crate::cli) fn open(place: Option<&Path>) -> Option<Arc<File>> {
    let place = place?;
    let told = |error: &io::Error| log::debug!("{}: {error}", place.display());
    create_file(place).inspect_err(told).ok().map(Arc::new)
}

fn create_file(place: &Path) -> io::Result<File> {
    let directory = place.parent().ok_or(io::ErrorKind::NotFound)?;
    let existing = directory.ancestors().find(|path| path.exists());
    let existing = existing.ok_or(io::ErrorKind::NotFound)?.metadata()?;
    if geteuid().is_root() && existing.uid() != geteuid().as_raw() {
        // With sudo, root must not create files in another user's home directory.
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(directory)?;
    let most = (limits::JOINED_KEPT_FILES, limits::JOINED_KEPT_ALL);
    shrink(&ScanDirectory::open(directory)?, most, place)?;
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
        .open(place)?;
    let metadata = file.metadata()?;
    if !is_cache_file(&metadata) || metadata.len() > 0 && !has_magic(&file) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    // Locking may be unsupported. Then the file may be deleted as unused.
    let _ = flock(&file, FlockOperation::NonBlockingLockShared);
    if !(EMPTY_LENGTH..FULL_LENGTH).contains(&metadata.len()) {
        reset_file(&file)?;
    }
    file.set_modified(SystemTime::now())?;
    Ok(file)
}

/// Clears a cache file and writes a new random header. Another process may still append records for
/// the old header, which are then ignored.
fn reset_file(mut file: &File) -> io::Result<()> {
    let mut chance = [0; kept::RANDOM_BYTES];
    let filled = SystemRandom::new().fill(&mut chance);
    filled.map_err(|_| io::ErrorKind::Unsupported)?;
    file.set_len(0)?;
    file.write_all(&kept::header_bytes(&chance))
}

/// Returns whether a file has the type, owner and mode of a cache file.
fn is_cache_file(metadata: &Metadata) -> bool {
    let is_own = metadata.uid() == geteuid().as_raw();
    is_own && metadata.is_file() && metadata.mode() & 0o7777 == 0o600
}

fn has_magic(mut file: &File) -> bool {
    let mut begin = [0; kept::MAGIC.len()];
    file.read_exact(&mut begin).is_ok() && begin == *kept::MAGIC
}

/// An open directory that contains cache files for scan results.
struct ScanDirectory(OwnedFd);

/// A cache file for scan results in the directory.
struct ScanFile {
    used: SystemTime,
    bytes: u64,
    name: OsString,
}

impl ScanDirectory {
    /// Opens a directory of cache files.
    ///
    /// # Errors
    /// Fails with the system's error. `PermissionDenied` if other users may write to the directory.
    fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
        let directory = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits())
            .open(path)?;
        let metadata = directory.metadata()?;
        if metadata.uid() != geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(ScanDirectory(directory.into()))
    }

    /// Opens the file with this name, if its name, owner and mode are right for a cache file. Does
    /// not check the content.
    fn open_file(&self, name: &OsStr) -> Option<(File, Metadata)> {
        let digits = name.as_bytes();
        if digits.len() != 2 * NAME_HASH_BYTES || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file: File = openat(&self.0, name, flags, Mode::empty()).ok()?.into();
        let metadata = file.metadata().ok().filter(is_cache_file)?;
        Some((file, metadata))
    }

    /// Returns all cache files in the directory. The most recently used file is the first one. An
    /// empty file does not count as a cache file.
    fn files(&self) -> io::Result<Vec<ScanFile>> {
        let mut files = Vec::new();
        for entry in Dir::read_from(self.0.as_fd())? {
            let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
            let Some((file, metadata)) = self.open_file(&name) else {
                continue;
            };
            if has_magic(&file) {
                files.push(ScanFile {
                    used: metadata.modified()?,
                    bytes: metadata.len(),
                    name,
                });
            }
        }
        files.sort_unstable_by(|a, b| (b.used, &b.name).cmp(&(a.used, &a.name)));
        Ok(files)
    }

    fn delete(&self, name: &OsStr) {
        let _ = unlinkat(&self.0, name, AtFlags::empty());
    }

    /// Deletes the file `name` if it contains no scan results and no process uses it.
    fn delete_unused(&self, name: &OsStr) {
        if let Some((file, metadata)) = self.open_file(name)
            && metadata.len() <= EMPTY_LENGTH
            && has_magic(&file)
            && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            self.delete(name);
        }
    }
}

/// Deletes the least recently used cache files until at most `most` files remain, with at most
/// `bytes` bytes in total. Also deletes unused files without scan results. Never deletes the file
/// `own`.
fn shrink(directory: &ScanDirectory, (most, bytes): (usize, u64), own: &Path) -> io::Result<()> {
    let mut left = bytes;
    for (number, file) in directory.files()?.into_iter().enumerate() {
        if Some(&*file.name) == own.file_name() {
            left = left.saturating_sub(file.bytes);
        } else if file.bytes <= EMPTY_LENGTH {
            directory.delete_unused(&file.name);
        } else if let Some(rest) = left.checked_sub(file.bytes).filter(|_| number < most) {
            left = rest;
        } else {
            left = 0;
            directory.delete(&file.name);
        }
    }
    Ok(())
}

/// Deletes the cache file at `place` if it contains no scan results and no process uses it.
pub(in crate::cli) fn delete_if_unused(place: &Path) {
    let directory = place.parent().map(ScanDirectory::open).and_then(Result::ok);
    if let (Some(directory), Some(name)) = (directory, place.file_name()) {
        directory.delete_unused(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::Duration;

    const KEPT: &[u8; 8] = kept::MAGIC;

    const PLACE: &str = "joined/00112233445566778899aabbccddeeff";

    fn write_cache_file(path: &Path, begin: &[u8], bytes: u64, age: u64) {
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(path).unwrap();
        io::Write::write_all(&mut file, begin).unwrap();
        file.set_len(bytes).unwrap();
        let then = SystemTime::now() - Duration::from_secs(age);
        file.set_modified(then).unwrap();
    }

    fn digits(number: u8) -> String {
        format!("{number:032x}")
    }

    #[test]
    fn a_full_cache_file_is_cleared() {
        let home = tempfile::tempdir().unwrap();
        let place = home.path().join(PLACE);
        let length = |file: &File| file.metadata().unwrap().len();
        assert_eq!(length(&open(Some(&place)).unwrap()), EMPTY_LENGTH);
        let head = std::fs::read(&place).unwrap();
        for bytes in [77, FULL_LENGTH - 1] {
            write_cache_file(&place, KEPT, bytes, 9);
            assert_eq!(length(&open(Some(&place)).unwrap()), bytes);
            delete_if_unused(&place);
        }
        for bytes in [EMPTY_LENGTH - 1, FULL_LENGTH, limits::JOINED_KEPT] {
            write_cache_file(&place, KEPT, bytes, 9);
            let used = open(Some(&place)).unwrap();
            assert_eq!(length(&used), EMPTY_LENGTH);
            delete_if_unused(&place);
            assert!(place.exists(), "it is in use");
        }
        let again = std::fs::read(&place).unwrap();
        assert!(again[..8] == head[..8] && again[8..] != head[8..]);
        delete_if_unused(&place);
        assert!(!place.exists());
    }

    #[test]
    fn the_least_recently_used_files_are_deleted_first() {
        let home = tempfile::tempdir().unwrap();
        let [old, middle, new] = [1, 2, 3].map(|number| home.path().join(digits(number)));
        write_cache_file(&old, KEPT, 100, 300);
        write_cache_file(&middle, KEPT, 100, 200);
        write_cache_file(&new, KEPT, 100, 100);
        let directory = ScanDirectory::open(home.path()).unwrap();
        shrink(&directory, (9, 200), &new).unwrap();
        assert_eq!(
            [&old, &middle, &new].map(|path| path.exists()),
            [false, true, true]
        );
        shrink(&directory, (9, 50), &middle).unwrap();
        assert_eq!([&middle, &new].map(|path| path.exists()), [true, false]);
    }

    #[test]
    fn the_number_of_cache_files_is_limited() {
        let home = tempfile::tempdir().unwrap();
        let at = |number| home.path().join(digits(number));
        for number in 0..5 {
            write_cache_file(&at(number), KEPT, 100, number.into());
        }
        write_cache_file(&at(5), KEPT, EMPTY_LENGTH, 0);
        write_cache_file(&at(6), KEPT, EMPTY_LENGTH, 0);
        let used = File::open(at(6)).unwrap();
        flock(&used, FlockOperation::NonBlockingLockShared).unwrap();
        let directory = ScanDirectory::open(home.path()).unwrap();
        shrink(&directory, (5, 1000), &at(9)).unwrap();
        let left: Vec<_> = (0..7).filter(|&number| at(number).exists()).collect();
        assert_eq!(left, [0, 1, 2, 6]);
    }

    #[test]
    fn foreign_files_are_not_deleted() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        write_cache_file(&at("results-2024.nc"), KEPT, 50, 900);
        write_cache_file(&at(&digits(1)), b"\x89HDF\r\n\x1a\n", 50, 900);
        write_cache_file(&at(&digits(2)), KEPT, 50, 900);
        std::fs::set_permissions(at(&digits(2)), PermissionsExt::from_mode(0o644)).unwrap();
        write_cache_file(&at(&digits(3)), b"", 0, 900);
        std::fs::create_dir(at(&digits(4))).unwrap();
        symlink(at("results-2024.nc"), at(&digits(5))).unwrap();
        write_cache_file(&at(&digits(6)), KEPT, 50, 100);
        let before = home.path().read_dir().unwrap().count();
        let directory = ScanDirectory::open(home.path()).unwrap();
        shrink(&directory, (0, 0), Path::new("")).unwrap();
        assert!(!at(&digits(6)).exists());
        assert_eq!(home.path().read_dir().unwrap().count(), before - 1);
        delete_if_unused(&at(&digits(1)));
        delete_if_unused(&at("results-2024.nc"));
        assert!(at(&digits(1)).exists());
        // A path that another kind of file occupies is left unchanged.
        std::fs::create_dir(at("joined")).unwrap();
        write_cache_file(&at(PLACE), b"\x89HDF\r\n\x1a\n", limits::JOINED_KEPT, 900);
        assert!(open(Some(&at(PLACE))).is_none());
        assert_eq!(at(PLACE).metadata().unwrap().len(), limits::JOINED_KEPT);
    }

    #[test]
    fn a_linked_cache_directory_is_not_used() {
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("data");
        DirBuilder::new().mode(0o700).create(&data).unwrap();
        write_cache_file(&data.join(digits(1)), KEPT, 50, 900);
        symlink(&data, home.path().join("joined")).unwrap();
        assert!(open(Some(&home.path().join(PLACE))).is_none());
        assert_eq!(data.read_dir().unwrap().count(), 1);
    }

    #[test]
    fn the_disk_cache_contains_a_directory_for_scans() {
        let home = tempfile::tempdir().unwrap();
        let place = cache_path(&Location::Path(home.path().into()), Some(home.path()));
        assert!(place.unwrap().starts_with(home.path().join("h5fs-joined")));
    }

    #[test]
    fn a_file_of_another_user_is_not_used() {
        let home = tempfile::tempdir().unwrap();
        let place = home.path().join(PLACE);
        let used = open(Some(&place)).unwrap();
        let link = home.path().join("joined").join(digits(1));
        symlink(&place, &link).unwrap();
        assert!(open(Some(&link)).is_none());
        drop(used);
        let open_to_all = PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(&place, open_to_all).unwrap();
        assert!(open(Some(&place)).is_none());
    }
}
