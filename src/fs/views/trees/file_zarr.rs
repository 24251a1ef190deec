//! `.h5fs/file.zarr`: the file as a Zarr store, version 3, with decoded chunks.

use crate::fs::views::store_object::Store;
use crate::fs::views::trees::view_tree::{Shape, ViewTree, WITHOUT_FILES};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"file.zarr",
    number: 30,
    shape: Shape::Store(Store::Decoded),
    ..WITHOUT_FILES
};
