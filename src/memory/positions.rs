//! A map from keys to their positions in a vector that stands elsewhere, five bytes for each: for
//! what there are millions of.
//!
//! The owner of the vector says which key is at a position, and keeps both in step.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

/// Positions by key. A file may choose the keys, so their hashes cannot be foretold.
#[derive(Debug, Default)]
pub struct Positions {
    table: HashTable<u32>,
    state: RandomState,
}

impl Positions {
    /// The position of `key`; `key_at` tells which key is at a position.
    pub fn get(&self, key: u64, key_at: impl Fn(u32) -> u64) -> Option<u32> {
        let hash = self.state.hash_one(key);
        self.table.find(hash, |&at| key_at(at) == key).copied()
    }

    /// Puts `key`, which is not there yet, at `position`; `key_at` is asked for the others.
    pub fn insert(&mut self, key: u64, position: u32, key_at: impl Fn(u32) -> u64) {
        let state = &self.state;
        let hash = |at: &u32| state.hash_one(key_at(*at));
        self.table
            .insert_unique(state.hash_one(key), position, hash);
    }

    /// Has `key`, which was at `old`, be at `new`.
    pub fn replace(&mut self, key: u64, old: u32, new: u32) {
        let hash = self.state.hash_one(key);
        if let Some(position) = self.table.find_mut(hash, |&at| at == old) {
            *position = new;
        }
    }

    /// Takes out `key`, which was at `position`.
    pub fn remove(&mut self, key: u64, position: u32) {
        let hash = self.state.hash_one(key);
        if let Ok(entry) = self.table.find_entry(hash, |&at| at == position) {
            entry.remove();
        }
    }

    /// Gives back the room that is not needed; `key_at` is asked for all that are there.
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
        let mut positions = Positions::default();
        for at in 0..1000_u32 {
            positions.insert(keys[at as usize], at, |at| keys[at as usize]);
        }
        let found =
            |positions: &Positions, keys: &[u64], key| positions.get(key, |at| keys[at as usize]);
        assert_eq!(found(&positions, &keys, 4096 * 999), Some(999));
        assert_eq!(found(&positions, &keys, 5), None);
        // The last key moves to where the first one was.
        positions.remove(keys[0], 0);
        positions.replace(keys[999], 999, 0);
        keys.swap_remove(0);
        positions.shrink(|at| keys[at as usize]);
        assert_eq!(found(&positions, &keys, 4096 * 999), Some(0));
        assert_eq!(found(&positions, &keys, 0), None);
        assert_eq!(found(&positions, &keys, 4096), Some(1));
    }
}
