//! Computed netCDF classic files: a group, or an array with its coordinate variables.
//!
//! The grammar is that of "The NetCDF Classic Format Specification": a header, then each variable
//! of fixed size, then the records. Each byte is computed when it is read.
//!
//! | module | content |
//! |---|---|
//! | [`group_file`] | the plan of a file: its variables, dimensions and attributes |
//! | `variables`, `dimensions`, `attributes`, `names` | what the source has, in the classic model |
//! | `types`, `texts` | elements of the source as big-endian numbers and characters |
//! | `layout`, `header` | offsets; the bytes before the data |
//! | `file` | any range of the bytes |
//!
//! The version of the format is CDF-5 if a variable has a type that CDF-1 does not have (unsigned,
//! or 64-bit integers), or a size that CDF-2 cannot express. It is CDF-2 if the file has 2 GiB or
//! more, and otherwise CDF-1.

mod absent;
mod attributes;
mod dimensions;
mod file;
pub mod group_file;
mod header;
mod layout;
mod names;
pub mod source;
mod texts;
mod types;
mod variables;
