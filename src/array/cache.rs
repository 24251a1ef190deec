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

/// How many bytes of decoded chunks are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheSize {
    /// As a rule.
    pub usual: u64,
    /// While sequential readers need them to have each chunk decoded only once.
    pub most: u64,
}

impl From<u64> for CacheSize {
    /// So many bytes, whatever readers need.
    fn from(bytes: u64) -> Self {
        CacheSize {
            usual: bytes,
            most: bytes,
        }
    }
}

/// The cache of all arrays.
pub(super) struct Cache {
    size: CacheSize,
    capacity: AtomicU64,
    entries: Mutex<Entries>,
    hits: AtomicU64,
    misses: AtomicU64,
}

struct Entries {
    chunks: LruCache<Key, Decoded>,
    bytes: u64,
    evictions: u64,
    /// Bytes that all claims ask for.
    claimed: u64,
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
    /// An empty cache.
    pub(super) fn new(size: CacheSize) -> Self {
        let entries = Entries {
            chunks: LruCache::unbounded(),
            bytes: 0,
            evictions: 0,
            claimed: 0,
        };
        Cache {
            size,
            capacity: AtomicU64::new(size.usual),
            entries: Mutex::new(entries),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Bytes that are kept at present.
    pub(super) fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Asks for room for `bytes` bytes until they are released.
    pub(super) fn claim(&self, bytes: u64) {
        let mut entries = self.entries();
        entries.claimed = entries.claimed.saturating_add(bytes);
        self.fit(entries);
    }

    /// Takes a claim back.
    pub(super) fn release(&self, bytes: u64) {
        let mut entries = self.entries();
        entries.claimed = entries.claimed.saturating_sub(bytes);
        self.fit(entries);
    }

    /// Makes the capacity what is claimed, within bounds, and evicts what is over it.
    fn fit(&self, mut entries: MutexGuard<'_, Entries>) {
        let capacity = entries.claimed.min(self.size.most).max(self.size.usual);
        self.capacity.store(capacity, Ordering::Relaxed);
        let evicted = entries.evict(capacity);
        // Freed after the lock: returning megabytes to the system takes its time.
        drop(entries);
        drop(evicted);
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
        let mut entries = self.entries();
        let capacity = self.capacity();
        if weight(chunk) > capacity {
            return;
        }
        entries.bytes += weight(chunk);
        let replaced = entries.chunks.put(key, Arc::clone(chunk));
        entries.bytes -= replaced.as_ref().map_or(0, weight);
        let evicted = entries.evict(capacity);
        // As above.
        drop(entries);
        drop((replaced, evicted));
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

impl Entries {
    /// Takes out what was used longest ago until `capacity` bytes or less are left.
    fn evict(&mut self, capacity: u64) -> Vec<Decoded> {
        let mut evicted = Vec::new();
        while self.bytes > capacity {
            let Some((_, oldest)) = self.chunks.pop_lru() else {
                break;
            };
            self.bytes -= weight(&oldest);
            self.evictions += 1;
            evicted.push(oldest);
        }
        evicted
    }
}

/// Bytes of an entry with so large a chunk.
pub(super) fn entry_bytes(chunk: u64) -> u64 {
    chunk.saturating_add(ENTRY_BYTES)
}

fn weight(chunk: &Decoded) -> u64 {
    entry_bytes(chunk.capacity() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_goes_and_bytes_stay_within() {
        let cache = Cache::new((3 * (100 + ENTRY_BYTES)).into());
        let chunk = Arc::new(vec![0; 100].into());
        for number in 0..3 {
            cache.put((0, number), &chunk);
        }
        assert!(cache.get((0, 0)).is_some());
        cache.put((0, 3), &chunk);
        assert!(cache.peek((0, 0)).is_some() && cache.peek((0, 1)).is_none());

        cache.put((1, 0), &Arc::new(vec![0; 250].into()));
        let counts = cache.counts();
        assert!(counts.bytes <= cache.capacity());
        assert!(cache.peek((1, 0)).is_some());
        assert_eq!((counts.hits, counts.misses), (1, 0));
    }

    #[test]
    fn what_is_larger_than_the_cache_evicts_nothing() {
        let cache = Cache::new(1000.into());
        cache.put((0, 0), &Arc::new(vec![0; 10].into()));
        cache.put((0, 1), &Arc::new(vec![0; 1001].into()));
        assert!(cache.peek((0, 0)).is_some() && cache.peek((0, 1)).is_none());
        assert_eq!(cache.counts().evictions, 0);
    }

    #[test]
    fn claims_give_room_up_to_the_most_and_only_as_long_as_they_stand() {
        let cache = Cache::new(CacheSize {
            usual: 1000,
            most: 3000,
        });
        cache.claim(2000);
        assert_eq!(cache.capacity(), 2000);
        cache.claim(2000);
        assert_eq!(cache.capacity(), 3000);
        cache.put((0, 0), &Arc::new(vec![0; 2000].into()));
        assert!(cache.peek((0, 0)).is_some());
        cache.release(2000);
        cache.release(2000);
        assert_eq!(cache.capacity(), 1000);
        assert!(cache.peek((0, 0)).is_none());
    }
}
