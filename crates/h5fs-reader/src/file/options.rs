//! Options for opening a file.

use std::path::Path;
use std::sync::Arc;

use crate::array::Engine;
use crate::detect::{self, Caches};
use crate::error::Result;
use crate::file::{File, OpenFile};
use crate::limits;
use crate::source::SharedSource;
use crate::source::local::audience::Readers;
use crate::source::local::file::FileSource;
use crate::source::neighbours::Neighbours;
use crate::source::neighbours::policy::OtherFilesPolicy;

/// Options for opening a file.
///
/// ```
/// # fn main() -> h5fs_reader::error::Result<()> {
/// # let path = "../../src/cli/text/climate.h5";
/// use h5fs_reader::file::File;
///
/// let file = File::options().cache_bytes(8 << 20).threads(1).open(path)?;
/// # file.root()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Capacity in bytes of the cache of decoded chunks. 64 MiB by default.
    pub cache_bytes: u64,
    /// Number of threads that decode chunks ahead of sequential reads. 2 by default.
    pub threads: usize,
    /// Maximum number of bytes that one read may return. 1 GiB by default.
    pub read_bytes: u64,
    /// Which other files the file may refer to, for external data, virtual datasets and ASDF
    /// blocks. By default, files inside the directory of the file.
    pub other_files: OtherFilesPolicy,
    /// Whether a file that is marked as open for writing is opened nevertheless. Its content may
    /// then be inconsistent. False by default.
    pub force: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            cache_bytes: 64 << 20,
            threads: 2,
            read_bytes: limits::READ_BYTES,
            other_files: OtherFilesPolicy::default(),
            force: false,
        }
    }
}

impl OpenOptions {
    /// Sets the capacity in bytes of the cache of decoded chunks.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Sets the number of threads that decode chunks ahead of sequential reads.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the maximum number of bytes that one read may return.
    #[must_use]
    pub fn read_bytes(mut self, bytes: u64) -> Self {
        self.read_bytes = bytes;
        self
    }

    /// Sets which other files the file may refer to.
    #[must_use]
    pub fn other_files(mut self, policy: OtherFilesPolicy) -> Self {
        self.other_files = policy;
        self
    }

    /// Sets whether a file is opened although it is marked as open for writing.
    #[must_use]
    pub fn force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }

    /// Opens the file at `path`. Its content, not its name, determines the format.
    ///
    /// # Errors
    /// `Io` if the file cannot be opened or read, and `Usage` if it is neither an HDF5 nor an ASDF
    /// file. Otherwise fails if the file is damaged or unsupported.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<File> {
        let path = path.as_ref();
        let source = Arc::new(FileSource::open(path, None)?);
        let neighbours = Neighbours::new(path, self.other_files, None, Readers::Owner);
        self.open_with(source, neighbours)
    }

    /// Opens the file in `source`, such as a [`MemorySource`](crate::source::memory::MemorySource).
    /// Such a file cannot refer to other files.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does.
    pub fn open_source(&self, source: SharedSource) -> Result<File> {
        self.open_with(source, Neighbours::unavailable())
    }

    fn open_with(&self, source: SharedSource, neighbours: Neighbours) -> Result<File> {
        let neighbours = Arc::new(neighbours);
        let container = detect::open(source, neighbours, &Caches::default(), self.force)?;
        Ok(File(Arc::new(OpenFile {
            container,
            engine: Engine::new(self.cache_bytes, self.threads),
            read_bytes: self.read_bytes,
        })))
    }
}
