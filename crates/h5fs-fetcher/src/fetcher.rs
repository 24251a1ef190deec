//! The fetcher of one source: its server, its credentials, and what its sandbox must permit.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use h5fs_reader::error::{Error, Result, io_error_message};
use h5fs_reader::source::location::{Location, Scheme, Url};

use crate::address::SourceAddress;
use crate::client::HttpClient;
use crate::disk_cache::DiskCache;
use crate::exchange::{ConnectionCounters, RequestSender};
use crate::hosts::{self, AddressPolicy};
use crate::login::Login;
use crate::pelican;
use crate::rate_limits::RateLimits;
use crate::service::stage::Stage;
use crate::service::{self, Service};
use crate::settings::RemoteSettings;
use crate::signer::azure::AzureAccount;
use crate::signer::files::{CredentialFiles, StartOpener};
use crate::signer::profile::{self, S3Profile};
use crate::signer::{self, Signer};

/// Region of a bucket until the server reports its actual region.
const DEFAULT_REGION: &str = "us-east-1";

/// A fetcher that is ready to serve the requests for one source.
pub struct Fetcher {
    exchange: RequestSender,
    settings: RemoteSettings,
}

impl std::fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetcher").finish_non_exhaustive()
    }
}

impl Fetcher {
    /// Prepares the requests to the server of `url`, and finds the credentials. No request is sent.
    ///
    /// `has_other_objects` says whether requests may name objects other than the one at the URL.
    /// Processes that `start_opener` starts open the credentials files. If `start_opener` is
    /// `None`, this process opens them.
    ///
    /// # Errors
    /// `Usage` for settings that contradict each other, or files without credentials; `Io` if a
    /// process cannot be started.
    pub fn new(
        url: &Url,
        settings: &RemoteSettings,
        has_other_objects: bool,
        start_opener: Option<&StartOpener<'_>>,
    ) -> Result<Self> {
        let credentials = Credentials::find(url, settings, start_opener)?;
        let server = ServerChoice::find(url, settings, &credentials.azure)?;
        let has_others = url.is_prefix() || has_other_objects;
        let address = SourceAddress::new(url.clone(), server.endpoint, has_others)
            .with_signature(credentials.azure.signature.clone())
            .with_dual_stack(server.is_dual_stack);
        let own = address.object_target(b"", &server.region);
        let own = own.map_err(|failure| Error::Usage(failure.text))?.uri;
        let redirect_policy = AddressPolicy::for_server(&own);
        let attempt_time = attempt_timeout(settings.deadline());
        let client = Arc::new(HttpClient::new(settings, attempt_time, redirect_policy)?);
        let login = if url.is_web_page() {
            Login::new(settings, &own, credentials.files.clone())?
        } else {
            Login::empty(settings)?
        };
        let is_hidden = hosts::may_receive_secrets(&own);
        let has_signature = credentials.azure.signature.is_some();
        let signer = credentials.signer(url, settings, &client, &server.region)?;
        let sends_bearer = has_signature || matches!(signer, Some(Signer::Google(_)));
        refuse_exposed_secrets(url, sends_bearer, is_hidden)?;
        let mut ports = vec![80, 443, hosts::port(&own)];
        ports.extend(&settings.redirect_ports);
        if address.is_pelican() {
            ports.extend(pelican::PORTS);
        }
        let exchange = RequestSender {
            client,
            signer,
            login,
            address,
            region: Mutex::new(server.region),
            redirect_policy,
            rate_limits: RateLimits::new(settings.max_requests),
            requester_pays: settings.requester_pays,
            has_weak_tags: settings.has_weak_tags,
            ports,
            redirects: Mutex::default(),
            duplicates: Mutex::default(),
            counters: ConnectionCounters::default(),
        };
        Ok(Fetcher {
            exchange,
            settings: settings.clone(),
        })
    }

    /// Returns the files and directories that the fetcher opens itself while it serves: those of
    /// the resolver, certificates, and `~/.aws`.
    #[must_use]
    pub fn readable_files(&self) -> Vec<PathBuf> {
        let has_profile = matches!(self.exchange.signer, Some(Signer::Amazon(_)));
        profile::readable_files(&self.settings, has_profile)
    }

    /// Returns the ports that the fetcher connects to while it serves.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        let mut ports = vec![53];
        ports.extend(self.exchange.all_ports());
        ports.extend(
            self.exchange
                .signer
                .as_ref()
                .and_then(Signer::token_server_port),
        );
        ports
    }

    /// Answers the requests that arrive on `socket` until it is closed. Fetched bytes are written
    /// to the file `stage`. A cache that cannot be opened or written is not used, and the client is
    /// warned.
    pub fn serve(self, socket: OwnedFd, stage: File, cache: io::Result<Option<DiskCache>>) {
        let cache = cache.and_then(|cache| cache.map(DiskCache::check_writable).transpose());
        let (cache, failure) = match cache {
            Ok(cache) => (cache, None),
            Err(error) => (None, Some(error)),
        };
        let stage = Stage::new(stage);
        let service = Service::new(socket, stage, self.exchange, cache, &self.settings);
        if let Some(error) = failure {
            let directory = self.settings.disk_cache.unwrap_or_default();
            let (directory, reason) = (directory.display(), io_error_message(&error));
            service.warn(format!("{directory}: the disk cache is not used: {reason}"));
        }
        service.run();
    }
}

