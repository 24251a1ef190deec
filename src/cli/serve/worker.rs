//! The worker of `h5fs serve`: the process that opens the sources and answers requests.

use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::process::{ExitCode, exit};
use std::sync::Arc;
use std::thread;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::local::rights;
use h5fs_reader::source::location::Location;
use h5fs_tree::Options;
use h5fs_tree::http::{AccessRules, Listener, ServedTrees, Server, Token};

use crate::cli::args::serve_arguments::{ServeCommand, source_name};
use crate::cli::listen::ListenAddress;
use crate::cli::mount::handover;
use crate::cli::mount::remote_source::{self, RemoteSource};
use crate::cli::mount::report::Report;
use crate::cli::mount::rotation;
use crate::cli::mount::source::{MountSource, filesystem_options};
use crate::cli::mount::worker::raise_open_file_limit;
use crate::cli::sandbox;
use crate::cli::scans;
use crate::cli::text::logging::{self, LogDestination};

/// Maximum length in bytes of the message that carries the token with the socket.
const TOKEN_MESSAGE_BYTES: usize = 64;

/// Answers requests until the keeper ends.
///
/// # Errors
/// `Usage` if the process was not started by the keeper.
pub(in crate::cli) fn run(serve: &ServeCommand) -> Result<ExitCode> {
    rotation::block_reopen_signal();
    logging::start(&LogDestination::Terminal)?;
    match start(serve) {
        Ok(ready) => ready.serve(),
        Err(report) => {
            let _ = report.send(&mut io::stdout());
            Ok(ExitCode::FAILURE)
        }
    }
}

/// A worker that is ready to answer requests.
struct ReadyWorker {
    server: Server,
    trees: ServedTrees,
    access: AccessRules,
    threads: usize,
    warnings: Vec<Report>,
}

impl ReadyWorker {
    fn serve(self) -> ! {
        let output = &mut io::stdout();
        for warning in &self.warnings {
            let _ = warning.send(output);
        }
        let _ = Report::Ready.send(output);
        thread::spawn(|| {
            // Returns when the keeper has ended for any reason.
            let _ = rustix::io::read(io::stdin(), &mut [0]);
            log::logger().flush();
            exit(0)
        });
        self.server.serve(self.trees, self.access, self.threads)
    }
}

/// Opens all sources, enters the sandbox, and reads the sources.
fn start(serve: &ServeCommand) -> std::result::Result<ReadyWorker, Report> {
    let first = serve
        .sources
        .first()
        .map(Location::name)
        .unwrap_or_default();
    let of_first = |error: Error| Report::failure(&first, &error.to_string());
    let ends = match serve.sources.first() {
        Some(Location::Url(_)) => Some(handover::receive_connection().map_err(of_first)?),
        _ => None,
    };
    let (server, access, number) = receive_listener(serve).map_err(of_first)?;
    raise_open_file_limit();
    let mut ends = ends;
    let mut sources = Vec::new();
    for location in &serve.sources {
        let failed = |error: Error| Report::failure(&location.name(), &error.to_string());
        let source = match location {
            Location::Path(path) => {
                let path = std::path::absolute(path)
                    .map_err(|error| Error::from_io(&error, path.display().to_string()));
                path.and_then(|path| {
                    MountSource::open(&path, &serve.settings)
                        .map_err(|error| with_given_name(location, &path, &error))
                })
            }
            Location::Url(url) => match ends.take() {
                Some(ends) => Ok(MountSource::Object(RemoteSource::new(
                    url,
                    &serve.settings.remote,
                    ends,
                ))),
                None => Err(Error::Usage("the fetcher does not exist".to_owned())),
            },
        };
        sources.push((location, source.map_err(failed)?));
    }
    let kept =
        |location| scans::open(scans::mount_cache_path(location, &serve.settings).as_deref());
    let kept = serve.sources.iter().map(kept).collect();
    let _ = std::env::set_current_dir("/");
    let is_remote = serve.sources.iter().any(|source| source.url().is_some());
    let mut options = filesystem_options(&serve.settings, None, None);
    options.ordered = true;
    if is_remote {
        options.threads = remote_source::thread_count(serve.settings.threads);
    }
    enter(serve, &sources, &options, number)?;
    let mut warnings = Vec::new();
    let trees = open_trees(sources, kept, &options, &mut warnings)?;
    Ok(ReadyWorker {
        server,
        trees,
        access,
        threads: options.threads,
        warnings,
    })
}

/// Returns an error about a source in which the absolute path is replaced by the name that the user
/// gave.
fn with_given_name(location: &Location, path: &std::path::Path, error: &Error) -> Error {
    let text = error.to_string();
    let absolute = format!("{}: ", path.display());
    let reason = text.strip_prefix(&absolute).unwrap_or(&text);
    Error::Usage(format!("{}: {reason}", location.name().display()))
}

