//! `.h5fs/file.zarr`: the file as a Zarr store, version 3, its chunks decoded.

use crate::fs::store_object::Store;
use crate::fs::trees::view_tree::{ViewTree, WITHOUT_FILES};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"file.zarr",
    number: 30,
    store: Some(Store::Decoded),
    ..WITHOUT_FILES
};
