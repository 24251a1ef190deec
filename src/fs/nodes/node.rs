//! The nodes of the mount: one trait for all of them, with a method for each request.
//!
//! A node has no state of its own. All that it needs to know comes with the request: the inode, and
//! the file that the inode stands in. `nodes.rs` says which node answers for which type of inode.

use std::sync::Arc;

use nix::errno::Errno;

use crate::error::{Error, Result, if_lasting};
use crate::fs::errno::{is_fault, refusal};
use crate::fs::forest::file_state::FileState;
use crate::fs::forest::mount::Mount;
use crate::fs::names::namespace::{Directory, Namespace};
use crate::fs::stat::{Entry, Kind};
use crate::fs::state::inode::Inode;
use crate::fs::state::listing::{Listing, Visit};
use crate::model::Node;
use crate::view::View;
use crate::wire::to_u64;

/// The inode that a request is about.
#[derive(Clone, Copy)]
pub(in crate::fs) struct Target<'a> {
    pub(in crate::fs) mount: &'a Mount,
    /// The file that the inode stands in, as it is shown now.
    pub(in crate::fs) file: &'a Arc<FileState>,
    pub(in crate::fs) ino: u64,
    pub(in crate::fs) inode: &'a Inode,
}

impl<'a> Target<'a> {
    /// Counts a lookup of `inode` under the number `ino`, and describes it.
    ///
    /// # Errors
    /// Fails with the errors of `describe`. The lookup is not counted then: the kernel is not told
    /// of the inode, so that it cannot forget it.
    pub(in crate::fs) fn enter(
        mount: &Mount,
        file: &Arc<FileState>,
        ino: u64,
        inode: &Inode,
        describe: impl FnOnce(&Target<'_>) -> Result<Entry>,
    ) -> Result<Entry> {
        let ino = mount.pins.number(ino, file, inode)?;
        let ino = mount.inodes.enter(ino, inode);
        let target = Target {
            mount,
            file,
            ino,
            inode,
        };
        let pinned = target.pinned();
        let described = pinned.and_then(|pinned| pinned.map_or_else(|| describe(&target), Ok));
        described.inspect_err(|_| mount.inodes.forget(ino, 1))
    }

    /// Counts a lookup of an entry of this directory, which `node` describes.
    ///
    /// # Errors
    /// Fails as [`enter`](Self::enter) does.
    pub(in crate::fs) fn enter_entry(
        &self,
        ino: u64,
        inode: &Inode,
        node: &dyn FsNode,
    ) -> Result<Entry> {
        Target::enter(self.mount, self.file, ino, inode, |entry| node.stat(entry))
    }

    /// The tree of the target's file.
    pub(in crate::fs) fn space(&self) -> Namespace<'a> {
        self.mount.space(self.file)
    }

    /// The group that the target is, or is in.
    pub(in crate::fs) fn directory(&self) -> Directory<'a> {
        self.space().directory(self.inode.node)
    }

    /// Its entry as a file of `kind` without content.
    pub(in crate::fs) fn bare(&self, kind: Kind) -> Entry {
        self.mount.fixed(self.file, self.ino, kind)
    }

    /// Its entry as a regular file of `size` bytes, all of which are stored.
    pub(in crate::fs) fn sized(&self, size: u64) -> Entry {
        self.bare(Kind::File).sized(size, Some(size))
    }

    /// Its entry as a file whose content, opened, has this length. One that cannot be opened has no
    /// bytes; opening it tells why. One that is too long to be counted has no size.
    ///
    /// # Errors
    /// Fails if the content cannot be opened now.
    pub(in crate::fs) fn of_length(&self, length: Result<u64>) -> Result<Entry> {
        match length {
            Ok(length) => Ok(self.sized(length)),
            Err(error) if error.is_passing() => Err(error),
            Err(Error::Limit { .. }) => Ok(self.sized(0).without_size()),
            Err(_) => Ok(self.sized(0).kept_if(false)),
        }
    }

    /// Its entry where it stands for an open document whose length is to stay.
    ///
    /// # Errors
    /// Fails if that cannot be found out now.
    pub(in crate::fs) fn pinned(&self) -> Result<Option<Entry>> {
        let document = self.mount.pins.fixed(self.ino, self.file, self.inode)?;
        let Some(document) = document else {
            return Ok(None);
        };
        let entry = self.sized(document.view.length()).kept_if(false);
        let node = if_lasting(self.file.container.node(self.inode.node))?;
        Ok(Some(node.map_or(entry, |node| entry.modified_as(&node))))
    }

    /// Its entry as a symbolic link with a text of so many bytes.
    pub(in crate::fs) fn link(&self, length: usize) -> Entry {
        self.bare(Kind::Symlink).sized(to_u64(length), None)
    }

    /// Remembers what is wrong with it, and logs that once.
    pub(in crate::fs) fn note(&self, error: &Error) {
        self.mount.note(self.file, self.ino, self.inode, error);
    }
}

