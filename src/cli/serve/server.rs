//! The keeper: the process that the user calls. The keeper holds the socket and the token, and
//! supervises the worker.

use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::local::rights;
use h5fs_reader::source::location::Location;
use h5fs_tree::http::{Token, random};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cli::args::serve_arguments::ServeCommand;
use crate::cli::invocation::{Invocation, Role};
use crate::cli::listen::{BoundAddress, BoundSocket};
use crate::cli::mount::children::{allocator_settings, describe_exit, forward_errors};
use crate::cli::mount::events::hangup_is_ignored;
use crate::cli::mount::handover;
use crate::cli::mount::notify;
use crate::cli::mount::report::{Report, Reports};
use crate::cli::mount::supervisor::{FETCHER_GONE, JOINT_EXIT_INTERVAL};
use crate::cli::sandbox;
use crate::cli::scans;
use crate::cli::serve::worker::machine_name;
use crate::cli::text::error_message::print_error;

/// Time in which the worker must exit after its supervision socket is closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval between two checks whether the worker has exited.
const EXIT_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// How the user reaches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerRoute {
    /// By its URL, from this machine.
    Url,
    /// Through an SSH tunnel, from the machine with the browser.
    Tunnel,
}

/// Serves until a signal arrives.
///
/// # Errors
/// Fails if the listening socket cannot be opened.
pub(in crate::cli) fn run(call: &Invocation, serve: &ServeCommand) -> Result<ExitCode> {
    start(call, serve, ServerRoute::Url)
}

/// Serves a user on another machine, and prints the command for an SSH tunnel.
///
/// # Errors
/// Fails if the listening socket cannot be opened.
pub(in crate::cli) fn run_for_tunnel(call: &Invocation, serve: &ServeCommand) -> Result<ExitCode> {
    start(call, serve, ServerRoute::Tunnel)
}

fn start(call: &Invocation, serve: &ServeCommand, way: ServerRoute) -> Result<ExitCode> {
    let bound = serve.listen.bind()?;
    let token = (!serve.no_token).then(random::random_word).transpose()?;
    let (sender, events) = channel();
    watch_signals(&sender)?;
    let keeper = ServerSupervisor::start(call, serve, (&bound, token.as_deref()), &sender)?;
    // The port at the other loopback address stays bound until the end.
    let BoundSocket {
        socket,
        address: at,
        reserved_socket: _held,
    } = bound;
    // From here on, only the worker accepts connections.
    drop(socket);
    let scans = serve.sources.iter();
    let scans = scans.filter_map(|source| scans::mount_cache_path(source, &serve.settings));
    let scans: Vec<_> = scans.collect();
    let code = keeper.supervise(&events, || {
        print_address(&at, token.as_deref(), way, serve.listen.is_open_to_others());
        notify::notify_ready();
    });
    scans
        .iter()
        .for_each(|place| scans::delete_if_unused(place));
    Ok(code)
}

/// An event that the keeper waits for.
enum ServerEvent {
    Warning(String),
    Ready,
    Failed(String),
    /// The worker has exited or is about to exit.
    WorkerGone,
    FetcherGone,
    /// SIGINT, SIGTERM or SIGHUP arrived.
    Signal,
}

struct ServerSupervisor {
    worker: Child,
    /// The supervision socket. Closing it ends the worker.
    supervision_socket: UnixStream,
}

impl ServerSupervisor {
    fn start(
        call: &Invocation,
        serve: &ServeCommand,
        (bound, token): (&BoundSocket, Option<&str>),
        sender: &Sender<ServerEvent>,
    ) -> Result<Self> {
        let failed = |error| Error::from_io(&error, "starting the worker");
        let ends = match serve.sources.first() {
            Some(Location::Url(_)) => Some(start_fetcher(call, sender)?),
            _ => None,
        };
        let started = call.restart_command(Role::Worker).and_then(|mut command| {
            let (leash, worn) = handover::supervision_socket(ends.as_ref())?;
            // The token must not be on a command line, which every user can read.
            let message = format!("l{}", token.unwrap_or_default());
            rights::send_with_files(leash.as_fd(), message.as_bytes(), &[bound.socket.as_fd()])?;
            handover::remove_secret_variables(&mut command);
            let worker = command
                .envs(allocator_settings())
                .stdin(worn)
                .stdout(Stdio::piped())
                // Lines from the worker are sanitized before they reach the terminal.
                .stderr(Stdio::piped())
                // Ctrl-C must reach only the keeper.
                .process_group(0)
                .spawn()?;
            Ok(ServerSupervisor {
                worker,
                supervision_socket: leash,
            })
        });
        let mut keeper = started.map_err(failed)?;
        sandbox::hide_memory();
        if let Some(errors) = keeper.worker.stderr.take() {
            forward_errors(errors);
        }
        if let Some(output) = keeper.worker.stdout.take() {
            watch_worker(output, sender.clone());
        }
        Ok(keeper)
    }

