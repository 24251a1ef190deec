//! The three heaps of HDF5: local (names of old groups), global (variable-length data) and fractal
//! (links, attributes and shared messages of the new format). The module `texts` remembers where
//! long strings on the global heap end.

pub(crate) mod fractal;
pub(crate) mod global;
pub(crate) mod local;
pub(crate) mod texts;
