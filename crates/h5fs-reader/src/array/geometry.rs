//! The geometry of a read: which chunks it touches, and which bytes of them go where in the reply.

pub(in crate::array) mod allocation;
pub(in crate::array) mod gather;
pub(in crate::array) mod grid;
pub(in crate::array) mod span;
