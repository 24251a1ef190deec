//! The fetcher: the process with the network access and the credentials.
//!
//! The fetcher downloads objects, or parts of them, for the parsing process. The fetcher parses
//! HTTP, TLS and the listings of object stores, but no data files. Requests arrive as packets on
//! its standard input, a socket. Its standard output is the stage, a file in memory that only the
//! fetcher writes. The parsing process receives files of the disk cache as read-only descriptors.
//! The fetcher ends when the socket is closed.
//!
//! | file | content |
//! |---|---|
//! | `service` | pending requests, their replies, and the stage |
//! | `transfer` | one range: retries, resumption, and comparison of every response |
//! | `exchange` | one request: signature, redirects, renewed credentials |
//! | `rate_limits` | rate limits for each host |
//! | `client`, `hosts` | HTTP, certificates of a file, and the permitted hosts |
//! | `signer` | credentials of object stores, and the files of their tools |
//! | `login` | tokens, netrc and cookies for HTTP servers |
//! | `address`, `pelican` | URIs; the directors and caches of Pelican |
//! | `names` | names with a prefix |
//! | `disk_cache`, `cached` | pages in the disk cache |

mod address;
mod cached;
mod client;
mod disk_cache;
mod exchange;
mod fetch_error;
mod hosts;
mod links;
mod login;
mod names;
mod pelican;
mod rate_limits;
mod retries;
mod service;
mod signer;
#[cfg(test)]
mod tests;
mod transfer;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use h5fs_reader::error::{Error, Result, io_error_message};
use h5fs_reader::source::location::{Location, Scheme, Url};

use crate::cli::args::{InspectCommand, Task};
use crate::cli::mount::rotation;
use crate::cli::options::RemoteSettings;
use crate::cli::sandbox::{self, NetworkReach};
use crate::cli::text::logging::{self, Destination};
use crate::cli::text::secrets;
use crate::fs::External;
use address::SourceAddress;
use client::HttpClient;
pub(in crate::cli) use disk_cache::DiskCache;
pub(in crate::cli) use disk_cache::contents::CachedSource;
use exchange::{ConnectionCounters, Exchange};
use hosts::AddressPolicy;
use login::Login;
use rate_limits::RateLimits;
use service::Service;
use service::stage::Stage;
use signer::Signer;
use signer::azure::AzureAccount;
use signer::files::CredentialFiles;
use signer::profile::{self, Profile};

/// Region of a bucket until the server reports its actual region.
const REGION: &str = "us-east-1";

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
    rotation::block_signal();
    if let Some(destination) = destination(task) {
        logging::start(&destination)?;
    }
    let socket = io::stdin().as_fd().try_clone_to_owned();
    let stage = io::stdout().as_fd().try_clone_to_owned();
    let failed = |error| Error::io(&error, "the fetcher's descriptors");
    let (socket, stage) = (socket.map_err(failed)?, stage.map_err(failed)?);
    let url = secrets::with_secrets(url);
    let sandbox = has_sandbox(task);
    // The user that opens files which the sandbox hides from this process.
    let opening = sandbox.then(|| run_as.unwrap_or_else(|| nix::unistd::geteuid().as_raw()));
    let made = exchange(&url, settings, external, opening).and_then(|exchange| {
        let cache = disk_cache(settings);
        let reach = network_reach(
            &exchange,
            settings,
            cache.as_ref().ok().and_then(Option::as_ref),
        );
        sandbox::enter_network(&reach, run_as, sandbox)?;
        Ok((exchange, cache))
    });
    // The first request reports an error of the settings.
    match made {
        Ok((exchange, cache)) => {
            let cache = cache.and_then(|cache| cache.map(DiskCache::check_writable).transpose());
            let stage = Stage::new(File::from(stage));
            let directory = settings
                .disk_cache
                .as_deref()
                .unwrap_or(Path::new(""))
                .display();
            let unusable = |error| {
                let reason = io_error_message(&error);
                format!("{directory}: the disk cache is not used: {reason}")
            };
            let (cache, warning) = match cache {
                Ok(cache) => (cache, None),
                Err(error) => (None, Some(unusable(error))),
            };
            let service = Service::new(socket, stage, exchange, cache, settings);
            if let Some(text) = warning {
                service.warn(text);
            }
            service.run();
        }
        Err(error) => service::refuse_all(&socket, &error.to_string()),
    }
    Ok(ExitCode::SUCCESS)
}

/// The fields of a task that the fetcher uses.
struct FetcherTask<'a> {
    url: &'a Url,
    settings: &'a RemoteSettings,
    external: External,
    /// The user that the mount must run as.
    run_as: Option<u32>,
}

/// Opens the disk cache if the settings name one.
fn disk_cache(settings: &RemoteSettings) -> io::Result<Option<DiskCache>> {
    let open = |directory: &PathBuf| DiskCache::open(directory, settings.disk_cache_size());
    settings.disk_cache.as_ref().map(open).transpose()
}

