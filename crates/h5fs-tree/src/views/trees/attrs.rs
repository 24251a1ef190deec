//! `.h5fs/attrs`: the attributes of an object as files of its directory.

use crate::views::trees::view_tree::{EMPTY_TREE, TreeShape, ViewTree};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"attrs",
    number: 4,
    shape: TreeShape::Attributes,
    ..EMPTY_TREE
};
