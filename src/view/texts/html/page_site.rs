//! The location of a page in the mount, and the locations of the files that it links to.

use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::{Link, Node, NodeId};

use crate::view::texts::html::markup::Url;

/// The files of the mount that a page links to, with their URLs relative to the page.
pub(crate) trait Site {
    /// Returns the name of the HDF5 or ASDF file that contains the object.
    fn source_name(&self) -> Vec<u8>;

    /// Returns links to the pages from the root to the object, both included. Returns `None` if the
    /// path of the object is unknown. The page then has few links.
    fn breadcrumbs(&self) -> Option<Vec<Breadcrumb>>;

    /// Returns the other files of the mount that show the object: in the main tree, and in the
    /// trees of views. With `with_table`, all members of a group may be examined to find out
    /// whether the group is a table.
    ///
    /// # Errors
    /// Fails if the files cannot be determined.
    fn sibling_files(&self, with_table: bool) -> Result<Vec<SiblingFile>>;

    /// Returns whether the object is the root of a mount.
    fn is_root(&self) -> bool;

    /// Returns the URL of the file with the attribute `name` of the object.
    fn attribute_url(&self, name: &[u8]) -> Option<Url>;

    /// Returns the URL of the table (CSV file) of the part that `selector` picks from the object.
    fn part_table_url(&self, selector: &str) -> Option<Url>;

    /// Returns the URL of the NumPy file with the object's numbers. With `as_meant`, packed numbers
    /// are decoded by the netCDF conventions.
    fn npy_url(&self, as_meant: bool) -> Option<Url>;

    /// Like [`npy_url`](Self::npy_url), for the object `node` of the same file.
    fn npy_url_of(&self, node: NodeId, as_meant: bool) -> Option<Url>;

    /// Returns the base URL of the script and of the search; `None` if the page is a file, which
    /// does not have a script.
    fn script_url(&self) -> Option<Url>;

    /// Returns the URL of the page that shows the group's members from number `first` on.
    fn members_url(&self, first: u64) -> Option<Url>;

    /// Returns the URL or the number of the object's pictures.
    fn pictures(&self) -> Pictures;

    /// Returns the URL of the exact picture `number` of a stack.
    fn frame_url(&self, number: u64) -> Option<Url>;

    /// Returns the URL of the drawn picture for the page: of the whole array, or of picture
    /// `number` of a stack.
    fn drawn_picture_url(&self, number: Option<u64>) -> Option<Url>;

    /// Returns the page and the target of a link in a group.
    fn linked_member(&self, group: NodeId, link: &Link) -> SiteMember;

    /// Returns the object of the same file that a link of a group leads to; `None` if the link
    /// leads elsewhere.
    ///
    /// # Errors
    /// Fails if the link cannot be followed.
    fn link_target(&self, group: NodeId, link: &Link) -> Result<Option<NamedObject>>;

    /// Returns the URL of an object's page; `None` if the object, which must be in the same file,
    /// does not have a page.
    fn object_page_url(&self, node: NodeId) -> Option<Url>;

    /// Returns the site for another object `node` that is drawn on the same page. `place` is the
    /// group and the name of the object.
    fn for_object<'s>(&'s self, node: &'s Node, place: &NamedObject) -> Box<dyn Site + 's>;

    /// Returns the size in bytes that an object occupies in the file; `None` if it is unknown or
    /// costly to determine.
    fn stored_bytes(&self, node: &Node) -> Option<u64>;
}

/// An object, and the group and the name in which it was found.
pub(crate) struct NamedObject {
    pub(crate) node: NodeId,
    pub(crate) group: NodeId,
    pub(crate) name: Vec<u8>,
}

/// A link to a page in the breadcrumb trail.
pub(crate) struct Breadcrumb {
    /// The name of the object as in the file; empty for the root.
    pub(crate) name: Vec<u8>,
    pub(crate) url: Option<Url>,
}

/// A file of the mount that shows the page's object.
pub(crate) struct SiblingFile {
    /// The name of the tree of views that contains the file; empty for the main tree.
    pub(crate) tree: &'static [u8],
    pub(crate) suffix: &'static [u8],
    pub(crate) url: Url,
    /// The path of the file, relative to the root of the mount.
    pub(crate) path: Vec<u8>,
    /// The length of the file in bytes, if it is known without reading the elements.
    pub(crate) bytes: Option<u64>,
}

/// The picture files of an array.
pub(crate) enum Pictures {
    None,
    /// A single picture of the whole array.
    One(Url),
    /// A stack of this many pictures.
    Frames(u64),
}

/// A member of a group, as its page shows the member.
pub(crate) struct SiteMember {
    pub(crate) target: MemberTarget,
    /// The URL of the linked object's page; `None` if the object does not have a page.
    pub(crate) page: Option<Url>,
}

/// The target of a link in a group.
pub(crate) enum MemberTarget {
    /// An object of the file.
    Object(Arc<Node>),
    /// The text for a link that is dangling or leads to another file.
    Elsewhere(Vec<u8>),
    /// The link or its target cannot be read.
    Unreadable(Error),
}
