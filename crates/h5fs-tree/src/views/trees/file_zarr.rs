//! `.h5fs/file.zarr`: the file as a Zarr store, version 3, with decoded chunks.

use crate::views::store_object::StoreChunks;
use crate::views::trees::view_tree::{EMPTY_TREE, TreeShape, ViewTree};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"file.zarr",
    number: 30,
    shape: TreeShape::Store(StoreChunks::Decoded),
    ..EMPTY_TREE
};
