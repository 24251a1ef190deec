//! The commands that need no mount; `h5fs cat` itself.
//!
//! The source is opened with the options of the command line, and read in the same cage as that of
//! a mount.
//!
//! An error is told on standard error and remembered for the exit status; the rest is done. A
//! closed pipe is no error.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use crate::cli::args::{Inspect, Source, Sources};
use crate::cli::complaint::complain_of;
use crate::cli::reading::{self, Outcome, PIECE, Stop};
use crate::cli::{check, check_many, list, logging, options};
use crate::error::{Error, Result};
use crate::fs::Filesystem;
use crate::model::ndl::Syntax;
use crate::view::ndl::Options;

/// Performs one of the commands.
pub(super) fn run(inspect: &Inspect) -> Result<ExitCode> {
    // The command itself tells of each failure; the log is there on request.
    if std::env::var_os("H5FS_LOG").is_some() {
        logging::start(&logging::Destination::Terminal)?;
    }
    let (file, outcome) = match inspect {
        Inspect::Ls {
            long,
            recursive,
            source,
            path,
        } => {
            let outcome = list::list(source, path.as_deref(), *long, *recursive);
            (&source.file, outcome)
        }
        Inspect::Cat { source, path } => (&source.file, copy(source, path)),
        Inspect::Ndl {
            json,
            values,
            source,
            path,
        } => {
            let options = Options {
                values: *values,
                syntax: match json {
                    true => Syntax::Json,
                    false => Syntax::Yaml,
                },
            };
            (&source.file, describe(source, path.as_deref(), options))
        }
        Inspect::Check {
            data,
            jobs,
            sources,
        } => (&sources.files[0], check_all(sources, *data, *jobs)),
    };
    match outcome {
        Ok(true) => Ok(ExitCode::SUCCESS),
        Ok(false) => Ok(ExitCode::FAILURE),
        Err(Stop::ReaderGone) => Ok(ExitCode::SUCCESS),
        Err(Stop::Failed(error)) => {
            complain_of(file.name().as_os_str().as_bytes(), &error);
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Looks at one file here, at several in processes of their own; whether all can be read.
fn check_all(sources: &Sources, data: bool, jobs: Option<usize>) -> Outcome<bool> {
    match &sources.files[..] {
        [file] if !file.path().is_some_and(Path::is_dir) => {
            let source = Source {
                file: file.clone(),
                sandbox: sources.sandbox,
                remote: sources.remote.clone(),
            };
            check::check(&source, data)
        }
        _ => check_many::check(sources, data, jobs.unwrap_or_else(options::default_threads)),
    }
}

/// Writes the bytes of one file; whether all went well.
fn copy(source: &Source, path: &OsStr) -> Outcome<bool> {
    let filesystem = reading::open(source, false)?;
    let mut output = reading::output()?;
    match copy_file(&filesystem, path.as_bytes(), &mut output) {
        Err(Stop::Failed(error)) => {
            complain_of(path.as_bytes(), &error);
            Ok(false)
        }
        other => other.map(|()| true),
    }
}

/// Writes the Ndarray Data Language document of one object.
fn describe(source: &Source, path: Option<&OsStr>, options: Options) -> Outcome<bool> {
    let filesystem = reading::open(source, false)?;
    let mut output = BufWriter::new(reading::output()?);
    let mut failed = None;
    let path = path.map_or(&b"/"[..], OsStr::as_bytes);
    let mut is_whole = true;
    let mut damaged = |part: &[u8], error: &Error| {
        is_whole = false;
        complain_of(part, error);
    };
    let mut put = |text: &[u8]| {
        output.write_all(text).map_err(|error| {
            let failure = Error::io(&error, "standard output");
            failed = Some(error);
            failure
        })
    };
    let described = filesystem.document(path, options, &mut put, &mut damaged);
    if let Some(error) = failed {
        return Err(error.into());
    }
    output.flush()?;
    if let Err(error) = described {
        complain_of(path, &error);
        return Ok(false);
    }
    Ok(is_whole)
}

fn copy_file(filesystem: &Filesystem, path: &[u8], output: &mut File) -> Outcome<()> {
    let found = filesystem.resolve(path)?;
    let handle = filesystem.open_file(found.ino)?.handle;
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
