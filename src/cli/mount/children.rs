//! The child processes of a supervisor: the worker, and the fetcher of a source by URL.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};

use h5fs_reader::error::{Error, Result, io_error_message};
use nix::sys::signal::Signal;

use crate::cli::args::MountCommand;
use crate::cli::invocation::{Invocation, Role};
use crate::cli::mount::handover::{self, FetcherConnection};
use crate::cli::mount::rotation;
use crate::cli::text::lines::each_line;

/// Settings for glibc's allocator in the worker (`mallopt(3)`):
///
/// - Up to 16 MiB of free memory stay at the end of the heap for the next chunks. Fresh memory
///   would cost a page fault for every 4 KiB.
/// - Blocks of 16 MiB or more are returned to the system at once.
/// - There is one heap for all threads, because any thread may use memory that another one has
///   freed.
/// - The heap grows in steps of a mebibyte, so that threads seldom wait for its growth.
///
/// By default, glibc would raise its thresholds to 32 and 64 MiB, in as many heaps as there are
/// threads.
const ALLOCATOR_VARIABLES: [(&str, &str); 4] = [
    ("MALLOC_ARENA_MAX", "1"),
    ("MALLOC_MMAP_THRESHOLD_", "16777216"),
    ("MALLOC_TRIM_THRESHOLD_", "16777216"),
    ("MALLOC_TOP_PAD_", "1048576"),
];

/// Starts the worker, which writes its errors to `errors`. Returns its process, and the
/// supervisor's end of the supervision socket.
///
/// # Errors
/// Fails if the process cannot be started.
pub(in crate::cli::mount) fn start_worker(
    call: &Invocation,
    errors: io::Result<Stdio>,
    ends: Option<&FetcherConnection>,
) -> Result<(Child, UnixStream)> {
    let started = call.restart_command(Role::Worker).and_then(|mut command| {
        let (leash, worn) = handover::supervision_socket(ends)?;
        if ends.is_some() {
            handover::remove_secret_variables(&mut command);
        }
        let worker = command
            .envs(allocator_settings())
            .stdin(worn)
            .stdout(Stdio::piped())
            .stderr(errors?)
            // Control-C must reach only the supervisor.
            .process_group(0)
            .spawn()?;
        Ok((worker, leash))
    });
    started.map_err(|error| Error::from_io(&error, "starting the worker"))
}

/// Starts the fetcher if the source is a URL. Returns the descriptors that lead to the fetcher,
/// which exits once all copies of them are closed. Calls `ended` after the fetcher has exited.
///
/// # Errors
/// Fails if the process cannot be started.
pub(in crate::cli::mount) fn start_fetcher(
    call: &Invocation,
    mount: &MountCommand,
    ended: impl FnOnce() + Send + 'static,
) -> Result<Option<FetcherConnection>> {
    if mount.source.path().is_some() {
        return Ok(None);
    }
    let failed = |error: io::Error| Error::from_io(&error, "starting the fetcher");
    // The output is filtered before it reaches the terminal.
    let is_read = mount.foreground || mount.settings.log_file.is_some();
    let errors = if is_read {
        Stdio::piped()
    } else {
        Stdio::null()
    };
    let (mut process, ends) = handover::start_fetcher(call, errors).map_err(failed)?;
    match process.stderr.take() {
        Some(errors) if mount.foreground => drop(forward_errors(errors)),
        Some(errors) => rotation::log_fetcher_lines(errors),
        None => {}
    }
    thread::spawn(move || {
        let _ = process.wait();
        ended();
    });
    Ok(Some(ends))
}

/// Returns the settings of [`ALLOCATOR_VARIABLES`] that the user's environment does not override.
pub(in crate::cli) fn allocator_settings() -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_free = |(name, _): &(&str, &str)| std::env::var_os(name).is_none();
    ALLOCATOR_VARIABLES.into_iter().filter(is_free)
}

/// Starts a thread that prints the lines that a process writes to standard error, if they are text.
pub(in crate::cli) fn forward_errors(errors: ChildStderr) -> JoinHandle<()> {
    thread::spawn(move || {
        each_line(errors, |line| {
            let _ = writeln!(io::stderr(), "{line}");
        });
    })
}

/// Returns a text about how a worker has exited.
pub(in crate::cli) fn describe_exit(status: io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("the worker ended with status {code}"),
            (None, number) => format!(
                "the worker was killed by {}",
                signal_name(number.unwrap_or(0))
            ),
        },
        Err(error) => format!(
            "waiting for the worker failed: {}",
            io_error_message(&error)
        ),
    }
}

/// Returns the name of a signal.
pub(in crate::cli::mount) fn signal_name(number: i32) -> &'static str {
    Signal::try_from(number).map_or("a signal", Signal::as_str)
}
