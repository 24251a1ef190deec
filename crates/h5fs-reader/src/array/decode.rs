//! Decodes: the queue of waiting chunks, the running decodes, and their memory.

pub(in crate::array) mod decode_memory;
pub(in crate::array) mod flight;
pub(in crate::array) mod held_memory;
pub(in crate::array) mod helpers;
pub(in crate::array) mod queue;
