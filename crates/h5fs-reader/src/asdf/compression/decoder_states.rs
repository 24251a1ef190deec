//! The decoder states of the most recently used blocks of a file.

use std::any::Any;
use std::sync::Mutex;

use lru::LruCache;

use crate::limits;
use crate::memory::lock::lock;

type State = Box<dyn Any + Send>;

/// The decoder states of at most [`limits::RESUMABLE_BLOCKS`] blocks, by the file offsets of their
/// stored bytes. Only the block's codec knows the type of its state.
pub struct DecoderStates(Mutex<LruCache<u64, State>>);

impl Default for DecoderStates {
    fn default() -> Self {
        DecoderStates(Mutex::new(LruCache::unbounded()))
    }
}

impl std::fmt::Debug for DecoderStates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Resumes")
    }
}

impl DecoderStates {
    /// Calls `decode` with the state of the block whose stored bytes begin at `offset`, or with an
    /// initial state if none is kept. The state is removed during the call. The array engine lets
    /// only one thread decode a block at a time, so no other thread needs the state meanwhile.
    pub(crate) fn decode_with<S, R>(&self, offset: u64, decode: impl FnOnce(&mut S) -> R) -> R
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

    /// Stores the state of a block. Returns the block's previous state, and the least recently used
    /// state if it no longer fits.
    fn put(&self, offset: u64, state: State) -> [Option<State>; 2] {
        let mut states = lock(&self.0);
        let before = states.put(offset, state);
        let is_full = states.len() > limits::RESUMABLE_BLOCKS;
        let oldest = if is_full { states.pop_lru() } else { None };
        [before, oldest.map(|(_, state)| state)]
    }
}
