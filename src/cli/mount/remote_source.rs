//! A source by URL, as the process that parses has it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::{getegid, geteuid};

use crate::cli::cage::{NOBODY, Reader, Shown};
use crate::cli::mount::handover::{self, Ends};
use crate::cli::options::{self, RemoteSettings};
use crate::error::{Error, Result};
use crate::fs::{Archive, External, Filesystem, Options, Served, Unread};
use crate::source::location::Url;
use crate::source::remote::connection::{Connection, Terms};
use crate::source::remote::directory::RemoteDirectory;

/// What the fetcher may take to say that it has given up, beside the time that it tries.
const GRACE: Duration = Duration::from_secs(10);

/// How long an object is taken to be in the state in which it was seen last.
const VALID: Duration = Duration::from_secs(30);

/// Requests that are answered at a time, unless the options say otherwise: they wait for the
/// network, not for a processor.
const THREADS: usize = 16;

/// An object or a prefix that the fetcher leads to, and of which nothing has been asked.
pub(in crate::cli) struct RemoteSource {
    ends: Ends,
    url: PathBuf,
    is_prefix: bool,
    patience: Duration,
    owner: (u32, u32),
    is_mounted: bool,
}

impl RemoteSource {
    /// The source at `url`, to which what is on the leash leads. No thread is started.
    ///
    /// # Errors
    /// `Usage` where nothing is on the leash.
    pub(in crate::cli) fn take(url: &Url, settings: &RemoteSettings) -> Result<Self> {
        Ok(Self::at(url, settings, handover::take()?))
    }

    /// The source at `url`, to which these `ends` lead.
    pub(in crate::cli) fn at(url: &Url, settings: &RemoteSettings, ends: Ends) -> Self {
        RemoteSource {
            ends,
            url: url.to_string().into(),
            is_prefix: url.is_prefix(),
            patience: settings.deadline().saturating_add(GRACE),
            owner: (geteuid().as_raw(), getegid().as_raw()),
            is_mounted: false,
        }
    }

    /// The same source, for a mount.
    pub(in crate::cli) fn mounted(self) -> Self {
        RemoteSource {
            is_mounted: true,
            ..self
        }
    }

    /// The source as its cage has to know it: no file is opened for it.
    pub(in crate::cli) fn shown(&self, run_as: Option<u32>) -> Shown<'_> {
        // Root's eyes are not needed: no file is opened.
        let user = match self.owner {
            (0, _) => NOBODY,
            (user, _) => user,
        };
        Shown {
            path: &self.url,
            reader: run_as.map_or(Reader::Owner(user), Reader::Chosen),
            is_directory: false,
        }
    }

    /// The options with which the process enters its cage.
    pub(in crate::cli) fn caged(options: &Options) -> Options {
        Options {
            external: External::None,
            threads: threads(Some(options.threads)).max(THREADS),
            ..options.clone()
        }
    }

    /// Opens the object, or the prefix as a directory of files. The connection tells what whoever
    /// reads it has to know.
    ///
    /// # Errors
    /// Fails with the fetcher's error.
    pub(in crate::cli) fn served(self, options: &mut Options) -> Result<(Served, Arc<Connection>)> {
        let is_prefix = self.is_prefix;
        let connection = self.connect(options)?;
        let served = if is_prefix {
            let directory = Arc::new(RemoteDirectory::open(&connection)?);
            Served::Archive(Box::new(Archive::new(directory, None, options)))
        } else {
            let object = Unread::of_object(&connection)?;
            Served::File(Box::new(Filesystem::of(object, options)?))
        };
        Ok((served, connection))
    }

    /// Opens the prefix.
    ///
    /// # Errors
    /// `ENOENT` where no key begins with it; else fails with the fetcher's error.
    pub(in crate::cli) fn directory(self, options: &mut Options) -> Result<RemoteDirectory> {
        RemoteDirectory::open(&self.connect(options)?)
    }

    /// Opens the object.
    ///
    /// # Errors
    /// `Usage` for a prefix; else fails with the fetcher's error.
    pub(in crate::cli) fn file(self, options: &mut Options) -> Result<Filesystem> {
        if self.is_prefix {
            return Err(Error::Usage("it is a prefix, not an object".to_owned()));
        }
        let object = Unread::of_object(&self.connect(options)?)?;
        Filesystem::of(object, options)
    }

    /// Begins to speak with the fetcher. Of the bytes that `options` let a cache have, half are for
    /// pages.
    fn connect(self, options: &mut Options) -> Result<Arc<Connection>> {
        let size = &mut options.cache_size;
        let kept = size.most / 2;
        size.most -= kept;
        size.least = size.least.min(size.most);
        Connection::start(
            self.ends.socket,
            self.ends.stage,
            Terms {
                url: self.url,
                kept,
                patience: self.patience,
                valid: VALID,
                owner: self.owner,
                is_mounted: self.is_mounted,
            },
        )
    }
}

/// Requests of a source by URL that are answered at a time.
pub(in crate::cli) fn threads(asked_for: Option<usize>) -> usize {
    asked_for.unwrap_or_else(|| options::default_threads().max(THREADS))
}
