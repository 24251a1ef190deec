//! HDF5 files: one file per structure of the specification, under the specification's name.
//!
//! Sections are those of "HDF5 File Format Specification Version 3.0". The way in:
//! [`superblock`] → [`object_header`] → [`message`] → [`group`], [`dataset`], [`attributes`];
//! what these stand on is in [`heap`], [`btree_v1`], [`btree_v2`] and [`index`].

#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::as_conversions
    )
)]

pub mod attributes;
pub mod btree_v1;
pub mod btree_v2;
pub mod index;
pub mod metadata;
#[cfg(test)]
pub(crate) mod testing;
