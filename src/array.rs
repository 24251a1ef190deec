//! Arrays as bytes: turns the description of an array into the bytes of its elements, C order, in
//! the stored datatype. Alone here filters are undone and fill values put in.
//!
//! A read goes from a byte range to boxes and chunks (`span`, over `grid`), gets each chunk from
//! the cache, from a reader that is decoding it, or decodes it (`engine`, `cache`, `flight`,
//! `chunks`), and copies what it needs into the reply (`gather`). One chunk that holds the whole
//! answer is handed out without a copy.
//!
//! Memory: the cache's capacity, and for each decode under way the stored and twice the decoded
//! bytes of its chunk (`decode_memory`), of which chunks that are too large for the cache are kept,
//! too. No lock is held while bytes are read or decoded.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod ahead;
mod bytes;
mod cache;
mod chunks;
mod decode;
mod engine;
pub(crate) mod kinds;
mod parts;
mod reader;

pub(crate) use crate::memory::cancel::{CancelToken, Canceller};
pub(crate) use ahead::prefetch::Stream;
pub(crate) use bytes::Bytes;
pub(crate) use cache::CacheSize;
pub(crate) use decode::held_memory::HeldMemory;
pub(crate) use engine::{Engine, Statistics};
pub(crate) use kinds::convert::convert;
pub(crate) use reader::Reader;

#[cfg(test)]
mod tests;
