//! Limits for open files in caches, so that later files can still be opened.

use std::num::NonZeroUsize;

use nix::sys::resource::{Resource, getrlimit};

use crate::wire::{Count, to_u64};

/// Number of descriptors that the caches leave free for the mount, the log, the directories, and
/// the files being read.
const OTHER_DESCRIPTORS: u64 = 32;

/// Descriptors that ordinary files (not data files), which programs open through the mount, must
/// leave free, if the limit is at least twice as many.
const RESERVED: u64 = 1024;

/// Number of caches of open files that share the descriptors of a mount equally.
const CACHES: u64 = 8;

/// Returns how many files one cache may keep open: at least one and at most `most`. A low
/// `RLIMIT_NOFILE` reduces the number.
pub fn max_open_files(most: NonZeroUsize) -> NonZeroUsize {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
    clamp_to_limit(limit, most)
}

/// Returns the weight of each open file in a cache of `bytes` bytes that keeps at most `most` files
/// open.
pub(crate) fn weight_per_open_file(bytes: u64, most: NonZeroUsize) -> u64 {
    let files = to_u64(max_open_files(most).get());
    bytes.checked_div(files).unwrap_or(bytes)
}

/// Returns how many ordinary files (not data files) a mount may keep open for programs, one
/// descriptor each. The remaining descriptors serve lookups and listings.
pub fn max_open_ordinary_files() -> usize {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
    let most = limit.minus_or_zero(RESERVED.min(limit / 2));
    usize::try_from(most).unwrap_or(usize::MAX)
}

fn clamp_to_limit(limit: u64, most: NonZeroUsize) -> NonZeroUsize {
    let share = limit
        .minus_or_zero(OTHER_DESCRIPTORS)
        .checked_div(CACHES)
        .unwrap_or(0);
    let share = usize::try_from(share).unwrap_or(usize::MAX);
    NonZeroUsize::new(share).map_or(NonZeroUsize::MIN, |share| share.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_leave_descriptors_for_reads() {
        let share = |limit| clamp_to_limit(limit, NonZeroUsize::new(256).unwrap()).get();
        assert_eq!(share(16), 1);
        assert_eq!(share(64), 4);
        assert_eq!(share(1024), 124);
        assert_eq!(share(65_536), 256);
        assert_eq!(share(u64::MAX), 256);
    }
}
