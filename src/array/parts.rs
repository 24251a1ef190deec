//! The geometry of a read: the chunks that it meets, and what of them goes where.

pub(in crate::array) mod allocation;
pub(in crate::array) mod gather;
pub(in crate::array) mod grid;
pub(in crate::array) mod span;
