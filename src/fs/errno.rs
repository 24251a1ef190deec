//! Errors as the numbers that the kernel is told: the one place that maps them.

use nix::errno::Errno;

use crate::error::{Cause, Error};

/// The answer to a call that failed, except a read.
pub fn of(error: &Error) -> i32 {
    match error {
        Error::Io { cause, .. } => match cause {
            Cause::System(number) => *number,
            Cause::Failed | Cause::Forbidden | Cause::Missing => Errno::EIO as i32,
            Cause::OutOfMemory => Errno::ENOMEM as i32,
            Cause::Stale => Errno::ESTALE as i32,
            Cause::Unwanted => Errno::EINTR as i32,
        },
        Error::Corrupt { .. } | Error::Limit { .. } | Error::Effort { .. } => Errno::EIO as i32,
        Error::Unsupported { .. } => Errno::EOPNOTSUPP as i32,
        Error::NotFound => Errno::ENOENT as i32,
        Error::Usage(_) => Errno::EINVAL as i32,
    }
}

/// The answer to a read that failed: `EOPNOTSUPP` is for open alone, and a read answers `EIO`.
pub(super) fn of_read(error: &Error) -> i32 {
    match error {
        Error::Unsupported { .. } => Errno::EIO as i32,
        _ => of(error),
    }
}

/// An answer that is no fault of the file: the call does not fit the object.
pub(super) fn refusal(errno: Errno, what: &'static str) -> Error {
    Error::caused(Cause::System(errno as i32), what)
}

/// Whether the error tells of a fault of the file, which its `user.h5fs.error` names.
pub(super) fn is_fault(error: &Error) -> bool {
    match error {
        Error::Corrupt { .. }
        | Error::Unsupported { .. }
        | Error::Limit { .. }
        | Error::Effort { .. } => true,
        Error::Io { .. } => of(error) == Errno::EIO as i32,
        Error::NotFound | Error::Usage(_) => false,
    }
}

/// The source is not what it was.
pub(super) fn stale() -> Error {
    Error::caused(Cause::Stale, "the source has changed")
}

/// Whether something was asked of a state of the source that is over.
pub(in crate::fs) fn is_stale(error: &Error) -> bool {
    of(error) == Errno::ESTALE as i32
}

/// A text is too long for its size to be found out.
pub(super) fn too_long() -> Error {
    refusal(Errno::EOVERFLOW, "a text that is too long to be counted")
}

/// Whether the system has denied it to the user that reads.
pub(in crate::fs) fn is_denied(error: &Error) -> bool {
    of(error) == Errno::EACCES as i32
}
