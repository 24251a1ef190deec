//! What later reads may want.

pub(in crate::array) mod hints;
pub(in crate::array) mod prefetch;
