//! Functions that the commands without a mount share: opening the source, writing the output, and
//! stopping early.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::directory::Directory;
use h5fs_reader::source::local::local_directory::LocalDirectory;
use h5fs_reader::source::location::{Location, Url};
use h5fs_reader::source::remote::connection::Connection;
use h5fs_tree::{Archive, Filesystem, Requests, ServedTree, UnreadSource};

use crate::cli::advice;
use crate::cli::args::ReadingArguments;
use crate::cli::inspect::joined_names::{JOINED_PATH, is_joined_path, joined_name};
use crate::cli::mount::remote_source::RemoteSource;
use crate::cli::text::error_message::{message_about, print_error};
use crate::cli::text::printable::{printable, printable_bytes};
use crate::cli::{options, sandbox, scans};

/// The source that a command reads, and how it is read.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct CommandSource<'a> {
    pub(in crate::cli) file: &'a Location,
    pub(in crate::cli) reading: &'a ReadingArguments,
}

/// Number of bytes that are read from a file of the source at a time.
pub(in crate::cli) const PIECE: usize = 1 << 20;

/// The reason why a command stops early.
pub(in crate::cli) enum CommandStop {
    /// The reader of the output pipe closed it.
    ReaderGone,
    Failed(Error),
}

impl From<Error> for CommandStop {
    fn from(error: Error) -> Self {
        CommandStop::Failed(error)
    }
}

/// Converts an error of standard output. No other `io::Error` occurs in these commands.
impl From<io::Error> for CommandStop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => CommandStop::ReaderGone,
            _ => CommandStop::Failed(Error::from_io(&error, "standard output")),
        }
    }
}

pub(in crate::cli) type CommandResult<T> = std::result::Result<T, CommandStop>;

/// Opens the source with the caller's privileges, and drops these privileges before it reads the
/// first byte. If `verify` is set, each ASDF block's checksum is verified before the block is read.
///
/// This function must be called before any other thread is started. Afterwards only files that the
/// source may refer to can be opened.
pub(in crate::cli) fn open(source: CommandSource<'_>, verify: bool) -> Result<Filesystem> {
    open_file(source, read_options(source.reading, verify))
}

fn open_file(source: CommandSource<'_>, mut options: h5fs_tree::Options) -> Result<Filesystem> {
    let path = match source.file {
        Location::Path(path) => path,
        Location::Url(url) => return enter_remote(source, url, &options)?.open_file(&mut options),
    };
    let unread = UnreadSource::open(path)?;
    let shown = sandbox::ShownSource {
        path: unread.path(),
        reader: sandbox::SourceUser::Owner(unread.owner()?),
        is_directory: false,
    };
    sandbox::enter(shown, &options, source.reading.sandbox)?;
    Filesystem::from_source(unread, &options)
}

/// Enters the sandbox, and returns the source by URL. Its connection to the fetcher is open.
fn enter_remote(
    source: CommandSource<'_>,
    url: &Url,
    options: &h5fs_tree::Options,
) -> Result<RemoteSource> {
    let remote = RemoteSource::receive(url, &source.reading.remote.settings)?;
    let caged = RemoteSource::sandbox_options(options);
    sandbox::enter(remote.sandbox_source(None), &caged, source.reading.sandbox)?;
    Ok(remote)
}

/// Opens a source by URL, which is an object or a prefix. See [`open`].
pub(in crate::cli) fn open_remote(
    source: CommandSource<'_>,
    url: &Url,
) -> Result<(ServedTree, Arc<Connection>)> {
    let mut options = read_options(source.reading, false);
    enter_remote(source, url, &options)?.open_tree(&mut options)
}

