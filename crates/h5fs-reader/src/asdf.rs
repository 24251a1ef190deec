//! ASDF files. Each module implements one noun of the specification, under the specification's
//! name.
//!
//! Section names refer to the ASDF Standard, "Low-level file layout" and "The tree in-depth". Files
//! are read with the tolerance of the reference library. The undamaged parts of damaged files are
//! read.
//!
//! Extents in the file are truncated at the end of the source, or are an error. Costs that are
//! charged to a budget saturate, because no budget is that large. Sizes and numbers of elements are
//! checked.

pub mod block;
mod block_index;
mod chain;
mod chunked_ndarray;
pub mod compression;
mod container;
mod content;
mod datatype;
mod external;
mod fields;
mod header;
mod inline;
mod ndarray;
mod nodes;
mod number;
mod scan;
mod tree;
mod window;
mod yaml;

pub use container::File;
pub use header::is_asdf;
pub use nodes::Caches;

#[cfg(test)]
mod tests;
