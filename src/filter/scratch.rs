//! One spare buffer a thread, for bytes between two filters.
//!
//! Fresh memory costs a page fault every 4 KiB, which for large buffers takes longer than to unshuffle
//! them: with a spare one, shuffled and deflated chunks decode about a quarter faster.

use std::cell::Cell;

use crate::limits;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A buffer of `length` bytes, whatever they are: who takes it writes them all. It may have room for an
/// eighth more, so that it can be a result too.
pub(crate) fn buffer(length: usize) -> Vec<u8> {
    let mut buffer = SPARE.take();
    let most = length.saturating_add(length.wrapping_shr(3));
    if (length..=most).contains(&buffer.capacity()) {
        // What is left of its last use is not zeroed again: that costs a pass over all of it.
        buffer.resize(length, 0);
        return buffer;
    }
    give_back(buffer);
    vec![0; length]
}

/// Keeps a buffer that is no longer needed for the thread's next one.
pub(crate) fn give_back(buffer: Vec<u8>) {
    if buffer.capacity() <= limits::SCRATCH_BYTES {
        SPARE.set(buffer);
    }
}
