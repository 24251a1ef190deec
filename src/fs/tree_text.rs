//! `.h5fs/tree.yaml`: the text of an ASDF file's tree.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fs::node::{FsNode, Target};
use crate::fs::stat::{Entry, Kind};
use crate::model::array::{Fill, Layout, Storage};
use crate::model::datatype::ByteOrder;
use crate::model::storage::{Extent, Pipeline};
use crate::model::{Array, Datatype, Shape};
use crate::view::View;

/// The text of the tree, as a regular file.
pub(super) struct TreeText;

impl FsNode for TreeText {
    fn kind(&self) -> Kind {
        Kind::File
    }

    fn stat(&self, target: &Target<'_>) -> Result<Entry> {
        let extras = target.file.container.extras().ok_or(Error::NotFound)?;
        Ok(target.sized(extras.tree_text().map_or(0, |text| text.length)))
    }

    fn open(&self, target: &Target<'_>) -> Result<Box<dyn View>> {
        let extras = target.file.container.extras().ok_or(Error::NotFound)?;
        let text = extras.tree_text().ok_or(Error::NotFound)?;
        target.file.open_bytes(Arc::new(bytes_of(text)))
    }
}

/// A run of bytes as an array of bytes.
fn bytes_of(extent: Extent) -> Array {
    Array {
        datatype: Datatype::integer(1, false, ByteOrder::Little),
        shape: Shape::fixed(vec![extent.length]),
        fill: Fill::Zero,
        layout: Layout::Block,
        chunk_shape: None,
        pipeline: Pipeline::default(),
        storage: Ok(Storage::Extents(vec![extent])),
    }
}
