//! The nodes of the mount: one trait, with a method for each request.
//!
//! A node has no state. The request supplies the inode and the file that contains the inode.
//! `nodes.rs` maps each type of inode to its node.

use std::sync::Arc;

use h5fs_reader::error::{Error, Result, if_lasting};
use h5fs_reader::model::Node;
use h5fs_reader::wire::to_u64;
use nix::errno::Errno;

use crate::fs::data_files::file_state::FileState;
use crate::fs::data_files::mount::Mount;
use crate::fs::errno::{is_fault, refusal};
use crate::fs::names::namespace::{Namespace, ShownGroup};
use crate::fs::stat::{FileKind, LookupEntry};
use crate::fs::state::inode::Inode;
use crate::fs::state::listing::{ListingCallback, ListingState};
use crate::view::View;

/// The inode of a request.
#[derive(Clone, Copy)]
pub(in crate::fs) struct TargetInode<'a> {
    pub(in crate::fs) mount: &'a Mount,
    /// The current state of the file that contains the inode.
    pub(in crate::fs) file: &'a Arc<FileState>,
    pub(in crate::fs) ino: u64,
    pub(in crate::fs) inode: &'a Inode,
}

impl<'a> TargetInode<'a> {
    /// Counts a lookup of `inode` under the number `ino`, and describes the inode.
    ///
    /// # Errors
    /// Fails with the errors of `describe`. The lookup is then not counted: the kernel does not
    /// learn of the inode and cannot forget it.
    pub(in crate::fs) fn enter(
        mount: &Mount,
        file: &Arc<FileState>,
        ino: u64,
        inode: &Inode,
        describe: impl FnOnce(&TargetInode<'_>) -> Result<LookupEntry>,
    ) -> Result<LookupEntry> {
        let ino = mount.pins.number(ino, file, inode)?;
        let ino = mount.inodes.enter(ino, inode);
        let target = TargetInode {
            mount,
            file,
            ino,
            inode,
        };
        let pinned = target.pinned();
        let described = pinned.and_then(|pinned| pinned.map_or_else(|| describe(&target), Ok));
        described.inspect_err(|_| mount.inodes.forget(ino, 1))
    }

    /// Counts a lookup of an entry of this directory, described by `node`.
    ///
    /// # Errors
    /// Fails as [`enter`](Self::enter) does.
    pub(in crate::fs) fn enter_entry(
        &self,
        ino: u64,
        inode: &Inode,
        node: &dyn FsNode,
    ) -> Result<LookupEntry> {
        TargetInode::enter(self.mount, self.file, ino, inode, |entry| node.stat(entry))
    }

    /// Returns the tree of the target's file.
    pub(in crate::fs) fn space(&self) -> Namespace<'a> {
        self.mount.space(self.file)
    }

    /// Returns the group that is the target or contains it.
    pub(in crate::fs) fn directory(&self) -> ShownGroup<'a> {
        self.space().directory(self.inode.node)
    }

    /// Returns the entry as a file of `kind` without content.
    pub(in crate::fs) fn empty_entry(&self, kind: FileKind) -> LookupEntry {
        self.mount.fixed(self.file, self.ino, kind)
    }

    /// Returns the entry as a regular file of `size` bytes, all of them stored.
    pub(in crate::fs) fn sized_entry(&self, size: u64) -> LookupEntry {
        self.empty_entry(FileKind::File).with_size(size, Some(size))
    }

    /// Returns the entry as a file whose content has this length. Content that cannot be opened
    /// counts as empty, because opening it reports the error. Content that is too long to count has
    /// no size.
    ///
    /// # Errors
    /// Fails if the content cannot be opened now.
    pub(in crate::fs) fn of_length(&self, length: Result<u64>) -> Result<LookupEntry> {
        match length {
            Ok(length) => Ok(self.sized_entry(length)),
            Err(error) if error.is_passing() => Err(error),
            Err(Error::Limit { .. }) => Ok(self.sized_entry(0).without_size()),
            Err(_) => Ok(self.sized_entry(0).cacheable_if(false)),
        }
    }

    /// Returns the entry if the inode is bound to an open document with a fixed length.
    ///
    /// # Errors
    /// Fails if this cannot be determined now.
    pub(in crate::fs) fn pinned(&self) -> Result<Option<LookupEntry>> {
        let document = self.mount.pins.fixed(self.ino, self.file, self.inode)?;
        let Some(document) = document else {
            return Ok(None);
        };
        let entry = self.sized_entry(document.view.length()).cacheable_if(false);
        let node = if_lasting(self.file.container.node(self.inode.node))?;
        Ok(Some(node.map_or(entry, |node| entry.modified_as(&node))))
    }

    /// Returns the entry as a symbolic link with a text of `length` bytes.
    pub(in crate::fs) fn link(&self, length: usize) -> LookupEntry {
        self.empty_entry(FileKind::Symlink)
            .with_size(to_u64(length), None)
    }

    /// Records the target's error, and logs it once.
    pub(in crate::fs) fn record_error(&self, error: &Error) {
        self.mount
            .record_error(self.file, self.ino, self.inode, error);
    }
}

