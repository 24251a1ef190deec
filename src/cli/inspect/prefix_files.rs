//! The objects beneath a prefix, for a command that has each of them read by a process of its own.
//!
//! This process asks a fetcher for the names. Of an object it reads no more than its beginning, and
//! that only where the name does not tell whether it is a data file.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Stdio};

use crate::cli::args::Reading;
use crate::cli::inspect::many::Arguments;
use crate::cli::mount::handover;
use crate::cli::mount::remote_source::RemoteSource;
use crate::detect;
use crate::error::{Error, Result};
use crate::fs;
use crate::source::directory::{Directory, Standing};
use crate::source::location::percent::{IN_NAME, encoded};
use crate::source::location::{Location, Url};
use crate::source::remote::directory::RemoteDirectory;

/// The names beneath a prefix.
pub(in crate::cli) struct PrefixFiles {
    directory: RemoteDirectory,
    url: Url,
    /// It ends once the directory is gone.
    _fetcher: Fetcher,
}

/// A name, and whether more names are beneath it.
pub(in crate::cli) struct Name {
    pub(in crate::cli) path: PathBuf,
    pub(in crate::cli) is_directory: bool,
}

struct Fetcher(Child);

impl Drop for Fetcher {
    fn drop(&mut self) {
        // It is ours, so there is nothing to tell of its end.
        let _ = self.0.wait();
    }
}

impl PrefixFiles {
    /// The prefix at `url`, of which a new fetcher tells.
    ///
    /// # Errors
    /// `ENOENT` where no key begins with it; else fails with the server's error.
    pub(in crate::cli) fn open(url: &Url, how: &Reading) -> Result<Self> {
        let call = Arguments::of("ls", how).call(&Location::Url(url.clone()));
        let started = handover::start_fetcher(&call, Stdio::inherit());
        let failed = |error| Error::io(&error, "starting the fetcher");
        let (fetcher, ends) = started.map_err(failed)?;
        let fetcher = Fetcher(fetcher);
        let source = RemoteSource::at(url, &how.remote.settings, ends);
        Ok(PrefixFiles {
            directory: source.directory(&mut fs::Options::default())?,
            url: url.clone(),
            _fetcher: fetcher,
        })
    }

    /// The names in a directory, sorted.
    ///
    /// # Errors
    /// Fails with the server's error.
    pub(in crate::cli) fn list(&self, directory: &Path) -> Result<Vec<Name>> {
        let mut names = Vec::new();
        self.directory.list(directory)?.visit(0, &mut |listed| {
            if !matches!(listed.name, b"." | b"..") {
                names.push(Name {
                    path: directory.join(OsStr::from_bytes(listed.name)),
                    is_directory: listed.is_directory,
                });
            }
            false
        })?;
        Ok(names)
    }

    /// Whether the object at `path` is a data file, by its name or else by its beginning.
    pub(in crate::cli) fn is_data(&self, path: &Path) -> bool {
        let source = || self.directory.open(path)?.content.source(path, None);
        detect::is_named(path.as_os_str().as_bytes())
            || source().is_ok_and(|source| detect::begins_as_known(&*source))
    }

    /// The location of the object at `path`.
    ///
    /// # Errors
    /// `Usage` for a URL that is too long.
    pub(in crate::cli) fn location(&self, path: &Path) -> Result<Location> {
        let name = path.as_os_str().as_bytes();
        if self.url.is_of_web() {
            let url = format!("{}{}", self.url, encoded(name, IN_NAME));
            return Location::parse(url.into());
        }
        Location::parse(self.absolute(path).into())
    }

    /// The URL of what stands at `path`.
    pub(in crate::cli) fn absolute(&self, path: &Path) -> PathBuf {
        self.directory.absolute(path)
    }

    /// The object that `path` leads through, and the rest of the path.
    ///
    /// # Errors
    /// Fails with the server's error.
    pub(in crate::cli) fn file_on(&self, path: &Path) -> Result<Option<(Location, OsString)>> {
        let mut names = path.components();
        let mut file = PathBuf::new();
        while let Some(Component::Normal(name)) = names.next() {
            file.push(name);
            match self.directory.look(&file, false) {
                Ok(there) if there.kind == Standing::File => {
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
