//! h5fs mounts an HDF5 or ASDF file, or a directory of them, as a read-only filesystem: groups are
//! directories, datasets are raw files. This page is the map of the house.
//!
//! # Floors
//!
//! A file imports only from floors below its own; a test reads the `use crate::` lines and fails on
//! an upward one.
//!
//! | floor | modules | content |
//! |---|---|---|
//! | 9 | [`cli`] | the command: arguments, supervisor, caged worker, fetcher, commands without a mount |
//! | 8 | [`fs`] | inodes, names, handles, stat; only the files of `fs/fuse` know fuser, and `fs/http/server.rs` hyper |
//! | 7 | `joined` | many files as one: a container over containers |
//! | 6 | `view` | a file of the mount: a length and a `read_for` |
//! | 5 | `array` | a byte range of an array: chunks, cache, prefetch, gather |
//! | 4 | `hdf5`, `asdf`, [`detect`] | the formats: they describe objects; none imports another |
//! | 3 | `filter` | codecs: bytes to bytes, output bounded |
//! | 2 | [`model`] | the terms that both formats speak in |
//! | 1 | [`source`], [`wire`], `memory` | bytes, cursor, checksums; buffers, weighted caches |
//! | 0 | [`error`], [`limits`] | the error type; every bound |
//!
//! # Embedding
//!
//! A program reads the tree of a file without a mount:
//!
//! ```no_run
//! use h5fs::fs::{Filesystem, Options, Requests};
//!
//! # fn main() -> h5fs::error::Result<()> {
//! let tree = Filesystem::open("run.h5".as_ref(), &Options::default())?;
//! let entry = tree.resolve(b"/run/temp")?;
//! let file = tree.open_file(entry.ino)?.handle;
//! let bytes = tree.read(file, 0, 4096)?;
//! println!("{} of {} bytes", bytes.len(), entry.attributes.size);
//! tree.release(file);
//! # Ok(())
//! # }
//! ```
//!
//! The modules that an embedding program needs are public, and so are those that tests look into.
//! The compiler reports dead code in all others.

#![forbid(unsafe_code)]

mod array;
mod asdf;
pub mod cli;
pub mod detect;
pub mod error;
mod filter;
pub mod fs;
mod hdf5;
mod joined;
pub mod limits;
mod memory;
pub mod model;
pub mod source;
mod view;
pub mod wire;

/// Parts that single tests and fuzz targets look into; they may change at any time.
#[doc(hidden)]
pub mod internals {
    pub use crate::asdf::compression;
    pub use crate::filter::{Context, decode};
    pub use crate::memory::buffer::{Buffer, BufferPool};
    pub use crate::memory::effort::Effort;
    pub use crate::source::recording::Recording;
}
