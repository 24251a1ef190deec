//! `.h5fs/text`: the strings of an array, one per line.

use std::sync::Arc;

use h5fs_reader::error::Result;
use h5fs_reader::model::datatype::Class;
use h5fs_view::elements::Elements;
use h5fs_view::elements::strings::matlab::MatlabElements;
use h5fs_view::elements::strings::{StringStorage, Strings};
use h5fs_view::elements::variable_length::VariableLengthFile;
use h5fs_view::view::View;

use crate::limits;
use crate::views::trees::view_tree::{
    EMPTY_FORM, EMPTY_TREE, FileSize, ViewForm, ViewSubject, ViewTree,
};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"text",
    number: 20,
    forms: &[ViewForm {
        number: 21,
        suffix: b".txt",
        size: |file, node| {
            let kind = StringStorage::from_node(&*file.container, node)?;
            Ok(kind.map(|_| FileSize::Counted))
        },
        open_elements: Some(open_strings),
        ..EMPTY_FORM
    }],
    ..EMPTY_TREE
};

fn open_strings(subject: &ViewSubject<'_>, elements: Elements) -> Result<Option<Box<dyn View>>> {
    let (file, node) = (subject.file, subject.node);
    if let Some(content) = source_tree_content(subject)? {
        return Ok(Some(Box::new(content)));
    }
    let is_part = !subject.selector.is_empty();
    let kind = StringStorage::from_node(&*file.container, node)?;
    match kind.or_else(|| StringStorage::from_field_type(&elements.datatype)) {
        // The elements are dimensions, not characters.
        Some(StringStorage::Matlab(MatlabElements::Dimensions)) if is_part => Ok(None),
        None => Ok(None),
        Some(kind) => {
            let (engine, container) = (Arc::clone(&file.engine), Arc::clone(&file.container));
            let strings = Strings::new(
                elements,
                kind,
                engine,
                container,
                &file.budget.cancel_token(),
            )?;
            subject.open_units(strings).map(Some)
        }
    }
}

/// Returns the content of the same array in the file's own tree, if the array has variable-length
/// strings. Its text is the same there.
fn source_tree_content(subject: &ViewSubject<'_>) -> Result<Option<VariableLengthFile>> {
    let Some(array) = subject.node.array().filter(|_| subject.selector.is_empty()) else {
        return Ok(None);
    };
    let is_served = array.shape.elements()? <= limits::VARIABLE_LENGTH_ELEMENTS;
    if !is_served || !matches!(array.datatype.class, Class::VariableString { .. }) {
        return Ok(None);
    }
    let content = subject
        .file
        .variable_length_content(subject.node.id, array)?;
    VariableLengthFile::new(content, &subject.file.budget.cancel_token()).map(Some)
}
