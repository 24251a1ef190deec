//! The one error type of the library. It names no errno: `fs/errno.rs` alone maps these errors to
//! the numbers that the kernel is answered with.

pub mod line;

use std::borrow::Cow;
use std::fmt;
use std::io;

use crate::limits;

/// An error, in three deep buckets (io, corrupt, unsupported) and four shallow ones.
///
/// It is `Clone` because one failed decode is handed to every reader that waited for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The operation failed through no fault of the file's content.
    Io {
        /// Why it failed.
        cause: Cause,
        /// The attempted operation, for people.
        what: Cow<'static, str>,
    },
    /// The file breaks its format.
    Corrupt {
        /// The structure's name in the specification and what is wrong with it.
        what: Cow<'static, str>,
        /// Absolute offset in the file, in bytes, where the damage has one place.
        at: Option<u64>,
    },
    /// The file is right as far as is known, but uses what is not built.
    Unsupported {
        /// The structure's name in the specification and the number or name that is not known.
        what: Cow<'static, str>,
        /// Absolute offset in the file, in bytes, where the feature has one place.
        at: Option<u64>,
    },
    /// The file asks for more than `limits.rs` grants.
    Limit {
        /// The object of the request.
        what: Cow<'static, str>,
        /// The most that is granted.
        max: u64,
    },
    /// One request has looked at as much metadata as it may: another one may find some of it kept.
    Effort {
        /// The bytes that were left.
        max: u64,
    },
    /// No such name.
    NotFound,
    /// The command line or a mount option is wrong.
    Usage(String),
}

/// Why an operation failed through no fault of the file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The operating system refused, with this number of its own.
    System(i32),
    /// The data cannot be had, as the text says: a decoder broke off.
    Failed,
    /// A policy forbids it, as the text says.
    Forbidden,
    /// All that is open takes too much memory together.
    OutOfMemory,
    /// A part of the content is missing, which was asked to be an error.
    Missing,
    /// The file is no longer in the state in which it was opened.
    Stale,
    /// Every reader that waited for the work has gone.
    Unwanted,
}

/// The library's result.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// `what` at absolute offset `at` breaks the format.
    pub fn corrupt(what: impl Into<Cow<'static, str>>, at: impl Into<Option<u64>>) -> Self {
        Error::Corrupt {
            what: cut(what.into()),
            at: at.into(),
        }
    }

    /// `what` at absolute offset `at` is not built.
    pub fn unsupported(what: impl Into<Cow<'static, str>>, at: impl Into<Option<u64>>) -> Self {
        Error::Unsupported {
            what: cut(what.into()),
            at: at.into(),
        }
    }

    /// `what` is over `max`.
    pub fn limit(what: impl Into<Cow<'static, str>>, max: u64) -> Self {
        Error::Limit {
            what: cut(what.into()),
            max,
        }
    }

    /// Whether this may be over the next time: a disk that does not answer, not a file that is
    /// wrong.
    pub fn is_passing(&self) -> bool {
        matches!(self, Error::Io { .. } | Error::Effort { .. })
    }

    /// The same of a part of something larger, which the message names first.
    #[must_use]
    pub fn of(self, whole: impl fmt::Display) -> Self {
        let named = |what: Cow<'static, str>| format!("{whole}: {what}");
        match self {
            Error::Corrupt { what, at } => Self::corrupt(named(what), at),
            Error::Unsupported { what, at } => Self::unsupported(named(what), at),
            Error::Limit { what, max } => Self::limit(named(what), max),
            other => other,
        }
    }

    /// The system's error while doing `what`.
    pub fn io(error: &io::Error, what: impl Into<Cow<'static, str>>) -> Self {
        match error.raw_os_error() {
            Some(number) => Self::caused(Cause::System(number), what),
            None => Self::caused(Cause::Failed, format!("{}: {error}", what.into())),
        }
    }

    /// `what` failed, because of `cause`.
    pub fn caused(cause: Cause, what: impl Into<Cow<'static, str>>) -> Self {
        Error::Io {
            cause,
            what: cut(what.into()),
        }
    }

    /// The work was given up because every reader that waited for it has gone.
    pub fn unwanted() -> Self {
        Self::caused(Cause::Unwanted, "nobody waits for it any more")
    }

    /// Whether the file is no longer in the state in which it was opened.
    pub fn is_stale(&self) -> bool {
        matches!(
            self,
            Error::Io {
                cause: Cause::Stale,
                ..
            }
        )
    }

    /// Whether the work was given up.
    pub fn is_unwanted(&self) -> bool {
        matches!(
            self,
            Error::Io {
                cause: Cause::Unwanted,
                ..
            }
        )
    }
}

/// The result; nothing where it is damaged.
///
/// # Errors
/// Fails if it cannot be read now.
pub fn if_lasting<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_passing() => Err(error),
        Err(_) => Ok(None),
    }
}

/// The text itself, or the beginning of one that is too long to be told: a file may hold names of
/// megabytes.
fn cut(text: Cow<'static, str>) -> Cow<'static, str> {
    if text.len() <= limits::ERROR_TEXT {
        return text;
    }
    let mut ends = (0..=limits::ERROR_TEXT).rev();
    let begin = ends.find_map(|end| text.get(..end)).unwrap_or_default();
    format!("{begin}…").into()
}

/// A name from a file as it stands in a message: escaped, and of one that is too long the
/// beginning.
pub fn quoted(name: &[u8]) -> String {
    match name.split_at_checked(limits::ERROR_TEXT) {
        Some((begin, [_, ..])) => format!("{}…", begin.escape_ascii()),
        _ => name.escape_ascii().to_string(),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The text is the whole reason.
            Error::Io {
                cause: Cause::Failed | Cause::Forbidden | Cause::Missing,
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
            Error::Effort { max } => {
                write!(
                    f,
                    "metadata that is looked at at a time is over the limit of {max}"
                )
            }
            Error::NotFound => f.write_str("no such name"),
            Error::Usage(text) => f.write_str(text),
        }
    }
}

/// In the system's words.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::System(number) => return f.write_str(&system_text(*number)),
            Cause::Failed | Cause::Forbidden | Cause::Missing => "Input/output error",
            Cause::OutOfMemory => "Cannot allocate memory",
            Cause::Stale => "Stale file handle",
            Cause::Unwanted => "Interrupted system call",
        })
    }
}

/// The system's words for an error of its own.
fn system_text(number: i32) -> String {
    words_of(&io::Error::from_raw_os_error(number))
}

/// What an error says, without the "(os error N)" that Rust appends.
pub fn words_of(error: &io::Error) -> String {
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
        assert_eq!(quoted(b"a\n"), "a\\n");
        assert!(quoted(&[0; 1 << 20]).len() < 4 * limits::ERROR_TEXT + 4);
    }

    #[test]
    fn a_reason_stands_alone_and_numbers_are_left_out() {
        let failed = Error::caused(Cause::Failed, "a decoder broke off");
        assert_eq!(failed.to_string(), "a decoder broke off");
        let of = |error: io::Error| Error::io(&error, "a.h5").to_string();
        let denied = io::Error::from_raw_os_error(13);
        assert_eq!(of(denied), "a.h5: Permission denied");
        let other = io::Error::other("no such thing");
        assert_eq!(of(other), "a.h5: no such thing");
        let wrapped = io::Error::other(io::Error::from_raw_os_error(111));
        assert_eq!(words_of(&wrapped), "Connection refused");
    }
}
