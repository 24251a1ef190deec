//! `.h5fs/members.csv`: the list of files that make up a joined file.

use h5fs_reader::error::{Error, Result};
use h5fs_reader::wire::to_u64;

use crate::fs::nodes::node::{FsNode, Target};
use crate::fs::stat::{Entry, Kind};
use crate::view::View;
use crate::view::texts::text::Text;

/// The list of the files, as a regular file.
pub(in crate::fs) struct MembersList;

impl FsNode for MembersList {
    fn kind(&self) -> Kind {
        Kind::File
    }

    fn stat(&self, target: &Target<'_>) -> Result<Entry> {
        let list = target.file.container.members().ok_or(Error::NotFound)?;
        Ok(target.sized(to_u64(list.len())))
    }

    fn open(&self, target: &Target<'_>) -> Result<Box<dyn View>> {
        let list = target.file.container.members().ok_or(Error::NotFound)?;
        Ok(Box::new(Text::new(list.to_vec())))
    }
}
