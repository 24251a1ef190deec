//! The commands that need no mount, and the implementation of `h5fs cat`.
//!
//! A single source is opened with the options of the command line, and read in the same sandbox as
//! in a mount. Several sources are each read by a separate process.
//!
//! An error is printed on standard error and reflected in the exit status, and the command
//! continues. A closed output pipe is not an error.

pub(in crate::cli) mod as_one;
pub(in crate::cli) mod cache;
pub(in crate::cli) mod check;
pub(in crate::cli) mod check_many;
pub(in crate::cli) mod checked;
pub(in crate::cli) mod columns;
pub(in crate::cli) mod data_files;
pub(in crate::cli) mod glob;
pub(in crate::cli) mod list;
pub(in crate::cli) mod listed_json;
pub(in crate::cli) mod many;
pub(in crate::cli) mod named;
pub(in crate::cli) mod prefetch;
pub(in crate::cli) mod prefix_files;
pub(in crate::cli) mod reading;
pub(in crate::cli) mod several;
pub(in crate::cli) mod walk;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::ndl::Syntax;
use h5fs_reader::source::location::Location;
use h5fs_reader::source::mounts::mount_table::MountTable;
use h5fs_reader::wire::to_u64;

use crate::cli::args::{Format, Inspect, Operands, Reading};
use crate::cli::inspect::check::CheckOptions;
use crate::cli::inspect::checked::Verdict;
use crate::cli::inspect::data_files::DataFiles;
use crate::cli::inspect::glob::expand;
use crate::cli::inspect::many::Arguments;
use crate::cli::inspect::named::Named;
use crate::cli::inspect::reading::{Outcome, PIECE, Source, Stop};
use crate::cli::inspect::several::Form;
use crate::cli::mount::handover;
use crate::cli::mount::mounted;
use crate::cli::words::complaint::complain_of;
use crate::cli::words::logging::{self, Destination};
use crate::fs::{FileKind, Requests};
use crate::view::texts::ndl::Options;

