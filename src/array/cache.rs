//! Decoded chunks that are kept, weighed in bytes; the one that was used longest ago goes first.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::filter::Buffer;

/// Which chunk: the array's number, and the chunk's in the array's grid.
pub(super) type Key = (u64, u64);

/// The elements of one chunk.
pub(super) type Decoded = Arc<Buffer>;

/// What an entry costs besides the chunk's bytes: its node in the list, its slot in the table.
const ENTRY_BYTES: u64 = 128;

/// The cache of all arrays.
pub(super) struct Cache {
    capacity: u64,
    entries: Mutex<Entries>,
    hits: AtomicU64,
    misses: AtomicU64,
}

struct Entries {
    chunks: LruCache<Key, Decoded>,
    bytes: u64,
    evictions: u64,
}

/// What the cache has done so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    pub(super) bytes: u64,
    pub(super) hits: u64,
    pub(super) misses: u64,
    pub(super) evictions: u64,
}

impl Cache {
    /// A cache of at most `capacity` bytes.
    pub(super) fn new(capacity: u64) -> Self {
        let entries = Entries {
            chunks: LruCache::unbounded(),
            bytes: 0,
            evictions: 0,
        };
        Cache {
            capacity,
            entries: Mutex::new(entries),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The chunk, for a reader: it counts as used, and as a hit or a miss.
    pub(super) fn get(&self, key: Key) -> Option<Decoded> {
        let found = self.entries().chunks.get(&key).cloned();
        let count = if found.is_some() {
            &self.hits
        } else {
            &self.misses
        };
        count.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// The chunk, without any trace of the question.
    pub(super) fn peek(&self, key: Key) -> Option<Decoded> {
        self.entries().chunks.peek(&key).cloned()
    }

    /// Keeps the chunk, unless it is larger than the whole cache.
    pub(super) fn put(&self, key: Key, chunk: &Decoded) {
        if weight(chunk) > self.capacity {
            return;
        }
        // Freed after the lock: returning megabytes to the system takes its time.
        let mut evicted = Vec::new();
        let mut entries = self.entries();
        entries.bytes += weight(chunk);
        if let Some(old) = entries.chunks.put(key, Arc::clone(chunk)) {
            entries.bytes -= weight(&old);
            evicted.push(old);
        }
        while entries.bytes > self.capacity {
            let Some((_, oldest)) = entries.chunks.pop_lru() else {
                break;
            };
            entries.bytes -= weight(&oldest);
            entries.evictions += 1;
            evicted.push(oldest);
        }
        drop(entries);
    }

    pub(super) fn counts(&self) -> Counts {
        let entries = self.entries();
        Counts {
            bytes: entries.bytes,
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            evictions: entries.evictions,
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn weight(chunk: &Decoded) -> u64 {
    chunk.capacity() as u64 + ENTRY_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_goes_and_bytes_stay_within() {
        let cache = Cache::new(3 * (100 + ENTRY_BYTES));
        let chunk = Arc::new(vec![0; 100]);
        for number in 0..3 {
            cache.put((0, number), &chunk);
        }
        assert!(cache.get((0, 0)).is_some());
        cache.put((0, 3), &chunk);
        assert!(cache.peek((0, 0)).is_some() && cache.peek((0, 1)).is_none());

        cache.put((1, 0), &Arc::new(vec![0; 250]));
        let counts = cache.counts();
        assert!(counts.bytes <= cache.capacity());
        assert!(cache.peek((1, 0)).is_some());
        assert_eq!((counts.hits, counts.misses), (1, 0));
    }

    #[test]
    fn what_is_larger_than_the_cache_evicts_nothing() {
        let cache = Cache::new(1000);
        cache.put((0, 0), &Arc::new(vec![0; 10]));
        cache.put((0, 1), &Arc::new(vec![0; 1001]));
        assert!(cache.peek((0, 0)).is_some() && cache.peek((0, 1)).is_none());
        assert_eq!(cache.counts().evictions, 0);
    }
}
