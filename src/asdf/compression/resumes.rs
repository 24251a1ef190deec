//! The states from which the blocks of a file that were used last are decoded on.

use std::any::Any;
use std::sync::Mutex;

use lru::LruCache;

use crate::limits;
use crate::memory::lock::lock;

type State = Box<dyn Any + Send>;

/// The states of [`limits::RESUMABLE_BLOCKS`] blocks, by the offsets of their stored bytes. Only
/// the block itself knows what its state is.
pub struct Resumes(Mutex<LruCache<u64, State>>);

impl Default for Resumes {
    fn default() -> Self {
        Resumes(Mutex::new(LruCache::unbounded()))
    }
}

impl std::fmt::Debug for Resumes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Resumes")
    }
}

impl Resumes {
    /// Lets `decode` work on the state of a block, or on that of its beginning where none is kept.
    /// The array engine lets one at a time decode a block, so that the state is not missed.
    pub fn with<S, R>(&self, offset: u64, decode: impl FnOnce(&mut S) -> R) -> R
    where
        S: Any + Send + Default,
    {
        let state = lock(&self.0).pop(&offset);
        let state = state.and_then(|state| state.downcast().ok());
        let mut state: Box<S> = state.unwrap_or_default();
        let result = decode(&mut state);
        // Dropped here, where the states are not locked.
        drop(self.put(offset, state));
        result
    }

    /// Keeps a state; gives the states that have no room beside it.
    fn put(&self, offset: u64, state: State) -> [Option<State>; 2] {
        let mut states = lock(&self.0);
        let before = states.put(offset, state);
        let is_full = states.len() > limits::RESUMABLE_BLOCKS;
        let oldest = if is_full { states.pop_lru() } else { None };
        [before, oldest.map(|(_, state)| state)]
    }
}
