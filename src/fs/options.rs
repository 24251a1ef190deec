//! How a mounted file is shown.

use std::fs::File;
use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::array::CacheSize;
use crate::fs::state::resident::Resident;
use crate::limits;
use crate::source::mounts::mount_guard::MountGuard;
use crate::source::neighbours::policy::Policy as External;

/// How a file is shown.
#[derive(Debug, Clone)]
pub struct Options {
    /// Owner of all files, else the source's.
    pub uid: Option<u32>,
    /// Group of all files, else the source's.
    pub gid: Option<u32>,
    /// Data files of a directory that are kept open at a time.
    pub open_files: usize,
    /// Permission bits that are taken away.
    pub umask: Option<u32>,
    /// Whether reads go past the kernel's page cache.
    pub direct_io: bool,
    /// Bytes of decoded chunks that are kept.
    pub cache_size: CacheSize,
    /// Threads that decode.
    pub threads: usize,
    /// Whether `.h5fs` is there.
    pub views: bool,
    /// Which other files the mounted one may lead to.
    pub external: External,
    /// The mount itself: a look-up there would wait for an answer that this process has to give.
    pub guard: Option<MountGuard>,
    /// Whether all users are let in, not only the user that mounts.
    pub allow_other: bool,
    /// Whether whole-block checksums are checked before the first byte is served.
    pub verify: bool,
    /// Whether a file that is marked as being written is shown, too.
    pub force: bool,
    /// Whether elements of a virtual array whose source is missing are an error.
    pub strict: bool,
    /// Whether files that cannot be read now are left out of what is joined.
    pub partial: bool,
    /// Where what is read of the files of a directory is kept, for the next time that they are shown
    /// as one; open for reading, and for writing at its end.
    pub scans: Option<Arc<File>>,
    /// Whether the members of a group are listed in the order in which people are shown them, not in
    /// that of the file's index.
    pub ordered: bool,
    /// Whether pages have their script, which a server gives.
    pub scripts: bool,
    /// How much memory the process takes, if the mount is to tell.
    pub resident: Option<Resident>,
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
