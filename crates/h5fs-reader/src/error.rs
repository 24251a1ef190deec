//! The one error type of the library. The type contains no errno for replies: only the module
//! `errno` of `h5fs-tree` converts these errors to the numbers that the kernel receives.

pub mod line;

use std::borrow::Cow;
use std::fmt;
use std::io;

use crate::limits;

/// An error of the library. `Io`, `Corrupt` and `Unsupported` have many causes, and the four other
/// variants have one each.
///
/// The type is `Clone` because one failed decode is returned to every request that waited for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The operation failed for a reason outside of the file's content.
    Io {
        /// The reason of the failure.
        cause: Cause,
        /// The attempted operation, as text for people.
        what: Cow<'static, str>,
    },
    /// The file violates its format.
    Corrupt {
        /// The structure's name in the specification, and the violation.
        what: Cow<'static, str>,
        /// Absolute offset of the damage in the file, in bytes, if the damage is at one position.
        at: Option<u64>,
    },
    /// The file uses a feature that is not implemented. No violation of its format was found.
    Unsupported {
        /// The structure's name in the specification, and the unknown number or name.
        what: Cow<'static, str>,
        /// Absolute offset of the feature in the file, in bytes, if the feature is at one position.
        at: Option<u64>,
    },
    /// The file needs more than a limit in `limits.rs` permits.
    Limit {
        /// The limited resource.
        what: Cow<'static, str>,
        /// The maximum that the limit permits.
        max: u64,
    },
    /// A request has exhausted its budget of metadata bytes, or it must not wait and the metadata
    /// are not available yet. The next request may find part of the metadata cached.
    BudgetExceeded {
        /// Number of bytes that were left in the budget before the failed read. 0 for a request
        /// that must not wait.
        max: u64,
    },
    /// The requested name does not exist.
    NotFound,
    /// The command line or a mount option is invalid.
    Usage(String),
}

/// The reason of a failure outside of the file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The operating system failed the operation with this errno.
    System(i32),
    /// The data are unavailable for a reason that the error's text explains, such as a decoder that
    /// stopped or a server that does not answer.
    Unavailable,
    /// A policy, which the error's text explains, forbids the operation.
    Forbidden,
    /// Memory or another local resource is exhausted, such as the limit for all open objects
    /// together.
    OutOfMemory,
    /// A part of the content is missing, such as a source file of a virtual dataset, and the user
    /// chose to make this an error.
    Missing,
    /// The file has changed since it was opened.
    Stale,
    /// No request waits for the result of the work any more.
    Cancelled,
}

/// A result with the library's error type.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Creates an error for `what`, which violates the format at absolute offset `at`.
    pub fn corrupt(what: impl Into<Cow<'static, str>>, at: impl Into<Option<u64>>) -> Self {
        Error::Corrupt {
            what: truncate(what.into()),
            at: at.into(),
        }
    }

    /// Creates an error for the unimplemented feature `what` at absolute offset `at`.
    pub fn unsupported(what: impl Into<Cow<'static, str>>, at: impl Into<Option<u64>>) -> Self {
        Error::Unsupported {
            what: truncate(what.into()),
            at: at.into(),
        }
    }

    /// Creates an error for `what`, which exceeds `max`.
    pub fn limit(what: impl Into<Cow<'static, str>>, max: u64) -> Self {
        Error::Limit {
            what: truncate(what.into()),
            max,
        }
    }

    /// Checks that `count` is at most `max`. `what` describes what is counted.
    ///
    /// # Errors
    /// `Limit` if `count` is larger.
    pub fn check_limit<N>(count: N, max: N, what: impl Into<Cow<'static, str>>) -> Result<()>
    where
        N: Copy + PartialOrd + TryInto<u64>,
    {
        if count > max {
            return Err(Self::limit(what, max.try_into().unwrap_or(u64::MAX)));
        }
        Ok(())
    }

    /// Checks that one more can be added to `count` things, of which `max` are allowed. `what`
    /// describes what is counted.
    ///
    /// # Errors
    /// `Limit` if `count` has reached `max`.
    pub fn check_room<N>(count: N, max: N, what: impl Into<Cow<'static, str>>) -> Result<()>
    where
        N: Copy + PartialOrd + TryInto<u64>,
    {
        if count >= max {
            return Err(Self::limit(what, max.try_into().unwrap_or(u64::MAX)));
        }
        Ok(())
    }

    /// Returns whether a later attempt may succeed, for example after a disk did not answer.
    /// Returns false for damage in a file, which always recurs.
    pub fn is_transient(&self) -> bool {
        matches!(self, Error::Io { .. } | Error::BudgetExceeded { .. })
    }

    /// Prefixes the message with the name of `whole`, the larger structure that contains the error.
    #[must_use]
    pub fn with_context(self, whole: impl fmt::Display) -> Self {
        let named = |what: Cow<'static, str>| format!("{whole}: {what}");
        match self {
            Error::Corrupt { what, at } => Self::corrupt(named(what), at),
            Error::Unsupported { what, at } => Self::unsupported(named(what), at),
            Error::Limit { what, max } => Self::limit(named(what), max),
            other => other,
        }
    }

    /// Creates an error from the system's error during `what`.
    pub fn from_io(error: &io::Error, what: impl Into<Cow<'static, str>>) -> Self {
        match error.raw_os_error() {
            Some(number) => Self::from_cause(Cause::System(number), what),
            None => Self::from_cause(Cause::Unavailable, format!("{}: {error}", what.into())),
        }
    }

    /// Creates an error for the operation `what`, which failed because of `cause`.
    pub fn from_cause(cause: Cause, what: impl Into<Cow<'static, str>>) -> Self {
        Error::Io {
            cause,
            what: truncate(what.into()),
        }
    }

    /// Creates an error for work that was abandoned because no request waits for its result any
    /// more.
    pub fn cancelled() -> Self {
        Self::from_cause(Cause::Cancelled, "no reader waits for the result")
    }

    /// Returns whether the error means that the file has changed since it was opened.
    pub fn is_stale(&self) -> bool {
        matches!(
            self,
            Error::Io {
                cause: Cause::Stale,
                ..
            }
        )
    }

    /// Returns whether the error means that the work was abandoned because no request waits for its
    /// result.
    pub fn is_cancelled(&self) -> bool {
        matches!(
            self,
            Error::Io {
                cause: Cause::Cancelled,
                ..
            }
        )
    }
}

/// Returns the value, or `None` for an error that will recur, such as damage.
///
/// # Errors
/// Returns an error that may not recur (see [`Error::is_transient`]).
pub fn ignore_permanent<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_transient() => Err(error),
        Err(_) => Ok(None),
    }
}

