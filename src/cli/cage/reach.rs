//! What the process with the network needs of the system.

use std::path::PathBuf;

/// What the process with the network may reach.
#[derive(Debug)]
pub(crate) struct NetworkReach {
    /// Files, and directories with files, that it reads.
    pub(crate) readable: Vec<PathBuf>,
    /// The directory whose files it writes.
    pub(crate) writable: Option<PathBuf>,
    /// The ports of TCP to which it connects.
    pub(crate) ports: Vec<u16>,
    /// How many connections it has at a time.
    pub(crate) connections: usize,
}
