//! `.h5fs/npy`: arrays, and parts of them, as NumPy files.

use crate::fs::views::trees::view_tree::{
    OF_NOTHING, ViewForm, ViewTree, WITHOUT_FILES, exact, viewed,
};
use crate::view::pictures::npy;

pub(super) const TREE: ViewTree = ViewTree {
    name: b"npy",
    number: 16,
    forms: &[ViewForm {
        number: 17,
        suffix: b".npy",
        size: |_, node| exact(node, npy::length),
        view: Some(|_, elements| Ok(viewed(npy::file(elements)?))),
        is_meant: true,
        ..OF_NOTHING
    }],
    ..WITHOUT_FILES
};