/// Built-in attributes: names without `user.`, and values.
pub(in crate::fs) type Facts = Vec<(&'static str, Vec<u8>)>;

/// An object as extended attributes tell of it.
pub(in crate::fs) struct Described {
    /// `None` where the object itself cannot be read.
    pub(in crate::fs) node: Option<Arc<Node>>,
    /// Why its content cannot be served.
    pub(in crate::fs) fault: Option<Error>,
    /// Facts beside its description.
    pub(in crate::fs) facts: Result<Facts>,
}

impl Described {
    /// Describes a file of a view by the error with which it fails, where that is known without a
    /// read. An error of an earlier read is told, too, since it was noted.
    pub(in crate::fs) fn by_opening(node: &dyn FsNode, target: &Target<'_>) -> Self {
        let fault = match node.open(target) {
            Ok(view) => view.failure().cloned(),
            Err(error) => Some(error),
        };
        Described {
            node: None,
            fault: fault.filter(is_fault),
            facts: Ok(Vec::new()),
        }
    }
}

/// Something that is wrong with a part of an object.
#[derive(Debug)]
pub enum Finding<'f> {
    /// The attribute of this name, as in the file, cannot be read.
    Attribute(&'f [u8], Error),
    /// This part cannot be read.
    Part(String, Error),
    /// Another file, or an object in it, is missing, as the text says.
    Missing(String),
}

/// Told of what is wrong with parts of an object.
pub(in crate::fs) type Find<'d> = dyn FnMut(Finding<'_>) + 'd;

/// A node of the mount. A request that a node does not answer is refused as the system refuses it
/// for a file of its kind.
pub(in crate::fs) trait FsNode: Sync {
    /// The kind of file.
    fn kind(&self) -> Kind;

    /// The attributes, worked out at any cost.
    ///
    /// # Errors
    /// Fails if that cannot be found out now.
    fn stat(&self, target: &Target<'_>) -> Result<Entry> {
        Ok(target.bare(self.kind()))
    }

    /// The entry `name` of this directory; counted.
    ///
    /// # Errors
    /// `NotFound`; `ENAMETOOLONG` over 255 bytes; fails if the directory cannot be read.
    fn lookup(&self, _target: &Target<'_>, _name: &[u8]) -> Result<Entry> {
        Err(refusal(Errno::ENOTDIR, "lookup"))
    }

    /// Why this directory has no entry `name`, where there is more to say of it.
    ///
    /// # Errors
    /// Fails if the directory cannot be read.
    fn why_absent(&self, _target: &Target<'_>, _name: &[u8]) -> Result<Option<String>> {
        Ok(None)
    }

    /// Whether a name that this directory lacks is not there as long as the source is unchanged.
    fn lacks_for_good(&self, _target: &Target<'_>) -> bool {
        false
    }

    /// Hands the entries of this directory from `first` on to `visit`, until it has no room.
    ///
    /// # Errors
    /// Fails if the directory cannot be read at `first`.
    fn list(
        &self,
        _target: &Target<'_>,
        _listing: &mut Listing,
        _first: u64,
        _visit: &mut Visit<'_>,
    ) -> Result<()> {
        Err(refusal(Errno::ENOTDIR, "readdir"))
    }

    /// Whether this directory lists the same as long as the source is unchanged.
    fn is_lasting(&self) -> bool {
        true
    }

    /// The content of this regular file.
    ///
    /// # Errors
    /// Fails if it is known before reading that it cannot be served.
    fn open(&self, _target: &Target<'_>) -> Result<Box<dyn View>> {
        Err(match self.kind() {
            Kind::Symlink => refusal(Errno::ELOOP, "open"),
            Kind::Directory | Kind::File => refusal(Errno::EISDIR, "open"),
        })
    }

    /// The text of this symbolic link.
    ///
    /// # Errors
    /// `ENAMETOOLONG` over 4095 bytes.
    fn readlink(&self, _target: &Target<'_>) -> Result<Vec<u8>> {
        Err(refusal(Errno::EINVAL, "readlink"))
    }

    /// Why this symbolic link leads nowhere, if it does and that is known: which other file is not
    /// shown or, where the `object` is asked for, too, that this is not there.
    ///
    /// # Errors
    /// Fails if the link cannot be read.
    fn why_nowhere(&self, _target: &Target<'_>, _object: bool) -> Result<Option<String>> {
        Ok(None)
    }

    /// The object that extended attributes tell of; `None` where there are none.
    fn xattr(&self, _target: &Target<'_>) -> Option<Described> {
        None
    }

    /// Reads all of the object but its content, and hands on what is wrong with which part of it.
    ///
    /// # Errors
    /// Fails if the object itself, or its list of attributes, is damaged.
    fn examine(&self, _target: &Target<'_>, _find: &mut Find<'_>) -> Result<()> {
        Ok(())
    }
}
