//! Maps errors to the error numbers (errno) in replies to the kernel.

use h5fs_reader::error::{Cause, Error};
use nix::errno::Errno;

/// Returns the error number for the reply to a failed request other than a read.
pub fn from_error(error: &Error) -> i32 {
    match error {
        Error::Io { cause, .. } => match cause {
            Cause::System(number) => *number,
            Cause::Unavailable | Cause::Forbidden | Cause::Missing => Errno::EIO as i32,
            Cause::OutOfMemory => Errno::ENOMEM as i32,
            Cause::Stale => Errno::ESTALE as i32,
            Cause::Cancelled => Errno::EINTR as i32,
        },
        Error::Corrupt { .. } | Error::Limit { .. } | Error::BudgetExceeded { .. } => {
            Errno::EIO as i32
        }
        Error::Unsupported { .. } => Errno::EOPNOTSUPP as i32,
        Error::NotFound => Errno::ENOENT as i32,
        Error::Usage(_) => Errno::EINVAL as i32,
    }
}

/// Returns the error number for a failed read. A read returns `EIO` where an open returns
/// `EOPNOTSUPP`.
pub(super) fn from_read_error(error: &Error) -> i32 {
    match error {
        Error::Unsupported { .. } => Errno::EIO as i32,
        _ => from_error(error),
    }
}

/// Creates an error for a request that does not fit the type of the object, such as listing a file.
/// The file itself is not at fault. `what` is the message.
pub(super) fn refusal_error(errno: Errno, what: &'static str) -> Error {
    Error::from_cause(Cause::System(errno as i32), what)
}

/// Returns whether the error is caused by the file, and is therefore in the object's extended
/// attribute `user.h5fs.error`.
pub(super) fn is_fault(error: &Error) -> bool {
    match error {
        Error::Corrupt { .. }
        | Error::Unsupported { .. }
        | Error::Limit { .. }
        | Error::BudgetExceeded { .. } => true,
        Error::Io { .. } => from_error(error) == Errno::EIO as i32,
        Error::NotFound | Error::Usage(_) => false,
    }
}

/// Creates the error `ESTALE` for a request about a state of the source that is no longer shown.
pub(super) fn stale_error() -> Error {
    Error::from_cause(Cause::Stale, "the source has changed")
}

/// Returns whether the error means that the request was about a state of the source that is no
/// longer shown.
pub(crate) fn is_stale(error: &Error) -> bool {
    from_error(error) == Errno::ESTALE as i32
}

/// Creates the error `EOVERFLOW` for a text whose size is unknown, because the text is too long for
/// its bytes to be counted.
pub(super) fn too_long_error() -> Error {
    refusal_error(Errno::EOVERFLOW, "a text that is too long to count")
}

/// Returns whether the error means that the operating system denied access to the user who runs
/// this process.
pub(crate) fn is_denied(error: &Error) -> bool {
    from_error(error) == Errno::EACCES as i32
}
