//! `.h5fs/stored.zarr`: the file as a Zarr store with chunks as they are stored, if readers have
//! codecs for their filters. Copies then need no compression.

use crate::views::store_object::StoreChunks;
use crate::views::trees::view_tree::{EMPTY_TREE, TreeShape, ViewTree};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"stored.zarr",
    number: 32,
    shape: TreeShape::Store(StoreChunks::Stored),
    ..EMPTY_TREE
};
