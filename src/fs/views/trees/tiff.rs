//! `.h5fs/tiff`: arrays of numbers, and parts of them, as TIFF files.

use crate::fs::views::trees::view_tree::{
    Form, OF_NOTHING, ViewTree, WITHOUT_FILES, exact, viewed,
};
use crate::view::pictures::tiff;

pub(super) const TREE: ViewTree = ViewTree {
    name: b"tiff",
    number: 34,
    forms: &[Form {
        number: 35,
        suffix: b".tif",
        size: |_, node| exact(node, tiff::length),
        view: Some(|_, elements| Ok(viewed(tiff::file(elements)?))),
        ..OF_NOTHING
    }],
    ..WITHOUT_FILES
};
