//! `.h5fs/offsets`: the offset of each element of an array of variable-length elements in the
//! array's file.

use h5fs_reader::array::kinds::vlen::VariableLength;

use crate::fs::views::trees::view_tree::{Form, OF_NOTHING, Size, ViewTree, WITHOUT_FILES, shown};
use crate::view::elements::variable_length::Offsets;

pub(super) const TREE: ViewTree = ViewTree {
    name: b"offsets",
    number: 18,
    forms: &[Form {
        number: 19,
        size: |file, node| match node.array() {
            Some(array) if VariableLength::is_made_of(array) => {
                let array = file.variable_length(node.id, array)?;
                Ok(Some(Size::Exact(Offsets::size(&array))))
            }
            _ => Ok(None),
        },
        open: |subject| {
            let array = subject.array()?;
            let array = subject.file.variable_length(subject.node.id, &array)?;
            shown(Some(Offsets::new(array)))
        },
        ..OF_NOTHING
    }],
    ..WITHOUT_FILES
};
