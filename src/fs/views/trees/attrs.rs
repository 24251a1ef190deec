//! `.h5fs/attrs`: the attributes of an object as files of its directory.

use crate::fs::views::trees::view_tree::{TreeShape, ViewTree, WITHOUT_FILES};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"attrs",
    number: 4,
    shape: TreeShape::Attributes,
    ..WITHOUT_FILES
};
