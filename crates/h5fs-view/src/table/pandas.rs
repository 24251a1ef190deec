//! Tables of the pandas `HDFStore`: the choice between its storage formats.

use h5fs_reader::error::Result;

use crate::table::column::GroupTable;
use crate::table::group::Group;
use crate::table::{pandas_fixed, pandas_table};

/// The function that reads the tables of one storage format.
type TableReader = fn(&Group<'_>) -> Result<GroupTable>;

/// Returns whether the attribute `pandas_type` says that the group is a frame or a series.
///
/// # Errors
/// Fails if the attribute cannot be read.
pub(super) fn is_table(group: &Group<'_>) -> Result<bool> {
    Ok(find_reader(group)?.is_some())
}

/// Returns the table of a frame or a series.
///
/// # Errors
/// Fails as the reader of the format does.
pub(super) fn table(group: &Group<'_>) -> Result<GroupTable> {
    match find_reader(group)? {
        Some(read) => read(group),
        None => Ok(GroupTable::default()),
    }
}

fn find_reader(group: &Group<'_>) -> Result<Option<TableReader>> {
    let kind = group.attribute_text(b"pandas_type")?.unwrap_or_default();
    Ok(match &kind[..] {
        b"frame_table" | b"series_table" => Some(pandas_table::table),
        b"frame" => Some(pandas_fixed::frame_table),
        b"series" => Some(pandas_fixed::series_table),
        _ => None,
    })
}
