//! h5fs mounts an HDF5 or ASDF file, or a directory of them, as a read-only filesystem: groups are
//! directories, datasets are raw files. This page describes the layers of the crate.
//!
//! # Layers
//!
//! A file imports only from layers below its own. `tests/integration/layering.rs` checks this.
//!
//! | layer | modules | content |
//! |---|---|---|
//! | 9 | [`cli`] | the command: arguments, supervisor, sandboxed worker, fetcher, commands without a mount |
//! | 8 | [`fs`] | inodes, names, handles, stat. Only files of `fs/fuse` use fuser, and only `fs/http/server.rs` uses hyper |
//! | 7 | `joined` | many files as one: a container that joins containers |
//! | 6 | `view` | the content of a file of the mount: a length and a `read_for` |
//! | 5 | `array` | byte ranges of arrays: chunks, cache, prefetch, gather |
//! | 4 | `hdf5`, `asdf`, [`detect`] | the formats, which describe objects. No format imports another one |
//! | 3 | `filter` | codecs: bytes to bytes, with limited output |
//! | 2 | [`model`] | the data model that both formats share |
//! | 1 | [`source`], [`wire`], `memory` | bytes of files; cursors and checksums; buffers and bounded caches |
//! | 0 | [`error`], [`limits`] | the error type; every limit |
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
//! The modules for embedding programs and for tests are public. The compiler reports dead code in
//! all other modules.

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

/// Internal items for tests and fuzz targets. They may change at any time.
#[doc(hidden)]
pub mod internals {
    pub use crate::asdf::compression;
    pub use crate::filter::{Context, decode};
    pub use crate::memory::buffer::{Buffer, BufferPool};
    pub use crate::memory::effort::Effort;
    pub use crate::source::recording::Recording;
}
