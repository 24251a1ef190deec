//! ASDF files: one file per noun of the specification, under the specification's name.
//!
//! Sections are those of the ASDF Standard, "Low-level file layout" and "The tree in-depth". Real
//! files are read as the reference library writes and reads them, damaged ones as far as they go.
//!
//! Bytes of the file are extents: cut where no source reaches, or an error. Sums of what is charged
//! to a budget saturate, because no budget grants so much. Sizes and numbers of elements are
//! checked.

#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::disallowed_methods,
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::as_conversions
    )
)]

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
