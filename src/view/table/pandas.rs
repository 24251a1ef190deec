//! The tables of pandas' `HDFStore`: which format a group has.

use crate::error::Result;
use crate::view::table::column::GroupTable;
use crate::view::table::group::Group;
use crate::view::table::{pandas_fixed, pandas_table};

/// What the reader of a format does.
type Reader = fn(&Group<'_>) -> Result<GroupTable>;

/// Whether the group is a frame or a series.
///
/// # Errors
/// Fails if that cannot be found out now.
pub(super) fn is_named(group: &Group<'_>) -> Result<bool> {
    Ok(reader(group)?.is_some())
}

/// The table of a frame or a series.
///
/// # Errors
/// Fails as the reader of its format does.
pub(super) fn table(group: &Group<'_>) -> Result<GroupTable> {
    match reader(group)? {
        Some(read) => read(group),
        None => Ok(GroupTable::default()),
    }
}

fn reader(group: &Group<'_>) -> Result<Option<Reader>> {
    let kind = group.text(b"pandas_type")?.unwrap_or_default();
    Ok(match &kind[..] {
        b"frame_table" | b"series_table" => Some(pandas_table::table),
        b"frame" => Some(pandas_fixed::frame),
        b"series" => Some(pandas_fixed::series),
        _ => None,
    })
}
