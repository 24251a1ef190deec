//! `h5fs prefetch`: reads all data that a job will need, so that the disk cache contains it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::location::{Location, Url};
use h5fs_reader::source::remote::connection::Connection;
use h5fs_reader::wire::to_u64;
use h5fs_tree::{FileKind, Handle, Ino, Requests};

use crate::cli::inspect::command_source::{self, CommandResult, CommandSource, PIECE};
use crate::cli::inspect::glob::expand_pattern;
use crate::cli::inspect::walk::DirectoryNames;
use crate::cli::text::error_message::{print_error, print_file_error};
use crate::cli::text::printable::printable;
use crate::cli::text::progress::{CompletedWork, ProgressLine};

/// A walk that reads files, so that their bytes are cached, and discards the bytes.
struct Prefetcher<'a> {
    tree: &'a dyn Requests,
    connection: &'a Connection,
    /// Number of the fetcher's warnings that were handled: printed or suppressed.
    warning_count: usize,
    is_quiet: bool,
    progress: ProgressLine,
    done: CompletedWork,
    has_read_all: bool,
}

/// A directory whose files are being read.
struct PrefetchLevel<'a> {
    path: Vec<u8>,
    ino: Ino,
    names: DirectoryNames<'a>,
}

/// Reads the files at these paths of a source by URL. Returns whether all of them could be read and
/// cached.
///
/// # Errors
/// `Usage` if the source is not a URL, or without a disk cache. Otherwise fails if the source
/// cannot be opened.
pub(in crate::cli) fn prefetch(
    source: CommandSource<'_>,
    paths: &[OsString],
) -> Result<CommandResult<bool>> {
    let url = match source.file {
        Location::Url(url) => url,
        Location::Path(path) => {
            let path = path.display();
            return Err(Error::Usage(format!("prefetch: {path}: not a URL")));
        }
    };
    if source.reading.remote.settings.disk_cache.is_none() {
        let text = "prefetch: --disk-cache, the directory to fill, is missing";
        return Err(Error::Usage(text.to_owned()));
    }
    Ok(read_all(source, url, paths))
}

fn read_all(source: CommandSource<'_>, url: &Url, paths: &[OsString]) -> CommandResult<bool> {
    // Must precede the sandbox, which hides whether an output is a terminal.
    let progress = ProgressLine::new();
    let (tree, connection) = command_source::open_remote(source, url)?;
    command_source::warn(source, tree.partial_file_warning());
    let mut reader = Prefetcher {
        tree: tree.requests(),
        connection: &connection,
        warning_count: 0,
        is_quiet: source.reading.quiet,
        progress,
        done: CompletedWork::default(),
        has_read_all: true,
    };
    reader.print_new_warnings();
    for path in paths {
        match expand_pattern(reader.tree, path.as_bytes()) {
            Ok(found) => found.iter().for_each(|path| reader.read_at(path)),
            Err(error) => reader.report_failure(path.as_bytes(), &error),
        }
    }
    Ok(reader.has_read_all)
}

impl Prefetcher<'_> {
    fn read_at(&mut self, path: &[u8]) {
        let found = self.tree.find_path(path, true);
        let read = found.and_then(|found| match found.attributes.kind {
            FileKind::Directory => self.read_beneath(path, found.ino),
            _ => self.read_file(found.ino),
        });
        if let Err(error) = read {
            self.report_failure(path, &error);
        }
    }

    /// Reads all files in a directory and its subdirectories. Skips symbolic links.
    fn read_beneath(&mut self, path: &[u8], ino: Ino) -> Result<()> {
        let tree = self.tree;
        let level = |path: Vec<u8>, ino| -> Result<PrefetchLevel<'_>> {
            let names = DirectoryNames::open(tree, ino)?;
            Ok(PrefetchLevel { path, ino, names })
        };
        let mut levels = vec![level(path.to_vec(), ino)?];
        while let Some(last) = levels.last_mut() {
            let named = match last.names.next() {
                Ok(Some(named)) => named,
                ended => {
                    if let Err(error) = ended {
                        let path = last.path.clone();
                        self.report_failure(&path, &error);
                    }
                    if let Some(over) = levels.pop().filter(|_| !levels.is_empty()) {
                        drop(over.names);
                        tree.forget(over.ino, 1);
                    }
                    continue;
                }
            };
            let path = [&last.path[..], b"/", &named.name].concat();
            let read = match named.stat.kind {
                FileKind::Directory => level(path.clone(), named.ino).map(|level| {
                    levels.push(level);
                    false
                }),
                FileKind::File => self.read_file(named.ino).map(|()| true),
                _ => Ok(true),
            };
            if read.as_ref().is_ok_and(|is_over| !is_over) {
                continue;
            }
            tree.forget(named.ino, 1);
            if let Err(error) = read {
                self.report_failure(&path, &error);
            }
        }
        Ok(())
    }

    fn read_file(&mut self, ino: Ino) -> Result<()> {
        let handle = self.tree.open_file(ino)?.handle;
        let read = self.read_open(handle);
        self.tree.release(handle);
        self.done.objects += 1;
        self.print_new_warnings();
        read
    }

    fn read_open(&mut self, handle: Handle) -> Result<()> {
        let mut offset = 0;
        loop {
            let tree = self.tree;
            let piece = tree.read_with_cancel(handle, offset, PIECE, &CancelToken::default())?;
            if piece.is_empty() {
                return Ok(());
            }
            offset += to_u64(piece.len());
            self.done.bytes += to_u64(piece.len());
            self.progress.update(self.done, None);
        }
    }

    /// Prints the warnings of the fetcher that have arrived since the last call. Each warning says
    /// why some bytes are not in the cache.
    fn print_new_warnings(&mut self) {
        let warnings = self.connection.warnings();
        for text in warnings.get(self.warning_count..).unwrap_or_default() {
            self.has_read_all = false;
            self.progress.clear();
            if !self.is_quiet {
                print_error(&format!("warning: {}", printable(text)));
            }
        }
        self.warning_count = warnings.len();
    }

    fn report_failure(&mut self, path: &[u8], error: &Error) {
        self.has_read_all = false;
        self.progress.clear();
        print_file_error(path, error);
    }
}
