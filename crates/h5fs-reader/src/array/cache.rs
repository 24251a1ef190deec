//! The cache of decoded chunks. Chunks are weighed in bytes, and the least recently used one is
//! evicted first.
//!
//! The cache starts small, because a reader that reads a file once needs few chunks. Memory that is
//! reused soon also stays in the processor's cache. The cache grows when readers claim room for
//! chunks that they will read again. The cache also grows by each chunk that is decoded a second
//! time although a larger cache would have kept the chunk.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use lru::LruCache;

use crate::memory::buffer::Buffer;
use crate::memory::lock::lock;
use crate::wire::Count;

/// Maximum number of evicted chunks whose keys are remembered. If one of these chunks is read
/// again, the cache grows.
const DEPARTED_CHUNKS: NonZeroUsize = NonZeroUsize::new(1 << 16).unwrap();

/// The key of a chunk in the cache: the array's number in the engine, and the chunk's number in the
/// array's grid.
pub(super) type ChunkKey = (u64, u64);

/// The decoded bytes of one chunk.
pub(super) type DecodedChunk = Arc<Buffer>;

/// Number of bytes that an entry takes in addition to the chunk, for its list node and its table
/// slot.
const ENTRY_BYTES: u64 = 128;

/// The bounds of the cache's capacity in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheSize {
    /// The initial capacity of the cache in bytes.
    pub initial_bytes: u64,
    /// Maximum capacity in bytes of a cache that grows to avoid decoding chunks again.
    pub max_bytes: u64,
}

impl From<u64> for CacheSize {
    /// Returns a fixed size of `bytes` bytes.
    fn from(bytes: u64) -> Self {
        CacheSize {
            initial_bytes: bytes,
            max_bytes: bytes,
        }
    }
}

/// The cache of decoded chunks of all arrays.
pub(super) struct ChunkCache {
    size: CacheSize,
    capacity: AtomicU64,
    entries: Mutex<CacheEntries>,
    hits: AtomicU64,
    misses: AtomicU64,
}

struct CacheEntries {
    chunks: LruCache<ChunkKey, DecodedChunk>,
    bytes: u64,
    evictions: u64,
    /// Total cache capacity that readers have claimed, in bytes.
    claimed: u64,
    /// Number of bytes to add to the initial capacity so that each chunk would have been decoded
    /// only once.
    extra_capacity: u64,
    evicted: EvictedChunkKeys,
}

/// The keys and weights of evicted chunks, as many as a cache of the maximum capacity would still
/// contain.
struct EvictedChunkKeys {
    chunks: LruCache<ChunkKey, u64>,
    bytes: u64,
    max_evicted_bytes: u64,
}

/// The bytes of the chunks in the cache, and the numbers of hits, misses and evictions so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct CacheCounters {
    pub(super) bytes: u64,
    pub(super) hits: u64,
    pub(super) misses: u64,
    pub(super) evictions: u64,
}

