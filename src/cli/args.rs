//! The definition of the command line. `--help`, the manual page and the completions are generated
//! from it.

pub(in crate::cli) mod serve_arguments;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::location::Location;

use crate::cli::args::serve_arguments::{ServeArguments, ServeCommand};
use crate::cli::invocation::Program;
use crate::cli::options::{self, Flags, OptionWords, RemoteFlags, Settings};
use crate::cli::text::completions;
use crate::cli::text::logging::LogDestination;
use crate::cli::text::manual::{self, PRINTING_HEADING};
use crate::cli::text::refusal;
use crate::cli::text::schemes;
use crate::cli::text::synonyms;

/// Mount an HDF5 or ASDF file as a read-only filesystem
///
/// Groups are directories, datasets are regular files that hold the elements as raw bytes,
/// attributes are extended attributes. h5fs recognises the file by its content. If a source has the
/// name of a subcommand, write it as `./ls`.
///
/// The command returns when the mount answers. `fusermount3 -u MOUNTPOINT`, or as root `umount
/// MOUNTPOINT`, unmounts.
#[derive(Debug, Parser)]
#[command(
    name = "h5fs",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    arg_required_else_help = true,
    after_help = EXAMPLES,
    after_long_help = option_notes()
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Subcommands>,

    #[command(flatten)]
    mount: MountArguments,

    /// Print a completion script for the shell (bash, zsh, fish …) and exit
    #[arg(
        long,
        value_name = "SHELL",
        exclusive = true,
        hide_possible_values = true,
        help_heading = PRINTING_HEADING
    )]
    completions: Option<Shell>,

    /// Print a manual page (roff) and exit: h5fs, mount.h5fs, h5fs-views
    #[arg(
        long,
        value_name = "PAGE",
        num_args = 0..=1,
        default_missing_value = "h5fs",
        exclusive = true,
        hide_possible_values = true,
        help_heading = PRINTING_HEADING
    )]
    man: Option<ManualPage>,
}

/// A manual page.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ManualPage {
    #[value(name = "h5fs")]
    Program,
    #[value(name = "mount.h5fs")]
    MountHelper,
    #[value(name = "h5fs-views")]
    Views,
}

const EXAMPLES: &str = "\
Examples:
  h5fs example                  Write climate.h5, a file to try the others with
  h5fs run.h5 /mnt/run          Mount; `ls /mnt/run`, `cat /mnt/run/temp` …; `umount /mnt/run`
  h5fs view run.h5              Look at it in a browser
  h5fs ls -lR run.h5            See what is in it, without a mount
  h5fs check --data run.h5      See whether every byte of it can be read";

const CHECK_STATUSES: &str = "\
Exit status, the highest that applies to any source:
  0  everything can be read, and nothing is missing
  1  something cannot be read, or is missing
  2  the command line is wrong
  3  a source cannot be opened: it does not exist, is neither HDF5 nor ASDF, or permission is
     denied; or it changed while it was read";

/// Returns the text below the options in the long help and in the manual.
fn option_notes() -> String {
    format!(
        "{EXAMPLES}

The same options under -o: {}. The words of mount(8) (ro, noauto, nofail, user, _netdev, x-*) are \
accepted and change nothing. context=, fscontext=, defcontext=, rootcontext= and fsname= go to the \
kernel.

Linked as /sbin/mount.h5fs, h5fs is the helper of `mount -t h5fs SOURCE MOUNTPOINT`. `mount -t \
fuse.h5fs` works with h5fs on the PATH.

If root runs h5fs, the process that reads the source first becomes the source's owner. This holds \
for a mount and for ls, cat, ndl and check. The process reads only what the owner may read, under \
any --external.

H5FS_LOG sets what is logged: off, error, warn (the default), info, debug, trace. Without \
--foreground and --log-file, the log goes to syslog.",
        options::synopsis()
    )
}