/// Built-in attributes: names without `user.`, and values.
pub(in crate::fs) type Facts = Vec<(&'static str, Vec<u8>)>;

/// An object as extended attributes describe it.
pub(in crate::fs) struct ObjectDescription {
    /// The node, or `None` if the object itself cannot be read.
    pub(in crate::fs) node: Option<Arc<Node>>,
    /// The reason why the content cannot be served.
    pub(in crate::fs) fault: Option<Error>,
    /// Additional facts.
    pub(in crate::fs) facts: Result<Facts>,
}

impl ObjectDescription {
    /// Describes a view file by the error of opening it, if that is known without a read. The
    /// errors of earlier reads were recorded and are reported as well.
    pub(in crate::fs) fn from_opening(node: &dyn FsNode, target: &TargetInode<'_>) -> Self {
        let fault = match node.open(target) {
            Ok(view) => view.failure().cloned(),
            Err(error) => Some(error),
        };
        ObjectDescription {
            node: None,
            fault: fault.filter(is_fault),
            facts: Ok(Vec::new()),
        }
    }
}

/// A defect of a part of an object.
#[derive(Debug)]
pub enum Defect<'f> {
    /// The attribute of this name, as in the file, cannot be read.
    Attribute(&'f [u8], Error),
    /// The named part cannot be read.
    Part(String, Error),
    /// Another file, or an object in it, is missing. Contains the text of the message.
    Missing(String),
}

/// A callback that receives the defects of an object.
pub(in crate::fs) type DefectCallback<'d> = dyn FnMut(Defect<'_>) + 'd;

/// A node of the mount. Requests that a node does not implement fail as they do for a file of its
/// kind on any filesystem.
pub(in crate::fs) trait FsNode: Sync {
    /// Returns the kind of file.
    fn kind(&self) -> FileKind;

    /// Returns the attributes, even if they are expensive.
    ///
    /// # Errors
    /// Fails if the attributes cannot be determined now.
    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        Ok(target.empty_entry(self.kind()))
    }

    /// Returns the entry `name` of this directory, counted.
    ///
    /// # Errors
    /// `NotFound`; `ENAMETOOLONG` over 255 bytes; fails if the directory cannot be read.
    fn lookup(&self, _target: &TargetInode<'_>, _name: &[u8]) -> Result<LookupEntry> {
        Err(refusal(Errno::ENOTDIR, "lookup"))
    }

    /// Returns a detailed reason why this directory has no entry `name`, if there is one.
    ///
    /// # Errors
    /// Fails if the directory cannot be read.
    fn absence_reason(&self, _target: &TargetInode<'_>, _name: &[u8]) -> Result<Option<String>> {
        Ok(None)
    }

    /// Returns whether a missing name stays missing until the source changes.
    fn is_absence_final(&self, _target: &TargetInode<'_>) -> bool {
        false
    }

    /// Passes the entries of this directory from `first` to `visit`, until `visit` has no room.
    ///
    /// # Errors
    /// Fails if the directory cannot be read at `first`.
    fn list(
        &self,
        _target: &TargetInode<'_>,
        _listing: &mut ListingState,
        _first: u64,
        _visit: &mut ListingCallback<'_>,
    ) -> Result<()> {
        Err(refusal(Errno::ENOTDIR, "readdir"))
    }

    /// Returns whether the listing of this directory stays the same until the source changes.
    fn is_lasting(&self) -> bool {
        true
    }

    /// Opens the content of this regular file.
    ///
    /// # Errors
    /// Fails if it is known before reading that the content cannot be served.
    fn open(&self, _target: &TargetInode<'_>) -> Result<Box<dyn View>> {
        Err(match self.kind() {
            FileKind::Symlink => refusal(Errno::ELOOP, "open"),
            FileKind::Directory | FileKind::File => refusal(Errno::EISDIR, "open"),
        })
    }

    /// Returns the text of this symbolic link.
    ///
    /// # Errors
    /// `ENAMETOOLONG` over 4095 bytes.
    fn readlink(&self, _target: &TargetInode<'_>) -> Result<Vec<u8>> {
        Err(refusal(Errno::EINVAL, "readlink"))
    }

    /// Returns why this symbolic link leads nowhere, if the reason is known. The reason is a file
    /// that is not shown or, if `object` is true, a missing object in that file.
    ///
    /// # Errors
    /// Fails if the link cannot be read.
    fn dangling_reason(&self, _target: &TargetInode<'_>, _object: bool) -> Result<Option<String>> {
        Ok(None)
    }

    /// Returns the object that extended attributes describe, or `None` if the node has no
    /// attributes.
    fn xattr(&self, _target: &TargetInode<'_>) -> Option<ObjectDescription> {
        None
    }

    /// Reads the whole object except its content. Reports each defective part.
    ///
    /// # Errors
    /// Fails if the object itself, or its list of attributes, is damaged.
    fn examine(&self, _target: &TargetInode<'_>, _find: &mut DefectCallback<'_>) -> Result<()> {
        Ok(())
    }
}
