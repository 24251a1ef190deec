//! Readers of arrays: turn the description of an array into the bytes of its elements, in C order
//! and in the stored datatype. Only this module decodes chunks and inserts fill values.
//!
//! A read divides its byte range into boxes and finds the chunks that overlap them (`span`, on top
//! of `grid`). It takes each chunk from the cache, waits for a reader that is decoding the chunk,
//! or decodes the chunk itself (`engine`, `cache`, `flight`, `chunks`). It then copies the bytes
//! that it needs into the reply (`gather`). If one chunk contains the whole answer, the reply
//! shares the chunk's memory without a copy.
//!
//! The module's memory consists of the cache's capacity and the memory of the running decodes
//! (`decode_memory`). One decode takes the stored bytes of its chunk and twice the decoded bytes.
//! Chunks that are too large for the cache are kept in the memory of decodes. No lock is held while
//! bytes are read or decoded.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    reason = "positions are in arrays whose size the model has checked"
)]

mod bytes;
mod cache;
mod chunks;
mod decode;
mod engine;
mod geometry;
pub mod kinds;
mod read_ahead;
mod reader;
mod selected;
mod stored_elements;

pub use crate::memory::cancel::{CancelToken, Canceller};
pub use bytes::Bytes;
pub use cache::CacheSize;
pub use decode::held_memory::MemoryReservation;
pub use engine::{Engine, Statistics};
pub use kinds::convert::convert;
pub use read_ahead::prefetch::ReadStream;
pub use reader::Reader;
pub use selected::SelectedElements;

#[cfg(test)]
mod tests;
