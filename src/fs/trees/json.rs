//! `.h5fs/json`: arrays as JSON.

use std::sync::Arc;

use crate::fs::trees::mask;
use crate::fs::trees::view_tree::{Form, OF_NOTHING, Size, ViewTree, WITHOUT_FILES};
use crate::view::json::Json;

pub(super) const TREE: ViewTree = ViewTree {
    name: b"json",
    number: 10,
    forms: &[Form {
        number: 11,
        suffix: b".json",
        size: |_, node| Ok(node.array().map(|_| Size::Counted)),
        view: Some(|subject, elements| {
            let container = Arc::clone(&subject.file.container);
            let engine = Arc::clone(&subject.file.engine);
            let missing = mask::missing(subject, &elements)?;
            let json = Json::new(elements, engine, container, subject.paths())?;
            subject.counted(json.without(missing)).map(Some)
        }),
        ..OF_NOTHING
    }],
    ..WITHOUT_FILES
};
