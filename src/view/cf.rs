//! Variables by netCDF's conventions (CF 1.12, NUG): numbers scaled, missing ones as NaN, times as
//! times, with the coordinates of each value.

mod attributes;
mod column;
mod coordinates;
pub(crate) mod decoded;
mod decoding;
mod packing;
mod place;
mod reference_time;
pub(super) mod stored;
pub(crate) mod table;
mod time;
pub(crate) mod variable;
