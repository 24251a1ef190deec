//! `.h5fs/members.csv`: the list of files that make up a joined file.

use h5fs_reader::error::{Error, Result};
use h5fs_reader::wire::to_u64;
use h5fs_view::text_files::text::InMemoryContent;
use h5fs_view::view::View;

use crate::nodes::node::{FsNode, TargetInode};
use crate::stat::{FileKind, LookupEntry};

/// The file `.h5fs/members.csv`.
pub(crate) struct MembersList;

impl FsNode for MembersList {
    fn kind(&self) -> FileKind {
        FileKind::File
    }

    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        let list = target.file.container.members_csv().ok_or(Error::NotFound)?;
        Ok(target.sized_entry(to_u64(list.len())))
    }

    fn open(&self, target: &TargetInode<'_>) -> Result<Box<dyn View>> {
        let list = target.file.container.members_csv().ok_or(Error::NotFound)?;
        Ok(Box::new(InMemoryContent::new(list.to_vec())))
    }
}
