//! A file as a Zarr store (Zarr core specification 3.1): a `zarr.json` document for each group and
//! array, and chunk files that readers open by name.
//!
//! The chunks are decoded, with little-endian numbers. Small chunks of the file are combined to
//! larger ones. An array without chunks in the file is split along its first dimensions. A chunk
//! without stored data is not a file, so that readers use the fill value instead.

pub(crate) mod array;
pub(crate) mod attributes;
mod block;
pub(crate) mod chunk;
pub(crate) mod codecs;
pub(crate) mod datatype;
pub(crate) mod document;
pub(crate) mod grid;
pub(crate) mod json;
pub(crate) mod store_entry;
