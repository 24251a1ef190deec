//! `.h5fs/tree.yaml`: the text of an ASDF file's tree.

use h5fs_reader::error::{Error, Result};

use crate::fs::nodes::node::{FsNode, Target};
use crate::fs::stat::{Entry, Kind};
use crate::view::View;

/// The text of the tree, as a regular file.
pub(in crate::fs) struct TreeText;

impl FsNode for TreeText {
    fn kind(&self) -> Kind {
        Kind::File
    }

    fn stat(&self, target: &Target<'_>) -> Result<Entry> {
        let extras = target.file.container.extras().ok_or(Error::NotFound)?;
        Ok(target.sized(extras.tree_text().map_or(0, |text| text.extent.length())))
    }

    fn open(&self, target: &Target<'_>) -> Result<Box<dyn View>> {
        let extras = target.file.container.extras().ok_or(Error::NotFound)?;
        let text = extras.tree_text().ok_or(Error::NotFound)?;
        target.file.open_extent(text)
    }
}
