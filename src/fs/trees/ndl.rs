//! `.h5fs/ndl`: documents in the Ndarray Data Language, which describe objects.

use std::sync::Arc;

use crate::fs::trees::view_tree::{Form, OF_NOTHING, Size, ViewTree, WITHOUT_FILES, streamed};
use crate::model::NodeKind;
use crate::view::ndl::{Description, Options, Source};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"ndl",
    number: 14,
    forms: &[Form {
        number: 15,
        suffix: b".yaml",
        size: |_, node| {
            let is_described = matches!(node.kind, NodeKind::Array(_) | NodeKind::Group);
            Ok(is_described.then_some(Size::Streamed))
        },
        open: |subject| {
            let source = Source {
                container: Arc::clone(&subject.file.container),
                engine: Arc::clone(&subject.file.engine),
                paths: subject.paths(),
            };
            streamed(Some(Description {
                source,
                node: subject.node.id,
                path: subject.path.clone(),
                options: Options::default(),
            }))
        },
        ..OF_NOTHING
    }],
    ..WITHOUT_FILES
};
