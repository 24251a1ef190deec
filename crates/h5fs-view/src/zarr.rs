//! A file as a Zarr store (Zarr core specification 3.1): a `zarr.json` document for each group and
//! array, and chunk files that readers open by name.
//!
//! The chunks are decoded, with little-endian numbers. Small chunks of the file are combined to
//! larger ones. An array without chunks in the file is split along its first dimensions. A chunk
//! without stored data is not a file, so that readers use the fill value instead.

pub mod array;
pub mod attributes;
mod block;
pub mod chunk;
pub mod chunk_locations;
pub mod codecs;
pub mod datatype;
pub mod document;
pub mod grid;
pub mod json;
pub mod member_chunks;
pub mod references;
pub mod store_entry;
pub mod v2_document;
