//! The settings of a source by URL.
//!
//! None of them is a secret: a key or a token comes from the environment or from a file.

use std::path::PathBuf;
use std::time::Duration;

use h5fs_reader::source::location::Url;
use h5fs_reader::wire::to_u64;

use crate::limits;

/// The settings of a source by URL.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemoteSettings {
    /// The server of the object store. Default: the server that the store's own tools would use.
    pub endpoint: Option<Url>,
    /// The region of the bucket. Default: the region in the environment or in the profile, or the
    /// one that the server names.
    pub region: Option<String>,
    /// The profile in the configuration files of the AWS tools.
    pub profile: Option<String>,
    /// Whether requests are sent without a signature.
    pub anonymous: bool,
    /// The only credentials file that is used. It contains the text of `~/.aws/credentials` (for
    /// `s3://`), application-default credentials (for `gs://`), or a connection string (for
    /// `az://`).
    pub credentials: Option<PathBuf>,
    /// Whether the owner of the credentials agrees to pay for the requests.
    pub requester_pays: bool,
    /// Whether entity tags are not compared if the object has a modification date.
    pub has_weak_tags: bool,
    /// A file with a token for the server of the source's URL.
    pub bearer_token_file: Option<PathBuf>,
    /// A file with request headers for the server of the source's URL.
    pub header_file: Option<PathBuf>,
    /// The netrc file with names and passwords of hosts, if one is used.
    pub netrc: Option<NetrcChoice>,
    /// A file of cookies in Netscape format.
    pub cookies: Option<PathBuf>,
    /// Ports to which redirects may lead, in addition to 80, 443 and the port of the source's URL.
    pub redirect_ports: Vec<u16>,
    /// A file of certificates that replaces the system's certificates.
    pub ca_file: Option<PathBuf>,
    /// Maximum number of HTTP connections at a time. Default: [`limits::CONNECTIONS`].
    pub connections: Option<usize>,
    /// Maximum number of requests per second to one host.
    pub max_requests: Option<usize>,
    /// Time for which a failed request is retried. Default: `DEADLINE`.
    pub timeout: Option<Duration>,
    /// The directory of the cache on disk.
    pub disk_cache: Option<PathBuf>,
    /// Maximum size of the disk cache, in bytes. Default: `DISK_CACHE_SIZE`.
    pub disk_cache_size: Option<u64>,
}

/// A choice of the netrc file with names and passwords.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetrcChoice {
    /// The file that `NETRC` names, or `~/.netrc`.
    DefaultFile,
    /// The file at this path.
    File(PathBuf),
}

/// Default time for which a failed request is retried.
const DEADLINE: Duration = Duration::from_secs(60);

/// Default size of the disk cache, in bytes.
const DISK_CACHE_SIZE: u64 = 10 << 30;

impl RemoteSettings {
    /// Returns the time for which a failed request is retried. If `max_requests` limits the rate,
    /// the time is longer: the requests of all connections may be sent before this one.
    pub fn deadline(&self) -> Duration {
        let all = limits::NEEDED_RUNS_ASKED.saturating_add(limits::EXPECTED_RUNS_ASKED);
        let turns = self
            .max_requests
            .map_or(0, |most| all.div_ceil(most.max(1)));
        let turns = Duration::from_secs(to_u64(turns));
        self.timeout.unwrap_or(DEADLINE).saturating_add(turns)
    }

    /// Returns the maximum number of concurrent HTTP connections.
    pub fn connections(&self) -> usize {
        self.connections.unwrap_or(limits::CONNECTIONS)
    }

    /// Returns the maximum size of the disk cache in bytes.
    pub fn disk_cache_size(&self) -> u64 {
        self.disk_cache_size.unwrap_or(DISK_CACHE_SIZE)
    }
}
