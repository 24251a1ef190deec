//! `.h5fs/csv`: arrays of few dimensions as comma-separated values.

use crate::fs::trees::view_tree::{Form, OF_NOTHING, ViewTree, WITHOUT_FILES, exact, viewed};
use crate::view::csv::{self, Csv};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"csv",
    number: 8,
    forms: &[Form {
        number: 9,
        suffix: b".csv",
        size: |_, node| exact(node, csv::length),
        view: Some(|_, elements| Ok(viewed(Csv::new(elements)?))),
        ..OF_NOTHING
    }],
    ..WITHOUT_FILES
};
