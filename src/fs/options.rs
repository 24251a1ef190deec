//! Options that control how files are shown.

use std::fs::File;
use std::num::NonZeroUsize;
use std::sync::Arc;

use h5fs_reader::array::CacheSize;
use h5fs_reader::source::mounts::mount_guard::MountGuard;
use h5fs_reader::source::neighbours::policy::Policy as External;

use crate::fs::state::resident_memory::ResidentMemory;
use crate::limits;

/// Options that control how a file is shown.
#[derive(Debug, Clone)]
pub struct Options {
    /// Owner of all files; by default the source's.
    pub uid: Option<u32>,
    /// Group of all files; by default the source's.
    pub gid: Option<u32>,
    /// Number of data files of a directory that are kept open.
    pub open_files: usize,
    /// Permission bits to remove.
    pub umask: Option<u32>,
    /// Whether reads bypass the kernel's page cache.
    pub direct_io: bool,
    /// Bytes of decoded chunks in the cache.
    pub cache_size: CacheSize,
    /// Number of decoding threads.
    pub threads: usize,
    /// Whether `.h5fs` exists.
    pub views: bool,
    /// Which other files the mounted file may reference.
    pub external: External,
    /// The mount itself, where the process must not look up files: it would wait for its own reply.
    pub guard: Option<MountGuard>,
    /// Whether all users have access, not only the user who mounts.
    pub allow_other: bool,
    /// Whether the checksum of a whole block is checked before its first byte is served.
    pub verify: bool,
    /// Whether a file that is marked as being written is shown.
    pub force: bool,
    /// Whether elements of a virtual array with a missing source are an error.
    pub strict: bool,
    /// Whether unreadable files are omitted from a joined file.
    pub partial: bool,
    /// Cache of scan results of a directory's files, for the next time that they are joined. The
    /// file is open for reading and appending.
    pub scans: Option<Arc<File>>,
    /// Whether the members of a group are listed in display order, and not in the order of the
    /// file's index.
    pub ordered: bool,
    /// Whether pages include their script, which a server provides.
    pub scripts: bool,
    /// Memory usage of the process, if the mount reports it.
    pub resident: Option<ResidentMemory>,
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
            external: External::Within,
            guard: None,
            allow_other: false,
            verify: false,
            force: false,
            strict: false,
            partial: false,
            scans: None,
            ordered: false,
            scripts: false,
            resident: None,
        }
    }
}
