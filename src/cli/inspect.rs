//! The commands that need no mount, and the implementation of `h5fs cat` and of `h5fs ndl`.
//!
//! A single source is opened with the options of the command line, and read in the same sandbox as
//! in a mount. Several sources are each read by a separate process.
//!
//! An error is printed on standard error and reflected in the exit status, and the command
//! continues. A closed output pipe is not an error.

pub(in crate::cli) mod cache;
pub(in crate::cli) mod check;
pub(in crate::cli) mod check_many;
pub(in crate::cli) mod check_result;
pub(in crate::cli) mod columns;
pub(in crate::cli) mod combined_output;
pub(in crate::cli) mod command_source;
pub(in crate::cli) mod data_files;
pub(in crate::cli) mod glob;
pub(in crate::cli) mod hints;
pub(in crate::cli) mod joined_names;
pub(in crate::cli) mod list;
pub(in crate::cli) mod listed_json;
pub(in crate::cli) mod mounted;
pub(in crate::cli) mod named_sources;
pub(in crate::cli) mod parallel;
pub(in crate::cli) mod prefetch;
pub(in crate::cli) mod prefix_files;
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
use h5fs_tree::{FileKind, Requests};
use h5fs_view::documents::ndl::NdlOptions;

use crate::cli::args::{InspectCommand, ListFormat, Operands, ReadingArguments};
use crate::cli::inspect::check::CheckOptions;
use crate::cli::inspect::check_result::CheckVerdict;
use crate::cli::inspect::combined_output::OutputLayout;
use crate::cli::inspect::command_source::{CommandResult, CommandSource, CommandStop, PIECE};
use crate::cli::inspect::data_files::DataFiles;
use crate::cli::inspect::glob::expand_pattern;
use crate::cli::inspect::hints::suggest_path;
use crate::cli::inspect::named_sources::NamedSources;
use crate::cli::inspect::parallel::ChildArguments;
use crate::cli::mount::handover;
use crate::cli::text::error_message::print_file_error;
use crate::cli::text::logging::{self, LogDestination};

