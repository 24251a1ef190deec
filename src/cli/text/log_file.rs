//! The log file, which is reopened after another file has replaced it at its path.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::lock::lock;
use nix::errno::Errno;
use nix::fcntl::OFlag;

/// The log file of this process.
#[derive(Debug, Clone)]
pub(crate) struct LogFile {
    file: Arc<Mutex<File>>,
    /// Path of the file, without symbolic links.
    path: PathBuf,
}

/// What the path of the log file leads to now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogPathState {
    /// The path still leads to the log file.
    Same,
    /// Another file has replaced the log file.
    Other,
    /// No file exists at the path, or the path cannot be examined.
    Nothing,
}

impl LogFile {
    /// Opens the log file for appending. Opening a named pipe does not wait for a
    /// reader. Lines are dropped if the reader of the pipe is too slow.
    ///
    /// # Errors
    /// `Usage` if the file is a pipe without a reader. Otherwise `Io` if the file cannot be opened.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let failed = |error: io::Error| match error.raw_os_error() {
            Some(errno) if Errno::from_raw(errno) == Errno::ENXIO => {
                Error::Usage(format!("{}: no program reads this pipe", path.display()))
            }
            _ => Error::from_io(&error, path.display().to_string()),
        };
        let file = open(path, OFlag::empty()).map_err(failed)?;
        Ok(LogFile {
            file: Arc::new(Mutex::new(file)),
            path: path.canonicalize().map_err(failed)?,
        })
    }

    /// Checks which file is at the path of the log now. A pipe or a device always counts as the log
    /// file.
    pub(crate) fn path_state(&self) -> LogPathState {
        let identity = |metadata: &std::fs::Metadata| (metadata.dev(), metadata.ino());
        let own = lock(&self.file).metadata();
        match (own, self.path.symlink_metadata()) {
            (Ok(own), _) if !own.is_file() => LogPathState::Same,
            (Ok(own), Ok(now)) if identity(&own) == identity(&now) => LogPathState::Same,
            (Ok(_), Ok(_)) => LogPathState::Other,
            _ => LogPathState::Nothing,
        }
    }

    /// Opens the file that is at the path of the log now, or creates it.
    ///
    /// # Errors
    /// Fails if the file cannot be opened or is a symbolic link. Otherwise a user who can write to
    /// its directory could redirect the log.
    pub(crate) fn open_again(&self) -> io::Result<File> {
        let file = open(&self.path, OFlag::O_NOFOLLOW)?;
        let other = file.try_clone()?;
        self.replace(file);
        Ok(other)
    }

    /// Appends all later lines to `file`.
    pub(crate) fn replace(&self, file: File) {
        *lock(&self.file) = file;
    }
}

fn open(path: &Path, flags: OFlag) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    let flags = OFlag::O_NONBLOCK | flags;
    options.custom_flags(flags.bits()).open(path)
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        lock(&self.file).write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        lock(&self.file).flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn lines_go_to_the_file_at_the_path() {
        let directory = tempfile::tempdir().unwrap();
        let (path, old) = (directory.path().join("log"), directory.path().join("old"));
        let mut log = LogFile::open(&path).unwrap();
        log.write_all(b"first\n").unwrap();
        assert_eq!(log.path_state(), LogPathState::Same);
        fs::rename(&path, &old).unwrap();
        assert_eq!(log.path_state(), LogPathState::Nothing);
        log.write_all(b"second\n").unwrap();
        let mut other = log.open_again().unwrap();
        assert_eq!(log.path_state(), LogPathState::Same);
        log.write_all(b"third\n").unwrap();
        other.write_all(b"fourth\n").unwrap();
        assert_eq!(fs::read(&old).unwrap(), b"first\nsecond\n");
        assert_eq!(fs::read(&path).unwrap(), b"third\nfourth\n");
    }

    #[test]
    fn a_link_in_place_of_the_log_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (path, victim) = (
            directory.path().join("log"),
            directory.path().join("victim"),
        );
        let log = LogFile::open(&path).unwrap();
        fs::write(&victim, "").unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        assert_eq!(log.path_state(), LogPathState::Other);
        let refused = log.open_again().unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(Errno::ELOOP as i32));
    }

    #[test]
    fn a_device_is_never_replaced() {
        let log = LogFile::open(Path::new("/dev/null")).unwrap();
        assert_eq!(log.path_state(), LogPathState::Same);
    }
}
