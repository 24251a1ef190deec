//! `.h5fs/csv`: arrays of few dimensions as comma-separated values.

use std::sync::Arc;

use crate::fs::trees::mask;
use crate::fs::trees::view_tree::{Form, OF_NOTHING, Size, ViewTree, WITHOUT_FILES};
use crate::model::Array;
use crate::view::csv::array;
use crate::view::elements::values_of;

pub(super) const TREE: ViewTree = ViewTree {
    name: b"csv",
    number: 8,
    forms: &[Form {
        number: 9,
        suffix: b".csv",
        size: |_, node| {
            let has_columns = |array: &&Arc<Array>| values_of(&array.datatype) > 0;
            Ok(node.array().filter(has_columns).map(|_| Size::Counted))
        },
        view: Some(|subject, elements| {
            let engine = Arc::clone(&subject.file.engine);
            let container = Arc::clone(&subject.file.container);
            let missing = mask::missing(subject, &elements)?;
            let paths = subject.paths();
            let table = array::table(elements, missing, engine, container, paths)?;
            table.map(|table| subject.counted(table)).transpose()
        }),
        ..OF_NOTHING
    }],
    ..WITHOUT_FILES
};
