//! Options that control how the mount shows files.

use std::fs::File;
use std::num::NonZeroUsize;
use std::sync::Arc;

use h5fs_reader::array::CacheSize;
use h5fs_reader::source::mounts::mount_guard::MountGuard;
use h5fs_reader::source::neighbours::policy::OtherFilesPolicy as External;

use crate::limits;
use crate::mount_process::MountProcess;

/// Options that control how the mount shows a file.
#[derive(Debug, Clone)]
pub struct Options {
    /// User ID of the owner of all shown files; by default the owner of the source.
    pub uid: Option<u32>,
    /// Group ID of all shown files; by default the group of the source.
    pub gid: Option<u32>,
    /// Maximum number of data files of a mounted directory that stay open.
    pub open_files: usize,
    /// Permission bits to remove from the mode of all shown files.
    pub umask: Option<u32>,
    /// Whether reads bypass the kernel's page cache.
    pub direct_io: bool,
    /// Maximum bytes of decoded chunks in the cache.
    pub cache_size: CacheSize,
    /// Number of threads that decode chunks.
    pub threads: usize,
    /// Whether the directories of views, `.h5fs`, exist.
    pub views: bool,
    /// Which other files external links, virtual datasets and external storage may reference.
    pub external: External,
    /// Detects paths into the mount itself. Looking up such a path in this process would wait for
    /// the process's own reply.
    pub guard: Option<MountGuard>,
    /// Whether all users have access to the mount, not only the user who mounts.
    pub allow_other: bool,
    /// Whether the checksum of an ASDF block is verified before the first byte of the block is
    /// served.
    pub verify: bool,
    /// Whether a file is shown although its header says that a writer has it open.
    pub force: bool,
    /// Whether reading an element of a virtual dataset fails if its source is missing. If false,
    /// the element has the fill value.
    pub strict: bool,
    /// Whether a joined file omits data files that cannot be read because of a temporary error.
    pub partial: bool,
    /// File that stores the results of scanning data files, so that joining them again needs no
    /// scan. It is open for reading and appending.
    pub scans: Option<Arc<File>>,
    /// Whether the members of a group are listed in display order, and not in the order of the
    /// file's index.
    pub ordered: bool,
    /// Whether pages about objects reference the script that makes them interactive, which only a
    /// server provides.
    pub scripts: bool,
    /// The process that serves the mount, if `.h5fs/status` describes it.
    pub process: Option<MountProcess>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            uid: None,
            gid: None,
            open_files: limits::OPEN_MEMBERS,
            umask: None,
            direct_io: false,
            cache_size: limits::CACHE_LEAST.into(),
            threads: std::thread::available_parallelism().map_or(2, NonZeroUsize::get),
            views: true,
            external: External::WithinDirectory,
            guard: None,
            allow_other: false,
            verify: false,
            force: false,
            strict: false,
            partial: false,
            scans: None,
            ordered: false,
            scripts: false,
            process: None,
        }
    }
}
