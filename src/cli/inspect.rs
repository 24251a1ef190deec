//! The commands that need no mount; `h5fs cat` itself.
//!
//! What goes wrong is said on standard error and remembered for the exit status; the rest is done. A reader
//! that went away is no error.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use crate::cli::args::Inspect;
use crate::cli::printable::{printable, printable_bytes};
use crate::cli::{check, complain, list, logging, options};
use crate::error::{Error, Result};
use crate::fs::{self, Filesystem};
use crate::view::ndl::Options;
use crate::view::piped::Sink;

/// Bytes fetched from a file at a time.
pub(super) const PIECE: usize = 1 << 20;

/// Performs one of the commands.
pub(super) fn run(inspect: &Inspect) -> Result<ExitCode> {
    // Each failure is said by the command itself; the log is for who asks for it.
    if std::env::var_os("H5FS_LOG").is_some() {
        logging::start(&logging::Destination::Terminal)?;
    }
    let (source, outcome) = match inspect {
        Inspect::Ls {
            long,
            recursive,
            source,
            path,
        } => {
            let outcome = list::list(source, path.as_deref(), *long, *recursive);
            (source, outcome)
        }
        Inspect::Cat { source, path } => (source, copy(source, path)),
        Inspect::Ndl {
            values,
            source,
            path,
        } => (source, describe(source, path.as_deref(), *values)),
        Inspect::Check { data, source } => (source, check::check(source, *data)),
    };
    match outcome {
        Ok(true) => Ok(ExitCode::SUCCESS),
        Ok(false) => Ok(ExitCode::FAILURE),
        Err(Stop::ReaderGone) => Ok(ExitCode::SUCCESS),
        Err(Stop::Failed(error)) => {
            complain_of(source.as_os_str().as_bytes(), &error);
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Why a command ends early.
pub(super) enum Stop {
    /// Whoever reads our output closed it.
    ReaderGone,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Failed(error)
    }
}

/// Of standard output; nothing else here is an `io::Error`.
impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Stop::ReaderGone,
            _ => Stop::Failed(Error::io(&error, "standard output")),
        }
    }
}

pub(super) type Outcome<T> = std::result::Result<T, Stop>;

/// Opens the source; with `verify` the checksums of whole ASDF blocks are looked at before they are read.
pub(super) fn open(source: &Path, verify: bool) -> Result<Filesystem> {
    let options = fs::Options {
        cache_size: options::default_cache_size(),
        threads: options::default_threads(),
        verify,
        ..fs::Options::default()
    };
    Filesystem::open(source, &options)
}

/// Standard output without the line buffer of the standard library, which looks for newlines in data.
pub(super) fn output() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// Says what is wrong with `file`, whose name the error may begin with already.
pub(super) fn complain_of(file: &[u8], error: &Error) {
    let file = printable_bytes(file);
    let text = printable(&error.to_string());
    let reason = text.strip_prefix(&format!("{file}: ")).unwrap_or(&text);
    complain(&format!("{file}: {reason}"));
}

/// Writes the bytes of one file; whether all went well.
fn copy(source: &Path, path: &OsStr) -> Outcome<bool> {
    let filesystem = open(source, false)?;
    let mut output = output()?;
    match copy_file(&filesystem, path.as_bytes(), &mut output) {
        Err(Stop::Failed(error)) => {
            complain_of(path.as_bytes(), &error);
            Ok(false)
        }
        other => other.map(|()| true),
    }
}

/// Writes the Ndarray Data Language document of one object.
fn describe(source: &Path, path: Option<&OsStr>, values: u64) -> Outcome<bool> {
    let filesystem = open(source, false)?;
    let mut output = Document {
        output: BufWriter::new(output()?),
        failed: None,
    };
    let path = path.map_or(&b"/"[..], OsStr::as_bytes);
    let described = filesystem.document(path, Options { values }, &mut output);
    if let Some(error) = output.failed {
        return Err(error.into());
    }
    output.output.flush()?;
    if let Err(error) = described {
        complain_of(path, &error);
        return Ok(false);
    }
    Ok(true)
}

/// Standard output as where a document goes.
struct Document {
    output: BufWriter<File>,
    failed: Option<io::Error>,
}

impl Sink for Document {
    fn put(&mut self, text: &[u8]) -> Result<()> {
        self.output.write_all(text).map_err(|error| {
            let failure = Error::io(&error, "standard output");
            self.failed = Some(error);
            failure
        })
    }
}

fn copy_file(filesystem: &Filesystem, path: &[u8], output: &mut File) -> Outcome<()> {
    let found = filesystem.resolve(path)?;
    let handle = filesystem.open_file(found.ino)?;
    let mut offset = 0;
    loop {
        let piece = filesystem.read(handle, offset, PIECE)?;
        if piece.is_empty() {
            return Ok(());
        }
        output.write_all(&piece)?;
        offset += crate::wire::to_u64(piece.len());
    }
}
