//! Variables decoded by the netCDF conventions (CF 1.12, NUG). Numbers are scaled, missing values
//! are NaN, times are decoded, and each value has its coordinates.

pub(crate) mod attributes;
pub(super) mod column;
mod coordinates;
pub(crate) mod decoded;
pub(super) mod decoding;
pub(crate) mod packing;
pub(super) mod place;
mod reference_time;
mod siblings;
pub(crate) mod stored;
pub(crate) mod table;
pub(crate) mod time;
pub(crate) mod together;
pub(crate) mod variable;
