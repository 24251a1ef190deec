//! Parquet files in which every byte is computed on demand.
//!
//! The layout follows Apache Parquet, "File Format" (parquet-format 2.11): the letters `PAR1`, row
//! groups with one chunk for each column, the footer in Thrift's compact protocol, the length of
//! the footer, and `PAR1`. A chunk in these files is one data page (version 1, not compressed) of
//! PLAIN values. A column with few distinct values has a dictionary page before the data page. Each
//! byte is therefore a function of the number of rows, the datatypes of the columns, and the rows
//! of a group. Only the layout is kept in memory, and columns that are not read are not decoded.
//!
//! | file | content |
//! |---|---|
//! | `table` | the table to show: fields, rows and description |
//! | `field`, `leaf` | the tree of fields, and the encoding of a leaf's values in its pages |
//! | `columns` | the fields of the elements of an array |
//! | `group_table` | the fields of a group that is a table |
//! | `long_table` | the fields of a netCDF variable, one row for each value |
//! | `encoding`, `stored`, `texts`, `runs` | values, computed from the bytes of the source |
//! | `row_groups` | the number of rows in a group |
//! | `layout` | the positions of the parts of a group |
//! | `ragged` | lists of varying length |
//! | `headers`, `levels`, `pages` | the bytes of a page |
//! | `schema`, `footer`, `statistics`, `thrift` | the footer |
//! | `file` | the file |
//!
//! # Values of many lengths
//!
//! Strings of a fixed length, and values that may be missing, take a fixed number of bytes in their
//! page: their maximum. The values are at the beginning of the page, and zeros follow. Readers use
//! the number of values in the page's header. Such columns can therefore be laid out without
//! reading their data. Strings of variable length must all be read once, to count their bytes.

mod columns;
mod encoding;
mod field;
mod file;
mod footer;
mod group_table;
mod headers;
mod layout;
mod leaf;
mod levels;
mod long_table;
mod pages;
mod ragged;
mod row_groups;
mod runs;
mod schema;
mod statistics;
mod stored;
mod table;
mod texts;
mod thrift;

pub use columns::{array_table, has_columns};
pub use file::FilePlan;
pub use group_table::{TableSource, group_table};
pub use long_table::long_table;
pub use statistics::BoundsCache;
pub use stored::PointerContext;
pub use table::{KeyValueMetadata, ParquetTable};