/// Returns the text, cut at `limits::ERROR_TEXT` bytes if it is longer. A file may contain names of
/// megabytes.
fn truncate(text: Cow<'static, str>) -> Cow<'static, str> {
    if text.len() <= limits::ERROR_TEXT {
        return text;
    }
    let mut ends = (0..=limits::ERROR_TEXT).rev();
    let begin = ends.find_map(|end| text.get(..end)).unwrap_or_default();
    format!("{begin}…").into()
}

/// Formats a name from a file for a message, with the escapes of a Rust byte string. A name of more
/// than `limits::ERROR_TEXT` bytes is truncated.
pub fn quote(name: &[u8]) -> String {
    match name.split_at_checked(limits::ERROR_TEXT) {
        Some((begin, [_, ..])) => format!("{}…", begin.escape_ascii()),
        _ => name.escape_ascii().to_string(),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // For these causes, `what` already contains the whole reason.
            Error::Io {
                cause: Cause::Unavailable | Cause::Forbidden | Cause::Missing,
                what,
            } => f.write_str(what),
            Error::Io { cause, what } => write!(f, "{what}: {cause}"),
            Error::Corrupt { what, at: None } => write!(f, "{what} (corrupt)"),
            Error::Corrupt { what, at: Some(at) } => write!(f, "{what} (corrupt, at byte {at})"),
            Error::Unsupported { what, at: None } => write!(f, "{what} is not supported"),
            Error::Unsupported { what, at: Some(at) } => {
                write!(f, "{what} is not supported (at byte {at})")
            }
            Error::Limit { what, max } => write!(f, "{what} is over the limit of {max}"),
            Error::BudgetExceeded { max } => {
                write!(
                    f,
                    "metadata read for one request is over the limit of {max}"
                )
            }
            Error::NotFound => f.write_str("no such name"),
            Error::Usage(text) => f.write_str(text),
        }
    }
}

/// Formats a cause as the operating system's error message for it.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::System(number) => return f.write_str(&errno_message(*number)),
            Cause::Unavailable | Cause::Forbidden | Cause::Missing => "Input/output error",
            Cause::OutOfMemory => "Cannot allocate memory",
            Cause::Stale => "Stale file handle",
            Cause::Cancelled => "Interrupted system call",
        })
    }
}

/// Returns the system's message for an errno.
fn errno_message(number: i32) -> String {
    io_error_message(&io::Error::from_raw_os_error(number))
}

/// Returns the message of an input/output error, without the "(os error N)" that Rust appends.
pub fn io_error_message(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error") {
        Some(end) => text.get(..end).unwrap_or(&text).to_owned(),
        None => text,
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = |length| Error::corrupt("é".repeat(length), 7).to_string();
        assert_eq!(text(10), format!("{} (corrupt, at byte 7)", "é".repeat(10)));
        assert!(text(1 << 20).len() < limits::ERROR_TEXT + 50);
        assert!(text(1 << 20).contains("é… (corrupt"));
        assert_eq!(quote(b"a\n"), "a\\n");
        assert!(quote(&[0; 1 << 20]).len() < 4 * limits::ERROR_TEXT + 4);
    }

    #[test]
    fn messages_contain_no_error_numbers() {
        let failed = Error::from_cause(Cause::Unavailable, "a decoder stopped");
        assert_eq!(failed.to_string(), "a decoder stopped");
        let of = |error: io::Error| Error::from_io(&error, "a.h5").to_string();
        let denied = io::Error::from_raw_os_error(13);
        assert_eq!(of(denied), "a.h5: Permission denied");
        let other = io::Error::other("no such thing");
        assert_eq!(of(other), "a.h5: no such thing");
        let wrapped = io::Error::other(io::Error::from_raw_os_error(111));
        assert_eq!(io_error_message(&wrapped), "Connection refused");
    }
}
