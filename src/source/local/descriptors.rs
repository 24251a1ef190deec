//! How many files the caches may keep open, so that what is read next can still be opened.

use std::num::NonZeroUsize;

use nix::sys::resource::{Resource, getrlimit};

use crate::wire::{Count, to_u64};

/// Descriptors that no cache takes: those of the mount, the log and the directories, and those of
/// files that are read at the moment.
const OTHERS: u64 = 32;

/// Descriptors that files of readers never take, where there are twice as many.
const RESERVED: u64 = 1024;

/// Caches of open files that a mount may fill at the same time.
const CACHES: u64 = 8;

/// Returns how many files one cache may keep open: at most `most`, fewer where the process may have
/// few descriptors (`RLIMIT_NOFILE`), one at least.
pub fn share_of(most: NonZeroUsize) -> NonZeroUsize {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
    within(limit, most)
}

/// Returns what each of at most `most` open files counts for in a cache of `bytes` bytes.
pub fn weight_of_one(bytes: u64, most: NonZeroUsize) -> u64 {
    let files = to_u64(share_of(most).get());
    bytes.checked_div(files).unwrap_or(bytes)
}

/// Returns how many files readers may keep open that each take a descriptor: the rest is for what
/// is looked up and listed meanwhile.
pub fn most_of_readers() -> usize {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
    let most = limit.left_after(RESERVED.min(limit / 2));
    usize::try_from(most).unwrap_or(usize::MAX)
}

fn within(limit: u64, most: NonZeroUsize) -> NonZeroUsize {
    let share = limit.left_after(OTHERS).checked_div(CACHES).unwrap_or(0);
    let share = usize::try_from(share).unwrap_or(usize::MAX);
    NonZeroUsize::new(share).map_or(NonZeroUsize::MIN, |share| share.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_leave_descriptors_for_what_is_read() {
        let share = |limit| within(limit, NonZeroUsize::new(256).unwrap()).get();
        assert_eq!(share(16), 1);
        assert_eq!(share(64), 4);
        assert_eq!(share(1024), 124);
        assert_eq!(share(65_536), 256);
        assert_eq!(share(u64::MAX), 256);
    }
}
