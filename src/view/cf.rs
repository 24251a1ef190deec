//! Variables decoded by the netCDF conventions (CF 1.12, NUG). Numbers are scaled, missing values
//! are NaN, times are decoded, and each value has its coordinates.

pub(crate) mod attributes;
pub(super) mod column;
mod coordinates;
pub(crate) mod decoded;
pub(super) mod decoding;
pub(crate) mod group_variables;
pub(crate) mod packing;
mod reference_time;
pub(super) mod row_mapping;
mod siblings;
pub(crate) mod stored_type;
pub(crate) mod table;
pub(crate) mod time;
pub(crate) mod variable;
