//! `.h5fs/npy`: arrays, and parts of them, as NumPy files.

use crate::fs::trees::view_tree::{ViewTree, WITHOUT_FILES, exact, shown};
use crate::view::npy::{self, Npy};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"npy",
    number: 16,
    suffix: b".npy",
    has_selections: true,
    size: |_, node| exact(node, npy::length),
    open: |subject| shown(Npy::new(subject.elements()?)?),
    ..WITHOUT_FILES
};
