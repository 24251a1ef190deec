//! The files in which what was read of the data files of a directory is kept, for the next time that
//! they are shown as one.
//!
//! There is one for each directory and each prefix, called by a hash of its path, in
//! `$XDG_CACHE_HOME/h5fs/joined`, or in `joined` beneath the directory of `disk_cache`. It is opened
//! before the process enters its cage, where no file is written but open ones. Each may be deleted at
//! any time.

use std::fmt::Write;
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use nix::fcntl::OFlag;
use nix::unistd::geteuid;
use sha2::{Digest, Sha256};

use crate::cli::options::Settings;
use crate::limits;
use crate::source::location::Location;

/// The directory of such files.
const DIRECTORY: &str = "joined";

/// Where the file of a source is, if the source is a directory of files and this user has a cache.
pub(in crate::cli) fn place(source: &Location, disk_cache: Option<&Path>) -> Option<PathBuf> {
    let name = match source {
        Location::Path(path) if path.is_dir() => path.canonicalize().ok()?,
        Location::Url(url) if url.is_prefix() => url.to_string().into(),
        Location::Path(_) | Location::Url(_) => return None,
    };
    let cache = match disk_cache {
        Some(directory) => std::path::absolute(directory).ok()?,
        None => user_cache()?.join("h5fs"),
    };
    let mut file = String::new();
    for byte in &Sha256::digest(name.as_os_str().as_bytes())[..16] {
        let _ = write!(file, "{byte:02x}");
    }
    Some(cache.join(DIRECTORY).join(file))
}

/// The same, as settings say; none where nothing shows files as one.
pub(in crate::cli) fn place_of(source: &Location, settings: &Settings) -> Option<PathBuf> {
    let disk_cache = settings.remote.disk_cache.as_deref();
    (!settings.no_views).then(|| place(source, disk_cache))?
}

/// The user's directory for caches (XDG Base Directory Specification).
fn user_cache() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let is_whole = |path: &PathBuf| path.is_absolute();
    variable("XDG_CACHE_HOME")
        .filter(is_whole)
        .or_else(|| Some(variable("HOME").filter(is_whole)?.join(".cache")))
}

/// Opens the file at a place, which is made if it is not there. Without one all is read anew.
pub(in crate::cli) fn open(place: Option<&Path>) -> Option<Arc<File>> {
    let place = place?;
    let told = |error: &io::Error| log::debug!("{}: {error}", place.display());
    made(place).inspect_err(told).ok().map(Arc::new)
}

fn made(place: &Path) -> io::Result<File> {
    let directory = place.parent().ok_or(io::ErrorKind::NotFound)?;
    let existing = directory.ancestors().find(|path| path.exists());
    let existing = existing.ok_or(io::ErrorKind::NotFound)?.metadata()?;
    if geteuid().is_root() && existing.uid() != geteuid().as_raw() {
        // By sudo: root leaves nothing in another user's home.
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(directory)?;
    if is_of_others(&directory.metadata()?) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    shrink(directory, limits::JOINED_KEPT_ALL, place);
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
        .open(place)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || is_of_others(&metadata) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    if metadata.len() >= limits::JOINED_KEPT {
        file.set_len(0)?;
    }
    file.set_modified(SystemTime::now())?;
    Ok(file)
}

/// Whether a file is another user's, or another one may write to it.
fn is_of_others(metadata: &Metadata) -> bool {
    metadata.uid() != geteuid().as_raw() || metadata.mode() & 0o022 != 0
}

/// Deletes the files in a directory but `own` that were used longest ago, until no more than `most`
/// bytes are left.
fn shrink(directory: &Path, most: u64, own: &Path) {
    let Ok(entries) = directory.read_dir() else {
        return;
    };
    let files = entries.flatten().filter_map(|entry| {
        let metadata = entry.metadata().ok().filter(Metadata::is_file)?;
        Some((metadata.modified().ok()?, metadata.len(), entry.path()))
    });
    let mut files: Vec<_> = files.collect();
    files.sort_unstable_by(|a, b| b.cmp(a));
    let mut left = most;
    for (_, bytes, path) in files {
        match left.checked_sub(bytes) {
            Some(rest) => left = rest,
            None if path == own => {}
            None => {
                left = 0;
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

/// Deletes the file at a place if nothing was kept in it.
pub(in crate::cli) fn clear(place: &Path) {
    let is_empty = |metadata: Metadata| metadata.is_file() && metadata.len() == 0;
    if place.symlink_metadata().is_ok_and(is_empty) {
        let _ = std::fs::remove_file(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn written(path: &Path, bytes: u64, age: u64) {
        let file = File::create(path).unwrap();
        file.set_len(bytes).unwrap();
        let then = SystemTime::now() - Duration::from_secs(age);
        file.set_modified(then).unwrap();
    }

    #[test]
    fn a_full_file_begins_anew() {
        let home = tempfile::tempdir().unwrap();
        let place = home.path().join("joined/0");
        let length = |file: &File| file.metadata().unwrap().len();
        open(Some(&place)).unwrap().set_len(7).unwrap();
        assert_eq!(length(&open(Some(&place)).unwrap()), 7);
        written(&place, limits::JOINED_KEPT, 9);
        assert_eq!(length(&open(Some(&place)).unwrap()), 0);
        clear(&place);
        assert!(!place.exists());
    }

    #[test]
    fn files_that_were_used_longest_ago_go_first() {
        let home = tempfile::tempdir().unwrap();
        let [old, middle, new] = ["a", "b", "c"].map(|name| home.path().join(name));
        written(&old, 10, 300);
        written(&middle, 10, 200);
        written(&new, 10, 100);
        shrink(home.path(), 20, &new);
        assert_eq!(
            [&old, &middle, &new].map(|path| path.exists()),
            [false, true, true]
        );
        shrink(home.path(), 5, &middle);
        assert_eq!([&middle, &new].map(|path| path.exists()), [true, false]);
    }

    #[test]
    fn a_file_of_others_is_not_taken() {
        let home = tempfile::tempdir().unwrap();
        let place = home.path().join("joined/0");
        open(Some(&place)).unwrap();
        let link = home.path().join("joined/1");
        std::os::unix::fs::symlink(&place, &link).unwrap();
        assert!(open(Some(&link)).is_none());
        let open_to_all = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(&place, open_to_all).unwrap();
        assert!(open(Some(&place)).is_none());
    }
}
