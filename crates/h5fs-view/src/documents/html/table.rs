//! The first rows of an array, as a table on its page.

use std::sync::Arc;

use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::shape::product;
use h5fs_reader::model::{Array, Shape};
use h5fs_reader::wire::to_usize;

use crate::cf::decoded;
use crate::cf::decoding::Decoding;
use crate::csv::array::ArrayColumns;
use crate::csv::fields::{CellKind, Cells, ColumnReader};
use crate::documents::html::markup::{Html, Url};
use crate::documents::html::object::PageObject;
use crate::documents::html::page_draft::PageDraft;
use crate::documents::html::{cell, references, script};
use crate::elements::{Elements, element_type};
use crate::limits;

/// The part of an array that its page shows as a table: the first rows and columns.
#[derive(Debug, PartialEq, Eq)]
struct TableCorner {
    /// Number of dimensions before rows and columns. Only their first index is shown.
    leading_dims: usize,
    /// Number of rows and number of columns to show; 1 if the array does not have the dimension.
    shown: [u64; 2],
    /// Number of rows and number of columns of the array.
    array_size: [u64; 2],
    /// Number of dimensions of the array.
    rank: usize,
}

impl TableCorner {
    /// Chooses as many first rows and columns of an array as the byte limit of a table on a page
    /// allows. `dims` are the dimensions of the array. Returns `None` if even one element exceeds
    /// the limit.
    fn choose(array: &Array, dims: &[u64], itemsize: u64, is_record: bool) -> Option<Self> {
        let rank = dims.len();
        let (leading, all) = match dims {
            [] => (0, [1, 1]),
            [rows] => (0, [*rows, 1]),
            // The fields of a record are the columns.
            [leading @ .., rows] if is_record => (leading.len(), [*rows, 1]),
            [leading @ .., rows, columns] => (leading.len(), [*rows, *columns]),
        };
        let most = [limits::HTML_TABLE_ROWS, limits::HTML_TABLE_COLUMNS];
        let mut corner = TableCorner {
            leading_dims: leading,
            shown: [all[0].min(most[0]), all[1].min(most[1])],
            array_size: all,
            rank,
        };
        while corner.bytes_to_read(array, itemsize) > limits::HTML_DECODED {
            match corner.shown {
                [1, 1] => return None,
                [1, columns] => corner.shown[1] = columns / 2,
                [rows, _] => corner.shown[0] = rows / 2,
            }
        }
        Some(corner)
    }

    /// Returns the number of bytes that must be decoded or read to show this part of the array.
    fn bytes_to_read(&self, array: &Array, itemsize: u64) -> u64 {
        let [rows, columns] = self.shown;
        let read = rows.saturating_mul(columns).saturating_mul(itemsize);
        let Some((chunk, bytes)) = array.filtered_chunk() else {
            return read;
        };
        let touched = |dimension: usize, count: u64| {
            let along = chunk.get(dimension).copied().unwrap_or(1).max(1);
            count.div_ceil(along)
        };
        let chunks = touched(self.leading_dims, rows)
            .saturating_mul(touched(self.leading_dims + 1, columns));
        read.max(chunks.saturating_mul(bytes))
    }

    /// Returns the selector that picks row `row` of the array; for `None`, the selector that picks
    /// all shown rows and columns.
    fn selector(&self, row: Option<u64>) -> String {
        let mut indices = vec!["0".to_owned(); self.leading_dims];
        let [rows, columns] = self.shown;
        if self.rank > self.leading_dims {
            indices.push(match row {
                Some(row) => row.to_string(),
                None => format!("0:{rows}"),
            });
        }
        if self.rank > self.leading_dims + 1 && row.is_none() {
            indices.push(format!("0:{columns}"));
        }
        if indices.is_empty() {
            String::new()
        } else {
            format!("[{}]", indices.join(","))
        }
    }
}

