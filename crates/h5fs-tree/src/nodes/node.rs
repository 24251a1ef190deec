//! The trait of the nodes of the mount, with a method for each request.
//!
//! A node has no state. The request supplies the inode and the file that contains the inode.
//! `node_table.rs` maps each type of inode to its node.

use std::sync::Arc;

use h5fs_reader::error::{Error, Result, ignore_permanent};
use h5fs_reader::model::Node;
use h5fs_reader::wire::to_u64;
use h5fs_view::view::View;
use nix::errno::Errno;

use crate::data_files::file_state::FileState;
use crate::data_files::mount::Mount;
use crate::errno::{is_fault, refusal_error};
use crate::names::namespace::{Namespace, ShownGroup};
use crate::stat::{FileKind, LookupEntry};
use crate::state::inode::Inode;
use crate::state::listing::{ListingCallback, ListingState};

/// The inode that a request is about, and the file that contains the inode.
#[derive(Clone, Copy)]
pub(crate) struct TargetInode<'a> {
    pub(crate) mount: &'a Mount,
    /// The current state of the file that contains the inode.
    pub(crate) file: &'a Arc<FileState>,
    pub(crate) ino: u64,
    pub(crate) inode: &'a Inode,
}

impl<'a> TargetInode<'a> {
    /// Increments the lookup count of `inode`, whose number before collisions are resolved is
    /// `ino`. Returns the entry from `describe`.
    ///
    /// # Errors
    /// Fails with the errors of `describe`. The lookup is then not counted: the kernel does not
    /// learn of the inode and cannot forget it.
    pub(crate) fn add_lookup(
        mount: &Mount,
        file: &Arc<FileState>,
        ino: u64,
        inode: &Inode,
        describe: impl FnOnce(&TargetInode<'_>) -> Result<LookupEntry>,
    ) -> Result<LookupEntry> {
        let ino = mount.pins.number_for_state(ino, file, inode)?;
        let ino = mount.inodes.add_lookup(ino, inode);
        let target = TargetInode {
            mount,
            file,
            ino,
            inode,
        };
        let pinned = target.pinned_entry();
        let described = pinned.and_then(|pinned| pinned.map_or_else(|| describe(&target), Ok));
        described.inspect_err(|_| mount.inodes.forget(ino, 1))
    }

    /// Increments the lookup count of the inode `inode`, an entry of this directory, and returns
    /// the entry. `node` determines its attributes.
    ///
    /// # Errors
    /// Fails as [`add_lookup`](Self::add_lookup) does.
    pub(crate) fn add_entry_lookup(
        &self,
        ino: u64,
        inode: &Inode,
        node: &dyn FsNode,
    ) -> Result<LookupEntry> {
        TargetInode::add_lookup(self.mount, self.file, ino, inode, |entry| node.stat(entry))
    }

    /// Returns the directory tree of the file that contains the target.
    pub(crate) fn namespace(&self) -> Namespace<'a> {
        self.mount.namespace(self.file)
    }

    /// Returns the target, if it is a group, or the group that contains the target.
    pub(crate) fn directory(&self) -> ShownGroup<'a> {
        self.namespace().directory(self.inode.node)
    }

    /// Returns the entry of the target as a file of `kind` without content.
    pub(crate) fn empty_entry(&self, kind: FileKind) -> LookupEntry {
        self.mount.empty_entry(self.file, self.ino, kind)
    }

    /// Returns the entry of the target as a regular file of `size` bytes, all of them stored.
    pub(crate) fn sized_entry(&self, size: u64) -> LookupEntry {
        self.empty_entry(FileKind::File).with_size(size, Some(size))
    }

    /// Returns the entry of the target as a regular file whose content has the length `length`.
    /// Content that cannot be opened counts as empty, because opening it reports the error. A text
    /// that is too long for its bytes to be counted has no size.
    ///
    /// # Errors
    /// Fails if the content cannot be opened now.
    pub(crate) fn entry_with_length(&self, length: Result<u64>) -> Result<LookupEntry> {
        match length {
            Ok(length) => Ok(self.sized_entry(length)),
            Err(error) if error.is_transient() => Err(error),
            Err(Error::Limit { .. }) => Ok(self.sized_entry(0).without_size()),
            Err(_) => Ok(self.sized_entry(0).cacheable_if(false)),
        }
    }

    /// Returns the entry of the target if it belongs to a growing file and is open with a fixed
    /// length. Its size is that length.
    ///
    /// # Errors
    /// Fails if the array that the target shows cannot be read now.
    pub(crate) fn pinned_entry(&self) -> Result<Option<LookupEntry>> {
        let document = self
            .mount
            .pins
            .pinned_document(self.ino, self.file, self.inode)?;
        let Some(document) = document else {
            return Ok(None);
        };
        let entry = self.sized_entry(document.view.length()).cacheable_if(false);
        let node = ignore_permanent(self.file.container.node(self.inode.node))?;
        Ok(Some(node.map_or(entry, |node| {
            entry.with_modification_time_of(&node)
        })))
    }

    /// Returns the entry of the target as a symbolic link with a text of `length` bytes.
    pub(crate) fn link_entry(&self, length: usize) -> LookupEntry {
        self.empty_entry(FileKind::Symlink)
            .with_size(to_u64(length), None)
    }

    /// Records `error` as the error of the object that this inode shows. Logs only the first error
    /// of an object.
    pub(crate) fn record_error(&self, error: &Error) {
        self.mount
            .record_error(self.file, self.ino, self.inode, error);
    }
}

