//! A cell of a table on a page.

use h5fs_reader::error::{Error, Result};

use crate::csv::fields::{CellKind, Cells};
use crate::documents::html::markup::{Html, Url};

/// Maximum length of a cell's text in bytes.
const MAX_CELL_BYTES: usize = 4096;

/// Writes the cell in row `row` and column `column` of `cells`. If the cell references an object,
/// `page` is the page of that object.
///
/// # Errors
/// Fails if the target of a pointer in the cell cannot be read.
pub(super) fn write(
    cells: &dyn Cells,
    row: usize,
    column: usize,
    page: Option<&Url>,
    html: &mut Html,
) -> Result<()> {
    let mut text = Vec::new();
    match cells.write(row, column, MAX_CELL_BYTES, &mut text) {
        Ok(CellKind::Missing) => html.markup("<td></td>"),
        Ok(CellKind::Unquoted) => html.markup("<td>").text(text).markup("</td>"),
        Ok(CellKind::Text) => {
            html.markup("<td class=\"text\">");
            match page {
                Some(page) => html.link(page, text),
                None => html.text(text),
            };
            html.markup("</td>")
        }
        Err(Error::Limit { .. }) => html.markup("<td class=\"note\">too long</td>"),
        Err(error) => return Err(error),
    };
    Ok(())
}