    /// Waits until the server must end or has ended. Calls `tell` once the worker answers.
    fn supervise(mut self, events: &Receiver<ServerEvent>, tell: impl FnOnce()) -> ExitCode {
        let mut tell = Some(tell);
        for event in events {
            match event {
                ServerEvent::Warning(text) => print_error(&text),
                ServerEvent::Ready => {
                    if let Some(tell) = tell.take() {
                        tell();
                    }
                }
                ServerEvent::Failed(text) => {
                    print_error(&text);
                    self.stop_worker();
                    return ExitCode::FAILURE;
                }
                ServerEvent::WorkerGone => {
                    print_error(&describe_exit(self.worker.wait()));
                    return ExitCode::FAILURE;
                }
                // A fetcher exits when its worker has exited.
                ServerEvent::FetcherGone if self.exits_within(JOINT_EXIT_INTERVAL) => {}
                ServerEvent::FetcherGone => {
                    print_error(FETCHER_GONE);
                    self.stop_worker();
                    return ExitCode::FAILURE;
                }
                ServerEvent::Signal => {
                    self.stop_worker();
                    return ExitCode::SUCCESS;
                }
            }
        }
        ExitCode::FAILURE
    }

    /// Stops the worker, and waits until it has exited.
    fn stop_worker(mut self) {
        // The worker exits when it reads end of file.
        let _ = self.supervision_socket.shutdown(Shutdown::Both);
        if !self.exits_within(EXIT_TIMEOUT) {
            let _ = self.worker.kill();
            let _ = self.worker.wait();
        }
    }

    /// Waits for the exit of the worker, at most for the time `most`. Returns whether it has
    /// exited.
    fn exits_within(&mut self, most: Duration) -> bool {
        let until = Instant::now() + most;
        loop {
            match self.worker.try_wait() {
                Ok(None) if Instant::now() < until => thread::sleep(EXIT_CHECK_INTERVAL),
                Ok(None) => return false,
                _ => return true,
            }
        }
    }
}

/// Starts the fetcher for a source by URL. The fetcher exits when the worker has exited.
fn start_fetcher(
    call: &Invocation,
    sender: &Sender<ServerEvent>,
) -> Result<handover::FetcherConnection> {
    let started = handover::start_fetcher(call, Stdio::piped());
    let (mut process, ends) =
        started.map_err(|error| Error::from_io(&error, "starting the fetcher"))?;
    process.stderr.take().map(forward_errors);
    let sender = sender.clone();
    thread::spawn(move || {
        let _ = process.wait();
        let _ = sender.send(ServerEvent::FetcherGone);
    });
    Ok(ends)
}

fn watch_worker(output: ChildStdout, sender: Sender<ServerEvent>) {
    thread::spawn(move || {
        let mut reports = Reports::from_supervisor(output);
        loop {
            let event = match reports.next() {
                Ok(Some(Report::Warning(text))) => ServerEvent::Warning(text),
                Ok(Some(Report::Ready)) => ServerEvent::Ready,
                Ok(Some(Report::Failed(text))) => ServerEvent::Failed(text),
                _ => ServerEvent::WorkerGone,
            };
            let is_end = matches!(event, ServerEvent::WorkerGone);
            if sender.send(event).is_err() || is_end {
                return;
            }
        }
    });
}

fn watch_signals(sender: &Sender<ServerEvent>) -> Result<()> {
    let mut watched = vec![SIGINT, SIGTERM];
    if !hangup_is_ignored() {
        watched.push(SIGHUP);
    }
    let signals = Signals::new(watched);
    let mut signals = signals.map_err(|error| Error::from_io(&error, "waiting for signals"))?;
    let sender = sender.clone();
    thread::spawn(move || {
        for _ in signals.forever() {
            if sender.send(ServerEvent::Signal).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Prints how to connect to the server. The token is printed only on standard output.
fn print_address(at: &BoundAddress, token: Option<&str>, way: ServerRoute, is_open: bool) {
    let query = token
        .map(|token| format!("?token={token}"))
        .unwrap_or_default();
    let name = token.map(|token| Token::new(token.to_owned()).host_name());
    let browser = name.as_ref().and_then(|name| at.browser_authority(name));
    let authority = browser.clone().unwrap_or_else(|| at.authority());
    let mut lines = vec![format!("http://{authority}/{query}")];
    match (at, way) {
        (BoundAddress::Network(address), ServerRoute::Tunnel) => {
            let (port, host) = (
                address.port(),
                machine_name().unwrap_or_else(|| "HOST".to_owned()),
            );
            lines.push(format!("ssh -L {port}:127.0.0.1:{port} {host}"));
        }
        (BoundAddress::Unix(file), _) => {
            let path = file.path.display();
            print_error(&format!(
                "listening on {path}: curl --unix-socket {path} URL"
            ));
            if let Some(name) = &name {
                print_error(&format!(
                    "in a browser, through `ssh -L PORT:{path}`: open http://{name}:PORT/ with the \
                     token"
                ));
            }
        }
        (BoundAddress::Network(_), ServerRoute::Url) => {}
    }
    if browser.is_some() {
        let address = at.authority();
        print_error(&format!(
            "programs that cannot resolve this name use http://{address}/ and send the token as \
             `Authorization: Bearer TOKEN`"
        ));
    }
    if is_open {
        print_error(
            "warning: other machines can connect, and the token and all bytes are sent \
             unencrypted; `ssh -L` is a safe alternative",
        );
    }
    if way == ServerRoute::Tunnel {
        print_error(
            "no display here: run the second line on a machine with a display, and open the first",
        );
    }
    let mut output = io::stdout();
    for line in lines {
        let _ = writeln!(output, "{line}");
    }
    let _ = output.flush();
}
