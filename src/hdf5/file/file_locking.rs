//! Whether a writer has a file locked, as the HDF5 library locks files and `HDF5_USE_FILE_LOCKING`
//! has it.
//!
//! Not a part of the format. A writer holds an exclusive lock while it has the file open, one that
//! lets others read meanwhile (SWMR) only at its start; a reader holds a shared one. Here it is
//! asked for and given back at once: a writer need not wait for a reader that takes care of changes
//! itself.

use std::ffi::OsStr;
use std::io;

use crate::error::{Error, Result};
use crate::source::open::{OpenSource, WriteLock};

/// The environment variable that says what locks are worth.
const VARIABLE: &str = "HDF5_USE_FILE_LOCKING";

/// The values of [`VARIABLE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Never,
    Always,
    /// Locks are used where the file's system has them: the library's default.
    WherePossible,
}

impl Use {
    /// By the library's words; what it does not know counts for nothing.
    fn of(value: Option<&OsStr>) -> Self {
        match value.and_then(OsStr::to_str) {
            Some("FALSE" | "0") => Use::Never,
            Some("TRUE" | "1") => Use::Always,
            _ => Use::WherePossible,
        }
    }

    fn check(self, lock: io::Result<WriteLock>) -> Result<()> {
        match lock {
            Ok(WriteLock::Free) => Ok(()),
            Ok(WriteLock::Taken) => Err(Error::Usage(format!(
                "a program that writes the file has it locked; \
                 '--force' or {VARIABLE}=FALSE reads it as it is"
            ))),
            Ok(WriteLock::Unsupported(_)) if self == Use::WherePossible => Ok(()),
            Ok(WriteLock::Unsupported(error)) | Err(error) => Err(Error::io(
                &error,
                format!("lock of the file ({VARIABLE}=FALSE does without)"),
            )),
        }
    }
}

/// Refuses a file that somebody has locked for writing.
///
/// # Errors
/// `Usage` where it is locked; `Io` where the system has no locks and they are asked for.
pub(crate) fn check(file: &dyn OpenSource) -> Result<()> {
    match Use::of(std::env::var_os(VARIABLE).as_deref()) {
        Use::Never => Ok(()),
        wanted => wanted.check(file.write_lock()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::local::file::FileSource;

    #[test]
    fn words_are_the_librarys() {
        let of = |value: &str| Use::of(Some(OsStr::new(value)));
        assert_eq!((of("FALSE"), of("0")), (Use::Never, Use::Never));
        assert_eq!((of("TRUE"), of("1")), (Use::Always, Use::Always));
        assert_eq!(of("BEST_EFFORT"), Use::WherePossible);
        assert_eq!(
            (of("false"), Use::of(None)),
            (Use::WherePossible, Use::WherePossible)
        );
    }

    #[test]
    fn a_system_without_locks_matters_only_where_they_are_asked_for() {
        let unsupported = || Ok(WriteLock::Unsupported(io::ErrorKind::Unsupported.into()));
        assert!(Use::WherePossible.check(unsupported()).is_ok());
        assert!(Use::Always.check(unsupported()).is_err());
        let failed = Err(io::ErrorKind::Other.into());
        assert!(Use::WherePossible.check(failed).is_err());
        assert!(Use::Always.check(Ok(WriteLock::Free)).is_ok());
    }

    #[test]
    fn the_lock_is_given_back() {
        use nix::fcntl::{Flock, FlockArg};
        let written = tempfile::NamedTempFile::new().unwrap();
        let source = FileSource::open(written.path(), None).unwrap();
        let lock = |how| Flock::lock(written.reopen().unwrap(), how);
        assert!(matches!(source.write_lock(), Ok(WriteLock::Free)));
        let writer = lock(FlockArg::LockExclusiveNonblock).expect("the lock is free again");
        assert!(matches!(source.write_lock(), Ok(WriteLock::Taken)));
        drop(writer);
        let _reader = lock(FlockArg::LockShared).unwrap();
        assert!(matches!(source.write_lock(), Ok(WriteLock::Free)));
    }
}
