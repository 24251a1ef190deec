//! `.h5fs/refs`: the elements of an array of references, as links to the referenced objects.

use crate::fs::views::trees::view_tree::{Shape, ViewTree, WITHOUT_FILES};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"refs",
    number: 22,
    shape: Shape::References,
    ..WITHOUT_FILES
};
