//! The kinds of arrays: stored, strided, virtual and variable-length.

pub(crate) mod convert;
pub(in crate::array) mod extents;
pub(in crate::array) mod fill_value;
pub(in crate::array) mod stored;
pub(in crate::array) mod strided;
pub(in crate::array) mod virtual_array;
pub mod vlen;
