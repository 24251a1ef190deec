//! `.h5fs/file.zarr`: the file as a Zarr store, version 3, with decoded chunks.

use crate::views::store_object::StoreKind;
use crate::views::trees::view_tree::{EMPTY_TREE, TreeShape, ViewTree};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"file.zarr",
    number: 30,
    shape: TreeShape::Store(StoreKind::Decoded),
    ..EMPTY_TREE
};
