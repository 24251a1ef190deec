//! Which other files a source may bring in, and why one is not opened.

use std::path::{Path, PathBuf};

use crate::error::{Cause, Error};
use crate::source::open::SharedOpen;

/// Which other files a source may bring in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// None.
    None,
    /// Regular files inside the source's own directory, resolved beneath it: no `..`, no absolute
    /// path that leads elsewhere, no symbolic link out.
    #[default]
    Within,
    /// Every regular file.
    Any,
}

/// Why a file is not opened.
#[derive(Debug, Clone)]
pub enum Unopened {
    /// It may not be.
    Refused(Error),
    /// It may be, and cannot be; where it was sought.
    Failed(PathBuf, Error),
}

impl Unopened {
    /// The reason.
    pub fn error(self) -> Error {
        match self {
            Unopened::Refused(error) | Unopened::Failed(_, error) => error,
        }
    }
}

/// A file, and the path by which it was opened; `None` where there is none.
pub(in crate::source) type Opened = Result<Option<(SharedOpen, PathBuf)>, Unopened>;

/// `name` may not be had.
pub(in crate::source) fn refused(name: &Path, why: &str) -> Unopened {
    Unopened::Refused(Error::caused(Cause::Forbidden, told(name, why)))
}

/// `name` cannot be had: `why` is what the policy says, or the system. Its reader asked for
/// something else, which has the right to be read, and lacks this part.
pub(in crate::source) fn unreadable(name: &Path, why: &str) -> Error {
    Error::caused(Cause::Failed, told(name, why))
}

fn told(name: &Path, why: &str) -> String {
    format!("{} ({why})", name.display())
}
