//! Opens a source by URL in the parsing process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use h5fs_fetcher::RemoteSettings;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::location::Url;
use h5fs_reader::source::remote::connection::{Connection, ConnectionSettings};
use h5fs_reader::source::remote::directory::RemoteDirectory;
use h5fs_tree::{Archive, External, Filesystem, Options, ServedTree, UnreadSource};
use nix::unistd::{getegid, geteuid};

use crate::cli::mount::handover::{self, FetcherConnection};
use crate::cli::options;
use crate::cli::sandbox::{NOBODY, ShownSource, SourceUser};

/// Time that is added to the fetcher's own time limit, so that the fetcher can report that it has
/// given up.
const REPLY_GRACE: Duration = Duration::from_secs(10);

/// Time for which the last known state of an object is trusted.
const STATE_VALIDITY: Duration = Duration::from_secs(30);

/// Minimum number of requests that are answered at a time, because requests to a remote source wait
/// for the network, not for a processor. A user can set a lower number for a mount.
const MIN_THREADS: usize = 16;

/// A source by URL, with the connection to the fetcher. Nothing has been requested yet.
pub(in crate::cli) struct RemoteSource {
    connection: FetcherConnection,
    url: PathBuf,
    is_prefix: bool,
    request_timeout: Duration,
    owner: (u32, u32),
    is_mounted: bool,
}

impl RemoteSource {
    /// Receives the connection to the fetcher over the supervision socket, for the source at `url`.
    /// Starts no thread.
    ///
    /// # Errors
    /// `Usage` if the socket holds no connection.
    pub(in crate::cli) fn receive(url: &Url, settings: &RemoteSettings) -> Result<Self> {
        Ok(Self::new(url, settings, handover::receive_connection()?))
    }

    /// Returns the source at `url`, with the connection `ends` to the fetcher.
    pub(in crate::cli) fn new(
        url: &Url,
        settings: &RemoteSettings,
        ends: FetcherConnection,
    ) -> Self {
        RemoteSource {
            connection: ends,
            url: url.to_string().into(),
            is_prefix: url.is_prefix(),
            request_timeout: settings.deadline().saturating_add(REPLY_GRACE),
            owner: (geteuid().as_raw(), getegid().as_raw()),
            is_mounted: false,
        }
    }

    /// Returns the source for a process that mounts it. Other processes serve or read the source
    /// without a mount.
    pub(in crate::cli) fn for_mount(self) -> Self {
        RemoteSource {
            is_mounted: true,
            ..self
        }
    }

    /// Returns the description of the source with which the process enters its sandbox. The sandbox
    /// need not permit any file, because all bytes come from the fetcher.
    pub(in crate::cli) fn sandbox_source(&self, run_as: Option<u32>) -> ShownSource<'_> {
        // Root's permissions are not needed, because no file is opened.
        let user = match self.owner {
            (0, _) => NOBODY,
            (user, _) => user,
        };
        ShownSource {
            path: &self.url,
            reader: run_as.map_or(SourceUser::Owner(user), SourceUser::Chosen),
            is_directory: false,
        }
    }

    /// Returns the options for a sandboxed process: it opens no other files, and answers at least
    /// [`MIN_THREADS`] requests at a time.
    pub(in crate::cli) fn sandbox_options(options: &Options) -> Options {
        Options {
            external: External::None,
            threads: thread_count(Some(options.threads)).max(MIN_THREADS),
            ..options.clone()
        }
    }

    /// Opens the object, or the prefix as a directory of files. Also returns the connection to the
    /// fetcher, which collects warnings for the user.
    ///
    /// # Errors
    /// Fails with the fetcher's error.
    pub(in crate::cli) fn open_tree(
        self,
        options: &mut Options,
    ) -> Result<(ServedTree, Arc<Connection>)> {
        let is_prefix = self.is_prefix;
        let connection = self.connect(options)?;
        let served = if is_prefix {
            let directory = Arc::new(RemoteDirectory::open(&connection)?);
            ServedTree::Archive(Box::new(Archive::new(directory, None, options)))
        } else {
            let object = UnreadSource::open_remote(&connection)?;
            ServedTree::File(Box::new(Filesystem::from_source(object, options)?))
        };
        Ok((served, connection))
    }

    /// Opens the prefix.
    ///
    /// # Errors
    /// `ENOENT` if no key starts with the prefix. Otherwise fails with the fetcher's error.
    pub(in crate::cli) fn open_directory(self, options: &mut Options) -> Result<RemoteDirectory> {
        RemoteDirectory::open(&self.connect(options)?)
    }

    /// Opens the object.
    ///
    /// # Errors
    /// `Usage` for a prefix. Otherwise fails with the fetcher's error.
    pub(in crate::cli) fn open_file(self, options: &mut Options) -> Result<Filesystem> {
        if self.is_prefix {
            return Err(Error::Usage("it is a prefix, not an object".to_owned()));
        }
        let object = UnreadSource::open_remote(&self.connect(options)?)?;
        Filesystem::from_source(object, options)
    }

    /// Starts the connection to the fetcher. Half of the cache size in `options` becomes the cache
    /// size for pages of objects; the other half remains in `options`.
    fn connect(self, options: &mut Options) -> Result<Arc<Connection>> {
        let size = &mut options.cache_size;
        let kept = size.max_bytes / 2;
        size.max_bytes -= kept;
        size.initial_bytes = size.initial_bytes.min(size.max_bytes);
        Connection::start(
            self.connection.socket,
            self.connection.stage,
            ConnectionSettings {
                url: self.url,
                max_staged_bytes: kept,
                reply_timeout: self.request_timeout,
                validity: STATE_VALIDITY,
                owner: self.owner,
                is_mounted: self.is_mounted,
            },
        )
    }
}

/// Returns the number of requests to the mount that are answered at a time. `asked_for` is the
/// number that the user wants.
pub(in crate::cli) fn thread_count(asked_for: Option<usize>) -> usize {
    asked_for.unwrap_or_else(|| options::default_threads().max(MIN_THREADS))
}
