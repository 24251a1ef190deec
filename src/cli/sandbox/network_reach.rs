//! The system resources that the fetcher needs.

use std::path::PathBuf;

/// The files, ports and connections that the fetcher may use.
#[derive(Debug)]
pub(crate) struct NetworkReach {
    /// Files and directories that the fetcher reads.
    pub(crate) readable: Vec<PathBuf>,
    /// The directory whose files the fetcher writes.
    pub(crate) writable: Option<PathBuf>,
    /// TCP ports that the fetcher connects to.
    pub(crate) ports: Vec<u16>,
    /// Maximum number of connections at a time.
    pub(crate) connections: usize,
}
