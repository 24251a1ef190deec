//! The check for a writer's lock, with the rules of the HDF5 library and of
//! `HDF5_USE_FILE_LOCKING`.
//!
//! Locks are not part of the format. A writer holds an exclusive lock while the file is open. An
//! SWMR writer, which allows readers, holds the lock only while it starts. A reader holds a shared
//! lock. This module only tests the lock and releases it immediately. A writer need not wait for
//! this reader, because this reader handles changes itself.

use std::ffi::OsStr;
use std::io;

use crate::error::{Error, Result};
use crate::source::open::{OpenSource, WriteLock};

/// The environment variable that controls locking.
const VARIABLE: &str = "HDF5_USE_FILE_LOCKING";

/// A value of [`VARIABLE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LockingPolicy {
    Never,
    Always,
    /// Locks are used if the file system supports them, which is the library's default.
    WherePossible,
}

impl LockingPolicy {
    /// Parses a value of the environment variable, as the HDF5 library does. Any other value, or
    /// none, means `WherePossible`.
    fn parse(value: Option<&OsStr>) -> Self {
        match value.and_then(OsStr::to_str) {
            Some("FALSE" | "0") => LockingPolicy::Never,
            Some("TRUE" | "1") => LockingPolicy::Always,
            _ => LockingPolicy::WherePossible,
        }
    }

    fn check(self, lock: io::Result<WriteLock>) -> Result<()> {
        match lock {
            Ok(WriteLock::Free) => Ok(()),
            Ok(WriteLock::Held) => Err(Error::Usage(format!(
                "a program that writes the file holds a lock on it; '--force' or {VARIABLE}=FALSE \
                 reads the file anyway"
            ))),
            Ok(WriteLock::Unsupported(_)) if self == LockingPolicy::WherePossible => Ok(()),
            Ok(WriteLock::Unsupported(error)) | Err(error) => Err(Error::from_io(
                &error,
                format!("locking the file ({VARIABLE}=FALSE disables locking)"),
            )),
        }
    }
}

/// Fails if another program has locked the file for writing, unless locking is disabled.
///
/// # Errors
/// `Usage` if the file is locked. `Io` if the file system does not support locks although they are
/// required.
pub(crate) fn check(file: &dyn OpenSource) -> Result<()> {
    match LockingPolicy::parse(std::env::var_os(VARIABLE).as_deref()) {
        LockingPolicy::Never => Ok(()),
        wanted => wanted.check(file.write_lock()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::local::file::FileSource;

    #[test]
    fn policy_values_are_parsed_as_in_the_library() {
        let of = |value: &str| LockingPolicy::parse(Some(OsStr::new(value)));
        assert_eq!(
            (of("FALSE"), of("0")),
            (LockingPolicy::Never, LockingPolicy::Never)
        );
        assert_eq!(
            (of("TRUE"), of("1")),
            (LockingPolicy::Always, LockingPolicy::Always)
        );
        assert_eq!(of("BEST_EFFORT"), LockingPolicy::WherePossible);
        assert_eq!(
            (of("false"), LockingPolicy::parse(None)),
            (LockingPolicy::WherePossible, LockingPolicy::WherePossible)
        );
    }

    #[test]
    fn missing_lock_support_is_an_error_only_if_locks_are_required() {
        let unsupported = || Ok(WriteLock::Unsupported(io::ErrorKind::Unsupported.into()));
        assert!(LockingPolicy::WherePossible.check(unsupported()).is_ok());
        assert!(LockingPolicy::Always.check(unsupported()).is_err());
        let failed = Err(io::ErrorKind::Other.into());
        assert!(LockingPolicy::WherePossible.check(failed).is_err());
        assert!(LockingPolicy::Always.check(Ok(WriteLock::Free)).is_ok());
    }

    #[test]
    fn the_tested_lock_is_released() {
        use nix::fcntl::{Flock, FlockArg};
        let written = tempfile::NamedTempFile::new().unwrap();
        let source = FileSource::open(written.path(), None).unwrap();
        let lock = |how| Flock::lock(written.reopen().unwrap(), how);
        assert!(matches!(source.write_lock(), Ok(WriteLock::Free)));
        let writer = lock(FlockArg::LockExclusiveNonblock).expect("the lock is free again");
        assert!(matches!(source.write_lock(), Ok(WriteLock::Held)));
        drop(writer);
        let _reader = lock(FlockArg::LockShared).unwrap();
        assert!(matches!(source.write_lock(), Ok(WriteLock::Free)));
    }
}
