//! The table of a group: columns of one length. The group's attributes name a convention; without
//! one, the columns are its one-dimensional members.
//!
//! | convention | attribute or tag of the group | columns |
//! |---|---|---|
//! | AnnData | `encoding-type` = `dataframe` | `_index`, then `column-order` |
//! | sparse matrix | `encoding-type` = `csr_matrix`, `csc_matrix`; `MATLAB_sparse` | `row`, `col`, `value` |
//! | HDMF, NWB | `colnames` | `id`, then `colnames` |
//! | pandas | `pandas_type` | the index, then the frame's order |
//! | astropy | tag `table/table` | the members of `columns` |
//! | none | none | members with the same length, or with the same dimension scale |
//!
//! Columns have their names in the file. If the values of a column are arrays or compounds, each
//! part is a column: `a[0][1]`, `a.b`. The columns are determined without reading their values.

pub mod pytables;

mod anndata;
pub mod anndata_codes;
mod astropy;
pub mod column;
mod column_location;
mod dynamic_table;
mod frame;
pub mod group;
mod labels;
mod lists;
mod members;
mod objects;
mod pandas;
mod pandas_fixed;
pub(crate) mod pandas_table;
pub mod rows;
pub mod runs;
mod sparse;
pub mod time;

use h5fs_reader::error::Result;

use crate::table::column::GroupTable;
use crate::table::group::Group;

/// A convention by which a group is identified as a table, with the functions that read such
/// tables.
#[derive(Clone, Copy)]
pub struct TableConvention {
    is_table: fn(&Group<'_>) -> Result<bool>,
    table: fn(&Group<'_>) -> Result<GroupTable>,
    /// Whether the convention's library reads the table as a pandas frame, where NaN is a missing
    /// value.
    is_of_frames: bool,
}

/// The conventions that identify a group as a table by its attributes, its tag or the names of its
/// members.
const CONVENTIONS: [TableConvention; 5] = [
    TableConvention {
        is_table: anndata::is_table,
        table: anndata::table,
        is_of_frames: true,
    },
    TableConvention {
        is_table: sparse::is_table,
        table: sparse::table,
        is_of_frames: false,
    },
    TableConvention {
        is_table: dynamic_table::is_table,
        table: dynamic_table::table,
        is_of_frames: true,
    },
    TableConvention {
        is_table: pandas::is_table,
        table: pandas::table,
        is_of_frames: true,
    },
    TableConvention {
        is_table: astropy::is_table,
        table: astropy::table,
        is_of_frames: false,
    },
];

/// The functions for the table of a group that follows no convention.
const NO_CONVENTION: TableConvention = TableConvention {
    is_table: members::is_table,
    table: members::table,
    is_of_frames: false,
};

impl TableConvention {
    /// Returns the convention of a group that is a table. Returns `None` for a group that is not a
    /// table.
    ///
    /// # Errors
    /// Fails if the attributes or members cannot be read.
    pub fn detect(group: &Group<'_>) -> Result<Option<Self>> {
        for convention in CONVENTIONS {
            if (convention.is_table)(group)? {
                return Ok(Some(convention));
            }
        }
        // A group with another AnnData encoding is a single value, and its arrays are parts of that
        // value.
        let is_encoded = anndata::is_single_value(group)?;
        let is_table = !is_encoded && (NO_CONVENTION.is_table)(group)?;
        Ok(is_table.then_some(NO_CONVENTION))
    }

    /// Returns the table of the group: its columns, without their values.
    ///
    /// # Errors
    /// Fails if a column violates the convention, or if its description cannot be read.
    pub fn table(&self, group: &Group<'_>) -> Result<GroupTable> {
        let mut table = (self.table)(group)?;
        table.is_nan_missing = self.is_of_frames;
        Ok(table)
    }
}
