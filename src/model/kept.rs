//! What is kept because it may be wanted again: the most recently used of it, within a weight.

use std::hash::Hash;

use lru::LruCache;

/// Values by key, each with a weight in bytes; the least recently used are dropped first.
#[derive(Debug)]
pub struct Kept<K: Hash + Eq, V> {
    values: LruCache<K, (V, u64)>,
    weight: u64,
    most: u64,
}

impl<K: Hash + Eq, V> Kept<K, V> {
    /// What an entry weighs beside its value.
    const OVERHEAD: u64 = 128;

    /// Keeps no more than `most` bytes.
    pub fn new(most: u64) -> Self {
        Kept {
            values: LruCache::unbounded(),
            weight: 0,
            most,
        }
    }

    /// The value of `key`, which is then the most recently used one.
    pub fn get(&mut self, key: &K) -> Option<&V> {
        self.values.get(key).map(|(value, _)| value)
    }

    /// Keeps `value`, of so many bytes, unless it alone is too heavy.
    pub fn put(&mut self, key: K, value: V, weight: u64) {
        let weight = weight.saturating_add(Self::OVERHEAD);
        if weight > self.most {
            return;
        }
        self.weight = self.weight.saturating_add(weight);
        let old = self.values.put(key, (value, weight));
        self.lose(old.map(|(_, weight)| weight));
        while self.weight > self.most {
            let dropped = self.values.pop_lru();
            self.lose(dropped.map(|(_, (_, weight))| weight));
        }
    }

    /// Drops all.
    pub fn clear(&mut self) {
        self.values.clear();
        self.weight = 0;
    }

    fn lose(&mut self, weight: Option<u64>) {
        self.weight = self.weight.saturating_sub(weight.unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heaviest_and_the_oldest_go() {
        let mut kept = Kept::new(3 * (Kept::<u8, u8>::OVERHEAD + 100));
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
