//! Requests for data that later reads may need.

pub(in crate::array) mod hints;
pub(in crate::array) mod prefetch;
