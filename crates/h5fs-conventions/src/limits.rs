//! The limits on the reads and the memory that the conventions need for one file.

/// The limits of the reader.
pub use h5fs_reader::limits::*;

/// Maximum values that mark missing elements of one netCDF variable. Each element of the variable
/// is compared with all of them.
pub const MISSING_VALUES: usize = 64;

/// Maximum links of one group that are searched for the scale of a netCDF dimension.
pub const NDL_SCALES: usize = 4096;

/// Maximum values of one Python pickle in a pandas table, plus the entries of its stack and its
/// memo.
pub const PICKLE_VALUES: usize = 1 << 19;

/// Maximum items in all lists and dictionaries of one Python pickle. [`PICKLE_VALUES`] does not
/// limit them, because one value may be an item many times.
pub const PICKLE_PLACES: usize = 1 << 21;

/// Maximum bytes of the names and descriptions of the columns of a group's table. The same limit
/// applies to the bytes that are read to find them: names, plus 64 bytes for each member.
pub const TABLE_BYTES: u64 = 32 << 20;
