//! `.h5fs/assembled`: the single array that the chunks of an ASDF `chunked-ndarray` form.

use h5fs_view::elements::raw::RawElements;
use h5fs_view::text_files::text::InMemoryContent;

use crate::views::trees::view_tree::{
    EMPTY_FORM, EMPTY_TREE, FileSize, ViewForm, ViewTree, boxed_view,
};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"assembled",
    number: 2,
    forms: &[ViewForm {
        number: 3,
        size: |_, node| match &node.assembled_array {
            Some(array) => array
                .byte_length()
                .map(|bytes| Some(FileSize::Exact(bytes))),
            None => node.transient_error().cloned().map_or(Ok(None), Err),
        },
        open: |subject| {
            let array = subject.array()?;
            match array.byte_length()? {
                0 => boxed_view(Some(InMemoryContent::new(Vec::new()))),
                _ => boxed_view(Some(RawElements::new(
                    subject.file.reader(subject.node.id, &array)?,
                ))),
            }
        },
        ..EMPTY_FORM
    }],
    ..EMPTY_TREE
};
