//! Parquet files whose every byte is computed.
//!
//! Apache Parquet, "File Format" (parquet-format 2.11): the letters `PAR1`; groups of rows, in which
//! each column has a chunk; the footer in Thrift's compact protocol; its length; `PAR1`. A chunk here
//! is one data page (version 1, not compressed) of PLAIN values, behind a dictionary page where its
//! values are few. So each byte is a function of the number of rows, the types of the columns and
//! the rows of a group: nothing is stored but the footer's shape, and a column that nobody reads is
//! not decoded.
//!
//! | file | content |
//! |---|---|
//! | `table` | what is shown: fields, rows, and what is said of them |
//! | `field`, `leaf` | the tree of the fields, and how the values of a leaf stand in its pages |
//! | `columns` | the fields of the elements of an array |
//! | `group_table` | those of a table that a group is |
//! | `long_table` | those of a variable of netCDF, a row for each value |
//! | `encoding`, `stored`, `texts`, `runs` | values, from the bytes of the source |
//! | `row_groups` | how many rows a group has |
//! | `layout` | where the parts of a group stand |
//! | `ragged` | lists of any number of elements |
//! | `headers`, `levels`, `pages` | the bytes of a page |
//! | `schema`, `footer`, `statistics`, `thrift` | the footer |
//! | `file` | the file |
//!
//! # Values of many lengths
//!
//! Texts of a fixed length, and values of which some are missing, take as many bytes of their page
//! as they ever can: the values stand at its beginning, zeros behind them. A reader takes as many
//! values as the page's header says. So these need no pass over the data; texts of variable length
//! do, and are counted first.

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

pub(crate) use columns::{array_table, has_columns};
pub(crate) use file::Plan;
pub(crate) use group_table::{Around, group_table};
pub(crate) use long_table::long_table;
pub(crate) use statistics::Keep;
pub(crate) use stored::Pointers;
pub(crate) use table::{Description, Table};