/// Built-in extended attributes: the name of each, without the prefix `user.`, and its value.
pub(crate) type BuiltinAttributes = Vec<(&'static str, Vec<u8>)>;

/// The information about an object from which its extended attributes are made.
pub(crate) struct ObjectDescription {
    /// The object's node, or `None` if the object itself cannot be read.
    pub(crate) node: Option<Arc<Node>>,
    /// The reason why the content of the object cannot be served.
    pub(crate) content_error: Option<Error>,
    /// Further built-in extended attributes, or the error of determining them.
    pub(crate) builtin_attributes: Result<BuiltinAttributes>,
}

impl ObjectDescription {
    /// Describes a file in `.h5fs` for its extended attributes. `content_error` is the error of
    /// opening the file, or the error that every read would return, if that is known without
    /// reading.
    pub(crate) fn from_opening(node: &dyn FsNode, target: &TargetInode<'_>) -> Self {
        let fault = match node.open(target) {
            Ok(view) => view.failure().cloned(),
            Err(error) => Some(error),
        };
        ObjectDescription {
            node: None,
            content_error: fault.filter(is_fault),
            builtin_attributes: Ok(Vec::new()),
        }
    }
}

/// A defect of an object that leaves its other parts readable.
#[derive(Debug)]
pub enum Defect<'f> {
    /// An attribute that cannot be read: its name, as in the file, and the error.
    Attribute(&'f [u8], Error),
    /// A part of the object that cannot be read: its name, and the error.
    Part(String, Error),
    /// A referenced file, or an object in it, that is missing; the value is the message.
    Missing(String),
}

/// A callback that receives the defects of an object.
pub(crate) type DefectCallback<'d> = dyn FnMut(Defect<'_>) + 'd;

/// A node of the mount. Requests that a node does not implement fail as they do for a file of its
/// kind on any filesystem.
pub(crate) trait FsNode: Sync {
    /// Returns whether the node is a directory, a regular file or a symbolic link.
    fn kind(&self) -> FileKind;

    /// Returns the attributes of the target, even if determining them is expensive.
    ///
    /// # Errors
    /// Fails if the attributes cannot be determined now.
    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        Ok(target.empty_entry(self.kind()))
    }

    /// Looks up `name` in this directory, increments the lookup count of its inode, and returns its
    /// entry.
    ///
    /// # Errors
    /// `NotFound` if the directory has no such entry; `ENAMETOOLONG` for a name over 255 bytes;
    /// fails if the directory cannot be read.
    fn lookup(&self, _target: &TargetInode<'_>, _name: &[u8]) -> Result<LookupEntry> {
        Err(refusal_error(Errno::ENOTDIR, "lookup"))
    }

    /// Returns a detailed reason why this directory has no entry `name`, if such a reason is known.
    ///
    /// # Errors
    /// Fails if the directory cannot be read.
    fn absence_reason(&self, _target: &TargetInode<'_>, _name: &[u8]) -> Result<Option<String>> {
        Ok(None)
    }

    /// Returns whether the absence of a name in this directory lasts until the source changes, so
    /// that the kernel may cache it.
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
        Err(refusal_error(Errno::ENOTDIR, "readdir"))
    }

    /// Returns whether the listing of this directory lasts until the source changes, so that the
    /// kernel may cache it.
    fn is_listing_cacheable(&self) -> bool {
        true
    }

    /// Opens the content of this regular file.
    ///
    /// # Errors
    /// Fails if it is known before reading that the content cannot be served.
    fn open(&self, _target: &TargetInode<'_>) -> Result<Box<dyn View>> {
        Err(match self.kind() {
            FileKind::Symlink => refusal_error(Errno::ELOOP, "open"),
            FileKind::Directory | FileKind::File => refusal_error(Errno::EISDIR, "open"),
        })
    }

    /// Returns the text of this symbolic link.
    ///
    /// # Errors
    /// `ENAMETOOLONG` for a text over 4095 bytes.
    fn readlink(&self, _target: &TargetInode<'_>) -> Result<Vec<u8>> {
        Err(refusal_error(Errno::EINVAL, "readlink"))
    }

    /// Returns why this symbolic link leads nowhere, if the reason is known. The reason is a file
    /// that is not shown or, if `object` is true, a missing object in that file.
    ///
    /// # Errors
    /// Fails if the link cannot be read.
    fn dangling_reason(&self, _target: &TargetInode<'_>, _object: bool) -> Result<Option<String>> {
        Ok(None)
    }

    /// Returns the information for the extended attributes of the target, or `None` if the target
    /// has none.
    fn describe_for_xattrs(&self, _target: &TargetInode<'_>) -> Option<ObjectDescription> {
        None
    }

    /// Reads all metadata of the target. Reports each defect to the callback.
    ///
    /// # Errors
    /// Fails if the object itself, or its list of attributes, is damaged.
    fn examine(&self, _target: &TargetInode<'_>, _find: &mut DefectCallback<'_>) -> Result<()> {
        Ok(())
    }
}