/// Serves in place of a fetcher that could not be prepared: answers every request with `reason`
/// until the socket is closed.
pub fn refuse_all(socket: &OwnedFd, reason: &str) {
    service::refuse_all(socket, reason);
}

/// The credentials files of a source, and what they say about an Azure account.
struct Credentials {
    files: CredentialFiles,
    /// Whether requests to an object store are signed.
    is_signed: bool,
    azure: AzureAccount,
}

impl Credentials {
    fn find(
        url: &Url,
        settings: &RemoteSettings,
        start_opener: Option<&StartOpener<'_>>,
    ) -> Result<Self> {
        let scheme = url.scheme();
        let is_signed = scheme.has_keys() && !settings.anonymous && !is_emulated(scheme, settings);
        let named = match scheme.has_keys() {
            true if is_signed => signer::credentials_files(scheme, settings),
            true => Vec::new(),
            false => Login::login_files(settings),
        };
        let files = match start_opener {
            Some(start) if !named.is_empty() => CredentialFiles::start_openers(named, start)?,
            _ => CredentialFiles::default(),
        };
        let azure = match scheme {
            Scheme::Azure if is_signed => {
                AzureAccount::find(settings, &files, azure_account_name(url))?
            }
            _ => AzureAccount::default(),
        };
        Ok(Credentials {
            files,
            is_signed,
            azure,
        })
    }

    /// Returns the signer of requests in this region, or `None` if requests are not signed.
    fn signer(
        self,
        url: &Url,
        settings: &RemoteSettings,
        client: &Arc<HttpClient>,
        region: &str,
    ) -> Result<Option<Signer>> {
        let client = Arc::clone(client);
        Ok(match url.scheme() {
            _ if !self.is_signed => None,
            Scheme::Google => Some(Signer::google(settings, client, self.files)?),
            Scheme::Azure => Some(Signer::Azure(self.azure.signer(azure_account_name(url)))),
            _ => Some(Signer::amazon(settings, client, region, self.files)?),
        })
    }
}

/// Returns the account in an `az://ACCOUNT/CONTAINER` URL.
fn azure_account_name(url: &Url) -> &str {
    url.authority().split_once('/').unwrap_or_default().0
}

/// The region and the server of an object store, from the options, the environment and the profile.
struct ServerChoice {
    region: String,
    /// `None` for the default server of the store, or for the web server in the URL.
    endpoint: Option<Url>,
    /// Whether Amazon's dual-stack hosts, which also have IPv6 addresses, are used.
    is_dual_stack: bool,
}

impl ServerChoice {
    fn find(url: &Url, settings: &RemoteSettings, azure: &AzureAccount) -> Result<Self> {
        let scheme = url.scheme();
        let profile = match scheme {
            Scheme::S3 => profile::find_profile(settings),
            _ => S3Profile::default(),
        };
        let access_point = url.access_point();
        let region = access_point.map(|point| point.region.to_owned());
        let region = region.or(profile.region);
        let region = region.unwrap_or_else(|| match scheme {
            // Google's servers ignore the region.
            Scheme::Google => "auto".to_owned(),
            _ => DEFAULT_REGION.to_owned(),
        });
        let endpoint = match settings.endpoint.as_ref().or(azure.endpoint.as_ref()) {
            Some(url) => Some(url.clone()),
            None => parse_server(profile.endpoint.or_else(|| google_emulator(scheme)))?,
        };
        if endpoint.is_some() && access_point.is_some() {
            return Err(Error::Usage("an access point has no endpoint".to_owned()));
        }
        Ok(ServerChoice {
            region,
            endpoint,
            is_dual_stack: profile.is_dual_stack,
        })
    }
}

/// Fails if requests to `url` would contain a secret that any host on the way to the server could
/// read. `sends_bearer` says whether they contain a token or a shared access signature. `is_hidden`
/// says whether they are encrypted or do not leave this machine.
fn refuse_exposed_secrets(url: &Url, sends_bearer: bool, is_hidden: bool) -> Result<()> {
    let exposed = match (sends_bearer, url.user_info()) {
        (true, _) => "a token and a shared access signature",
        (false, Some(_)) => "a user and a password",
        (false, None) => return Ok(()),
    };
    if is_hidden {
        return Ok(());
    }
    Err(Error::Usage(format!("{exposed} are sent only over https")))
}

/// Parses the URL of an object store's server.
fn parse_server(text: Option<String>) -> Result<Option<Url>> {
    let named = text.map(|text| match Location::parse(text.into())? {
        Location::Url(url) if url.is_server() => Ok(url),
        _ => Err(Error::Usage(
            "the endpoint is not the URL of a server".to_owned(),
        )),
    });
    named.transpose()
}

/// Returns the URL of the server that emulates Google Cloud Storage. Returns `None` for other
/// stores, or if `STORAGE_EMULATOR_HOST` is not set. Google's own libraries define this variable,
/// so its value may lack a scheme.
fn google_emulator(scheme: Scheme) -> Option<String> {
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
    settings.endpoint.is_none() && google_emulator(scheme).is_some()
}

/// Returns the time limit for one attempt of a request. It is short enough for another attempt
/// before the deadline.
fn attempt_timeout(deadline: Duration) -> Duration {
    const LONGEST: Duration = Duration::from_secs(15);
    (deadline / 4).min(LONGEST)
}