/// The subcommands. Without one, the program mounts.
#[derive(Debug, Subcommand)]
enum Subcommands {
    #[command(flatten)]
    Inspect(InspectCommand),
    /// View a file in a browser
    ///
    /// Mounts the source in a new temporary directory, prints the path of its page, and opens the
    /// page with xdg-open if xdg-open is installed. For a directory of files, opens the directory
    /// itself. Ctrl-C or unmounting ends the command. Without a display, or in an ssh session, the
    /// command serves the source as `h5fs serve` does, and prints an ssh command for the
    /// connection.
    View(ViewArguments),
    /// Serve files over HTTP, without a mount
    ///
    /// Prints a URL, and serves everything that a mount would show until Ctrl-C, with ranges and
    /// entity tags, for browsers and programs. A single source is the root. Several sources are
    /// directories with their names. The URL contains a token, and requests without the token are
    /// refused.
    Serve(ServeArguments),
    /// Write a small HDF5 file to try h5fs with
    ///
    /// The manual and the documents use this file in their examples: a year of temperatures on a
    /// grid, and a table of stations. An existing file is not overwritten. If the name ends with a
    /// slash, the command makes a new directory with twelve files, one a month, which h5fs can show
    /// as one file.
    Example {
        /// The file, or the directory, to write
        #[arg(default_value = "climate.h5")]
        file: PathBuf,
    },
}

/// The commands that need no mount.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub(crate) enum InspectCommand {
    /// List what a mount would show
    ///
    /// Lists each of several sources under its name. The last line, on standard error, is the
    /// total. A PATH may be a shell pattern in quotes: `'run*/data'`.
    #[command(disable_help_flag = true)]
    Ls {
        #[command(flatten)]
        format: ListFormat,
        #[command(flatten)]
        operands: Operands,
    },
    /// Write the bytes of files that a mount would show
    ///
    /// A PATH may be a shell pattern in quotes: `'run*/title'`.
    Cat {
        #[command(flatten)]
        operands: Operands,
    },
    /// Describe a file or one of its objects in the Ndarray Data Language (YAML)
    ///
    /// For several files, or for all data files in a directory, the document maps the name of each
    /// file to the file's own document. The last line, on standard error, is the total.
    Ndl {
        /// Write JSON instead of YAML
        #[arg(long)]
        json: bool,
        /// Include the values of arrays of at most N elements
        #[arg(long, value_name = "N", default_value_t = 0)]
        values: u64,
        #[command(flatten)]
        operands: Operands,
    },
    /// List what cannot be read or is missing, and why
    ///
    /// Walks the whole file: groups, links, attributes, and the index of every dataset's chunks.
    /// Prints a line for each object that cannot be read, and for each missing file or object that
    /// a virtual dataset or a link needs, then the totals. A dangling soft link is not reported.
    /// For several files, or for all data files in a directory, each line begins with the name of
    /// the file, and the totals count the files that cannot be opened.
    #[command(after_help = CHECK_STATUSES)]
    Check {
        /// Also read every stored byte of every dataset
        #[arg(long)]
        data: bool,
        /// Also open the tables of the views (csv, cf, parquet, fits), and `joined` of a directory
        #[arg(long)]
        views: bool,
        /// Write a line of JSON for each fault, and one for the totals
        #[arg(long)]
        json: bool,
        /// Write records, for the process that checks several files
        #[arg(long, hide = true)]
        records: bool,
        /// Check the joined view of a directory, for the process that checks the directory
        #[arg(long, hide = true)]
        joined: bool,
        /// HDF5 and ASDF files, directories with such files, and URLs
        #[arg(value_name = "SOURCE", required = true, value_parser = location_parser())]
        sources: Vec<Location>,
        #[command(flatten)]
        how: ReadingArguments,
    },
    /// Fill the cache on disk with what a job will read
    ///
    /// Reads files, and all files in directories, of a source by URL, so that the directory of
    /// --disk-cache contains their bytes. Prints no data. A PATH may be a shell pattern in quotes,
    /// or `/` for the whole source.
    Prefetch {
        /// The URL of an HDF5 or ASDF file, or of a prefix with such files
        #[arg(value_name = "SOURCE", value_parser = location_parser())]
        source: Location,
        /// Paths as below the mount point
        #[arg(value_name = "PATH", required = true)]
        paths: Vec<OsString>,
        #[command(flatten)]
        how: ReadingArguments,
    },
    /// List the content of the cache on disk, or make the cache smaller
    ///
    /// `list` prints the bytes and the last use of each source, and the total. `trim` deletes the
    /// least recently used entries until at most --size is left. `clear` deletes everything. Mounts
    /// may use the cache at the same time.
    Cache {
        /// Write JSON
        #[arg(long)]
        json: bool,
        /// Maximum size after `trim`: bytes, or a number and K, M, G
        #[arg(long, value_name = "SIZE", value_parser = options::parse_size)]
        size: Option<u64>,
        /// What to do: list, trim, clear
        #[arg(value_name = "list|trim|clear", hide_possible_values = true)]
        act: CacheAction,
        /// The directory of --disk-cache
        directory: PathBuf,
    },
    /// Print what a mount is doing
    ///
    /// The exit status is 1 if the mount is dead, does not answer, or has lost its source.
    Status {
        /// Write JSON
        #[arg(long)]
        json: bool,
        /// The mount point
        mountpoint: PathBuf,
    },
    /// List the mounts of this machine: source, state, uptime, memory, errors
    ///
    /// The exit status is 1 if a mount is dead, does not answer, or has lost its source.
    List {
        /// Write JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the metrics of mounts for Prometheus
    ///
    /// Prints one text for all mounts, or for those at the given mount points. `h5fs_up` is 0 if a
    /// mount does not answer or has lost its source.
    Metrics {
        /// Mount points; all mounts of this machine if none is given
        mountpoints: Vec<PathBuf>,
    },
}