impl ChunkCache {
    /// Returns an empty cache.
    pub(super) fn new(size: CacheSize) -> Self {
        let entries = CacheEntries {
            chunks: LruCache::unbounded(),
            bytes: 0,
            evictions: 0,
            claimed: 0,
            extra_capacity: 0,
            evicted: EvictedChunkKeys {
                chunks: LruCache::sparse(DEPARTED_CHUNKS),
                bytes: 0,
                max_evicted_bytes: size.max_bytes.minus_or_zero(size.initial_bytes),
            },
        };
        ChunkCache {
            size,
            capacity: AtomicU64::new(size.initial_bytes),
            entries: Mutex::new(entries),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Returns the current capacity in bytes.
    pub(super) fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Claims `bytes` bytes of capacity until [`release`](Self::release) is called.
    pub(super) fn claim(&self, bytes: u64) {
        let mut entries = lock(&self.entries);
        entries.claimed = entries.claimed.plus(bytes);
        drop(self.adjust_capacity(&mut entries));
    }

    /// Releases a claim of `bytes` bytes.
    pub(super) fn release(&self, bytes: u64) {
        let mut entries = lock(&self.entries);
        entries.claimed = entries.claimed.minus_or_zero(bytes);
        let evicted = self.adjust_capacity(&mut entries);
        // The chunks are freed after the lock is released, because returning megabytes to the
        // system takes time.
        drop(entries);
        drop(evicted);
    }

    /// Sets the capacity to the initial capacity plus `extra_capacity`, or to the claimed bytes if
    /// they are more, but at most to the maximum capacity. Evicts chunks that exceed the new
    /// capacity, and returns them.
    fn adjust_capacity(&self, entries: &mut CacheEntries) -> Vec<DecodedChunk> {
        let CacheSize {
            initial_bytes: least,
            max_bytes: most,
        } = self.size;
        let needed = least.plus(entries.extra_capacity).max(entries.claimed);
        let capacity = needed.min(most).max(least);
        self.capacity.store(capacity, Ordering::Relaxed);
        entries.evict(capacity)
    }

    /// Returns the cached chunk for a reader, or `None` if the chunk is not cached. Marks the chunk
    /// as used, and counts the call as a hit or a miss.
    pub(super) fn get(&self, key: ChunkKey) -> Option<DecodedChunk> {
        let found = lock(&self.entries).chunks.get(&key).cloned();
        let count = if found.is_some() {
            &self.hits
        } else {
            &self.misses
        };
        count.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// Returns the cached chunk like `get`, but does not count a miss, because the reader will call
    /// `get` afterwards.
    pub(super) fn get_without_miss(&self, key: ChunkKey) -> Option<DecodedChunk> {
        let found = lock(&self.entries).chunks.get(&key).cloned();
        self.hits
            .fetch_add(u64::from(found.is_some()), Ordering::Relaxed);
        found
    }

    /// Returns the cached chunk without marking it as used and without counting a hit or a miss.
    pub(super) fn peek(&self, key: ChunkKey) -> Option<DecodedChunk> {
        lock(&self.entries).chunks.peek(&key).cloned()
    }

    /// Returns whether the chunk is cached and marks it as used. Counts neither a hit nor a miss.
    pub(super) fn touch(&self, key: ChunkKey) -> bool {
        lock(&self.entries).chunks.promote(&key)
    }

    /// Stores the chunk. Returns false if the chunk is larger than the largest capacity.
    pub(super) fn put(&self, key: ChunkKey, chunk: &DecodedChunk) -> bool {
        let weight = weight(chunk);
        if weight > self.size.max_bytes {
            return false;
        }
        let mut entries = lock(&self.entries);
        if entries.evicted.remove(key) || weight > self.capacity() {
            entries.extra_capacity = entries.extra_capacity.plus(weight).min(self.size.max_bytes);
        }
        entries.bytes += weight;
        let replaced = entries.chunks.put(key, Arc::clone(chunk));
        entries.bytes -= replaced.as_ref().map_or(0, self::weight);
        let evicted = self.adjust_capacity(&mut entries);
        // Freed after the lock is released, as in `release`.
        drop(entries);
        drop((replaced, evicted));
        true
    }

    pub(super) fn counters(&self) -> CacheCounters {
        let entries = lock(&self.entries);
        CacheCounters {
            bytes: entries.bytes,
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            evictions: entries.evictions,
        }
    }
}

impl CacheEntries {
    /// Removes and returns the least recently used chunks until at most `capacity` bytes are left.
    fn evict(&mut self, capacity: u64) -> Vec<DecodedChunk> {
        let mut evicted = Vec::new();
        while self.bytes > capacity {
            let Some((key, oldest)) = self.chunks.pop_lru() else {
                break;
            };
            self.bytes -= weight(&oldest);
            self.evictions += 1;
            self.evicted.put(key, weight(&oldest));
            evicted.push(oldest);
        }
        evicted
    }
}

impl EvictedChunkKeys {
    fn put(&mut self, key: ChunkKey, bytes: u64) {
        let forgotten = self.chunks.push(key, bytes).map_or(0, |(_, bytes)| bytes);
        self.bytes = self.bytes + bytes - forgotten;
        while self.bytes > self.max_evicted_bytes
            && let Some((_, bytes)) = self.chunks.pop_lru()
        {
            self.bytes -= bytes;
        }
    }

    /// Removes the key from the list of evicted chunks. Returns whether a cache of the largest
    /// capacity would still contain the chunk.
    fn remove(&mut self, key: ChunkKey) -> bool {
        let bytes = self.chunks.pop(&key);
        self.bytes -= bytes.unwrap_or(0);
        bytes.is_some()
    }
}

/// Returns the memory in bytes that a cache entry with a decoded chunk of `chunk` bytes takes.
pub(super) fn entry_bytes(chunk: u64) -> u64 {
    Buffer::occupied_bytes(chunk).plus(ENTRY_BYTES)
}

fn weight(chunk: &DecodedChunk) -> u64 {
    ENTRY_BYTES.plus(chunk.capacity() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_chunk_is_evicted() {
        let cache = ChunkCache::new((3 * (100 + ENTRY_BYTES)).into());
        let chunk = Arc::new(vec![0; 100].into());
        for number in 0..3 {
            cache.put((0, number), &chunk);
        }
        assert!(cache.get((0, 0)).is_some());
        cache.put((0, 3), &chunk);
        assert!(cache.peek((0, 0)).is_some() && cache.peek((0, 1)).is_none());

        cache.put((1, 0), &Arc::new(vec![0; 250].into()));
        let counts = cache.counters();
        assert!(counts.bytes <= cache.capacity());
        assert!(cache.peek((1, 0)).is_some());
        assert_eq!((counts.hits, counts.misses), (1, 0));
    }

    #[test]
    fn an_oversized_chunk_evicts_nothing() {
        let cache = ChunkCache::new(1000.into());
        cache.put((0, 0), &Arc::new(vec![0; 10].into()));
        cache.put((0, 1), &Arc::new(vec![0; 1001].into()));
        assert!(cache.peek((0, 0)).is_some() && cache.peek((0, 1)).is_none());
        assert_eq!(cache.counters().evictions, 0);
    }

    #[test]
    fn claims_raise_the_capacity_until_released() {
        let cache = ChunkCache::new(CacheSize {
            initial_bytes: 1000,
            max_bytes: 3000,
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

    #[test]
    fn decoding_a_chunk_again_grows_the_cache() {
        let cache = ChunkCache::new(CacheSize {
            initial_bytes: 1000,
            max_bytes: 5000,
        });
        let chunk = Arc::new(vec![0; 900 - ENTRY_BYTES as usize].into());
        // Reads four chunks in a cycle: none of them is decoded a third time.
        let mut decoded = [0; 4];
        for number in [0, 1, 2, 3].repeat(5) {
            if cache.get((0, number)).is_none() {
                decoded[number as usize] += 1;
                cache.put((0, number), &chunk);
            }
        }
        assert_eq!((decoded, cache.capacity()), ([2, 2, 2, 1], 1000 + 3 * 900));

        // Chunks that are read only once do not make the cache grow.
        for number in 100..200 {
            cache.put((0, number), &chunk);
        }
        assert_eq!(cache.capacity(), 1000 + 3 * 900);
    }

    #[test]
    fn a_large_chunk_grows_the_cache() {
        let cache = ChunkCache::new(CacheSize {
            initial_bytes: 1000,
            max_bytes: 5000,
        });
        cache.put((0, 0), &Arc::new(vec![0; 3000].into()));
        assert!(cache.peek((0, 0)).is_some());
        assert!(cache.capacity() <= 5000);
    }
}
