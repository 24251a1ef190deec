//! `.h5fs/chunks`: where the chunks of an array are stored.

use h5fs_reader::error::Error;
use h5fs_view::documents::chunks::ChunkLines;

use crate::views::trees::view_tree::{EMPTY_FORM, EMPTY_TREE, FileSize, ViewForm, ViewTree};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"chunks",
    number: 6,
    forms: &[ViewForm {
        number: 7,
        suffix: b".tsv",
        size: |_, node| {
            let chunks = node.array().and_then(|array| array.chunk_shape.as_ref());
            Ok(chunks.map(|_| FileSize::Counted))
        },
        open: |subject| {
            subject.open_sequential_text(
                ChunkLines::new(subject.array()?)?.ok_or(Error::NotFound)?,
                "",
            )
        },
        ..EMPTY_FORM
    }],
    ..EMPTY_TREE
};