/// Writes the first rows of the object's array.
pub(super) fn write(object: &PageObject<'_>, draft: &mut PageDraft) {
    let Some(array) = object.node.array() else {
        return;
    };
    draft.write_heading("Values");
    if array.shape == Shape::Null || array.shape.elements() == Ok(0) {
        draft.body.markup("<p class=\"note\">no elements</p>\n");
        return;
    }
    match render_table(object, array) {
        Ok(table) => drop(draft.body.append_html(&table)),
        Err(error) => draft.write_error(&error),
    }
}

/// Returns the table with the first rows, and its caption.
fn render_table(object: &PageObject<'_>, array: &Arc<Array>) -> Result<Html> {
    let (datatype, dims) = element_type(&array.datatype, &array.shape)?;
    let dims = dims.unwrap_or_default();
    let is_record =
        matches!(datatype.class, Class::Compound(_)) && datatype.complex_part().is_none();
    let corner = TableCorner::choose(array, &dims, datatype.size.into(), is_record)
        .ok_or_else(|| Error::limit("bytes to decode for a page", limits::HTML_DECODED))?;
    let (elements, missing) = (object.read_part)(&corner.selector(None))?;
    let pages = target_pages(object, &elements)?;
    let container = Arc::clone(object.container);
    let fields = ArrayColumns::new(elements, b"", container, Arc::clone(&object.paths))?;
    let mut html = Html::default();
    let Some(fields) = fields.map(|fields| fields.with_missing(missing)) else {
        html.markup("<p class=\"note\">elements without a value</p>\n");
        return Ok(html);
    };
    let stored = TableRows::Stored(&fields, &pages);
    let (decoded, why_stored) = match decoded_rows(object, &corner) {
        Err(error) if error.is_transient() => return Err(error),
        Err(error) => (None, Some(error)),
        Ok(decoded) => (decoded, None),
    };
    let is_decoded = decoded.is_some();
    html.markup("<div class=\"wide\"");
    script::write_rows_url(object, (&dims, corner.leading_dims), is_record, &mut html);
    if !is_record {
        script::write_element_data(object, is_decoded, fields.names(), &mut html);
    }
    html.markup(">");
    let shown = decoded.as_ref().unwrap_or(&stored);
    write_table(object, &corner, fields.names(), shown, &mut html)?;
    html.markup("</div>\n");
    write_caption(&corner, is_decoded, why_stored.as_ref(), &mut html);
    if is_decoded {
        html.markup("<details class=\"stored\"><summary>As stored</summary>\n<div class=\"wide\">");
        write_table(object, &corner, fields.names(), &stored, &mut html)?;
        html.markup("</div></details>\n");
    }
    Ok(html)
}

/// The source of the cells of a table.
enum TableRows<'a> {
    /// The elements as they are stored, and the pages of the objects that they reference.
    Stored(&'a ArrayColumns, &'a [Option<Url>]),
    /// Numbers and times that are decoded by the CF conventions.
    Decoded(Box<DecodedElements>),
}

/// The stored elements of a table, and the rule that decodes them.
struct DecodedElements {
    stored: Elements,
    decoding: Decoding,
}

/// The cells of decoded elements: the stored bytes, and the rule that decodes them.
struct DecodedCells<'a> {
    bytes: Bytes,
    size: usize,
    decoding: &'a Decoding,
}

impl Cells for DecodedCells<'_> {
    fn write(&self, row: usize, _: usize, _: usize, out: &mut Vec<u8>) -> Result<CellKind> {
        let element = self.bytes.chunks_exact(self.size.max(1)).nth(row);
        self.decoding
            .write_number_text(element.unwrap_or_default(), out)
    }
}

/// Returns the shown rows as the values that the CF conventions define; `None` if these are the
/// stored values.
fn decoded_rows(
    object: &PageObject<'_>,
    corner: &TableCorner,
) -> Result<Option<TableRows<'static>>> {
    let path = || Ok(object.path.to_vec());
    let decoding = decoded::number_decoding(&**object.container, object.node, &path)?;
    let rows = decoding.map(|decoding| {
        let (stored, _) = (object.read_part)(&corner.selector(None))?;
        Ok(TableRows::Decoded(Box::new(DecodedElements {
            stored,
            decoding,
        })))
    });
    rows.transpose()
}