/// The action of `h5fs cache`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CacheAction {
    List,
    Trim,
    Clear,
}

/// How a listing is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub(crate) struct ListFormat {
    /// Show in columns: mode, type, shape, chunks, filters, stored bytes, bytes
    #[arg(short, long)]
    pub(crate) long: bool,
    /// Descend into directories
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
    /// List directories themselves, not their entries
    #[arg(short, long)]
    pub(crate) directory: bool,
    /// Also list `.h5fs`; -R does not descend into it
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Write a slash after the name of a directory
    #[arg(short = 'p', long)]
    pub(crate) slash: bool,
    /// Write one name a line; this is always so
    #[arg(short = '1')]
    pub(crate) one_a_line: bool,
    /// With -l: write sizes as 1.5K, 12M
    #[arg(short = 'h', long)]
    pub(crate) human_readable: bool,
    /// Write an array of JSON with an object for each entry
    #[arg(long)]
    pub(crate) json: bool,
    /// Write everything below a directory as a tree, with types and shapes
    #[arg(long, conflicts_with_all = ["long", "recursive", "directory", "all", "json", "human_readable"])]
    pub(crate) tree: bool,
    /// With --tree: also write the attributes
    #[arg(long, requires = "tree")]
    pub(crate) attributes: bool,
    /// Format the output for a terminal, although it goes to the process that prints it there
    #[arg(long, hide = true)]
    pub(crate) terminal: bool,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

impl ListFormat {
    /// Returns the flags that another process of this program needs to write the same listing. This
    /// process prints the other process's output.
    pub(super) fn arguments(self) -> impl Iterator<Item = &'static str> {
        let terminal = self.terminal || io::stdout().is_terminal();
        let flags = [
            (self.long, "--long"),
            (self.recursive, "--recursive"),
            (self.directory, "--directory"),
            (self.all, "--all"),
            (self.human_readable, "--human-readable"),
            (self.slash, "--slash"),
            (self.json, "--json"),
            (self.tree, "--tree"),
            (self.attributes, "--attributes"),
            (terminal, "--terminal"),
        ];
        flags.into_iter().filter(|flag| flag.0).map(|flag| flag.1)
    }
}

