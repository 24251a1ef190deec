//! All limits on the resources that a file can make the program use. The crate `h5fs-reader`
//! defines the limits of parsing a file's format, and `h5fs-fetcher` those of fetching its bytes.
//! This module re-exports both.
//!
//! A structure that exceeds a limit is rejected with
//! [`Error::Limit`](h5fs_reader::error::Error::Limit).

/// The limits of all other crates.
pub use h5fs_fetcher::limits::*;
pub use h5fs_tree::limits::*;

/// Bounds of the largest cache size in bytes, without `cache_size`. The cache grows if that avoids
/// decoding chunks again, up to a quarter of the machine's memory within these bounds.
pub const CACHE_MOST: std::ops::RangeInclusive<u64> = (64 << 20)..=(1 << 30);

/// Maximum names of a directory among which a command searches the name that was meant by one that
/// does not exist.
pub const HINT_NAMES: usize = 4096;

/// Maximum threads that serve requests.
pub const THREADS: usize = 256;

/// Maximum bytes of memory for reading, in addition to the cache and the threads. The sum contains:
///
/// - the largest chunk, stored and twice decoded
/// - open objects
/// - the decoders of two ASDF streams
/// - joined files
/// - 64 MiB for other uses
/// - memory that allocators leave unused
pub const SERVING_BYTES: u64 = {
    let (decoders, unused) = (2 * (160 << 20), 384 << 20);
    // `JOINED_BYTES` four times: the metadata of the old state of the joined file, the metadata of
    // the new state, arrays in memory, and data that is computed while files are joined.
    let joined = 4 * JOINED_BYTES;
    3 * CHUNK_BYTES + OPEN_BYTES + decoders + (64 << 20) + joined + unused
};

/// Maximum bytes of memory for each thread that serves requests. The sum contains 16 MiB for a
/// request, its stack, a reply, and the stacks of threads that decode for it.
pub const THREAD_BYTES: u64 = 64 << 20;

/// Maximum threads of the user who runs h5fs, in addition to the number of threads that the whole
/// system had when this limit was set.
pub const OWN_THREADS: u64 = 4096;

/// Largest value of `open_files`.
pub const MOST_OPEN_MEMBERS: usize = 4096;

/// Maximum bytes of a line that a worker reports to its supervisor, or a supervisor to its
/// launcher: two paths and a reason, escaped.
pub const REPORT_BYTES: usize = 64 << 10;

/// Interval at which a supervisor checks that its mount answers.
pub const MOUNT_LOOK: std::time::Duration = std::time::Duration::from_secs(10);

/// Seconds without an answer from the mount, after a supervisor's check, until the supervisor ends
/// the mount. Seconds that the worker waits for a disk do not count.
pub const MOUNT_UNANSWERED: u32 = 60;

/// Time for a worker to end after the kernel has ended its mount. After this time, the supervisor
/// kills the worker.
pub const UNMOUNTED_WORKER: std::time::Duration = std::time::Duration::from_secs(3);

/// Maximum sources that one `h5fs serve` serves.
pub const HTTP_SOURCES: usize = 64;

#[cfg(test)]
mod tests;