/// Writes the table of the shown rows and columns. `names` are the names of an element's columns.
fn write_table(
    object: &PageObject<'_>,
    corner: &TableCorner,
    names: &[Vec<u8>],
    rows: &TableRows<'_>,
    html: &mut Html,
) -> Result<()> {
    html.markup("<table>\n");
    write_head(corner, names, html);
    html.markup("<tbody>\n");
    for row in 0..corner.shown[0] {
        html.markup("<tr><th>");
        write_label(object, corner, row, html);
        html.markup("</th>");
        write_cells(corner, rows, (row, &object.cancel), html)?;
        html.markup("</tr>\n");
    }
    html.markup("</tbody></table>");
    Ok(())
}

/// Returns, for each of `elements`, the page of the object that it references. The result is empty
/// if the elements are not references.
fn target_pages(object: &PageObject<'_>, elements: &Elements) -> Result<Vec<Option<Url>>> {
    if !matches!(elements.datatype.class, Class::Reference(_)) {
        return Ok(Vec::new());
    }
    let count = elements.dims.as_deref().map_or(Ok(0), product)?;
    let bytes = elements.read(0, count, &object.cancel)?;
    let each = bytes.chunks_exact(to_usize(elements.datatype.size.into())?.max(1));
    each.map(|element| references::target_page(object, &elements.datatype, element))
        .collect()
}

/// Returns the number of columns to show for each element of the array. `names` are the names of
/// all of them.
fn shown_columns(names: &[Vec<u8>]) -> usize {
    let most = to_usize(limits::HTML_TABLE_COLUMNS).unwrap_or(usize::MAX);
    names.len().min(most)
}

/// Writes the header row: the names or numbers of the columns.
fn write_head(corner: &TableCorner, names: &[Vec<u8>], html: &mut Html) {
    html.markup("<thead><tr><th></th>");
    let columns = shown_columns(names);
    for element in 0..corner.shown[1] {
        for name in &names[..columns] {
            html.markup("<th>");
            if corner.array_size[1] > 1 {
                html.number(element).markup(" ");
            }
            html.text(name).markup("</th>");
        }
    }
    if corner.array_size[1] > corner.shown[1] || names.len() > columns {
        html.markup("<th>…</th>");
    }
    html.markup("</tr></thead>\n");
}

/// Writes the cells of row `row`.
fn write_cells(
    corner: &TableCorner,
    rows: &TableRows<'_>,
    (row, cancel): (u64, &CancelToken),
    html: &mut Html,
) -> Result<()> {
    let elements = corner.shown[1];
    let first = row.saturating_mul(elements);
    let (cells, columns, pages): (Box<dyn Cells + '_>, _, &[_]) = match rows {
        TableRows::Stored(fields, pages) => (
            fields.read(first..first.saturating_add(elements), cancel)?,
            shown_columns(fields.names()),
            pages,
        ),
        TableRows::Decoded(decoded) => {
            let DecodedElements { stored, decoding } = &**decoded;
            let cells = DecodedCells {
                bytes: stored.read(first, elements, cancel)?,
                size: to_usize(stored.datatype.size.into())?,
                decoding,
            };
            (Box::new(cells), 1, &[])
        }
    };
    for element in 0..to_usize(elements)? {
        for column in 0..columns {
            let page = pages.get(to_usize(first)? + element);
            let page = page.and_then(Option::as_ref);
            cell::write(&*cells, element, column, page, html)?;
        }
    }
    Ok(())
}

/// Writes the index of row `row`, as a link to the CSV file of this row.
fn write_label(object: &PageObject<'_>, corner: &TableCorner, row: u64, html: &mut Html) {
    if corner.rank == 0 {
        return;
    }
    let selector = corner.selector(Some(row));
    let label = selector.trim_matches(['[', ']']);
    match object.site.part_table_url(&selector) {
        Some(url) => html.link(&url, label),
        None => html.text(label),
    };
}

