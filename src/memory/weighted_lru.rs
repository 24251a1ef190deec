//! Values that may be wanted again: the most recently used ones, within a weight.

use std::hash::Hash;

use lru::LruCache;

use crate::wire::Count;

/// Values by key, each with a weight in bytes; the least recently used are dropped first.
#[derive(Debug)]
pub struct WeightedLru<K: Hash + Eq, V> {
    values: LruCache<K, (V, u64)>,
    weight: u64,
    most: u64,
}

impl<K: Hash + Eq, V> WeightedLru<K, V> {
    /// The weight of an entry beside its value.
    const OVERHEAD: u64 = 128;

    /// Keeps no more than `most` bytes.
    pub fn new(most: u64) -> Self {
        WeightedLru {
            values: LruCache::unbounded(),
            weight: 0,
            most,
        }
    }

    /// The value of `key`, which is then the most recently used one.
    pub fn get(&mut self, key: &K) -> Option<&V> {
        self.values.get(key).map(|(value, _)| value)
    }

    /// Whether there is a value of `key`, which is used no more for that.
    pub fn has(&self, key: &K) -> bool {
        self.values.contains(key)
    }

    /// Keeps `value`, of so many bytes, unless it alone is too heavy. Gives back the values
    /// that are not kept any more, with their keys.
    pub fn put(&mut self, key: K, value: V, weight: u64) -> Vec<(K, V)> {
        let mut gone = Vec::new();
        let weight = weight.with_more(Self::OVERHEAD);
        if weight > self.most {
            gone.push((key, value));
            return gone;
        }
        self.weight = self.weight.with_more(weight);
        // The key that was there before, or one that is as good, comes back with its value.
        let old = self.values.push(key, (value, weight));
        gone.extend(old.map(|old| self.lose(old)));
        gone.extend(self.make_room(0));
        gone
    }

    /// Takes out the least recently used ones until there is room for so many bytes more, or
    /// nothing is left.
    pub fn make_room(&mut self, weight: u64) -> Vec<(K, V)> {
        let mut gone = Vec::new();
        while self.weight.with_more(weight) > self.most
            && let Some(dropped) = self.values.pop_lru()
        {
            gone.push(self.lose(dropped));
        }
        gone
    }

    /// Takes out the value of `key`.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let (value, weight) = self.values.pop(key)?;
        self.weight = self.weight.left_after(weight);
        Some(value)
    }

    /// Drops all.
    pub fn clear(&mut self) {
        self.values.clear();
        self.weight = 0;
    }

    fn lose(&mut self, (key, (value, weight)): (K, (V, u64))) -> (K, V) {
        self.weight = self.weight.left_after(weight);
        (key, value)
    }

    /// Bytes of all values and what they weigh beside.
    pub fn weight(&self) -> u64 {
        self.weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heaviest_and_the_oldest_go() {
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
