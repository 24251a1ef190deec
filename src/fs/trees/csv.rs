//! `.h5fs/csv`: arrays of few dimensions as comma-separated values.

use crate::fs::trees::view_tree::{ViewTree, WITHOUT_FILES, exact, shown};
use crate::view::csv::{self, Csv};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"csv",
    number: 8,
    suffix: b".csv",
    size: |_, node| exact(node, csv::length),
    open: |subject| shown(Csv::new(subject.elements()?)?),
    ..WITHOUT_FILES
};