/// Returns the files and ports that the fetcher's sandbox must permit.
fn network_reach(
    exchange: &Exchange,
    settings: &RemoteSettings,
    cache: Option<&DiskCache>,
) -> NetworkReach {
    let mut ports = vec![53];
    ports.extend(exchange.all_ports());
    ports.extend(exchange.signer.as_ref().and_then(Signer::port));
    let has_tools = matches!(exchange.signer, Some(Signer::Amazon(_)));
    NetworkReach {
        readable: profile::files(settings, has_tools),
        writable: cache.map(|cache| cache.directory().to_owned()),
        ports,
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
fn destination(task: &Task) -> Option<Destination> {
    match task {
        Task::Mount(mount) if mount.settings.log_file.is_some() => Some(Destination::Terminal),
        Task::Mount(mount) => Some(Destination::for_mount(mount)),
        _ => std::env::var_os("H5FS_LOG").map(|_| Destination::Terminal),
    }
}

/// Creates the exchange of requests with the server of `url`. Credentials files are opened by a
/// process of the user `opening`, or by this process if `opening` is `None`.
fn exchange(
    url: &Url,
    settings: &RemoteSettings,
    external: External,
    opening: Option<u32>,
) -> Result<Exchange> {
    let scheme = url.scheme();
    let is_signed = scheme.has_keys() && !settings.anonymous && !is_emulated(scheme, settings);
    let named = match scheme.has_keys() {
        true if is_signed => signer::credentials_files(scheme, settings),
        true => Vec::new(),
        false => Login::login_files(settings),
    };
    let files = match opening {
        Some(user) if !named.is_empty() => CredentialFiles::start_openers(named, user)?,
        _ => CredentialFiles::default(),
    };
    let (account, _) = url.authority().split_once('/').unwrap_or_default();
    let azure = match scheme {
        Scheme::Azure if is_signed => AzureAccount::find(settings, &files, account)?,
        _ => AzureAccount::default(),
    };
    let found = match scheme {
        Scheme::S3 => profile::find_profile(settings),
        _ => Profile::default(),
    };
    let point = url.access_point();
    let region = point.map(|point| point.region.to_owned()).or(found.region);
    let region = region.unwrap_or_else(|| match scheme {
        // Google's servers ignore the region.
        Scheme::Google => "auto".to_owned(),
        _ => REGION.to_owned(),
    });
    let endpoint = match settings.endpoint.as_ref().or(azure.endpoint.as_ref()) {
        Some(url) => Some(url.clone()),
        None => server(found.endpoint.or_else(|| emulator(scheme)))?,
    };
    if endpoint.is_some() && point.is_some() {
        return Err(Error::Usage("an access point has no endpoint".to_owned()));
    }
    let has_others = url.is_prefix() || external != External::None;
    let address = SourceAddress::new(url.clone(), endpoint, has_others);
    let address = address.with_signature(azure.signature.clone());
    let address = address.with_stacks(found.is_dual);
    let own = address.object_target(b"", &region);
    let own = own.map_err(|trouble| Error::Usage(trouble.text))?;
    let home = AddressPolicy::for_server(&own.uri);
    let step = attempt_timeout(settings.deadline());
    let client = Arc::new(HttpClient::new(settings, step, home)?);
    let login = if url.is_web_page() {
        Login::new(settings, &own.uri, files.clone())?
    } else {
        Login::empty(settings)?
    };
    let signer = match scheme {
        _ if !is_signed => None,
        Scheme::Google => Some(Signer::google(settings, Arc::clone(&client), files)?),
        Scheme::Azure => Some(Signer::Azure(azure.signer(account))),
        _ => Some(Signer::amazon(
            settings,
            Arc::clone(&client),
            &region,
            files,
        )?),
    };
    let lets_bearer_in = azure.signature.is_some() || matches!(signer, Some(Signer::Google(_)));
    let is_hidden = hosts::may_receive_secrets(&own.uri);
    if lets_bearer_in && !is_hidden {
        return Err(Error::Usage(
            "a token and a shared access signature are sent only over https".to_owned(),
        ));
    }
    if url.user_info().is_some() && !is_hidden {
        return Err(Error::Usage(
            "a user and a password are sent only over https".to_owned(),
        ));
    }
    let mut ports = vec![80, 443, hosts::port(&own.uri)];
    ports.extend(&settings.redirect_ports);
    if address.is_pelican() {
        ports.extend(pelican::PORTS);
    }
    Ok(Exchange {
        client,
        signer,
        login,
        address,
        region: Mutex::new(region),
        redirect_policy: home,
        rate_limits: RateLimits::new(settings.max_requests),
        requester_pays: settings.requester_pays,
        has_weak_tags: settings.has_weak_tags,
        ports,
        redirects: Mutex::default(),
        duplicates: Mutex::default(),
        counters: ConnectionCounters::default(),
    })
}

/// Parses the URL of an object store's server.
fn server(text: Option<String>) -> Result<Option<Url>> {
    let named = text.map(|text| match Location::parse(text.into())? {
        Location::Url(url) if url.is_server() => Ok(url),
        _ => Err(Error::Usage(
            "the endpoint is not the URL of a server".to_owned(),
        )),
    });
    named.transpose()
}

/// Returns the URL of the server that emulates Google Cloud Storage. The environment variable is
/// that of Google's own libraries, so the value may lack a scheme.
fn emulator(scheme: Scheme) -> Option<String> {
    let named = std::env::var("STORAGE_EMULATOR_HOST").ok();
    let named = named.filter(|text| scheme == Scheme::Google && !text.is_empty())?;
    let has_scheme = named.contains("://");
    Some(if has_scheme {
        named
    } else {
        format!("http://{named}")
    })
}

/// Returns whether the server of a source emulates Google Cloud Storage. An emulator needs no
/// credentials.
fn is_emulated(scheme: Scheme, settings: &RemoteSettings) -> bool {
    settings.endpoint.is_none() && emulator(scheme).is_some()
}

/// Returns the time limit for one attempt of a request. It is short enough for another attempt
/// before the deadline.
fn attempt_timeout(deadline: Duration) -> Duration {
    const LONGEST: Duration = Duration::from_secs(15);
    (deadline / 4).min(LONGEST)
}
