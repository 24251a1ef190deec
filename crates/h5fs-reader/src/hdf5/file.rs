//! A file as a whole: superblock, widths of numbers, caches, and related files.

pub(in crate::hdf5) mod cache_image;
pub(crate) mod caches;
pub(in crate::hdf5) mod context;
pub(in crate::hdf5) mod driver_info;
pub(crate) mod file_locking;
pub(in crate::hdf5) mod metadata;
pub(in crate::hdf5) mod number_form;
pub(in crate::hdf5) mod opening;
pub(in crate::hdf5) mod other_files;
pub(crate) mod superblock;
