//! h5fs mounts an HDF5 or ASDF file, or a directory of them, as a read-only filesystem: groups are
//! directories, datasets are raw files. This page describes the layers of the crate.
//!
//! # Crates
//!
//! This crate contains the command and everything above the formats. [`h5fs_reader`] reads HDF5 and
//! ASDF, without a mount and without a network. [`h5fs_conventions`] knows the conventions of
//! arrays, [`h5fs_joined`] shows many files as one, and [`h5fs_fetcher`] fetches sources by URL.
//! CONTRIBUTING.md has the map of all crates.
//!
//! # Layers
//!
//! A file imports only from layers below its own. `tests/integration/layering.rs` checks this.
//!
//! | layer | modules | content |
//! |---|---|---|
//! | 9 | [`cli`] | the command: arguments, supervisor, sandboxed worker, fetcher, commands without a mount |
//! | 8 | [`fs`] | inodes, names, handles, stat. Only files of `fs/fuse` use fuser, and only `fs/http/server.rs` uses hyper |
//! | 6 | `view` | the content of a file of the mount: a length and a `read_for` |
//! | 0 | [`limits`] | the limits of all crates |
//!
//! # Embedding
//!
//! A program reads the tree of a file without a mount:
//!
//! ```no_run
//! use h5fs::fs::{Filesystem, Options, Requests};
//!
//! # fn main() -> h5fs_reader::error::Result<()> {
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

pub mod cli;
pub mod fs;
pub mod limits;
mod view;
