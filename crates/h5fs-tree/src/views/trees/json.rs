//! `.h5fs/json`: arrays as JSON, and the scalars, mappings and sequences of ASDF.

use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::{Node, NodeKind};
use h5fs_view::documents::asdf_json::AsdfJson;
use h5fs_view::json::ArrayJson;
use h5fs_view::text_files::text::InMemoryContent;
use h5fs_view::view::View;

use crate::data_files::file_state::FileState;
use crate::views::trees::mask;
use crate::views::trees::view_tree::{
    EMPTY_FORM, EMPTY_TREE, FileSize, ViewForm, ViewSubject, ViewTree, boxed_view,
};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"json",
    number: 10,
    forms: &[ViewForm {
        number: 11,
        suffix: b".json",
        size: |file, node| {
            let has_value = node.array().is_some() || is_value(file, node);
            Ok(has_value.then_some(FileSize::Counted))
        },
        open: |subject| {
            if is_value(subject.file, subject.node) {
                open_value(subject)
            } else {
                Err(Error::NotFound)
            }
        },
        open_elements: Some(|subject, elements| {
            let container = Arc::clone(&subject.file.container);
            let engine = Arc::clone(&subject.file.engine);
            let elements = subject.intended_elements(elements)?;
            let missing = mask::masked_elements(subject, &elements)?;
            let json = ArrayJson::new(elements, engine, container, subject.path_finder())?;
            subject.open_units(json.with_missing(missing)).map(Some)
        }),
        shows_intended_array: true,
        ..EMPTY_FORM
    }],
    ..EMPTY_TREE
};

/// Returns whether the node is a scalar, a mapping or a sequence of ASDF. Groups of HDF5 are not
/// values.
fn is_value(file: &FileState, node: &Node) -> bool {
    let is_plain = matches!(node.kind, NodeKind::Scalar(_) | NodeKind::Group);
    is_plain && file.container.asdf_extras().is_some()
}

/// Opens the JSON file of a scalar, a mapping or a sequence of ASDF. The text is cached. Of a text
/// that is too long for the cache, only the bytes are counted.
fn open_value(subject: &ViewSubject<'_>) -> Result<Box<dyn View>> {
    let json = AsdfJson::new(Arc::clone(&subject.file.container), subject.node.id);
    let render = || {
        json.whole_text(&subject.file.budget.cancel_token())
            .map(InMemoryContent::new)
    };
    match subject.file.cached_text(subject.node.id, b".json", render) {
        Err(Error::Limit { .. } | Error::BudgetExceeded { .. }) => {
            subject.open_sequential_text(json, "")
        }
        text => boxed_view(Some(text?)),
    }
}
