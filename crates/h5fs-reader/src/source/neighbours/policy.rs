//! The policy for opening other files, and the reasons why a file was not opened.

use std::path::{Path, PathBuf};

use crate::error::{Cause, Error};
use crate::source::open::SharedOpenSource;

/// The set of other files that a source may reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OtherFilesPolicy {
    /// No files.
    None,
    /// Regular files inside the source's own directory, resolved beneath it. A path with `..`, an
    /// absolute path elsewhere, or a symbolic link must not lead out of the directory.
    #[default]
    WithinDirectory,
    /// Every regular file.
    Any,
}

/// The reason why a file was not opened.
#[derive(Debug, Clone)]
pub enum OpenRefusal {
    /// The policy or the system forbids access.
    Refused(Error),
    /// Opening failed at this path, although the policy allows it.
    Failed(PathBuf, Error),
}

impl OpenRefusal {
    /// Returns the error that explains why the file was not opened.
    pub fn error(self) -> Error {
        match self {
            OpenRefusal::Refused(error) | OpenRefusal::Failed(_, error) => error,
        }
    }
}

/// A file and the path by which it was opened, or `None` if the file does not exist.
pub(in crate::source) type OpenedPath = Result<Option<(SharedOpenSource, PathBuf)>, OpenRefusal>;

/// Returns the error for a file that must not be opened.
pub(in crate::source) fn refusal(name: &Path, why: &str) -> OpenRefusal {
    OpenRefusal::Refused(Error::from_cause(Cause::Forbidden, refusal_text(name, why)))
}

/// Returns the error for a part of the content that is in the file `name`, which cannot be read;
/// `why` comes from the policy or the system. The error is not "permission denied", because the
/// user may read the requested file itself.
pub(in crate::source) fn unreadable_error(name: &Path, why: &str) -> Error {
    Error::from_cause(Cause::Unavailable, refusal_text(name, why))
}

fn refusal_text(name: &Path, why: &str) -> String {
    format!("{} ({why})", name.display())
}