/// Receives the listening socket and the token from the keeper.
fn receive_listener(serve: &ServeCommand) -> Result<(Server, AccessRules, i32)> {
    let nothing = || Error::Usage("no socket to listen on".to_owned());
    let mut token = [0; TOKEN_MESSAGE_BYTES];
    let received = rights::receive_with_files(io::stdin().as_fd(), &mut token);
    let (length, files) = received.map_err(|_| nothing())?;
    let socket = files.into_iter().next().ok_or_else(nothing)?;
    let number = socket.as_raw_fd();
    let token = token.get(..length).unwrap_or_default();
    // The message starts with a byte that is present even without a token.
    let token = str::from_utf8(token)
        .ok()
        .and_then(|text| text.strip_prefix('l'));
    let token = token.filter(|text| !text.is_empty());
    if token.is_none() && !serve.no_token {
        return Err(nothing());
    }
    let (listener, address) = listener_and_address(socket, &serve.listen)?;
    let mut hosts = serve.hosts.clone();
    if serve.listen.is_open_to_others() {
        hosts.extend(machine_name());
    }
    let access = AccessRules {
        token: token.map(|text| Token::new(text.to_owned())),
        address,
        hosts,
        origins: serve.origins.clone(),
    };
    Ok((Server::new(listener)?, access, number))
}

fn listener_and_address(
    socket: OwnedFd,
    listen: &ListenAddress,
) -> Result<(Listener, Option<std::net::SocketAddr>)> {
    match listen {
        ListenAddress::Unix(_) => Ok((Listener::Unix(UnixListener::from(socket)), None)),
        ListenAddress::Network(_) => {
            let listener = TcpListener::from(socket);
            let address = listener.local_addr();
            let address = address.map_err(|error| Error::from_io(&error, "listening"))?;
            Ok((Listener::Network(listener), Some(address)))
        }
    }
}

/// Returns the host name of this machine, or `None` if it is empty or unknown.
pub(in crate::cli) fn machine_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

/// Enters the sandbox, which permits what any of the sources needs. `number` is the descriptor of
/// the listening socket.
fn enter(
    serve: &ServeCommand,
    sources: &[(&Location, MountSource)],
    options: &Options,
    number: i32,
) -> std::result::Result<(), Report> {
    let mut shown: Vec<sandbox::ShownSource<'_>> = Vec::new();
    let mut caged = options.clone();
    for (location, source) in sources {
        let failed = |error: Error| Report::failure(&location.name(), &error.to_string());
        let own = source
            .sandbox_source(serve.settings.run_as)
            .map_err(failed)?;
        if shown
            .first()
            .is_some_and(|first| first.reader != own.reader)
            && is_root()
        {
            let reason = "its owner differs from the owner of the first source; with --run-as USER \
                          one user reads all sources";
            return Err(Report::failure(&location.name(), reason));
        }
        caged = source.sandbox_options(&caged);
        shown.push(own);
    }
    let sandbox = !serve.settings.no_sandbox;
    sandbox::enter_to_serve(&shown, &caged, sandbox, number).map_err(|error| {
        let first = sources.first().map(|(location, _)| location.name());
        Report::failure(&first.unwrap_or_default(), &error.to_string())
    })
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Reads the sources and returns their trees. The memory for decoded chunks is divided equally
/// among the sources.
fn open_trees(
    sources: Vec<(&Location, MountSource)>,
    kept: Vec<Option<Arc<File>>>,
    options: &Options,
    warnings: &mut Vec<Report>,
) -> std::result::Result<ServedTrees, Report> {
    let count = u64::try_from(sources.len()).unwrap_or(u64::MAX).max(1);
    let mut shared = options.clone();
    shared.cache_size.max_bytes /= count;
    shared.cache_size.initial_bytes = shared
        .cache_size
        .initial_bytes
        .min(shared.cache_size.max_bytes);
    let mut trees = Vec::new();
    for ((location, source), scans) in sources.into_iter().zip(kept) {
        let own_name = location.name();
        let path = location.path().map(std::path::absolute);
        let failed = |error: Error| {
            let error = match &path {
                Some(Ok(path)) => with_given_name(location, path, &error),
                _ => error,
            };
            Report::failure(&own_name, &error.to_string())
        };
        let mut reasons = Vec::new();
        let own = Options {
            scans,
            scripts: true,
            ..shared.clone()
        };
        let served = source.open_tree(own, &mut reasons).map_err(failed)?;
        reasons.extend(served.partial_file_warning());
        let told = reasons
            .iter()
            .map(|reason| Report::warning(&own_name, reason));
        warnings.extend(told);
        trees.push((source_name(location), served));
    }
    warnings.truncate(crate::limits::EARLY_LINES);
    Ok(match <[_; 1]>::try_from(trees) {
        Ok([(_, served)]) => ServedTrees::single(served),
        Err(trees) => ServedTrees::several(trees),
    })
}
