//! The settings of a mount, as its options define them.

use std::path::PathBuf;
use std::time::Duration;

use h5fs_reader::source::location::Url;
use h5fs_reader::wire::to_u64;

use crate::fs::External;
use crate::limits;

/// The settings of a mount, after all options have been applied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Settings {
    pub(crate) allow_other: bool,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) umask: Option<u32>,
    /// Maximum size of the cache, in bytes. Default: [`default_cache_size`].
    pub(crate) cache_size: Option<u64>,
    /// Number of requests to the mount that are answered at a time. Default: [`default_threads`].
    pub(crate) threads: Option<usize>,
    /// Maximum number of data files that are open at a time. Default: [`limits::OPEN_MEMBERS`].
    pub(crate) open_files: Option<usize>,
    pub(crate) direct_io: bool,
    pub(crate) external: External,
    pub(crate) verify: bool,
    pub(crate) no_sandbox: bool,
    pub(crate) force: bool,
    pub(crate) strict: bool,
    pub(crate) partial: bool,
    pub(crate) no_views: bool,
    pub(crate) no_forget: bool,
    /// Whether the user gave the word `rw`, which asks for write access. mount.fuse(8) adds `rw`
    /// only together with other words.
    pub(crate) asks_to_write: bool,
    /// Whether the user asks to remount an existing mount.
    pub(crate) remount: bool,
    /// ID of the user as whom the source is read. Default: the owner of the source.
    pub(crate) run_as: Option<u32>,
    pub(crate) log_file: Option<PathBuf>,
    /// The source's name in the mount table. Default: the source's path.
    pub(crate) fsname: Option<String>,
    /// Options that are passed to the kernel unchanged.
    pub(crate) kernel: Vec<String>,
    /// Settings of a source by URL.
    pub(crate) remote: RemoteSettings,
}

/// The settings of a source by URL.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RemoteSettings {
    /// The server of the object store. Default: the server that the AWS tools would use.
    pub(crate) endpoint: Option<Url>,
    pub(crate) region: Option<String>,
    /// The profile in the configuration files of the AWS tools.
    pub(crate) profile: Option<String>,
    /// Whether requests are sent without a signature.
    pub(crate) anonymous: bool,
    /// A credentials file in the format of `~/.aws/credentials`.
    pub(crate) credentials: Option<PathBuf>,
    pub(crate) requester_pays: bool,
    /// Whether entity tags are not compared if the object has a modification date.
    pub(crate) has_weak_tags: bool,
    /// A file with a token for the server of the source's URL.
    pub(crate) bearer_token_file: Option<PathBuf>,
    /// A file with request headers for the server of the source's URL.
    pub(crate) header_file: Option<PathBuf>,
    /// The netrc file with names and passwords of hosts, if one is used.
    pub(crate) netrc: Option<NetrcChoice>,
    /// A file of cookies in Netscape format.
    pub(crate) cookies: Option<PathBuf>,
    /// Ports to which redirects may lead, in addition to 80, 443 and the port of the source's URL.
    pub(crate) redirect_ports: Vec<u16>,
    /// A file of certificates that replaces the system's certificates.
    pub(crate) ca_file: Option<PathBuf>,
    /// Maximum number of HTTP connections at a time. Default: [`limits::CONNECTIONS`].
    pub(crate) connections: Option<usize>,
    /// Maximum number of requests per second to one host.
    pub(crate) max_requests: Option<usize>,
    /// Time for which a failed request is retried. Default: [`DEADLINE`].
    pub(crate) timeout: Option<Duration>,
    /// The directory of the cache on disk.
    pub(crate) disk_cache: Option<PathBuf>,
    /// Maximum size of the disk cache, in bytes. Default: [`DISK_CACHE_SIZE`].
    pub(crate) disk_cache_size: Option<u64>,
}

/// A choice of the netrc file with names and passwords.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NetrcChoice {
    /// The file that `NETRC` names, or `~/.netrc`.
    DefaultFile,
    File(PathBuf),
}

/// Default time for which a failed request is retried.
const DEADLINE: Duration = Duration::from_secs(60);

/// Default size of the disk cache, in bytes.
const DISK_CACHE_SIZE: u64 = 10 << 30;

impl RemoteSettings {
    /// Returns the time for which a failed request is retried. If `max_requests` limits the rate,
    /// the time is longer: the requests of all connections may wait for their turn before this one.
    pub(crate) fn deadline(&self) -> Duration {
        let all = limits::NEEDED_RUNS_ASKED.saturating_add(limits::EXPECTED_RUNS_ASKED);
        let turns = self
            .max_requests
            .map_or(0, |most| all.div_ceil(most.max(1)));
        let turns = Duration::from_secs(to_u64(turns));
        self.timeout.unwrap_or(DEADLINE).saturating_add(turns)
    }

    /// Returns the maximum number of concurrent HTTP connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.unwrap_or(limits::CONNECTIONS)
    }

    /// Returns the size of the disk cache in bytes.
    pub(crate) fn disk_cache_size(&self) -> u64 {
        self.disk_cache_size.unwrap_or(DISK_CACHE_SIZE)
    }
}
