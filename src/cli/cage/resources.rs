//! Memory and threads; getrlimit(2).
//!
//! `RLIMIT_DATA` counts what can be written and is nobody else's: all that the allocator and stacks
//! take. It is what promised memory adds up to, everything at once, so that it is never met by a
//! file, whatever it holds, but by an intruder in the process. Memory beyond it is
//! refused, and the process ends; the supervisor unmounts. `RLIMIT_AS` counts addresses as well,
//! whose tables take memory even where nothing is written.
//!
//! `RLIMIT_NPROC` counts the threads of a real user in the whole system, those of other programs
//! too: so the bound is more than all that there are. For the real user root the kernel does not
//! look at it.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::cli::options::machine_memory;
use crate::fs::Options;
use crate::limits;
use crate::wire::to_u64;

/// The resources that a process may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Bytes of memory that can be written.
    pub(super) data: u64,
    /// Bytes of addresses.
    pub(super) addresses: u64,
    /// Threads of its user, where these are known.
    pub(super) threads: Option<u64>,
}

impl Bounds {
    /// The resources that showing a source with these `options` may take.
    pub(super) fn of(options: &Options) -> Self {
        let data = data(options, machine_memory().unwrap_or(0));
        let there = threads_of_the_system();
        Bounds {
            data,
            addresses: data.saturating_mul(4),
            threads: there.map(|there| there.saturating_add(limits::OWN_THREADS)),
        }
    }

    /// The resources that speaking to servers by so many connections may take.
    pub(super) fn of_network(connections: usize) -> Self {
        let connections = to_u64(connections).saturating_mul(limits::CONNECTION_BYTES);
        let data = limits::FETCHING_BYTES.saturating_add(connections);
        let there = threads_of_the_system();
        Bounds {
            data,
            addresses: data.saturating_mul(8),
            threads: there.map(|there| there.saturating_add(limits::OWN_THREADS)),
        }
    }

    /// Leaves this process no more.
    ///
    /// # Errors
    /// Fails if the system refuses it.
    pub(super) fn apply(self) -> nix::Result<()> {
        lower(Resource::RLIMIT_DATA, self.data)?;
        lower(Resource::RLIMIT_AS, self.addresses)?;
        let threads = self.threads;
        threads.map_or(Ok(()), |most| lower(Resource::RLIMIT_NPROC, most))
    }
}

pub(super) fn no_core_file() -> nix::Result<()> {
    lower(Resource::RLIMIT_CORE, 0)
}

fn lower(resource: Resource, most: u64) -> nix::Result<()> {
    let (_, hard) = getrlimit(resource)?;
    let most = most.min(hard);
    setrlimit(resource, most, most)
}

/// Bytes of memory, `machine` being what the machine has.
fn data(options: &Options, machine: u64) -> u64 {
    let threads = to_u64(options.threads).saturating_mul(limits::THREAD_BYTES);
    // Names that the kernel has looked up take it sixteen times the memory that they take us.
    let names = machine / 16;
    [options.cache_size.most, threads, names]
        .into_iter()
        .fold(limits::SERVING_BYTES, u64::saturating_add)
}

/// How many threads there are in the whole system: a bound for those of any user; proc(5),
/// /proc/loadavg.
pub(super) fn threads_of_the_system() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let (_, all) = text.split(' ').nth(3)?.split_once('/')?;
    all.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::CacheSize;

    #[test]
    fn what_is_promised_fits_in() {
        let options = Options {
            cache_size: CacheSize::from(1 << 30),
            threads: 2,
            ..Options::default()
        };
        let promised = (1 << 30) + (64 << 20) + limits::OPEN_BYTES + 3 * limits::CHUNK_BYTES;
        let bound = data(&options, 0);
        assert!((promised..2 * promised).contains(&bound), "{bound}");
        let all = Options {
            cache_size: u64::MAX.into(),
            ..options
        };
        assert_eq!(data(&all, u64::MAX), u64::MAX);
    }

    #[test]
    fn threads_are_counted() {
        let there = threads_of_the_system().expect("a number");
        let own = std::fs::read_dir("/proc/self/task").unwrap().count();
        assert!(there >= to_u64(own));
    }
}
