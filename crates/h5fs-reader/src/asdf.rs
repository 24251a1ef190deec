//! ASDF files. Each module implements one concept of the specification and has the specification's
//! name for it.
//!
//! Section names refer to the ASDF Standard, "Low-level file layout" and "The tree in-depth". Files
//! are read with the tolerance of the reference library. The undamaged parts of damaged files are
//! read.
//!
//! Arithmetic: extents in the file are truncated at the end of the source, or cause an error. Costs
//! that are charged to a budget saturate, because every budget is smaller than the largest integer.
//! Computations of sizes and element counts are checked for overflow.

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
pub(crate) use header::is_asdf;
pub use nodes::Caches;

#[cfg(test)]
mod tests;
