//! `.h5fs/refs`: the elements of an array of references, as links to the referenced objects.

use crate::fs::views::trees::view_tree::{TreeShape, ViewTree, WITHOUT_FILES};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"refs",
    number: 22,
    shape: TreeShape::References,
    ..WITHOUT_FILES
};
