//! The location of a page in the mount, and the locations of the files that it links to.

use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::{Link, Node, NodeId};

use crate::documents::html::markup::Url;

/// The files of the mount that a page links to, with their URLs relative to the page.
pub trait PageLinks {
    /// Returns the name of the HDF5 or ASDF file that contains the object.
    fn source_name(&self) -> Vec<u8>;

    /// Returns links to the pages from the root to the object, both included. Returns `None` if the
    /// path of the object is unknown.
    fn breadcrumbs(&self) -> Option<Vec<Breadcrumb>>;

    /// Returns the other files of the mount that show the object: in the main tree, and in the
    /// trees of views. With `with_table`, the members of a group may be examined to find out
    /// whether the group has table files.
    ///
    /// # Errors
    /// Fails if the files cannot be determined.
    fn sibling_files(&self, with_table: bool) -> Result<Vec<SiblingFile>>;

    /// Returns whether the object is the root of a mount.
    fn is_root(&self) -> bool;

    /// Returns the URL of the file with the value of the attribute `name` of the object.
    fn attribute_url(&self, name: &[u8]) -> Option<Url>;

    /// Returns the URL of the CSV file with the part of the object that `selector` picks. An empty
    /// selector picks the whole object.
    fn part_table_url(&self, selector: &str) -> Option<Url>;

    /// Returns the URL of the NumPy file with the object's numbers. With `as_meant`, this is the
    /// file in which packed numbers are decoded by the netCDF conventions, if such a file exists.
    fn npy_url(&self, as_meant: bool) -> Option<Url>;

    /// Does the same as [`npy_url`](Self::npy_url), for the object `node` of the same file.
    fn npy_url_of(&self, node: NodeId, as_meant: bool) -> Option<Url>;

    /// Returns the base URL of the script and of the search; `None` if no server provides a script
    /// for the page.
    fn script_url(&self) -> Option<Url>;

    /// Returns a text that identifies the state of the data file. A server accepts the text as an
    /// entity tag in `If-Match`. Returns `None` if the file is not watched for changes.
    fn state_tag(&self) -> Option<String>;

    /// Returns the URL of the page that lists the group's members, starting with member number
    /// `first`.
    fn members_url(&self, first: u64) -> Option<Url>;

    /// Returns the URL of the object's only picture, or the number of its pictures.
    fn picture_files(&self) -> PictureFiles;

    /// Returns the URL of the PNG file with the exact values of picture `number` of a stack.
    fn frame_url(&self, number: u64) -> Option<Url>;

    /// Returns the URL of the picture that the page shows, with the values as colours: of the whole
    /// array, or of picture `number` of a stack.
    fn drawn_picture_url(&self, number: Option<u64>) -> Option<Url>;

    /// Returns the target of a link in a group, and the page of the target.
    fn linked_member(&self, group: NodeId, link: &Link) -> LinkedMember;

    /// Returns the object of the same file to which a link in a group leads; `None` if the link
    /// leads to another file or to no object.
    ///
    /// # Errors
    /// Fails if the link cannot be followed.
    fn link_target(&self, group: NodeId, link: &Link) -> Result<Option<NamedObject>>;

    /// Returns the URL of an object's page; `None` if the object, which must be in the same file,
    /// does not have a page.
    fn object_page_url(&self, node: NodeId) -> Option<Url>;

    /// Returns the site for another object `node` that is drawn on the same page. `place` is the
    /// group and the name under which the object was found.
    fn for_object<'s>(&'s self, node: &'s Node, place: &NamedObject) -> Box<dyn PageLinks + 's>;

    /// Returns the size in bytes that an object occupies in the file; `None` if it is unknown or
    /// costly to determine.
    fn stored_bytes(&self, node: &Node) -> Option<u64>;
}

/// An object, and the group and the name under which it was found.
pub struct NamedObject {
    /// The object.
    pub node: NodeId,
    /// The group that contains the link to the object.
    pub group: NodeId,
    /// The name of the link.
    pub name: Vec<u8>,
}

/// A link to a page in the breadcrumb trail.
pub struct Breadcrumb {
    /// The name of the object as in the file; empty for the root.
    pub name: Vec<u8>,
    /// The URL of the page; `None` for the page itself.
    pub url: Option<Url>,
}

/// A file of the mount that shows the page's object.
pub struct SiblingFile {
    /// The name of the tree of views that contains the file; empty for the main tree.
    pub tree: &'static [u8],
    /// The suffix of the file's name, such as `.csv`.
    pub suffix: &'static [u8],
    /// The URL of the file.
    pub url: Url,
    /// The path of the file, relative to the root of the mount.
    pub path: Vec<u8>,
    /// The length of the file in bytes, if it is known without reading the elements.
    pub bytes: Option<u64>,
}

/// The picture files of an array.
pub enum PictureFiles {
    /// No file shows the array as a picture.
    None,
    /// A single picture of the whole array.
    One(Url),
    /// A stack of this many pictures.
    Stack(u64),
}

/// The target of a link in a group, and the page of the target.
pub struct LinkedMember {
    /// The object that the link leads to.
    pub target: MemberTarget,
    /// The URL of the linked object's page; `None` if the object does not have a page.
    pub page: Option<Url>,
}

/// The target of a link in a group.
pub enum MemberTarget {
    /// An object that the mount shows as a member of the group.
    Object(Arc<Node>),
    /// The target of any other link, such as a soft or an external link, as text.
    Elsewhere(Vec<u8>),
    /// The link or its target cannot be read.
    Unreadable(Error),
}
