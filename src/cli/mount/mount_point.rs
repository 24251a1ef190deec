//! Checks the directory on which a mount is made.

use std::io;
use std::path::{Path, PathBuf};

use h5fs_reader::error::{Error, Result};

/// Returns the absolute path of the directory at `path`, without symbolic links.
///
/// # Errors
/// `Usage` with a command that creates the directory, if it is missing. `ENOTDIR` if the path is
/// not a directory.
pub(in crate::cli) fn resolve_mount_point(path: &Path) -> Result<PathBuf> {
    let io = |error: &io::Error| Error::from_io(error, path.display().to_string());
    let point = path.canonicalize().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => missing_directory_error(path),
        _ => io(&error),
    })?;
    if !point.metadata().map_err(|error| io(&error))?.is_dir() {
        return Err(io(&nix::errno::Errno::ENOTDIR.into()));
    }
    Ok(point)
}

/// Returns the error for a missing mount point. It names the command that creates the directory.
fn missing_directory_error(point: &Path) -> Error {
    let parent = point
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let has_parent = parent.is_none_or(Path::is_dir);
    let option = if has_parent { "" } else { " -p" };
    let point = point.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-".contains(c);
    let quote = if point.chars().all(is_plain) { "" } else { "'" };
    Error::Usage(format!(
        "{point}: no such directory; `mkdir{option} {quote}{point}{quote}` makes it"
    ))
}
