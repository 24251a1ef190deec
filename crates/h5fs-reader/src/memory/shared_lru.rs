//! A cache for the values of several files, with one weight limit for all of them.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::memory::lock::lock;
use crate::memory::weighted_lru::WeightedLru;
use crate::wire::Count;

/// Approximate memory in bytes that a value's key takes in the set of its file's keys.
const KEY: u64 = 64;

/// A cache of the values of all files. The least recently used values are dropped first, regardless
/// of their file.
pub struct SharedLru<K: Hash + Eq, V> {
    entries: Mutex<LruEntries<K, V>>,
    files: AtomicU64,
}

struct LruEntries<K: Hash + Eq, V> {
    values: WeightedLru<(u64, K), V>,
    /// The keys of each file, so that closing a file does not scan the values of all others.
    keys: HashMap<u64, HashSet<K>>,
}

impl<K: Hash + Eq + Clone, V> LruEntries<K, V> {
    /// Inserts a value of a file, and returns the values that are not kept, as [`WeightedLru::put`]
    /// does.
    fn put(&mut self, file: u64, key: K, value: V, weight: u64) -> Vec<V> {
        let whole = (file, key);
        let weight = weight.plus(KEY);
        let gone = self.values.put(whole.clone(), value, weight);
        let gone = self.forget_keys(gone);
        if self.values.has_key(&whole) {
            self.keys.entry(file).or_default().insert(whole.1);
        }
        gone
    }

    /// Removes and returns values to make room for a value of `weight` bytes, as
    /// [`WeightedLru::make_room`] does.
    fn make_room(&mut self, weight: u64) -> Vec<V> {
        let gone = self.values.make_room(weight.plus(KEY));
        self.forget_keys(gone)
    }

    /// Removes and returns all values of a file.
    fn clear(&mut self, file: u64) -> Vec<V> {
        let keys = self.keys.remove(&file).unwrap_or_default();
        let values = keys
            .into_iter()
            .filter_map(|key| self.values.remove(&(file, key)));
        values.collect()
    }

    fn forget_keys(&mut self, gone: Vec<((u64, K), V)>) -> Vec<V> {
        for ((file, key), _) in &gone {
            if let Some(keys) = self.keys.get_mut(file) {
                keys.remove(key);
                if keys.is_empty() {
                    self.keys.remove(file);
                }
            }
        }
        gone.into_iter().map(|(_, value)| value).collect()
    }
}

impl<K: Hash + Eq, V> SharedLru<K, V> {
    /// Creates a cache whose values and keys take at most `most` bytes.
    pub fn new(most: u64) -> Arc<Self> {
        Arc::new(SharedLru {
            entries: Mutex::new(LruEntries {
                values: WeightedLru::new(most),
                keys: HashMap::new(),
            }),
            files: AtomicU64::new(0),
        })
    }

    fn lock(&self) -> MutexGuard<'_, LruEntries<K, V>> {
        lock(&self.entries)
    }
}

impl<K: Hash + Eq, V> fmt::Debug for SharedLru<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLru").finish_non_exhaustive()
    }
}

/// One file's share of a [`SharedLru`]. Dropping the share drops the file's values.
pub struct FileLru<K: Hash + Eq + Clone, V> {
    shared: Arc<SharedLru<K, V>>,
    file: u64,
}

impl<K: Hash + Eq + Clone, V: Clone> FileLru<K, V> {
    /// Creates a share for one more file.
    pub fn new(all: &Arc<SharedLru<K, V>>) -> Self {
        FileLru {
            shared: Arc::clone(all),
            file: all.files.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Creates a share for one more file in the same cache.
    pub(crate) fn for_another_file(&self) -> Self {
        Self::new(&self.shared)
    }

    /// Returns the value of `key`, and marks the value as most recently used.
    pub fn get(&self, key: K) -> Option<V> {
        self.shared.lock().values.get(&(self.file, key)).cloned()
    }

    /// Inserts `value` of `weight` bytes, unless the value alone exceeds the limit.
    pub fn put(&self, key: K, value: V, weight: u64) {
        let gone = self.shared.lock().put(self.file, key, value, weight);
        // Dropping the last value of another file may drop that file, which then locks the cache to
        // clear its own share.
        drop(gone);
    }

    /// Drops the least recently used values of any file, until a value of `weight` bytes fits.
    pub fn make_room(&self, weight: u64) {
        let gone = self.shared.lock().make_room(weight);
        drop(gone);
    }
}

impl<K: Hash + Eq + Clone, V> FileLru<K, V> {
    /// Drops all values of this file.
    pub fn clear(&self) {
        let gone = self.shared.lock().clear(self.file);
        drop(gone);
    }
}

impl<K: Hash + Eq + Clone, V> Drop for FileLru<K, V> {
    fn drop(&mut self) {
        self.clear();
    }
}

impl<K: Hash + Eq + Clone, V> fmt::Debug for FileLru<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileLru")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_share_a_weight_but_no_values() {
        let all = SharedLru::new(1000);
        let (one, other) = (FileLru::new(&all), FileLru::new(&all));
        one.put(1, "one", 200);
        other.put(1, "other", 200);
        assert_eq!((one.get(1), other.get(1)), (Some("one"), Some("other")));
        other.put(2, "more", 200);
        assert_eq!(one.get(1), None, "the oldest of all");
        one.put(3, "three", 200);
        other.clear();
        assert_eq!((other.get(2), one.get(3)), (None, Some("three")));
        drop(one);
        assert_eq!(FileLru::new(&all).get(3), None);
        assert_eq!(all.lock().values.weight(), 0);
        assert!(all.lock().keys.is_empty());
    }

    #[test]
    fn replaced_values_are_dropped_with_their_file() {
        let all = SharedLru::new(1000);
        let (one, other) = (FileLru::new(&all), FileLru::new(&all));
        one.put(1, "old", 100);
        one.put(1, "new", 100);
        other.put(1, "too heavy", 1000);
        assert_eq!((one.get(1), other.get(1)), (Some("new"), None));
        one.clear();
        assert_eq!(one.get(1), None);
        assert_eq!(all.lock().values.weight(), 0);
        assert!(all.lock().keys.is_empty());
    }

    /// A cached value that owns another file's share of the same cache.
    #[derive(Clone)]
    struct CacheOwner(
        #[expect(dead_code, reason = "is only held")] Option<Arc<FileLru<u8, CacheOwner>>>,
    );

    #[test]
    fn a_value_may_own_the_share_of_another_file() {
        let all = SharedLru::new(500);
        let (one, other) = (FileLru::new(&all), FileLru::new(&all));
        other.put(0, CacheOwner(None), 100);
        one.put(1, CacheOwner(Some(Arc::new(other))), 100);
        one.put(2, CacheOwner(None), 200);
        assert!(one.get(1).is_none());
    }
}
