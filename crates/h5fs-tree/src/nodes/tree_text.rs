//! `.h5fs/tree.yaml`: the text of an ASDF file's tree.

use h5fs_reader::error::{Error, Result};
use h5fs_view::view::View;

use crate::nodes::node::{FsNode, TargetInode};
use crate::stat::{FileKind, LookupEntry};

/// The file `.h5fs/tree.yaml`, with the YAML text of an ASDF file's tree.
pub(crate) struct TreeText;

impl FsNode for TreeText {
    fn kind(&self) -> FileKind {
        FileKind::File
    }

    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        let extras = target.file.container.asdf_extras().ok_or(Error::NotFound)?;
        Ok(target.sized_entry(extras.tree_text().map_or(0, |text| text.extent.length())))
    }

    fn open(&self, target: &TargetInode<'_>) -> Result<Box<dyn View>> {
        let extras = target.file.container.asdf_extras().ok_or(Error::NotFound)?;
        let text = extras.tree_text().ok_or(Error::NotFound)?;
        target.file.open_extent(text)
    }
}
