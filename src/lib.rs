//! h5fs mounts one HDF5 or ASDF file as a read-only filesystem: groups are directories, datasets are raw
//! files. This page is the map of the house.
//!
//! # Floors
//!
//! A file imports only from floors below its own; a test reads the `use crate::` lines and fails on an
//! upward one.
//!
//! | floor | modules | what |
//! |---|---|---|
//! | 8 | [`cli`] | the command: arguments, supervisor, worker and its cage, commands without a mount, logging |
//! | 7 | [`fs`] | inodes, names, handles, stat; `fs/fuse.rs` alone knows fuser |
//! | 6 | `view` | what a file of the mount holds: a length and a `read_at` |
//! | 5 | `array` | a byte range of an array: chunks, cache, prefetch, gather |
//! | 4 | [`hdf5`], [`asdf`], [`detect`] | the formats; they hand up descriptions, never import each other |
//! | 3 | [`filter`] | codecs: bytes to bytes, output bounded |
//! | 2 | [`model`] | what both formats speak |
//! | 1 | [`source`], [`wire`], [`memory`] | bytes, cursor, checksums; buffers, caches within a weight, effort |
//! | 0 | [`error`], [`limits`] | the error type; every bound |

#![forbid(unsafe_code)]

mod array;
pub mod asdf;
pub mod cli;
pub mod detect;
pub mod error;
pub mod filter;
pub mod fs;
pub mod hdf5;
pub mod limits;
pub mod memory;
pub mod model;
pub mod source;
mod view;
pub mod wire;
