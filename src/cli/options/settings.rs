//! The settings of a mount, as its options define them.

use std::path::PathBuf;

use h5fs_fetcher::RemoteSettings;
use h5fs_tree::External;

/// The settings of a mount, after all options have been applied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Settings {
    pub(crate) allow_other: bool,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) umask: Option<u32>,
    /// Maximum size of the cache, in bytes. Default:
    /// [`default_cache_size`](super::default_cache_size).
    pub(crate) cache_size: Option<u64>,
    /// Number of requests to the mount that are answered at a time. Default:
    /// [`default_threads`](super::default_threads).
    pub(crate) threads: Option<usize>,
    /// Maximum number of data files that are open at a time. Default:
    /// [`OPEN_MEMBERS`](crate::limits::OPEN_MEMBERS).
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
    /// Whether no file of the mount can be executed.
    pub(crate) no_exec: bool,
    /// Whether the kernel follows no symbolic link in the mount.
    pub(crate) no_symlinks: bool,
    /// Options that are passed to the kernel unchanged.
    pub(crate) kernel: Vec<String>,
    /// Settings of a source by URL.
    pub(crate) remote: RemoteSettings,
}
