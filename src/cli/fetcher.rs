//! The process that runs the [fetcher](h5fs_fetcher): it has the network access and the
//! credentials.
//!
//! Requests arrive as packets on its standard input, a socket. Its standard output is the stage,
//! the file in memory for fetched bytes. The process ends when the socket is closed.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;

use h5fs_fetcher::{DiskCache, Fetcher, RemoteSettings};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::location::{Location, Url};
use h5fs_tree::External;

use crate::cli::args::{InspectCommand, Task};
use crate::cli::mount::{opener, rotation};
use crate::cli::sandbox::{self, NetworkReach};
use crate::cli::text::logging::{self, LogDestination};
use crate::cli::text::secrets;

/// Runs the fetcher: answers requests of the parsing process until the socket is closed.
///
/// # Errors
/// `Usage` if the task lacks a URL.
pub(super) fn run(task: &Task) -> Result<ExitCode> {
    let Some(FetcherTask {
        url,
        settings,
        external,
        run_as,
    }) = FetcherTask::from_task(task)
    else {
        return Err(Error::Usage("a URL is required".to_owned()));
    };
    rotation::block_reopen_signal();
    if let Some(destination) = log_destination(task) {
        logging::start(&destination)?;
    }
    let socket = io::stdin().as_fd().try_clone_to_owned();
    let stage = io::stdout().as_fd().try_clone_to_owned();
    let failed = |error| Error::from_io(&error, "the fetcher's descriptors");
    let (socket, stage) = (socket.map_err(failed)?, stage.map_err(failed)?);
    let url = secrets::with_secrets(url);
    let sandbox = has_sandbox(task);
    let prepared = prepare_fetcher(
        &url,
        settings,
        external,
        run_as.filter(|_| sandbox),
        sandbox,
    );
    let prepared = prepared.and_then(|fetcher| {
        let cache = DiskCache::from_settings(settings);
        let opened = cache.as_ref().ok().and_then(Option::as_ref);
        let reach = network_reach(&fetcher, settings, opened);
        sandbox::enter_network(&reach, run_as, sandbox)?;
        Ok((fetcher, cache))
    });
    match prepared {
        Ok((fetcher, cache)) => fetcher.serve(socket, File::from(stage), cache),
        // The first request reports an error of the settings.
        Err(error) => h5fs_fetcher::refuse_all(&socket, &error.to_string()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Prepares the fetcher. With `sandbox`, credentials files, which the sandbox hides from this
/// process, are opened by processes of the user `run_as`.
fn prepare_fetcher(
    url: &Url,
    settings: &RemoteSettings,
    external: External,
    run_as: Option<u32>,
    sandbox: bool,
) -> Result<Fetcher> {
    let user = run_as.unwrap_or_else(|| nix::unistd::geteuid().as_raw());
    let start_opener = |path: &std::path::Path| opener::start(path, user);
    let has_other_objects = external != External::None;
    let start_opener: Option<&h5fs_fetcher::StartOpener<'_>> = sandbox.then_some(&start_opener);
    Fetcher::new(url, settings, has_other_objects, start_opener)
}

/// The fields of a task that the fetcher uses.
struct FetcherTask<'a> {
    url: &'a Url,
    settings: &'a RemoteSettings,
    external: External,
    /// The user that the mount must run as.
    run_as: Option<u32>,
}

/// Returns the files and ports that the fetcher's sandbox must permit.
fn network_reach(
    fetcher: &Fetcher,
    settings: &RemoteSettings,
    cache: Option<&DiskCache>,
) -> NetworkReach {
    NetworkReach {
        readable: fetcher.readable_files(),
        writable: cache.map(|cache| cache.directory().to_owned()),
        ports: fetcher.ports(),
        connections: settings.connections(),
    }
}

fn has_sandbox(task: &Task) -> bool {
    match task {
        Task::Mount(mount) => !mount.settings.no_sandbox,
        Task::Serve(serve) => !serve.settings.no_sandbox,
        Task::Inspect(InspectCommand::Check { how, .. }) => how.sandbox,
        Task::Inspect(
            InspectCommand::Ls { operands, .. }
            | InspectCommand::Cat { operands, .. }
            | InspectCommand::Ndl { operands, .. },
        ) => operands.how.sandbox,
        Task::Inspect(InspectCommand::Prefetch { how, .. }) => how.sandbox,
        _ => true,
    }
}

impl<'a> FetcherTask<'a> {
    fn from_task(task: &'a Task) -> Option<Self> {
        let (location, settings, external, run_as) = match task {
            Task::Mount(mount) => {
                let settings = &mount.settings;
                (
                    &mount.source,
                    &settings.remote,
                    settings.external,
                    settings.run_as,
                )
            }
            Task::Serve(serve) => {
                let settings = &serve.settings;
                (
                    serve.sources.first()?,
                    &settings.remote,
                    settings.external,
                    settings.run_as,
                )
            }
            Task::Inspect(inspect) => {
                let (location, settings) = inspected_source(inspect)?;
                (location, settings, External::default(), None)
            }
            _ => return None,
        };
        let url = location.url()?;
        Some(FetcherTask {
            url,
            settings,
            external,
            run_as,
        })
    }
}

/// Returns the source that a command without a mount reads through a fetcher of its own. `ndl` and
/// `check` of a prefix return `None`, because they read each object in a separate process.
pub(super) fn inspected_source(inspect: &InspectCommand) -> Option<(&Location, &RemoteSettings)> {
    let (source, how, is_of_files) = match inspect {
        InspectCommand::Ls { operands, .. } | InspectCommand::Cat { operands, .. } => {
            (&operands.source, &operands.how, false)
        }
        InspectCommand::Ndl { operands, .. } => (&operands.source, &operands.how, true),
        InspectCommand::Check { sources, how, .. } => match &sources[..] {
            [file] => (file, how, true),
            _ => return None,
        },
        InspectCommand::Prefetch { source, how, .. } => (source, how, false),
        InspectCommand::Status { .. }
        | InspectCommand::List { .. }
        | InspectCommand::Metrics { .. }
        | InspectCommand::Cache { .. } => return None,
    };
    let is_prefix = source.url().is_some_and(Url::is_prefix);
    (!is_of_files || !is_prefix).then_some((source, &how.remote.settings))
}

/// Returns the destination of the fetcher's log lines. Returns `None` for a command without a mount
/// unless `H5FS_LOG` is set, because the command prints its failures itself. If a log file is
/// configured, the lines go to the supervisor, which has the file open.
fn log_destination(task: &Task) -> Option<LogDestination> {
    match task {
        Task::Mount(mount) if mount.settings.log_file.is_some() => Some(LogDestination::Terminal),
        Task::Mount(mount) => Some(mount.log_destination()),
        _ => std::env::var_os("H5FS_LOG").map(|_| LogDestination::Terminal),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Neighbours of a named file and files in /etc are not readable. A named credentials file is
    /// opened by another process.
    #[test]
    fn only_named_files_are_readable() {
        let directory = tempfile::tempdir().unwrap();
        let [key, beside] = ["key", "beside"].map(|name| directory.path().join(name));
        let profile = "[default]\naws_access_key_id = a\naws_secret_access_key = b\n";
        for file in [&key, &beside] {
            std::fs::write(file, profile).unwrap();
        }
        let settings = RemoteSettings {
            anonymous: false,
            credentials: Some(key.clone()),
            ..RemoteSettings::default()
        };
        let Ok(Location::Url(url)) = Location::parse("s3://bucket/b.h5".into()) else {
            panic!("no URL");
        };
        let fetcher = Fetcher::new(&url, &settings, false, None).unwrap();
        let reach = network_reach(&fetcher, &settings, None);
        sandbox::tests::shut_in_by(
            || sandbox::restrict_network(&reach),
            || {
                let home = std::env::home_dir().unwrap_or_default();
                for refused in [&key, &beside, Path::new("/etc/passwd"), &home.join(".aws")] {
                    let kind = File::open(refused).map_err(|error| error.kind());
                    let is_refused = matches!(
                        kind,
                        Err(io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound)
                    );
                    assert!(is_refused, "{refused:?}");
                }
                for file in ["/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf"] {
                    let opened = File::open(file).map_err(|error| error.kind());
                    let is_there = !matches!(opened, Err(io::ErrorKind::PermissionDenied));
                    assert!(is_there, "{file}: {opened:?}");
                }
                use std::net::ToSocketAddrs;
                assert!("localhost:80".to_socket_addrs().is_ok());
            },
        );
    }
}
