//! Limits the memory and the threads of a process; see getrlimit(2).
//!
//! `RLIMIT_DATA` counts private writable memory, that is, all memory of the allocator and of
//! stacks. The limit is the sum of all memory budgets. No file can exhaust it, whatever the file
//! contains; only an attacker who controls the process can. An allocation beyond the limit fails
//! and ends the process, and then the supervisor unmounts. `RLIMIT_AS` also counts reserved
//! addresses, whose page tables take memory even without a write.
//!
//! `RLIMIT_NPROC` counts all threads of a real user in the system, including threads of other
//! programs. The limit is therefore larger than the number of all existing threads. The kernel
//! ignores the limit for the real user root.

use h5fs_reader::wire::to_u64;
use h5fs_tree::Options;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::cli::machine::usable_memory;
use crate::limits;

/// The resource limits of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResourceLimits {
    /// Maximum number of bytes of private writable memory.
    pub(super) data_bytes: u64,
    /// Maximum number of bytes of address space.
    pub(super) addresses: u64,
    /// Maximum number of threads of the process's user. `None` if the number of existing threads is
    /// unknown.
    pub(super) threads: Option<u64>,
}

impl ResourceLimits {
    /// Returns the limits of a process that shows a source with these `options`.
    pub(super) fn for_options(options: &Options) -> Self {
        let data = data_limit(options, usable_memory().unwrap_or(0));
        let there = threads_of_the_system();
        ResourceLimits {
            data_bytes: data,
            addresses: data.saturating_mul(4),
            threads: there.map(|there| there.saturating_add(limits::OWN_THREADS)),
        }
    }

    /// Returns the limits of the fetcher with this number of connections to servers.
    pub(super) fn for_fetcher(connections: usize) -> Self {
        let connections = to_u64(connections).saturating_mul(limits::CONNECTION_BYTES);
        let data = limits::FETCHING_BYTES.saturating_add(connections);
        let there = threads_of_the_system();
        ResourceLimits {
            data_bytes: data,
            addresses: data.saturating_mul(8),
            threads: there.map(|there| there.saturating_add(limits::OWN_THREADS)),
        }
    }

    /// Applies the limits to this process.
    ///
    /// # Errors
    /// Fails if the system refuses a limit.
    pub(super) fn apply(self) -> nix::Result<()> {
        lower_limit(Resource::RLIMIT_DATA, self.data_bytes)?;
        lower_limit(Resource::RLIMIT_AS, self.addresses)?;
        let threads = self.threads;
        threads.map_or(Ok(()), |most| lower_limit(Resource::RLIMIT_NPROC, most))
    }
}

pub(super) fn disable_core_files() -> nix::Result<()> {
    lower_limit(Resource::RLIMIT_CORE, 0)
}

fn lower_limit(resource: Resource, most: u64) -> nix::Result<()> {
    let (_, hard) = getrlimit(resource)?;
    let most = most.min(hard);
    setrlimit(resource, most, most)
}

/// Returns the limit of private writable memory in bytes. `memory` is the memory in bytes that this
/// process may use.
fn data_limit(options: &Options, memory: u64) -> u64 {
    let threads = to_u64(options.threads).saturating_mul(limits::THREAD_BYTES);
    // For a name that was looked up, the kernel needs sixteen times the memory that this process
    // needs.
    let names = memory / 16;
    [options.cache_size.max_bytes, threads, names]
        .into_iter()
        .fold(limits::SERVING_BYTES, u64::saturating_add)
}

/// Returns the number of threads in the whole system. No user can have more threads. See proc(5),
/// /proc/loadavg.
pub(super) fn threads_of_the_system() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let (_, all) = text.split(' ').nth(3)?.split_once('/')?;
    all.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::array::CacheSize;

    #[test]
    fn the_memory_limit_includes_all_budgets() {
        let options = Options {
            cache_size: CacheSize::from(1 << 30),
            threads: 2,
            ..Options::default()
        };
        let promised = (1 << 30) + (64 << 20) + limits::OPEN_BYTES + 3 * limits::CHUNK_BYTES;
        let bound = data_limit(&options, 0);
        assert!((promised..2 * promised).contains(&bound), "{bound}");
        let all = Options {
            cache_size: u64::MAX.into(),
            ..options
        };
        assert_eq!(data_limit(&all, u64::MAX), u64::MAX);
    }

    #[test]
    fn threads_are_counted() {
        let there = threads_of_the_system().expect("a number");
        let own = std::fs::read_dir("/proc/self/task").unwrap().count();
        assert!(there >= to_u64(own));
    }
}
