//! A cell of a table.

use crate::error::{Error, Result};
use crate::view::csv::fields::{Cell, Cells};
use crate::view::texts::html::markup::{Html, Url};

/// Bytes of a cell's text that are looked at.
const MOST: usize = 4096;

/// Writes a cell of a row that was read, as a link if it names an object that has a page.
///
/// # Errors
/// Fails if what the cell points to cannot be read.
pub(super) fn write(
    cells: &dyn Cells,
    row: usize,
    column: usize,
    page: Option<&Url>,
    html: &mut Html,
) -> Result<()> {
    let mut text = Vec::new();
    match cells.write(row, column, MOST, &mut text) {
        Ok(Cell::Missing) => html.markup("<td></td>"),
        Ok(Cell::Plain) => html.markup("<td>").text(text).markup("</td>"),
        Ok(Cell::Text) => {
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
