//! ASDF files: one file per noun of the specification, under the specification's name.
//!
//! Sections are those of the ASDF Standard, "Low-level file layout" and "The tree in-depth". Real
//! files are read as the reference library writes and reads them, damaged ones as far as they go.
//!
//! Sums of file offsets saturate: an offset of `u64::MAX` lies behind the end of every source,
//! and a read there yields nothing or an error. Sums of what is charged to a budget saturate,
//! because no budget grants so much. Sizes and numbers of elements are checked.

#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::as_conversions
    )
)]

pub mod block;
pub mod block_index;
pub mod chain;
pub mod chunked_ndarray;
pub mod compression;
pub mod container;
pub mod content;
pub mod datatype;
pub mod external;
pub mod fields;
pub mod header;
pub mod inline;
pub mod ndarray;
pub mod nodes;
pub mod number;
pub mod scan;
pub mod tree;
pub mod window;
pub mod yaml;

pub use container::File;
pub use header::is_asdf;
pub use nodes::Caches;

#[cfg(test)]
mod tests;
