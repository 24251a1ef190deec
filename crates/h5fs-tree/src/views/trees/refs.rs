//! `.h5fs/refs`: the elements of an array of references, as links to the referenced objects.

use crate::views::trees::view_tree::{EMPTY_TREE, TreeShape, ViewTree};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"refs",
    number: 22,
    shape: TreeShape::References,
    ..EMPTY_TREE
};
