//! The files and network ports that the fetcher's sandbox permits.

use std::path::PathBuf;

/// The files, ports and connections that the fetcher may use.
#[derive(Debug)]
pub(crate) struct NetworkReach {
    /// Files and directories that the fetcher may read.
    pub(crate) readable: Vec<PathBuf>,
    /// The directory in which the fetcher may write files: the disk cache.
    pub(crate) writable: Option<PathBuf>,
    /// TCP ports to which the fetcher may connect.
    pub(crate) ports: Vec<u16>,
    /// Maximum number of network connections at a time.
    pub(crate) connections: usize,
}
