//! `.h5fs/json`: arrays as JSON.

use std::sync::Arc;

use crate::fs::trees::view_tree::{Size, ViewTree, WITHOUT_FILES, streamed};
use crate::view::json::Json;

pub(super) const TREE: ViewTree = ViewTree {
    name: b"json",
    number: 10,
    suffix: b".json",
    size: |_, node| Ok(node.array().map(|_| Size::Streamed)),
    open: |subject| {
        let container = Arc::clone(&subject.file.container);
        let engine = Arc::clone(&subject.file.engine);
        let json = Json::new(subject.elements()?, engine, container, subject.paths())?;
        streamed(Some(json))
    },
    ..WITHOUT_FILES
};
