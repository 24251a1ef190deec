//! The settings of a mount, as its options make them.

use std::path::PathBuf;
use std::time::Duration;

use crate::fs::External;
use crate::limits;
use crate::source::location::Url;
use crate::wire::to_u64;

/// The settings that all options together make.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Settings {
    pub(crate) allow_other: bool,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) umask: Option<u32>,
    /// In bytes; absent: [`default_cache_size`].
    pub(crate) cache_size: Option<u64>,
    /// Absent: [`default_threads`].
    pub(crate) threads: Option<usize>,
    /// Absent: [`limits::OPEN_MEMBERS`].
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
    /// `rw` was given without the words that mount.fuse(8) gives with it.
    pub(crate) asks_to_write: bool,
    /// The mount is there already, and is to be changed.
    pub(crate) remount: bool,
    /// The number of the user that reads; absent: the source's owner.
    pub(crate) run_as: Option<u32>,
    pub(crate) log_file: Option<PathBuf>,
    /// The name that `mount` shows for the source; absent: the source's path.
    pub(crate) fsname: Option<String>,
    /// Options for the kernel, as they stand.
    pub(crate) kernel: Vec<String>,
    /// For a source by URL.
    pub(crate) remote: RemoteSettings,
}

/// The settings of a source by URL.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RemoteSettings {
    /// The server of S3's protocol; absent: as the AWS tools find it.
    pub(crate) endpoint: Option<Url>,
    pub(crate) region: Option<String>,
    /// The profile in the files of the AWS tools.
    pub(crate) profile: Option<String>,
    /// Requests are not signed.
    pub(crate) anonymous: bool,
    /// A file of credentials in the form of `~/.aws/credentials`.
    pub(crate) credentials: Option<PathBuf>,
    pub(crate) requester_pays: bool,
    /// Entity tags are compared only where there is no date.
    pub(crate) has_weak_tags: bool,
    /// A file with a token for the URL's own server.
    pub(crate) bearer_token_file: Option<PathBuf>,
    /// A file with headers for the URL's own server.
    pub(crate) header_file: Option<PathBuf>,
    /// Names and passwords of hosts.
    pub(crate) netrc: Option<Netrc>,
    /// A file of cookies, in the form of Netscape's.
    pub(crate) cookies: Option<PathBuf>,
    /// Ports that redirects may lead to, beside 80, 443 and the URL's own.
    pub(crate) redirect_ports: Vec<u16>,
    /// A file of certificates that count in place of the system's.
    pub(crate) ca_file: Option<PathBuf>,
    /// Absent: [`limits::CONNECTIONS`].
    pub(crate) connections: Option<usize>,
    /// Requests a second to one host.
    pub(crate) max_requests: Option<usize>,
    /// Absent: [`DEADLINE`].
    pub(crate) timeout: Option<Duration>,
    /// The directory of the cache on disk.
    pub(crate) disk_cache: Option<PathBuf>,
    /// In bytes; absent: [`DISK_CACHE_SIZE`].
    pub(crate) disk_cache_size: Option<u64>,
}

/// A file of names and passwords.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Netrc {
    /// The one that `NETRC` names, or `~/.netrc`.
    Usual,
    File(PathBuf),
}

/// How long a request is tried, unless the options say otherwise.
const DEADLINE: Duration = Duration::from_secs(60);

/// Bytes of the cache on disk, unless the options say otherwise.
const DISK_CACHE_SIZE: u64 = 10 << 30;

impl RemoteSettings {
    /// How long a request is tried. Where requests take turns by the user's wish, the time that the
    /// turns of all that are under way take comes on top.
    pub(crate) fn deadline(&self) -> Duration {
        let all = limits::NEEDED_RUNS_ASKED.saturating_add(limits::EXPECTED_RUNS_ASKED);
        let turns = self
            .max_requests
            .map_or(0, |most| all.div_ceil(most.max(1)));
        let turns = Duration::from_secs(to_u64(turns));
        self.timeout.unwrap_or(DEADLINE).saturating_add(turns)
    }

    /// HTTP connections at a time.
    pub(crate) fn connections(&self) -> usize {
        self.connections.unwrap_or(limits::CONNECTIONS)
    }

    /// Bytes of the cache on disk.
    pub(crate) fn disk_cache_size(&self) -> u64 {
        self.disk_cache_size.unwrap_or(DISK_CACHE_SIZE)
    }
}
