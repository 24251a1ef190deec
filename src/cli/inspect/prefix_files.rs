//! The objects with a prefix, for a command that reads each object in a separate process.
//!
//! The calling process requests the names from a fetcher. The first bytes of an object are read
//! only if the name does not show whether the object is a data file.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Stdio};

use crate::cli::args::ReadingArguments;
use crate::cli::inspect::parallel::ChildArguments;
use crate::cli::mount::handover;
use crate::cli::mount::remote_source::RemoteSource;
use h5fs_reader::detect;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::directory::{Directory, EntryType};
use h5fs_reader::source::location::percent::{IN_NAME, percent_encode};
use h5fs_reader::source::location::{Location, Url};
use h5fs_reader::source::remote::directory::RemoteDirectory;

/// The connection to a fetcher that lists the names with a prefix.
pub(in crate::cli) struct PrefixFiles {
    directory: RemoteDirectory,
    url: Url,
    /// The fetcher's process. It ends once `directory` is dropped.
    _fetcher: Fetcher,
}

/// A name that the server lists, and whether it is a directory.
pub(in crate::cli) struct PrefixEntry {
    pub(in crate::cli) path: PathBuf,
    pub(in crate::cli) is_directory: bool,
}

struct Fetcher(Child);

impl Drop for Fetcher {
    fn drop(&mut self) {
        // The process is our own child, so waiting does not fail.
        let _ = self.0.wait();
    }
}

impl PrefixFiles {
    /// Opens the prefix at `url` with a new fetcher.
    ///
    /// # Errors
    /// `ENOENT` if no key starts with the prefix. Otherwise fails with the server's error.
    pub(in crate::cli) fn open(url: &Url, how: &ReadingArguments) -> Result<Self> {
        let call = ChildArguments::for_command("ls", how).invocation(&Location::Url(url.clone()));
        let started = handover::start_fetcher(&call, Stdio::inherit());
        let failed = |error| Error::from_io(&error, "starting the fetcher");
        let (fetcher, ends) = started.map_err(failed)?;
        let fetcher = Fetcher(fetcher);
        let source = RemoteSource::new(url, &how.remote.settings, ends);
        Ok(PrefixFiles {
            directory: source.open_directory(&mut h5fs_tree::Options::default())?,
            url: url.clone(),
            _fetcher: fetcher,
        })
    }

    /// Lists the names in a directory, sorted.
    ///
    /// # Errors
    /// Fails with the server's error.
    pub(in crate::cli) fn list(&self, directory: &Path) -> Result<Vec<PrefixEntry>> {
        let mut names = Vec::new();
        self.directory.list(directory)?.visit(0, &mut |listed| {
            if !matches!(listed.name, b"." | b"..") {
                names.push(PrefixEntry {
                    path: directory.join(OsStr::from_bytes(listed.name)),
                    is_directory: listed.is_directory,
                });
            }
            false
        })?;
        Ok(names)
    }

    /// Returns whether the object at `path` is a data file, judged by its name or otherwise by its
    /// first bytes.
    pub(in crate::cli) fn is_data_file(&self, path: &Path) -> bool {
        let source = || {
            self.directory
                .open(path, &|| true)?
                .content
                .into_source(path, None)
        };
        detect::has_data_file_extension(path.as_os_str().as_bytes())
            || source().is_ok_and(|source| detect::object_has_known_signature(&*source))
    }

    /// Returns the location of the object at `path`.
    ///
    /// # Errors
    /// `Usage` if the URL is too long.
    pub(in crate::cli) fn location(&self, path: &Path) -> Result<Location> {
        let name = path.as_os_str().as_bytes();
        if self.url.is_web_page() {
            let url = format!("{}{}", self.url, percent_encode(name, IN_NAME));
            return Location::parse(url.into());
        }
        Location::parse(self.url_path(path).into())
    }

    /// Returns the URL of the object at `path`, as a path.
    pub(in crate::cli) fn url_path(&self, path: &Path) -> PathBuf {
        self.directory.absolute_path(path)
    }

    /// Splits `path` after its first object. Returns the location of the object, and the path
    /// within the object. Returns `None` if no component of `path` is an object.
    ///
    /// # Errors
    /// Fails with the server's error.
    pub(in crate::cli) fn split_at_file(
        &self,
        path: &Path,
    ) -> Result<Option<(Location, OsString)>> {
        let mut names = path.components();
        let mut file = PathBuf::new();
        while let Some(Component::Normal(name)) = names.next() {
            file.push(name);
            match self.directory.path_info(&file, false) {
                Ok(there) if there.kind == EntryType::File => {
                    return Ok(Some((self.location(&file)?, names.as_path().into())));
                }
                Ok(_) => {}
                Err(Error::NotFound) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}
