//! Memory and its accounting: buffers, caches bounded by weight, arenas, the gate where work waits
//! for memory, and the metadata budget of a request.
//!
//! A weight is the approximate number of bytes that a value occupies. Values are weighed because a
//! small file can describe many large values. A weight is only compared with a bound, so a sum may
//! saturate at the largest number ([`Count`]): that number exceeds every bound.

pub mod buffer;
pub mod cancel;
pub mod distinct;
pub mod gate;
pub mod lock;
pub mod marks;
pub mod name_arena;
pub mod positions;
pub mod request_budget;
pub mod shared_lru;
pub mod weighted_lru;

use crate::wire::{Count, to_u64};

/// Number of bytes that the allocator adds to each allocation.
pub(crate) const ALLOCATION_OVERHEAD: u64 = 16;

/// Returns the memory in bytes that one allocation of `bytes` bytes occupies.
pub fn allocation_size(bytes: usize) -> u64 {
    to_u64(bytes).plus(ALLOCATION_OVERHEAD)
}
