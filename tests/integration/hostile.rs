//! Files that no library would write. Each file is assembled here structure by structure, and is
//! tested with the same requests as every file. Only a damaged superblock or root may refuse the
//! mount. Any other fault affects only its object: siblings stay readable, and no request exceeds
//! its budget.

mod answers;
pub(crate) mod asdf;
mod asdf_memory;
mod attributes;
mod bombs;
pub(crate) mod bounded;
mod cut;
mod datasets;
mod descriptors;
mod effort;
mod filters;
mod groups;
pub(crate) mod hdf5;
mod headers;
mod links;
pub(crate) mod listed;
mod mappings;
pub(crate) mod memory;
pub(crate) mod mutants;
pub(crate) mod mutation;
mod ndarrays;
mod pointers;
pub(crate) mod processor;
pub(crate) mod requests;
mod shared;
mod stalls;
mod streams;
pub(crate) mod superblocks;
mod tables;
mod tree;
mod values;
pub(crate) mod visit;
