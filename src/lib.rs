//! The command `h5fs` mounts an HDF5 or ASDF file, or a directory of them, as a read-only
//! filesystem: groups are directories, datasets are raw files.
//!
//! This crate is the command: its arguments, the supervisor, the sandboxed worker, the fetcher's
//! process, and the commands without a mount. The rest is in the crates below, each of which
//! documents its layers:
//!
//! | crate | content |
//! |---|---|
//! | [`h5fs_tree`] | the tree of a mount: inodes, names, handles; FUSE and HTTP |
//! | [`h5fs_view`] | the content of the files of a mount: CSV, Parquet, Zarr, pictures, pages |
//! | [`h5fs_joined`] | many files as one |
//! | `h5fs_conventions` | what CF, dimension scales, MATLAB and pandas say about arrays |
//! | [`h5fs_fetcher`] | the bytes of sources by URL |
//! | [`h5fs_reader`] | HDF5 and ASDF, from bytes to arrays |
//!
//! A program that shows the tree of a file without a mount uses [`h5fs_tree`], and a program that
//! reads a file uses [`h5fs_reader`].

#![forbid(unsafe_code)]

pub mod cli;
pub mod limits;