/// Sources, and paths in them.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct Operands {
    /// An HDF5 or ASDF file, a directory with such files, or a URL
    #[arg(value_name = "SOURCE", value_parser = location_parser())]
    pub(crate) source: Location,

    /// More sources, then paths as below the mount point of each source
    ///
    /// If the second word is a path in SOURCE, or no file or directory has that name, the second
    /// word and all later words are paths in SOURCE. Otherwise the second word is another source.
    /// So is each later word, up to the first word that names no file or directory. That word and
    /// the rest are paths in each source.
    #[arg(value_name = "SOURCE|PATH")]
    pub(crate) more: Vec<OsString>,

    /// Treat all words after SOURCE as paths
    #[arg(long)]
    pub(crate) one: bool,

    #[command(flatten)]
    pub(crate) how: ReadingArguments,
}

/// How sources are read.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct ReadingArguments {
    /// Read N of several sources at the same time; without this option, as many as the machine has
    /// cores
    #[arg(short, long, value_name = "N", value_parser = options::parse_jobs)]
    pub(crate) jobs: Option<usize>,

    /// Read in a sandbox of Landlock and seccomp: on, off
    #[arg(
        long,
        value_name = "SWITCH",
        value_parser = options::parse_switch,
        action = clap::ArgAction::Set,
        default_value = "on"
    )]
    pub(crate) sandbox: bool,

    /// Read an HDF5 file that is marked as open for writing, or locked
    #[arg(long)]
    pub(crate) force: bool,

    /// Return an error, not the fill value, if a source of a virtual dataset is missing
    #[arg(long)]
    pub(crate) strict: bool,

    /// Leave files that cannot be read at the moment out of `.h5fs/joined`; otherwise they are an
    /// error
    #[arg(long)]
    pub(crate) partial: bool,

    /// Do not warn about missing sources, refused links and truncated files
    #[arg(short, long)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) remote: RemoteFlags,
}

#[derive(Debug, Args)]
struct MountArguments {
    /// The HDF5 or ASDF file, its URL, or a directory of such files
    #[arg(required = true, value_parser = location_parser())]
    source: Option<Location>,

    /// The directory to mount it on, or /dev/fd/N for a mount of another program
    #[arg(required = true)]
    mountpoint: Option<PathBuf>,

    /// Stay in the foreground and log to standard error
    #[arg(short, long)]
    foreground: bool,

    /// Mount options, separated by commas
    #[arg(short = 'o', value_name = "OPTIONS", value_parser = options::parse_words)]
    words: Vec<OptionWords>,

    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Args)]
struct ViewArguments {
    /// The HDF5 or ASDF file, its URL, or a directory of such files
    #[arg(value_parser = location_parser())]
    source: Location,

    /// Mount options, separated by commas
    #[arg(short = 'o', value_name = "OPTIONS", value_parser = options::parse_words)]
    words: Vec<OptionWords>,

    #[command(flatten)]
    flags: Flags,

    /// The mount point: for the processes that the command starts
    #[arg(long, hide = true)]
    at: Option<PathBuf>,
}

/// The line with which mount(8) calls its helper; see mount(8), "External helpers".
#[derive(Debug, Parser)]
#[command(name = "mount.h5fs", version)]
struct HelperArguments {
    /// The HDF5 or ASDF file, its URL, or a directory of such files
    #[arg(value_parser = location_parser())]
    source: Location,

    /// The directory to mount it on
    mountpoint: PathBuf,

    /// Fake: check the arguments without mounting
    #[arg(short)]
    fake: bool,

    /// Mount options, separated by commas
    #[arg(short = 'o', value_name = "OPTIONS", value_parser = options::parse_words)]
    words: Vec<OptionWords>,

    /// Accepted and ignored
    #[arg(short = 'n', action = clap::ArgAction::Count)]
    no_mtab: u8,

    /// Accepted and ignored
    #[arg(short = 's', action = clap::ArgAction::Count)]
    sloppy: u8,

    /// Accepted and ignored
    #[arg(short = 'v', action = clap::ArgAction::Count)]
    verbose: u8,

    /// Accepted: the mount is read-only
    #[arg(short = 'r', action = clap::ArgAction::Count)]
    read_only: u8,

