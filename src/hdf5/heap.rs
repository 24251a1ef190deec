//! The three heaps of HDF5: local (names of old groups), global (variable-length data), fractal
//! (links, attributes and shared messages of the new format); and the ends of strings on the global
//! one.

pub(crate) mod fractal;
pub(crate) mod global;
pub(crate) mod local;
pub(crate) mod texts;
