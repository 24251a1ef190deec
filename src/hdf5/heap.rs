//! The three heaps of HDF5: local (names of old groups), global (variable-length data), fractal (links,
//! attributes and shared messages of the new format).

pub mod fractal;
pub mod global;
pub mod local;