    /// Accepted and ignored: the mount is read-only
    #[arg(short = 'w', action = clap::ArgAction::Count)]
    writable: u8,

    /// Accepted and ignored
    #[arg(short = 'N', value_name = "NAMESPACE")]
    namespace: Option<OsString>,

    /// Accepted and ignored
    #[arg(short = 't', value_name = "TYPE")]
    kind: Option<OsString>,
}

/// What a command line asks the program to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Task {
    /// Mount, and return when the mount answers.
    Mount(MountCommand),
    /// Mount in a new temporary directory, and open the page about the source in a browser.
    View(MountCommand),
    /// Serve over HTTP.
    Serve(ServeCommand),
    /// Do nothing: `mount.h5fs -f` only checks the arguments, and these are valid.
    CheckOnly,
    /// List or read a source without a mount.
    Inspect(InspectCommand),
    /// Write the example file, or the example directory, at this path.
    Example(PathBuf),
    /// Print completions for a command line. The first word is the shell's name.
    Complete(Vec<OsString>),
    /// Print this text: help, version, a manual page or a completion script.
    Print(Vec<u8>),
    /// Print this help text and fail, because the command line had no arguments.
    PrintUsage(String),
}

/// A mount: the source, the mount point and the options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MountCommand {
    /// The source as the user wrote it.
    pub(crate) source: Location,
    /// The mount point as the user wrote it.
    pub(crate) mountpoint: PathBuf,
    pub(crate) foreground: bool,
    pub(crate) settings: Settings,
}

impl MountCommand {
    /// Returns the number of the file descriptor in a mount point `/dev/fd/N`: the open `/dev/fuse`
    /// of a mount that another program has made.
    pub(crate) fn fuse_descriptor(&self) -> Option<i32> {
        let number = self.mountpoint.to_str()?.strip_prefix("/dev/fd/")?;
        number.parse().ok().filter(|number| *number >= 0)
    }

    /// Returns the destination of the log of this mount.
    pub(crate) fn log_destination(&self) -> LogDestination {
        let point = std::path::absolute(&self.mountpoint);
        let point = point.unwrap_or_else(|_| self.mountpoint.clone());
        match &self.settings.log_file {
            _ if self.foreground => LogDestination::Terminal,
            Some(path) => LogDestination::File {
                path: path.clone(),
                mount: point,
            },
            None => LogDestination::System { mount: point },
        }
    }
}

/// Returns the clap parser for an argument that is a path or a URL.
fn location_parser() -> impl TypedValueParser<Value = Location> {
    OsStringValueParser::new().try_map(schemes::parse_location)
}

/// Parses the command line. `arguments` excludes the program's own name.
///
/// # Errors
/// `Usage` with one line of text.
pub(crate) fn parse(program: Program, arguments: &[OsString]) -> Result<Task> {
    let line = |name: &str, arguments: Vec<OsString>| {
        let name = std::iter::once(name.into());
        name.chain(arguments).collect()
    };
    let parsed = match program {
        Program::Command => {
            let arguments = synonyms::translate_first(arguments, is_command)?;
            command_task(line("h5fs", arguments))
        }
        Program::MountHelper => helper_task(line("mount.h5fs", arguments.to_vec())),
    };
    parsed.or_else(|error| clap_error_task(program, arguments, &error))
}

fn is_command(name: &str) -> bool {
    Arguments::command().find_subcommand(name).is_some()
}

/// Returns the definition of the command line.
pub(crate) fn definition() -> clap::Command {
    Arguments::command()
}

