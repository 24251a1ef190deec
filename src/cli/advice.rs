//! Warnings printed after mounting: likely mistakes and surprising behaviour.

use std::ffi::OsStr;
use std::path::Path;

use h5fs_reader::error::{Error, Result};
use nix::errno::Errno;

use crate::cli::args::MountCommand;
use crate::cli::invocation::Program;
use crate::cli::text::logging;
use crate::cli::text::printable::printable;
use crate::cli::text::synonyms::{looks_like_command, unknown_command_error};

/// Rejects a mount that is certainly a mistake.
///
/// # Errors
/// `Usage` if the source is a word that is neither a file nor a command. `Usage` if a path cannot
/// be reached because the program that serves it has ended.
pub(in crate::cli) fn refuse_mistakes(program: Program, mount: &MountCommand) -> Result<()> {
    if let Some(source) = mount.source.path() {
        if program == Program::Command && looks_like_command(source) && !source.exists() {
            return Err(unknown_command_error(&source.to_string_lossy()));
        }
        refuse_dead_mount(source, "it is in a mount whose program has ended")?;
    }
    refuse_dead_mount(
        &mount.mountpoint,
        "the program that served the mount there has ended",
    )
}

fn refuse_dead_mount(path: &Path, reason: &str) -> Result<()> {
    let errno = path.metadata().err().and_then(|error| error.raw_os_error());
    if errno != Some(Errno::ENOTCONN as i32) {
        return Ok(());
    }
    let dead = path
        .ancestors()
        .filter(|parent| is_in_dead_mount(parent))
        .last();
    let dead = dead.unwrap_or(path).display();
    let path = path.display();
    let text =
        format!("{path}: {reason}; `fusermount3 -u {dead}` (root: `umount {dead}`) clears it");
    Err(Error::Usage(printable(&text)))
}

fn is_in_dead_mount(path: &Path) -> bool {
    let errno = path.metadata().err().and_then(|error| error.raw_os_error());
    errno == Some(Errno::ENOTCONN as i32)
}

/// Returns warnings to print after mounting.
pub(in crate::cli) fn mount_warnings(program: Program, mount: &MountCommand) -> Vec<String> {
    let point = mount.mountpoint.display();
    let hides_names = |path: &Path| {
        path.read_dir()
            .is_ok_and(|mut names| names.next().is_some())
    };
    let mut advice = Vec::new();
    // mount(8) already prints this warning for its helpers.
    if program == Program::Command && mount.settings.asks_to_write {
        advice.push("warning: -o rw: the mount is always read-only".to_owned());
    }
    if let Some(level) = logging::unknown_level() {
        advice.push(format!(
            "warning: H5FS_LOG: `{level}` is not a level; the levels are off, error, warn, info, \
             debug, trace"
        ));
    }
    if hides_names(&mount.mountpoint) {
        advice.push(format!(
            "warning: {point}: is not empty; the mount hides its content"
        ));
    }
    advice.extend(mount.source.path().and_then(directory_warning));
    advice.iter().map(|text| printable(text)).collect()
}

/// Returns the warning about a source that is a Zarr store, or `None` for any other directory.
pub(in crate::cli) fn directory_warning(source: &Path) -> Option<String> {
    let shown = source.display();
    is_zarr(source).then(|| {
        format!(
            "warning: {shown}: is a Zarr store, and h5fs shows its files as ordinary files; \
             zarr-python reads it as arrays"
        )
    })
}

fn is_zarr(directory: &Path) -> bool {
    let documents = ["zarr.json", ".zgroup", ".zarray"].map(OsStr::new);
    documents.iter().any(|name| directory.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zarr_store_is_recognized_by_its_metadata() {
        let directory = tempfile::tempdir().unwrap();
        assert!(!is_zarr(directory.path()));
        std::fs::write(directory.path().join(".zgroup"), "{}").unwrap();
        assert!(is_zarr(directory.path()));
    }
}
