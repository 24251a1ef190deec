//! HDF5 files: one file per structure of the specification, under the specification's name.
//!
//! Sections are those of "HDF5 File Format Specification Version 3.0".

#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::as_conversions
    )
)]

pub mod btree_v1;
pub mod btree_v2;
pub mod index;
pub mod metadata;
#[cfg(test)]
pub(crate) mod testing;
