//! `.h5fs/external`: the directories of files to which external links lead, and symbolic links for
//! other spellings of their names.

use h5fs_reader::error::Result;
use h5fs_reader::model::LinkTarget;

use crate::data_files::other_files::{OtherFileEntry, ShownLocation};
use crate::errno::stale_error;
use crate::names::namespace::LinkEntry;
use crate::names::symlink;
use crate::nodes::indexed::{self, PlainEntry};
use crate::nodes::node::{FsNode, TargetInode};
use crate::nodes::source_tree;
use crate::stat::{FileKind, LookupEntry};
use crate::state::inode::{self, Inode, NodeType};
use crate::state::listing::{ListingCallback, ListingState};

/// The directory `.h5fs/external`.
pub(crate) struct OtherFilesDirectory;

/// A name in `.h5fs/external` that spells the path of a file differently from the shown name, as a
/// symbolic link to the file's directory.
pub(crate) struct SpellingLink;

impl FsNode for OtherFilesDirectory {
    fn kind(&self) -> FileKind {
        FileKind::Directory
    }

    fn lookup(&self, target: &TargetInode<'_>, name: &[u8]) -> Result<LookupEntry> {
        let (mount, source) = (target.mount, target.file);
        let root = source.container.root();
        let inode = |node_type, tree, node| Inode {
            node_type,
            generation: source.generation,
            tree,
            node,
            parent: target.ino,
            name: name.into(),
        };
        match mount.other_files.find(source, name)? {
            OtherFileEntry::File(file) => {
                let (file, _granted) = file.for_request(&source.budget.cancel_token());
                let root = file.container.root();
                let found = LinkEntry {
                    ino: inode::node_number(file.generation, file.tree, root),
                    inode: inode(NodeType::Group, file.tree, root),
                    object: Some(file.container.node(root)),
                    target: LinkTarget::Hard(root),
                };
                let directory = mount.namespace(&file).directory(root);
                let entry = source_tree::lookup_link_entry(mount, &directory, &found, true)?;
                // After the file changes, a different directory has this name.
                Ok(entry.cacheable_if(false))
            }
            OtherFileEntry::Spelling(place) => {
                let ino = inode::link_number(source.generation, inode::SPELLINGS, root, name);
                let inode = inode(NodeType::Spelling, inode::SOURCE, root);
                TargetInode::add_lookup(mount, source, ino, &inode, |spelling| {
                    Ok(spelling
                        .link_entry(spelling_link_text(&place).len())
                        .cacheable_if(false))
                })
            }
        }
    }

    fn list(
        &self,
        target: &TargetInode<'_>,
        _: &mut ListingState,
        first: u64,
        visit: &mut ListingCallback<'_>,
    ) -> Result<()> {
        let source = target.file;
        let root = source.container.root();
        indexed::list(target, first, visit, |number| {
            let name = target.mount.other_files.shown_name_at(number);
            let file = name.map(|name| PlainEntry {
                ino: inode::link_number(source.generation, inode::FIRST_FILE, root, &name),
                name: name.into(),
                kind: FileKind::Directory,
            });
            Ok(file.map(|file| (vec![file], number + 1)))
        })
    }

    /// Returns false, because an entry appears when a read finds an external link to its file.
    fn is_listing_cacheable(&self) -> bool {
        false
    }
}

impl FsNode for SpellingLink {
    fn kind(&self) -> FileKind {
        FileKind::Symlink
    }

    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        Ok(target
            .link_entry(self.readlink(target)?.len())
            .cacheable_if(false))
    }

    fn readlink(&self, target: &TargetInode<'_>) -> Result<Vec<u8>> {
        match target
            .mount
            .other_files
            .find(target.file, &target.inode.name)?
        {
            OtherFileEntry::Spelling(place) => Ok(spelling_link_text(&place)),
            OtherFileEntry::File(_) => Err(stale_error()),
        }
    }
}

/// Returns the text of the symbolic link from another spelling of a file's name to the file's
/// directory at `place`.
fn spelling_link_text(place: &ShownLocation) -> Vec<u8> {
    match place {
        ShownLocation::Root => b"../..".to_vec(),
        ShownLocation::Other(shown) => shown.clone(),
        // The other files of a member that are listed in this directory are outside the directory
        // of files.
        ShownLocation::Archive(names) => {
            let up = std::iter::repeat_n(b"..".to_vec(), 2);
            symlink::join_path(up.chain(names.iter().map(|name| name.to_vec())))
        }
    }
}
