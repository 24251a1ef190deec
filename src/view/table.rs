//! The table of a group: columns of one length, by the convention that the group names, and its
//! one-dimensional members where it names none.
//!
//! | convention | the group says | the columns |
//! |---|---|---|
//! | [AnnData](anndata) | `encoding-type` = `dataframe` | `_index`, then `column-order` |
//! | [sparse matrix](sparse) | `encoding-type` = `csr_matrix`, `csc_matrix` | `row`, `col`, `value` |
//! | [HDMF, NWB](dynamic_table) | `colnames` | `id`, then `colnames` |
//! | [pandas](pandas) | `pandas_type` | the index, then the frame's order |
//! | [astropy](astropy) | tag `table/table` | `columns` |
//! | [none](members) | nothing | those of one length, or over one dimension scale |
//!
//! A column is named in its file; of one whose values are arrays or compounds, the parts are
//! columns: `a[0][1]`, `a.b`. What the columns are is found without a look at their values.

pub(crate) mod pytables;

mod anndata;
pub(crate) mod anndata_codes;
mod astropy;
pub(crate) mod budget;
pub(crate) mod column;
mod dynamic_table;
mod frame;
pub(crate) mod group;
mod labels;
mod lists;
mod members;
mod objects;
mod pandas;
mod pandas_fixed;
mod pandas_table;
mod pickle;
mod place;
pub(crate) mod rows;
pub(crate) mod runs;
mod sparse;
pub(crate) mod time;

use crate::error::Result;
use crate::view::table::column::GroupTable;
use crate::view::table::group::Group;

/// A way in which files say that a group is a table.
#[derive(Clone, Copy)]
pub(crate) struct Convention {
    is_named: fn(&Group<'_>) -> Result<bool>,
    table: fn(&Group<'_>) -> Result<GroupTable>,
    /// Whether its library reads the table as a frame of pandas, to which NaN is a missing value.
    is_of_frames: bool,
}

/// The conventions that a group names.
const CONVENTIONS: [Convention; 5] = [
    Convention {
        is_named: anndata::is_named,
        table: anndata::table,
        is_of_frames: true,
    },
    Convention {
        is_named: sparse::is_named,
        table: sparse::table,
        is_of_frames: false,
    },
    Convention {
        is_named: dynamic_table::is_named,
        table: dynamic_table::table,
        is_of_frames: true,
    },
    Convention {
        is_named: pandas::is_named,
        table: pandas::table,
        is_of_frames: true,
    },
    Convention {
        is_named: astropy::is_named,
        table: astropy::table,
        is_of_frames: false,
    },
];

/// No convention.
const NONE: Convention = Convention {
    is_named: members::is_there,
    table: members::table,
    is_of_frames: false,
};

impl Convention {
    /// The convention by which the group is a table; `None` where it is none.
    ///
    /// # Errors
    /// Fails if that cannot be found out now.
    pub(crate) fn of(group: &Group<'_>) -> Result<Option<Self>> {
        for convention in CONVENTIONS {
            if (convention.is_named)(group)? {
                return Ok(Some(convention));
            }
        }
        // Arrays of another encoding of AnnData are parts of one value.
        let is_encoded = anndata::is_of_another_kind(group)?;
        let is_table = !is_encoded && (NONE.is_named)(group)?;
        Ok(is_table.then_some(NONE))
    }

    /// The columns of the group.
    ///
    /// # Errors
    /// Fails if they are not what the convention wants them to be, or cannot be found out now.
    pub(crate) fn table(&self, group: &Group<'_>) -> Result<GroupTable> {
        let mut table = (self.table)(group)?;
        table.is_nan_missing = self.is_of_frames;
        Ok(table)
    }
}
