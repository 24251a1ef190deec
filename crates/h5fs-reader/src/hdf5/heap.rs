//! The three heaps of HDF5: local (names of old groups), global (variable-length data) and fractal
//! (links, attributes and shared messages of the new format). Also the ends of strings on the
//! global heap.

pub(crate) mod fractal;
pub(crate) mod global;
pub(crate) mod local;
pub(crate) mod texts;
