//! The location of a page in the mount, and the locations of the files that it links to.

use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::{Link, Node, NodeId};

use crate::view::texts::html::markup::Url;

/// The mount, as seen from the page of an object.
pub(crate) trait Site {
    /// Returns the name of the file that contains the object.
    fn source_name(&self) -> Vec<u8>;

    /// Returns the pages from the root to the object, both included. Returns `None` if the object
    /// does not have a known location; its page then has few links.
    fn trail(&self) -> Option<Vec<Breadcrumb>>;

    /// Returns the other files of the object: its own, and those in the trees of views. With
    /// `with_table`, all members of a group may be examined to find out whether the group is a
    /// table.
    ///
    /// # Errors
    /// Fails if the files cannot be determined.
    fn files(&self, with_table: bool) -> Result<Vec<SiblingFile>>;

    /// Returns whether the object is the root of a mount.
    fn is_root(&self) -> bool;

    /// Returns the file of one of the object's attributes.
    fn attribute(&self, name: &[u8]) -> Option<Url>;

    /// Returns the table of the part of the object that a selector names.
    fn part(&self, selector: &str) -> Option<Url>;

    /// Returns the NumPy file of the object's numbers. With `as_meant`, packed numbers are decoded
    /// by the netCDF conventions.
    fn numbers(&self, as_meant: bool) -> Option<Url>;

    /// Like [`numbers`](Self::numbers), for another object of the file.
    fn numbers_of(&self, node: NodeId, as_meant: bool) -> Option<Url>;

    /// Returns the URL for the script and for searches; `None` if the page is a file, which does
    /// not have a script.
    fn script(&self) -> Option<Url>;

    /// Returns the page of the object's members from number `first` on.
    fn members_from(&self, first: u64) -> Option<Url>;

    /// Returns the pictures of the object.
    fn pictures(&self) -> Pictures;

    /// Returns picture `number` of a stack.
    fn frame(&self, number: u64) -> Option<Url>;

    /// Returns the picture as drawn on the page: of the whole array, or picture `number` of a
    /// stack.
    fn drawn(&self, number: Option<u64>) -> Option<Url>;

    /// Returns the target of a link of a group.
    fn member(&self, group: NodeId, link: &Link) -> SiteMember;

    /// Returns the object of the same file that a link of a group leads to; `None` if the link
    /// leads elsewhere.
    ///
    /// # Errors
    /// Fails if the link cannot be followed.
    fn target(&self, group: NodeId, link: &Link) -> Result<Option<NamedObject>>;

    /// Returns the page of an object of the same file, if the object has one.
    fn page_of(&self, node: NodeId) -> Option<Url>;

    /// Returns the site of another object that is drawn on the same page.
    fn for_object<'s>(&'s self, node: &'s Node, place: &NamedObject) -> Box<dyn Site + 's>;

    /// Returns the bytes that an object takes in the file; `None` if they are unknown or costly to
    /// determine.
    fn stored_bytes(&self, node: &Node) -> Option<u64>;
}

/// An object, with the group and the name under which it was found.
pub(crate) struct NamedObject {
    pub(crate) node: NodeId,
    pub(crate) group: NodeId,
    pub(crate) name: Vec<u8>,
}

/// A page in the breadcrumb trail.
pub(crate) struct Breadcrumb {
    /// The name as in the file; empty for the root.
    pub(crate) name: Vec<u8>,
    pub(crate) url: Option<Url>,
}

/// A file of the mount that shows the same object.
pub(crate) struct SiblingFile {
    /// The name of the tree; empty for the object's own file.
    pub(crate) tree: &'static [u8],
    pub(crate) suffix: &'static [u8],
    pub(crate) url: Url,
    /// The path of the file from the root of the mount.
    pub(crate) path: Vec<u8>,
    /// The length of the file, if it is known without reading the elements.
    pub(crate) bytes: Option<u64>,
}

/// The pictures of an array.
pub(crate) enum Pictures {
    None,
    /// A single picture of the whole array.
    One(Url),
    /// A stack of this many pictures.
    Frames(u64),
}

/// A member of a group.
pub(crate) struct SiteMember {
    pub(crate) target: MemberTarget,
    /// The page of the linked object; `None` if there is none.
    pub(crate) page: Option<Url>,
}

/// The target of a link, as shown on the page of its group.
pub(crate) enum MemberTarget {
    /// An object of the file.
    Object(Arc<Node>),
    /// The text of a link to another location, or of a dangling link.
    Elsewhere(Vec<u8>),
    /// The link or its target cannot be read.
    Unreadable(Error),
}