/// Runs a command that needs no mount. Returns its exit status.
pub(super) fn run(inspect: &InspectCommand) -> Result<ExitCode> {
    start_log(inspect)?;
    let (first, outcome) = match inspect {
        InspectCommand::Status { json, mountpoint } => {
            (mountpoint.clone(), mounted::status(mountpoint, *json))
        }
        InspectCommand::List { json } => (MountTable::PATH.into(), mounted::list(*json)),
        InspectCommand::Metrics { mountpoints } => (
            MountTable::PATH.into(),
            mounted::metrics(mountpoints).map(|()| true),
        ),
        InspectCommand::Cache {
            json,
            size,
            act,
            directory,
        } => {
            cache::check_size_option(*act, *size)?;
            let done = cache::run(*act, directory, *size, *json);
            (directory.clone(), done.map(|()| true))
        }
        InspectCommand::Prefetch {
            source: file,
            paths,
            how,
        } => {
            let done = prefetch::prefetch(source(file, how), paths)?;
            (file.name(), done)
        }
        InspectCommand::Ls { format, operands } => {
            (operands.source.name(), list_all(*format, operands)?)
        }
        InspectCommand::Cat { operands } => (operands.source.name(), copy_all(operands)?),
        InspectCommand::Ndl {
            json,
            values,
            operands,
        } => {
            let syntax = if *json { Syntax::Json } else { Syntax::Yaml };
            let values = *values;
            let options = NdlOptions { values, syntax };
            (operands.source.name(), describe_all(operands, options)?)
        }
        InspectCommand::Check {
            data,
            views,
            json,
            records,
            joined,
            sources,
            how,
        } => {
            let form = match (records, json) {
                (true, _) => check::ReportFormat::Records,
                (false, true) => check::ReportFormat::Json,
                (false, false) => check::ReportFormat::Lines,
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
        Err(CommandStop::ReaderGone) => Ok(ExitCode::SUCCESS),
        Err(CommandStop::Failed(error)) => {
            print_file_error(first.as_os_str().as_bytes(), &error);
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Returns the exit status of `h5fs check`: 0 if every object can be read, 1 after a fault, and 3
/// if a source cannot be opened or cannot be read to its end. A closed output pipe counts as 0.
fn check_status(sources: &[Location], outcome: CommandResult<CheckVerdict>) -> ExitCode {
    const UNREAD: u8 = 3;
    match outcome {
        Ok(CheckVerdict::Sound) | Err(CommandStop::ReaderGone) => ExitCode::SUCCESS,
        Ok(CheckVerdict::Faulty) => ExitCode::FAILURE,
        Ok(CheckVerdict::Unread) => ExitCode::from(UNREAD),
        Err(CommandStop::Failed(error)) => {
            print_file_error(sources[0].name().as_os_str().as_bytes(), &error);
            ExitCode::from(UNREAD)
        }
    }
}

/// Starts the log of a command. The log contains only warnings about missing objects and files,
/// unless `H5FS_LOG` requests more, because the command itself prints its failures.
fn start_log(inspect: &InspectCommand) -> Result<()> {
    let (source, how) = match inspect {
        _ if std::env::var_os("H5FS_LOG").is_some() => {
            return logging::start(&LogDestination::Terminal).map(drop);
        }
        InspectCommand::Ls { operands, .. }
        | InspectCommand::Cat { operands }
        | InspectCommand::Ndl { operands, .. } => (operands.source.name(), &operands.how),
        InspectCommand::Prefetch { source, how, .. } => (source.name(), how),
        _ => return Ok(()),
    };
    if how.quiet {
        return Ok(());
    }
    logging::start(&LogDestination::Warnings { source }).map(drop)
}

fn list_all(format: ListFormat, operands: &Operands) -> Result<CommandResult<bool>> {
    let named = NamedSources::parse(operands)?;
    if let [file] = &named.sources[..] {
        return Ok(list::list(
            source(file, &operands.how),
            &named.paths,
            format,
        ));
    }
    let mut arguments = ChildArguments::for_command("ls", &operands.how);
    format.arguments().for_each(|flag| arguments.flag(flag));
    let form = if format.json {
        OutputLayout::Mapped(Syntax::Json)
    } else {
        OutputLayout::Listed
    };
    Ok(run_on_sources(named, arguments, &operands.how, form))
}

fn copy_all(operands: &Operands) -> Result<CommandResult<bool>> {
    let named = NamedSources::parse(operands)?;
    if named.paths.is_empty() {
        return Err(Error::Usage("cat: PATH is missing".to_owned()));
    }
    if let [file] = &named.sources[..] {
        return Ok(copy_files(source(file, &operands.how), &named.paths));
    }
    let arguments = ChildArguments::for_command("cat", &operands.how);
    Ok(run_on_sources(
        named,
        arguments,
        &operands.how,
        OutputLayout::Joined,
    ))
}

fn describe_all(operands: &Operands, options: NdlOptions) -> Result<CommandResult<bool>> {
    let mut named = NamedSources::parse(operands)?;
    if named.paths.len() > 1 {
        let text = "ndl: at most one PATH";
        return Err(Error::Usage(text.to_owned()));
    }
    let path = named.paths.pop();
    if let [file] = &named.sources[..] {
        if let Some(document) = path
            .as_deref()
            .and_then(|path| joined_names::document_path(path, options))
            && is_directory(file)
        {
            if options.values > 0 {
                let text = "ndl: --values is not possible for joined files; read their arrays as \
                            JSON files";
                return Err(Error::Usage(text.to_owned()));
            }
            return Ok(copy_files(source(file, &operands.how), &[document]));
        }
        let inside = match &path {
            Some(path) => data_files::split_at_file(file, path, &operands.how)?,
            None => None,
        };
        let (file, path) = match inside {
            Some((file, rest)) => (file, Some(rest)),
            None => (file.clone(), path.clone()),
        };
        if file.url().is_some() && is_directory(&named.sources[0]) && !is_directory(&file) {
            let mut arguments = ndl_arguments(operands, options);
            arguments.paths.extend(path);
            return Err(handover::restart_with_fetcher(&arguments.invocation(&file)));
        }
        if !is_directory(&file) {
            let source = source(&file, &operands.how);
            return Ok(describe(source, path.as_deref(), options));
        }
    }
    let mut arguments = ndl_arguments(operands, options);
    arguments.paths.extend(path);
    let mut files = DataFiles::new(&named.sources, &operands.how);
    let form = OutputLayout::Mapped(options.syntax);
    let outcome = combined_output::write_combined(&mut files, &arguments, operands.how.jobs, form);
    Ok(outcome.map(|is_whole| is_whole && files.failed.is_empty()))
}

/// Returns the arguments of a process that writes the description of an object of one source.
fn ndl_arguments(operands: &Operands, options: NdlOptions) -> ChildArguments {
    let mut arguments = ChildArguments::for_command("ndl", &operands.how);
    if options.syntax == Syntax::Json {
        arguments.flag("--json");
    }
    arguments.flag(format!("--values={}", options.values));
    arguments.flag("--one");
    arguments
}

/// Runs a command on several sources, each in a separate process.
fn run_on_sources(
    named: NamedSources,
    mut arguments: ChildArguments,
    how: &ReadingArguments,
    form: OutputLayout,
) -> CommandResult<bool> {
    arguments.flag("--one");
    arguments.paths = named.paths;
    let mut sources = named.sources.into_iter();
    combined_output::write_combined(&mut sources, &arguments, how.jobs, form)
}

fn source<'a>(file: &'a Location, how: &'a ReadingArguments) -> CommandSource<'a> {
    CommandSource { file, reading: how }
}

fn is_directory(location: &Location) -> bool {
    match location {
        Location::Path(path) => path.is_dir(),
        Location::Url(url) => url.is_prefix(),
    }
}

/// Checks the sources: a single file in this process, several files in separate processes.
fn check_all(
    sources: &[Location],
    options: CheckOptions,
    how: &ReadingArguments,
) -> CommandResult<CheckVerdict> {
    match sources {
        [directory] if options.joined => check::check(source(directory, how), options),
        [file] if !is_directory(file) && !data_files::has_pattern(file) => {
            check::check(source(file, how), options)
        }
        _ => check_many::check(sources, options, how),
    }
}

/// Writes the bytes of the files at `paths` to standard output. Returns whether all of them could
/// be read.
fn copy_files(source: CommandSource<'_>, paths: &[OsString]) -> CommandResult<bool> {
    let tree = command_source::open_tree(source, paths)?;
    command_source::warn(source, tree.partial_file_warning());
    command_source::refuse_unmatched(tree.requests(), paths)?;
    let mut output = command_source::stdout_file()?;
    let mut is_whole = true;
    for path in paths {
        let found = match expand_pattern(tree.requests(), path.as_bytes()) {
            Ok(found) => found,
            Err(error) => {
                print_file_error(path.as_bytes(), &error);
                is_whole = false;
                continue;
            }
        };
        for path in found {
            match copy_file(tree.requests(), &path, &mut output) {
                Err(CommandStop::Failed(error)) => {
                    print_file_error(&path, &suggest_path(tree.requests(), &path, error));
                    is_whole = false;
                }
                other => other?,
            }
        }
    }
    Ok(is_whole)
}

/// Writes the description of one object in the Ndarray Data Language.
fn describe(
    source: CommandSource<'_>,
    path: Option<&OsStr>,
    options: NdlOptions,
) -> CommandResult<bool> {
    let filesystem = command_source::open(source, false)?;
    let fault = filesystem.root_error();
    command_source::warn(source, fault.map(|error| error.to_string()));
    let mut output = BufWriter::new(command_source::stdout_file()?);
    let mut failed = None;
    let path = path.map_or(&b"/"[..], OsStr::as_bytes);
    let mut is_whole = true;
    let mut damaged = |part: &[u8], error: &Error| {
        is_whole = false;
        print_file_error(part, error);
    };
    let mut put = |text: &[u8]| {
        output.write_all(text).map_err(|error| {
            let failure = Error::from_io(&error, "standard output");
            failed = Some(error);
            failure
        })
    };
    let described = filesystem.write_document(path, options, &mut put, &mut damaged);
    if let Some(error) = failed {
        return Err(error.into());
    }
    output.flush()?;
    if let Err(error) = described {
        print_file_error(path, &error);
        return Ok(false);
    }
    Ok(is_whole)
}

fn copy_file(tree: &dyn Requests, path: &[u8], output: &mut File) -> CommandResult<()> {
    let found = tree.find_path(path, true)?;
    if found.attributes.kind == FileKind::Directory {
        return Err(Error::Usage("is a directory".to_owned()).into());
    }
    let handle = tree.open_file(found.ino)?.handle;
    let mut offset = 0;
    loop {
        let piece = tree.read_with_cancel(handle, offset, PIECE, &CancelToken::default())?;
        if piece.is_empty() {
            break;
        }
        output.write_all(&piece)?;
        offset += to_u64(piece.len());
    }
    tree.release(handle);
    Ok(())
}
