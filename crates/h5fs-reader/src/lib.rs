//! Reads HDF5 and ASDF files in safe Rust, without the HDF5 library.
//!
//! # Layers
//!
//! A file imports only from layers below its own. A test of the workspace checks this.
//!
//! | layer | modules | content |
//! |---|---|---|
//! | 5 | [`array`] | byte ranges of arrays: chunks, cache, prefetch, gather |
//! | 4 | [`hdf5`], [`asdf`], [`detect`] | the formats, which describe objects. No format imports another one |
//! | 3 | [`filter`] | codecs: bytes to bytes, with limited output |
//! | 2 | [`model`] | the data model that both formats share |
//! | 1 | [`source`], [`wire`], [`memory`] | bytes of files; cursors and checksums; buffers and bounded caches |
//! | 0 | [`error`], [`limits`] | the error type; every limit |

#![forbid(unsafe_code)]
// Most numbers come from files.
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

pub mod array;
pub mod asdf;
pub mod detect;
pub mod error;
pub mod filter;
pub mod hdf5;
pub mod limits;
pub mod memory;
pub mod model;
pub mod source;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod wire;
