//! A cache of the most recently used values within a weight limit.

use std::hash::Hash;

use lru::LruCache;

use crate::wire::Count;

/// A cache of values by key, each with a weight in bytes. The least recently used values are
/// dropped first.
#[derive(Debug)]
pub struct WeightedLru<K: Hash + Eq, V> {
    values: LruCache<K, (V, u64)>,
    weight: u64,
    max_weight: u64,
}

impl<K: Hash + Eq, V> WeightedLru<K, V> {
    /// The weight of an entry in bytes, in addition to the weight of its value.
    const OVERHEAD: u64 = 128;

    /// Creates a cache of at most `most` bytes.
    pub fn new(most: u64) -> Self {
        WeightedLru {
            values: LruCache::unbounded(),
            weight: 0,
            max_weight: most,
        }
    }

    /// Returns the value of `key`, and marks the value as most recently used.
    pub fn get(&mut self, key: &K) -> Option<&V> {
        self.values.get(key).map(|(value, _)| value)
    }

    /// Returns whether `key` has a value, without marking the value as used.
    pub(crate) fn has_key(&self, key: &K) -> bool {
        self.values.contains(key)
    }

    /// Inserts `value` of `weight` bytes, unless the value alone exceeds the limit. Returns the
    /// values that are not kept, with their keys.
    pub fn put(&mut self, key: K, value: V, weight: u64) -> Vec<(K, V)> {
        let mut gone = Vec::new();
        let weight = weight.plus(Self::OVERHEAD);
        if weight > self.max_weight {
            gone.push((key, value));
            return gone;
        }
        self.weight = self.weight.plus(weight);
        // `push` returns the previous entry of the same key.
        let old = self.values.push(key, (value, weight));
        gone.extend(old.map(|old| self.subtract_weight(old)));
        gone.extend(self.make_room(0));
        gone
    }

    /// Removes and returns the least recently used values, until `weight` more bytes fit or the
    /// cache is empty.
    pub fn make_room(&mut self, weight: u64) -> Vec<(K, V)> {
        let mut gone = Vec::new();
        while self.weight.plus(weight) > self.max_weight
            && let Some(dropped) = self.values.pop_lru()
        {
            gone.push(self.subtract_weight(dropped));
        }
        gone
    }

    /// Removes and returns the value of `key`.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let (value, weight) = self.values.pop(key)?;
        self.weight = self.weight.minus_or_zero(weight);
        Some(value)
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        self.values.clear();
        self.weight = 0;
    }

    fn subtract_weight(&mut self, (key, (value, weight)): (K, (V, u64))) -> (K, V) {
        self.weight = self.weight.minus_or_zero(weight);
        (key, value)
    }

    /// Returns the weight of all values in bytes, including the overhead of each entry.
    pub fn weight(&self) -> u64 {
        self.weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oversized_and_oldest_values_are_dropped() {
        let mut kept = WeightedLru::new(3 * (WeightedLru::<u8, u8>::OVERHEAD + 100));
        for key in [1, 2, 3] {
            kept.put(key, key, 100);
        }
        kept.get(&1);
        kept.put(3, 30, 100);
        kept.put(4, 4, 100);
        assert_eq!(kept.get(&2), None);
        kept.put(5, 5, 100_000);
        assert_eq!(kept.get(&5), None);
        assert_eq!(
            [1, 3, 4].map(|key| kept.get(&key).copied()),
            [Some(1), Some(30), Some(4)]
        );
    }
}
