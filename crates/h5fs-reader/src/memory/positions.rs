//! A map from keys to positions in a vector outside the map, with five bytes for each entry. The
//! map is meant for millions of entries.
//!
//! The owner of the vector supplies the key at each position, and keeps the vector and the map
//! consistent.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

/// A map from keys to positions. A file may choose the keys, so the hashes are randomly seeded.
#[derive(Debug, Default)]
pub struct PositionMap {
    table: HashTable<u32>,
    state: RandomState,
}

impl PositionMap {
    /// Returns the position of `key`, or `None` if the map lacks the key. `key_at` returns the key
    /// at a position.
    pub fn get(&self, key: u64, key_at: impl Fn(u32) -> u64) -> Option<u32> {
        let hash = self.state.hash_one(key);
        self.table.find(hash, |&at| key_at(at) == key).copied()
    }

    /// Inserts `key`, which must not exist yet, with `position`. `key_at` returns the key at each
    /// existing position.
    pub fn insert(&mut self, key: u64, position: u32, key_at: impl Fn(u32) -> u64) {
        let state = &self.state;
        let hash = |at: &u32| state.hash_one(key_at(*at));
        self.table
            .insert_unique(state.hash_one(key), position, hash);
    }

    /// Changes the position of `key` from `old` to `new`.
    pub fn replace(&mut self, key: u64, old: u32, new: u32) {
        let hash = self.state.hash_one(key);
        if let Some(position) = self.table.find_mut(hash, |&at| at == old) {
            *position = new;
        }
    }

    /// Removes `key`, whose position is `position`.
    pub fn remove(&mut self, key: u64, position: u32) {
        let hash = self.state.hash_one(key);
        if let Ok(entry) = self.table.find_entry(hash, |&at| at == position) {
            entry.remove();
        }
    }

    /// Frees unused capacity. `key_at` returns the key at a position, and is called for every
    /// position in the map.
    pub fn shrink(&mut self, key_at: impl Fn(u32) -> u64) {
        let state = &self.state;
        self.table.shrink_to_fit(|&at| state.hash_one(key_at(at)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lead_to_their_positions() {
        let mut keys: Vec<u64> = (0..1000).map(|i| i * 4096).collect();
        let mut positions = PositionMap::default();
        for at in 0..1000_u32 {
            positions.insert(keys[at as usize], at, |at| keys[at as usize]);
        }
        let found =
            |positions: &PositionMap, keys: &[u64], key| positions.get(key, |at| keys[at as usize]);
        assert_eq!(found(&positions, &keys, 4096 * 999), Some(999));
        assert_eq!(found(&positions, &keys, 5), None);
        // The last key moves to the position of the first.
        positions.remove(keys[0], 0);
        positions.replace(keys[999], 999, 0);
        keys.swap_remove(0);
        positions.shrink(|at| keys[at as usize]);
        assert_eq!(found(&positions, &keys, 4096 * 999), Some(0));
        assert_eq!(found(&positions, &keys, 0), None);
        assert_eq!(found(&positions, &keys, 4096), Some(1));
    }
}