/// Runs one of the commands and returns its exit status.
pub(super) fn run(inspect: &Inspect) -> Result<ExitCode> {
    start_log(inspect)?;
    let (first, outcome) = match inspect {
        Inspect::Status { json, mountpoint } => {
            (mountpoint.clone(), mounted::status(mountpoint, *json))
        }
        Inspect::List { json } => (MountTable::PATH.into(), mounted::list(*json)),
        Inspect::Metrics { mountpoints } => (
            MountTable::PATH.into(),
            mounted::metrics(mountpoints).map(|()| true),
        ),
        Inspect::Cache {
            json,
            size,
            act,
            directory,
        } => {
            cache::refuse(*act, *size)?;
            let done = cache::run(*act, directory, *size, *json);
            (directory.clone(), done.map(|()| true))
        }
        Inspect::Prefetch {
            source: file,
            paths,
            how,
        } => {
            let done = prefetch::prefetch(source(file, how), paths)?;
            (file.name(), done)
        }
        Inspect::Ls { format, operands } => (operands.source.name(), list_all(*format, operands)?),
        Inspect::Cat { operands } => (operands.source.name(), copy_all(operands)?),
        Inspect::Ndl {
            json,
            values,
            operands,
        } => {
            let syntax = if *json { Syntax::Json } else { Syntax::Yaml };
            let values = *values;
            let options = Options { values, syntax };
            (operands.source.name(), describe_all(operands, options)?)
        }
        Inspect::Check {
            data,
            views,
            json,
            records,
            joined,
            sources,
            how,
        } => {
            let form = match (records, json) {
                (true, _) => check::Form::Records,
                (false, true) => check::Form::Json,
                (false, false) => check::Form::Lines,
            };
            let options = CheckOptions {
                data: *data,
                views: *views,
                joined: *joined,
                form,
            };
            return Ok(check_status(sources, check_all(sources, options, how)));
        }
    };
    match outcome {
        Ok(true) => Ok(ExitCode::SUCCESS),
        Ok(false) => Ok(ExitCode::FAILURE),
        Err(Stop::ReaderGone) => Ok(ExitCode::SUCCESS),
        Err(Stop::Failed(error)) => {
            complain_of(first.as_os_str().as_bytes(), &error);
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Returns the exit status of a check, which distinguishes more cases than success and failure.
fn check_status(sources: &[Location], outcome: Outcome<Verdict>) -> ExitCode {
    const UNREAD: u8 = 3;
    match outcome {
        Ok(Verdict::Sound) | Err(Stop::ReaderGone) => ExitCode::SUCCESS,
        Ok(Verdict::Faulty) => ExitCode::FAILURE,
        Ok(Verdict::Unread) => ExitCode::from(UNREAD),
        Err(Stop::Failed(error)) => {
            complain_of(sources[0].name().as_os_str().as_bytes(), &error);
            ExitCode::from(UNREAD)
        }
    }
}

/// Starts the log with warnings about missing parts only, unless `H5FS_LOG` requests more. The
/// command itself prints its failures.
fn start_log(inspect: &Inspect) -> Result<()> {
    let (source, how) = match inspect {
        _ if std::env::var_os("H5FS_LOG").is_some() => {
            return logging::start(&Destination::Terminal).map(drop);
        }
        Inspect::Ls { operands, .. }
        | Inspect::Cat { operands }
        | Inspect::Ndl { operands, .. } => (operands.source.name(), &operands.how),
        Inspect::Prefetch { source, how, .. } => (source.name(), how),
        _ => return Ok(()),
    };
    if how.quiet {
        return Ok(());
    }
    logging::start(&Destination::Warnings { source }).map(drop)
}

fn list_all(format: Format, operands: &Operands) -> Result<Outcome<bool>> {
    let named = Named::of(operands)?;
    if let [file] = &named.sources[..] {
        return Ok(list::list(
            source(file, &operands.how),
            &named.paths,
            format,
        ));
    }
    let mut arguments = Arguments::of("ls", &operands.how);
    format.arguments().for_each(|flag| arguments.flag(flag));
    let form = if format.json {
        Form::Mapped(Syntax::Json)
    } else {
        Form::Listed
    };
    Ok(several(named, arguments, &operands.how, form))
}

fn copy_all(operands: &Operands) -> Result<Outcome<bool>> {
    let named = Named::of(operands)?;
    if named.paths.is_empty() {
        return Err(Error::Usage("cat: PATH is missing".to_owned()));
    }
    if let [file] = &named.sources[..] {
        return Ok(copy(source(file, &operands.how), &named.paths));
    }
    let arguments = Arguments::of("cat", &operands.how);
    Ok(several(named, arguments, &operands.how, Form::Joined))
}

fn describe_all(operands: &Operands, options: Options) -> Result<Outcome<bool>> {
    let mut named = Named::of(operands)?;
    if named.paths.len() > 1 {
        let text = "ndl: at most one PATH";
        return Err(Error::Usage(text.to_owned()));
    }
    let path = named.paths.pop();
    if let [file] = &named.sources[..] {
        if let Some(document) = path
            .as_deref()
            .and_then(|path| as_one::document(path, options))
            && is_directory(file)
        {
            if options.values > 0 {
                let text = "ndl: --values is not possible for joined files; read their arrays as \
                            JSON files";
                return Err(Error::Usage(text.to_owned()));
            }
            return Ok(copy(source(file, &operands.how), &[document]));
        }
        let inside = match &path {
            Some(path) => data_files::file_on(file, path, &operands.how)?,
            None => None,
        };
        let (file, path) = match inside {
            Some((file, rest)) => (file, Some(rest)),
            None => (file.clone(), path.clone()),
        };
        if file.url().is_some() && is_directory(&named.sources[0]) && !is_directory(&file) {
            let mut arguments = ndl_arguments(operands, options);
            arguments.paths.extend(path);
            return Err(handover::start_again(&arguments.call(&file)));
        }
        if !is_directory(&file) {
            let source = source(&file, &operands.how);
            return Ok(describe(source, path.as_deref(), options));
        }
    }
    let mut arguments = ndl_arguments(operands, options);
    arguments.paths.extend(path);
    let mut files = DataFiles::of(&named.sources, &operands.how);
    let form = Form::Mapped(options.syntax);
    let outcome = several::write(&mut files, &arguments, operands.how.jobs, form);
    Ok(outcome.map(|is_whole| is_whole && files.failed.is_empty()))
}

/// Returns the arguments for a separate process that describes an object of one source.
fn ndl_arguments(operands: &Operands, options: Options) -> Arguments {
    let mut arguments = Arguments::of("ndl", &operands.how);
    if options.syntax == Syntax::Json {
        arguments.flag("--json");
    }
    arguments.flag(format!("--values={}", options.values));
    arguments.flag("--one");
    arguments
}

/// Reads each of several sources in a separate process.
fn several(named: Named, mut arguments: Arguments, how: &Reading, form: Form) -> Outcome<bool> {
    arguments.flag("--one");
    arguments.paths = named.paths;
    let mut sources = named.sources.into_iter();
    several::write(&mut sources, &arguments, how.jobs, form)
}

fn source<'a>(file: &'a Location, how: &'a Reading) -> Source<'a> {
    Source { file, how }
}

fn is_directory(location: &Location) -> bool {
    match location {
        Location::Path(path) => path.is_dir(),
        Location::Url(url) => url.is_prefix(),
    }
}

/// Checks a single file in this process, and several files in separate processes.
fn check_all(sources: &[Location], options: CheckOptions, how: &Reading) -> Outcome<Verdict> {
    match sources {
        [directory] if options.joined => check::check(source(directory, how), options),
        [file] if !is_directory(file) && !data_files::is_chosen(file) => {
            check::check(source(file, how), options)
        }
        _ => check_many::check(sources, options, how),
    }
}

/// Writes the bytes of files. Returns whether all of them could be read.
fn copy(source: Source<'_>, paths: &[OsString]) -> Outcome<bool> {
    let tree = reading::open_tree(source, paths)?;
    reading::warn(source, tree.warning());
    reading::refuse_none(tree.requests(), paths)?;
    let mut output = reading::output()?;
    let mut is_whole = true;
    for path in paths {
        let found = match expand(tree.requests(), path.as_bytes()) {
            Ok(found) => found,
            Err(error) => {
                complain_of(path.as_bytes(), &error);
                is_whole = false;
                continue;
            }
        };
        for path in found {
            match copy_file(tree.requests(), &path, &mut output) {
                Err(Stop::Failed(error)) => {
                    complain_of(&path, &error);
                    is_whole = false;
                }
                other => other?,
            }
        }
    }
    Ok(is_whole)
}

/// Writes the Ndarray Data Language document of one object.
fn describe(source: Source<'_>, path: Option<&OsStr>, options: Options) -> Outcome<bool> {
    let filesystem = reading::open(source, false)?;
    let fault = filesystem.fault_of_root();
    reading::warn(source, fault.map(|error| error.to_string()));
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

fn copy_file(tree: &dyn Requests, path: &[u8], output: &mut File) -> Outcome<()> {
    let found = tree.find(path, true)?;
    if found.attributes.kind == FileKind::Directory {
        return Err(Error::Usage("is a directory".to_owned()).into());
    }
    let handle = tree.open_file(found.ino)?.handle;
    let mut offset = 0;
    loop {
        let piece = tree.read_for(handle, offset, PIECE, &CancelToken::default())?;
        if piece.is_empty() {
            break;
        }
        output.write_all(&piece)?;
        offset += to_u64(piece.len());
    }
    tree.release(handle);
    Ok(())
}
