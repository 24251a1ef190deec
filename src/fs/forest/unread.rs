//! A source that is open, and of which no byte has been read.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fs::forest::watch::Watch;
use crate::source::local::file::Opener;
use crate::source::local::root::with_real_directory;
use crate::source::remote::connection::Connection;

/// A source that is open, and of which no byte has been read.
pub struct Unread {
    pub(in crate::fs) watch: Watch,
}

impl Unread {
    /// Opens the regular file at `source`.
    ///
    /// # Errors
    /// `Io` with the system's error; `Usage` for what is neither a file nor a directory.
    pub fn open(source: &Path) -> Result<Self> {
        let failed = |error| Error::io(&error, source.display().to_string());
        let kind = source.metadata().map_err(failed)?.file_type();
        // Opening a device, a FIFO or a socket may disturb others.
        if !kind.is_file() && !kind.is_dir() {
            let source = source.display();
            return Err(Error::Usage(format!("{source}: not a regular file")));
        }
        let path = source.canonicalize().map_err(failed)?;
        let named = std::path::absolute(source).map_err(failed)?;
        let watch = Watch::new(&path).map_err(|error| renamed(error, &path, source))?;
        let watch = watch.opened_by(with_real_directory(&named)?);
        Ok(Unread { watch })
    }

    /// Opens the object of the URL that `store` was started for.
    ///
    /// # Errors
    /// `ENOENT` where there is none; else fails with the server's error.
    pub fn of_object(store: &Arc<Connection>) -> Result<Self> {
        let watch = Watch::of_object(store)?;
        Ok(Unread { watch })
    }

    /// Opens it again by `opener`, once it has changed.
    #[must_use]
    pub fn opened_again_by(self, opener: Opener) -> Self {
        let watch = self.watch.opened_again_by(opener);
        Unread { watch }
    }

    /// Where it is, without symbolic links.
    pub fn path(&self) -> &Path {
        self.watch.path()
    }

    /// The number of the user whose file it is.
    ///
    /// # Errors
    /// `Io` with the system's error.
    pub fn owner(&self) -> Result<u32> {
        Ok(self.watch.attributes()?.uid)
    }
}

/// The error, which names `path`, with the name that the user gave.
fn renamed(error: Error, path: &Path, given: &Path) -> Error {
    match error {
        Error::Io { cause, what } if *what == *path.display().to_string() => {
            Error::caused(cause, given.display().to_string())
        }
        other => other,
    }
}
