//! A file as a Zarr store (Zarr core specification 3.1): a document for each group and array, and
//! the chunks, of which each reader takes those that it needs by their names.
//!
//! The chunks are decoded, their numbers little-endian. Small ones of the file are put together to
//! one. An array that the file does not cut into chunks is cut along its first dimensions. A chunk
//! of which nothing is stored has no file, so that readers put the fill value in its place.

pub(crate) mod array;
pub(crate) mod attributes;
mod block;
pub(crate) mod chunk;
pub(crate) mod codecs;
pub(crate) mod datatype;
pub(crate) mod dimensions;
pub(crate) mod document;
pub(crate) mod grid;
pub(crate) mod json;
pub(crate) mod place;
