//! A file as a Zarr store (Zarr core specification 3.1): a document for each group and array, and
//! the chunks, of which each reader takes those that it needs by their names.
//!
//! The chunks stand in the grid that the file stores them in, their filters undone, their numbers
//! little-endian. An array without a grid is cut along its first dimensions. A chunk that is not
//! stored has no file, so that readers put the fill value in its place.

pub(crate) mod array;
pub(crate) mod attributes;
pub(crate) mod chunk;
pub(crate) mod codecs;
pub(crate) mod datatype;
pub(crate) mod dimensions;
pub(crate) mod document;
pub(crate) mod json;
pub(crate) mod place;
