//! `.h5fs/fits`: arrays of numbers as FITS images; records, and groups that are tables, as binary
//! tables.

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::Node;
use h5fs_view::elements::Elements;
use h5fs_view::pictures::fits;
use h5fs_view::pictures::fits::attributes;
use h5fs_view::pictures::fits::cards::Cards;
use h5fs_view::pictures::fits::group::GroupRows;
use h5fs_view::text_files::bounds::TextLengthLimits;
use h5fs_view::text_files::text::InMemoryContent;
use h5fs_view::view::View;

use crate::data_files::file_state::FileState;
use crate::limits;
use crate::views::trees::csv::{convention, group_columns, is_plain_group, open_group_rows};
use crate::views::trees::view_tree::{
    EMPTY_FORM, EMPTY_TREE, FileSize, ViewForm, ViewSubject, ViewTree, boxed_if_some, boxed_view,
};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"fits",
    number: 38,
    root_name: Some(b"%"),
    forms: &[ViewForm {
        number: 39,
        suffix: b".fits",
        size,
        open_elements: Some(open_array),
        open: |subject| {
            if is_plain_group(subject.node) {
                open_group(subject)
            } else {
                Err(Error::NotFound)
            }
        },
        shows_intended_array: true,
        ..EMPTY_FORM
    }],
    ..EMPTY_TREE
};

/// Returns the size of the FITS file of the object `node`, or `None` if the object has none. The
/// size is [`FileSize::Counted`], because the header contains attributes, which a listing does not
/// read.
fn size(file: &FileState, node: &Node) -> Result<Option<FileSize>> {
    let has_file = match node.array() {
        _ if is_plain_group(node) => convention(file, node)?.is_some(),
        Some(array) => fits::is_fits_array(array)?,
        None => false,
    };
    Ok(has_file.then_some(FileSize::Counted))
}

fn open_array(subject: &ViewSubject<'_>, elements: Elements) -> Result<Option<Box<dyn View>>> {
    Ok(boxed_if_some(fits::file(
        elements,
        &attribute_cards(subject)?,
    )?))
}

fn open_group(subject: &ViewSubject<'_>) -> Result<Box<dyn View>> {
    let rows = GroupRows::open(group_columns(subject)?, |table| {
        open_group_rows(subject, table)
    })?;
    let object = subject.node.id;
    let bounds = TextLengthLimits::new(subject.file.budget.cancel_token(), limits::COUNTED_BYTES);
    let measure = || rows.measure_texts(&bounds).map(InMemoryContent::new);
    let measured = subject.file.cached_text(object, b".fits", measure)?;
    boxed_view(Some(
        rows.file(measured.bytes(), &attribute_cards(subject)?)?,
    ))
}

/// Returns the FITS header cards for the object's attributes.
fn attribute_cards(subject: &ViewSubject<'_>) -> Result<Cards> {
    let path = subject.known_path()?;
    attributes::cards(&*subject.file.container, subject.node.id, &path)
}
