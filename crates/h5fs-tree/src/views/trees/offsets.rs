//! `.h5fs/offsets`: the offset of each element of an array of variable-length elements in the
//! array's file.

use h5fs_reader::array::kinds::vlen::VariableLengthContent;
use h5fs_view::elements::variable_length::ElementOffsets;

use crate::views::trees::view_tree::{
    EMPTY_FORM, EMPTY_TREE, FileSize, ViewForm, ViewTree, boxed_view,
};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"offsets",
    number: 18,
    forms: &[ViewForm {
        number: 19,
        size: |file, node| match node.array() {
            Some(array) if VariableLengthContent::is_variable_length_array(array) => {
                let array = file.variable_length_content(node.id, array)?;
                Ok(Some(FileSize::Exact(ElementOffsets::size(&array))))
            }
            _ => Ok(None),
        },
        open: |subject| {
            let array = subject.array()?;
            let array = subject
                .file
                .variable_length_content(subject.node.id, &array)?;
            boxed_view(Some(ElementOffsets::new(array)))
        },
        ..EMPTY_FORM
    }],
    ..EMPTY_TREE
};