/// Opens a source on this machine, which is a file or a directory of files. `paths` are the paths
/// that the command reads in the source. See [`open`].
pub(in crate::cli) fn open_tree(
    source: CommandSource<'_>,
    paths: &[OsString],
) -> Result<ServedTree> {
    let mut options = h5fs_tree::Options {
        ordered: true,
        scans: scans_for(source, paths),
        ..read_options(source.reading, false)
    };
    if let Location::Url(url) = source.file {
        let served = enter_remote(source, url, &options)?.open_tree(&mut options);
        return served.map(|(served, _)| served);
    }
    let Some(path) = source.file.path().filter(|path| path.is_dir()) else {
        return Ok(ServedTree::File(Box::new(open_file(source, options)?)));
    };
    let failed = |error| Error::from_io(&error, path.display().to_string());
    warn_directory(path, source.reading);
    let path = path.canonicalize().map_err(failed)?;
    let directory = LocalDirectory::open(&path).map_err(failed)?;
    let owner = directory.path_info(Path::new(""), false)?.attributes.uid;
    let shown = sandbox::ShownSource {
        path: &path,
        reader: sandbox::SourceUser::Owner(owner),
        is_directory: true,
    };
    sandbox::enter(shown, &options, source.reading.sandbox)?;
    let archive = Archive::new(Arc::new(directory), None, &options);
    Ok(ServedTree::Archive(Box::new(archive)))
}

/// Opens the files of a directory as joined files. See [`open`].
pub(in crate::cli) fn open_joined(source: CommandSource<'_>) -> Result<Filesystem> {
    match open_tree(source, &[JOINED_PATH.into()])? {
        ServedTree::Archive(archive) => archive.open_joined(),
        ServedTree::File(_) => Err(Error::Usage("a single file cannot be joined".to_owned())),
    }
}

/// Opens the cache file for scan results if one of the paths leads to joined files. Otherwise
/// returns `None`.
fn scans_for(source: CommandSource<'_>, paths: &[OsString]) -> Option<Arc<File>> {
    let disk_cache = source.reading.remote.settings.disk_cache.as_deref();
    let is_wanted = paths.iter().any(|path| is_joined_path(path));
    let place = is_wanted.then(|| scans::cache_path(source.file, disk_cache))?;
    scans::open(place.as_deref())
}

/// Rejects a path to joined files whose pattern matches no file.
///
/// # Errors
/// `Usage` for such a pattern. Fails if the files cannot be joined.
pub(in crate::cli) fn refuse_unmatched(tree: &dyn Requests, paths: &[OsString]) -> Result<()> {
    let patterns = paths.iter().filter_map(|path| joined_name(path));
    for pattern in patterns.filter(|name| name.contains(&b'[')) {
        let found = tree.find_path(&[b".h5fs/", pattern].concat(), true)?;
        if tree.getxattr(found.ino, b"user._h5fs_files")? == b"0" {
            let pattern = printable_bytes(pattern);
            return Err(Error::Usage(format!("{pattern}: no file can be joined")));
        }
    }
    Ok(())
}

/// Prints a warning that only a part of the source can be shown. Prints nothing with `--quiet`, or
/// if the log already contains the warning.
pub(in crate::cli) fn warn(source: CommandSource<'_>, warning: Option<String>) {
    let is_logged = log::log_enabled!(target: "h5fs_tree", log::Level::Warn);
    if let Some(text) = warning.filter(|_| !source.reading.quiet && !is_logged) {
        let name = source.file.name();
        print_error(&message_about(
            name.as_os_str().as_bytes(),
            &format!("warning: {}", printable(&text)),
        ));
    }
}

/// Prints a warning about surprising behaviour of a directory, unless `--quiet` is set.
pub(in crate::cli) fn warn_directory(directory: &Path, how: &ReadingArguments) {
    if let Some(text) = advice::directory_warning(directory).filter(|_| !how.quiet) {
        print_error(&printable(&text));
    }
}

fn read_options(how: &ReadingArguments, verify: bool) -> h5fs_tree::Options {
    h5fs_tree::Options {
        force: how.force,
        strict: how.strict,
        partial: how.partial,
        cache_size: options::default_cache_size(),
        threads: options::default_threads(),
        verify,
        ..h5fs_tree::Options::default()
    }
}

/// Returns standard output as a file. The standard library's own output would search all bytes for
/// newlines.
pub(in crate::cli) fn stdout_file() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}
