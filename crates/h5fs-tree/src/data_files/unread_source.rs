//! An open source whose bytes have not been read yet.

use std::path::Path;
use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::local::file::SourceOpener;
use h5fs_reader::source::local::root::with_real_directory;
use h5fs_reader::source::remote::connection::Connection;

use crate::data_files::watch::SourceWatch;

/// An open source whose format has not been detected yet, because none of its bytes were read.
pub struct UnreadSource {
    pub(crate) watch: SourceWatch,
}

impl UnreadSource {
    /// Opens the regular file at `source`.
    ///
    /// # Errors
    /// `Io` with the error of the operating system; `Usage` if the path is neither a file nor a
    /// directory.
    pub fn open(source: &Path) -> Result<Self> {
        let failed = |error| Error::from_io(&error, source.display().to_string());
        let kind = source.metadata().map_err(failed)?.file_type();
        // Opening a device, a FIFO or a socket may disturb other processes.
        if !kind.is_file() && !kind.is_dir() {
            let source = source.display();
            return Err(Error::Usage(format!("{source}: not a regular file")));
        }
        let path = source.canonicalize().map_err(failed)?;
        let named = std::path::absolute(source).map_err(failed)?;
        let watch =
            SourceWatch::new(&path).map_err(|error| with_given_path(error, &path, source))?;
        let watch = watch.with_named_path(with_real_directory(&named)?);
        Ok(UnreadSource { watch })
    }

    /// Opens the remote object at the URL of `store`.
    ///
    /// # Errors
    /// `ENOENT` if the object does not exist; otherwise the error of the server.
    pub fn open_remote(store: &Arc<Connection>) -> Result<Self> {
        let watch = SourceWatch::open_remote(store)?;
        Ok(UnreadSource { watch })
    }

    /// Sets the function that opens the source again after a change.
    #[must_use]
    pub fn with_reopener(self, opener: SourceOpener) -> Self {
        let watch = self.watch.with_reopener(opener);
        UnreadSource { watch }
    }

    /// Returns the path of the source, without symbolic links.
    pub fn path(&self) -> &Path {
        self.watch.path()
    }

    /// Returns the user ID of the source's owner.
    ///
    /// # Errors
    /// `Io` with the error of the operating system.
    pub fn owner(&self) -> Result<u32> {
        Ok(self.watch.attributes()?.uid)
    }
}

/// Replaces the resolved path `path` in the error by `given`, the path that the user typed.
fn with_given_path(error: Error, path: &Path, given: &Path) -> Error {
    match error {
        Error::Io { cause, what } if *what == *path.display().to_string() => {
            Error::from_cause(cause, given.display().to_string())
        }
        other => other,
    }
}
