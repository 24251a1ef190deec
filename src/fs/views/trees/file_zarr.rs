//! `.h5fs/file.zarr`: the file as a Zarr store, version 3, with decoded chunks.

use crate::fs::views::store_object::StoreKind;
use crate::fs::views::trees::view_tree::{TreeShape, ViewTree, WITHOUT_FILES};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"file.zarr",
    number: 30,
    shape: TreeShape::Store(StoreKind::Decoded),
    ..WITHOUT_FILES
};
