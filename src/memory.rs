//! Memory and its bookkeeping: buffers, caches within a weight, arenas, the gate at which work waits
//! for memory, and what one request may look at.
//!
//! A weight says about how many bytes of memory something takes: a small file can describe large
//! things, and many of them. It is only ever compared with a bound, so a sum that no number can
//! hold may stay at the largest number ([`Count`]): that is over every bound.

#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::disallowed_methods,
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::as_conversions
    )
)]

pub mod buffer;
pub mod cancel;
pub mod distinct;
pub mod effort;
pub(crate) mod gate;
pub(crate) mod lock;
pub mod marks;
pub mod name_arena;
pub mod positions;
pub mod shared_lru;
pub mod weighted_lru;

use crate::wire::{Count, to_u64};

/// Bytes that the allocator adds to a separate piece of memory.
pub const PIECE: u64 = 16;

/// Bytes of a separate piece of memory.
pub fn piece(bytes: usize) -> u64 {
    to_u64(bytes).with_more(PIECE)
}
