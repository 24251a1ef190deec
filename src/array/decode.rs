//! Decodes: the chunks that wait, those under way, and the memory that they take.

pub(in crate::array) mod decode_memory;
pub(in crate::array) mod flight;
pub(in crate::array) mod held_memory;
pub(in crate::array) mod helpers;
pub(in crate::array) mod queue;
