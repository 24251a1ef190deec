//! `.h5fs/kerchunk.json`: the file as a Zarr store, whose chunks are references into the source.

mod collector;
mod urls;

use h5fs_reader::error::Result;
use h5fs_view::view::View;
use h5fs_view::zarr::references::{ReferencePlan, ReferencesText};

use crate::nodes::node::{FsNode, ObjectDescription, TargetInode};
use crate::stat::{FileKind, LookupEntry};
use crate::state::inode::REFERENCES;
use crate::views::kerchunk::collector::ReferenceCollector;
use crate::views::trees::view_tree::ViewSubject;

/// Name of the file in `.h5fs`.
pub(crate) const NAME: &[u8] = b"kerchunk.json";

/// The file `.h5fs/kerchunk.json`.
pub(crate) struct KerchunkFile;

impl FsNode for KerchunkFile {
    fn kind(&self) -> FileKind {
        FileKind::File
    }

    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        target.entry_with_length(self.open(target).map(|view| view.length()))
    }

    fn open(&self, target: &TargetInode<'_>) -> Result<Box<dyn View>> {
        let file = target.file;
        let root = file.container.root();
        let plan = file.derived(root, NAME, ReferencePlan::weight, || {
            file.budget.cancel_token().require_heavy_slot()?;
            ReferenceCollector::collect(target)
        })?;
        let node = file.container.node(root)?;
        let subject = ViewSubject {
            file,
            node: &node,
            form_number: REFERENCES,
            selector: b"",
            path: b"/".to_vec(),
            verify: &|_| Ok(()),
            site: None,
        };
        subject.open_sequential_text(ReferencesText::new(plan), "")
    }

    fn describe_for_xattrs(&self, target: &TargetInode<'_>) -> Option<ObjectDescription> {
        Some(ObjectDescription::from_opening(self, target))
    }
}
