//! What conventions say about the arrays of a file: the netCDF conventions (CF, NUG), dimension
//! scales, and the attributes that MATLAB and pandas write.
//!
//! Everything here reads attributes or computes with numbers. The elements of large arrays are read
//! by the crates above: the views, and the joined files.
//!
//! # Layers
//!
//! A file imports only from layers below its own. `tests/integration/layering.rs` checks this.
//!
//! | layer | modules | content |
//! |---|---|---|
//! | 3 | [`attributes`], [`pandas_categories`] | the attributes of packed numbers and of times; ordered categories |
//! | 3 | [`padded`], [`dimension_names`] | arrays that are shorter than their unlimited dimension; the names of an array's dimensions |
//! | 3 | [`selected_part`] | a part of an array, with the same part of its dimension scales |
//! | 2 | [`packing`], [`time`] | scaled numbers with missing values; numbers as times |
//! | 2 | [`dimensions`], [`matlab_empty`] | dimension scales; empty arrays of MATLAB |
//! | 2 | [`pickle`], [`table_budget`] | pickled Python values; the budget for finding the columns of a table |
//! | 1 | [`stored_type`], [`calendar`], `reference_time`, [`csv_field`] | exact arithmetic with stored numbers; calendars; reference times of units; fields of CSV |
//! | 0 | [`limits`] | the limits of this crate |

#![forbid(unsafe_code)]

pub mod attributes;
pub mod calendar;
pub mod csv_field;
pub mod dimension_names;
pub mod dimensions;
pub mod limits;
pub mod matlab_empty;
pub mod packing;
pub mod padded;
pub mod pandas_categories;
pub mod pickle;
mod reference_time;
pub mod selected_part;
pub mod stored_type;
pub mod table_budget;
pub mod time;
