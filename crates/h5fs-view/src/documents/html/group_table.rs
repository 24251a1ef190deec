//! The first rows of a group's table, on the page of the group.

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::Result;
use h5fs_reader::wire::to_u64;

use crate::documents::html::cell;
use crate::documents::html::markup::Html;
use crate::documents::html::object::{PageObject, PageTableRows};
use crate::documents::html::page_draft::PageDraft;
use crate::documents::html::script;
use crate::limits;

/// Number of rows in the linked CSV file that continues the first rows on the page.
const NEXT_ROWS: u64 = 1000;

/// Writes the first rows of the table, if the object is a group that is a table.
pub(super) fn write(object: &PageObject<'_>, draft: &mut PageDraft) {
    let table = match (object.group_rows)() {
        Ok(Some(table)) if table.rows > 0 && !table.fields.names().is_empty() => table,
        Ok(_) => return,
        Err(error) => {
            draft.write_heading("Table");
            return draft.write_error(&error);
        }
    };
    draft.write_heading("Table");
    match render_rows(object, &table) {
        Ok(html) => drop(draft.body.append_html(&html)),
        Err(error) => draft.write_error(&error),
    }
    write_caption(object, &table, &mut draft.body);
}

fn render_rows(object: &PageObject<'_>, table: &PageTableRows) -> Result<Html> {
    let mut html = Html::default();
    html.markup("<div class=\"wide\"");
    script::write_rows_url(object, (&[table.rows], 0), true, &mut html);
    html.markup("><table>\n<thead><tr><th></th>");
    for name in table.fields.names() {
        html.markup("<th>").text(name).markup("</th>");
    }
    if table.columns > table.fields.names().len() {
        html.markup("<th>…</th>");
    }
    html.markup("</tr></thead>\n<tbody>\n");
    for row in 0..table.rows.min(limits::HTML_TABLE_ROWS) {
        html.markup("<tr><th>").number(row).markup("</th>");
        write_cells(table, (row, &object.cancel), &mut html)?;
        html.markup("</tr>\n");
    }
    html.markup("</tbody></table></div>\n");
    Ok(html)
}

fn write_cells(
    table: &PageTableRows,
    (row, cancel): (u64, &CancelToken),
    html: &mut Html,
) -> Result<()> {
    let cells = table.fields.read(row..row + 1, cancel)?;
    (0..table.fields.names().len())
        .try_for_each(|column| cell::write(&*cells, 0, column, None, html))
}

fn write_caption(object: &PageObject<'_>, table: &PageTableRows, html: &mut Html) {
    let shown = table.rows.min(limits::HTML_TABLE_ROWS);
    html.markup("<p class=\"note\">").number(shown);
    html.markup(" of ").number(table.rows).markup(" rows, ");
    html.number(to_u64(table.fields.names().len()));
    html.markup(" of ").number(table.columns).markup(" columns");
    let end = table.rows.min(shown + NEXT_ROWS);
    if end > shown
        && let Some(url) = object.site.part_table_url(&format!("[{shown}:{end}]"))
    {
        html.markup("; ");
        html.link(&url, format!("rows {shown} to {}", end - 1));
    }
    html.markup("</p>\n");
}
