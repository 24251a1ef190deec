//! What is kept to decode a stream on from where it was left, for the blocks used last.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError, Weak};

use crate::limits;

/// A stream that keeps what it needs to be decoded on.
pub trait Resumable: Send + Sync {
    /// Drops what is kept, if it is not in use.
    fn forget(&self);
}

/// The streams of one file that keep something, the one used last at the end.
#[derive(Default)]
pub struct Resumables(Mutex<VecDeque<(u64, Weak<dyn Resumable>)>>);

impl std::fmt::Debug for Resumables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Resumables")
    }
}

impl Resumables {
    /// Notes that the stream at `offset` is used, and lets the one that was used longest ago forget
    /// what it keeps where there are too many.
    pub fn touch(&self, offset: u64, stream: Weak<dyn Resumable>) {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|&(other, _)| other != offset);
        streams.push_back((offset, stream));
        let mut oldest = None;
        if streams.len() > limits::RESUMABLE_BLOCKS {
            oldest = streams.pop_front();
        }
        drop(streams);
        if let Some(stream) = oldest.and_then(|(_, stream)| stream.upgrade()) {
            stream.forget();
        }
    }
}
