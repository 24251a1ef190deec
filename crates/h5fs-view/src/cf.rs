//! Variables decoded by the netCDF conventions (CF 1.12, NUG). Numbers are scaled, missing values
//! are NaN, times are decoded, and each value has its coordinates.

pub(super) mod column;
mod coordinates;
pub mod decoded;
pub(super) mod decoding;
pub mod group_variables;
pub mod labels;
pub(super) mod row_mapping;
mod siblings;
pub mod table;
pub mod variable;
