//! `.h5fs/npy`: arrays, and parts of them, as NumPy files.

use h5fs_view::npy;

use crate::views::trees::view_tree::{
    EMPTY_FORM, EMPTY_TREE, ViewForm, ViewTree, boxed_if_some, exact_size,
};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"npy",
    number: 16,
    forms: &[ViewForm {
        number: 17,
        suffix: b".npy",
        size: |_, node| exact_size(node, npy::length),
        open_elements: Some(|_, elements| Ok(boxed_if_some(npy::file(elements)?))),
        shows_intended_array: true,
        ..EMPTY_FORM
    }],
    ..EMPTY_TREE
};