/// Writes which part of the array the table shows, and whether its values are decoded. `why_stored`
/// is the error because of which they are not.
fn write_caption(
    corner: &TableCorner,
    is_decoded: bool,
    why_stored: Option<&Error>,
    html: &mut Html,
) {
    let mut parts = Vec::new();
    if is_decoded {
        parts.push("values as the CF conventions define them".to_owned());
    }
    if let Some(error) = why_stored {
        parts.push(format!("values as stored ({error})"));
    }
    for (shown, all, name) in [
        (corner.shown[0], corner.array_size[0], "rows"),
        (corner.shown[1], corner.array_size[1], "columns"),
    ] {
        if shown < all {
            parts.push(format!("{shown} of {all} {name}"));
        }
    }
    if corner.leading_dims > 0 {
        let zeros = vec!["0"; corner.leading_dims].join(", ");
        parts.push(format!("at index {zeros} along the first axes"));
    }
    if !parts.is_empty() {
        html.markup("<p class=\"note\">").text(parts.join(", "));
        html.markup("</p>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::model::array::{Fill, Layout, Storage};
    use h5fs_reader::model::storage::{Filter, Pipeline};
    use h5fs_reader::testing::int;

    fn array(dims: &[u64], chunk: Option<&[u64]>) -> Array {
        let filter = Filter {
            id: 1,
            name: None,
            parameters: Vec::new(),
        };
        Array {
            datatype: int(2),
            shape: Shape::fixed(dims.to_vec()),
            fill: Fill::Zero,
            layout: Layout::Chunked,
            chunk_shape: chunk.map(<[u64]>::to_vec),
            pipeline: Pipeline(chunk.map(|_| filter).into_iter().collect()),
            storage: Ok(Storage::Fill),
        }
    }

    fn corner(dims: &[u64], chunk: Option<&[u64]>) -> Option<TableCorner> {
        TableCorner::choose(&array(dims, chunk), dims, 2, false)
    }

    #[test]
    fn a_corner_of_the_first_rows_and_columns() {
        let selector = |dims: &[u64]| corner(dims, None).unwrap().selector(None);
        assert_eq!(selector(&[]), "");
        assert_eq!(selector(&[7]), "[0:7]");
        assert_eq!(selector(&[1000]), "[0:20]");
        assert_eq!(selector(&[3, 1000]), "[0:3,0:12]");
        assert_eq!(selector(&[365, 36, 72]), "[0,0:20,0:12]");
        assert_eq!(
            corner(&[365, 36, 72], None).unwrap().selector(Some(3)),
            "[0,3]"
        );
        assert_eq!(corner(&[9], None).unwrap().selector(Some(3)), "[3]");
        let records = TableCorner::choose(&array(&[5, 9], None), &[5, 9], 2, true).unwrap();
        assert_eq!(records.selector(None), "[0,0:9]");
    }

    /// A page decodes at most 32 MiB, so a larger chunk is not decoded.
    #[test]
    fn no_more_is_decoded_than_a_page_may() {
        assert_eq!(limits::HTML_DECODED, 32 << 20);
        let shown =
            |chunk: &[u64]| corner(&[1000, 1 << 30], Some(chunk)).map(|corner| corner.shown);
        assert_eq!(shown(&[1, 1 << 20]), Some([10, 12]));
        assert_eq!(shown(&[1, 1 << 24]), Some([1, 12]));
        assert_eq!(shown(&[100, 4]), Some([20, 12]));
        assert_eq!(shown(&[1, 1 << 25]), None);
        // These elements are read without decoding.
        let large = TableCorner::choose(&array(&[100], None), &[100], 8 << 20, false).unwrap();
        assert_eq!(large.shown, [2, 1]);
        assert_eq!(
            TableCorner::choose(&array(&[100], None), &[100], 64 << 20, false),
            None
        );
    }
}