fn command_task(line: Vec<OsString>) -> clap::error::Result<Task> {
    if let [_, first, words @ ..] = &line[..]
        && first == completions::COMPLETE_FLAG
    {
        return Ok(Task::Complete(words.to_vec()));
    }
    let arguments = Arguments::try_parse_from(line)?;
    match arguments.command {
        Some(Subcommands::Inspect(inspect)) => return Ok(Task::Inspect(inspect)),
        Some(Subcommands::View(view)) => return view_task(view),
        Some(Subcommands::Serve(serve)) => return serve_task(serve),
        Some(Subcommands::Example { file }) => return Ok(Task::Example(file)),
        None => {}
    }
    if let Some(shell) = arguments.completions {
        return Ok(Task::Print(completions::script(
            shell,
            Arguments::command(),
        )));
    }
    if let Some(page) = arguments.man {
        return Ok(Task::Print(match page {
            ManualPage::Program => manual::program_page(Arguments::command()),
            ManualPage::MountHelper => manual::mount_helper_page(),
            ManualPage::Views => manual::views_page(),
        }));
    }
    let mount = arguments.mount;
    match (mount.source, mount.mountpoint) {
        (Some(source), Some(mountpoint)) => {
            let mut command = MountCommand {
                source,
                mountpoint,
                foreground: mount.foreground,
                settings: settings(&mount.words, Some(&mount.flags))?,
            };
            if command.fuse_descriptor().is_some() {
                // Whoever can see this mount may be another user.
                (command.foreground, command.settings.allow_other) = (true, true);
            }
            Ok(Task::Mount(command))
        }
        _ => Err(Arguments::command().error(
            ErrorKind::MissingRequiredArgument,
            "SOURCE and MOUNTPOINT are required",
        )),
    }
}

fn view_task(view: ViewArguments) -> clap::error::Result<Task> {
    let settings = settings(&view.words, Some(&view.flags))?;
    if settings.no_views {
        let reason = "view: noviews removes the page";
        return Err(clap::Error::raw(ErrorKind::ArgumentConflict, reason));
    }
    let mount = |mountpoint| MountCommand {
        source: view.source,
        mountpoint,
        foreground: true,
        settings,
    };
    Ok(match view.at {
        Some(mountpoint) => Task::Mount(mount(mountpoint)),
        None => Task::View(mount(PathBuf::new())),
    })
}

fn serve_task(serve: ServeArguments) -> clap::error::Result<Task> {
    let settings = settings(&serve.words, Some(&serve.flags))?;
    let serve = ServeCommand::from_arguments(serve.own, settings);
    let refused = |reason| clap::Error::raw(ErrorKind::ArgumentConflict, reason);
    serve.map(Task::Serve).map_err(refused)
}

fn helper_task(line: Vec<OsString>) -> clap::error::Result<Task> {
    let arguments = HelperArguments::try_parse_from(line)?;
    if arguments.fake {
        return Ok(Task::CheckOnly);
    }
    Ok(Task::Mount(MountCommand {
        source: arguments.source,
        mountpoint: arguments.mountpoint,
        foreground: false,
        settings: settings(&arguments.words, None)?,
    }))
}

/// Combines the words of `-o` with the flags of the command line. If a flag and a word set the same
/// option, the flag applies.
fn settings(words: &[OptionWords], flags: Option<&Flags>) -> clap::error::Result<Settings> {
    let mut settings = Settings::default();
    let mut words = words.iter();
    let set = words
        .try_for_each(|words| words.apply(&mut settings))
        .and_then(|()| flags.map_or(Ok(()), |flags| flags.apply(&mut settings)));
    // Each value was validated before, so this does not fail.
    set.map_err(|reason| clap::Error::raw(ErrorKind::ValueValidation, reason))?;
    Ok(settings)
}

/// Turns clap's help and version into output, and every other clap error into one line.
fn clap_error_task(program: Program, arguments: &[OsString], error: &clap::Error) -> Result<Task> {
    let text = || error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(Task::Print(text().into_bytes())),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Ok(Task::PrintUsage(text())),
        _ => Err(command_line_error(program, arguments, error)),
    }
}

/// Returns the error for an invalid command line.
fn command_line_error(program: Program, arguments: &[OsString], error: &clap::Error) -> Error {
    let line = refusal::one_line_message(error);
    match (program, synonyms::unknown_word(arguments, is_command)) {
        (Program::MountHelper, _) => Error::Usage(line),
        (Program::Command, Some(word)) => synonyms::unknown_command_error(word),
        (Program::Command, None) => Error::Usage(format!("{line} (see `h5fs --help`)")),
    }
}

#[cfg(test)]
mod tests;
