//! h5fs mounts an HDF5 or ASDF file, or a directory of them, as a read-only filesystem: groups are
//! directories, datasets are raw files. This page describes the layers of the crate.
//!
//! # Crates
//!
//! This crate contains the command and everything above the formats. [`h5fs_reader`] reads HDF5 and
//! ASDF, without a mount and without a network. CONTRIBUTING.md has the map of all crates.
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
//! | 0 to 5 | [`h5fs_reader`] | the formats, from bytes to arrays |
//! | 0 | [`limits`] | the limits of this crate and of the reader |
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
mod joined;
pub mod limits;
mod view;
