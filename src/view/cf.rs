//! Variables by netCDF's conventions (CF 1.12, NUG): numbers scaled, missing ones as NaN, times as
//! times, with the coordinates of each value.

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
