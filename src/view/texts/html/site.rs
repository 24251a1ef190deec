//! The place of a page in the mount: where the files are that it leads to.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::model::{Link, Node, NodeId};
use crate::view::texts::html::markup::Url;

/// The mount as the page of an object sees it.
pub(crate) trait Site {
    /// The name of the file that the object is in.
    fn source_name(&self) -> Vec<u8>;

    /// The pages on the way from the root to the object, both included; `None` where the object has
    /// no known place, so that its page leads nowhere.
    fn trail(&self) -> Option<Vec<Step>>;

    /// The other files of the object: its own, and those of the trees of views. To find out whether
    /// a group is a table, all its members may have to be looked at.
    ///
    /// # Errors
    /// Fails if they cannot be found out now.
    fn files(&self, with_table: bool) -> Result<Vec<Beside>>;

    /// Whether the object is the root of a mount.
    fn is_root(&self) -> bool;

    /// The file of one of its attributes.
    fn attribute(&self, name: &[u8]) -> Option<Url>;

    /// The table of the part of it that a selector names.
    fn part(&self, selector: &str) -> Option<Url>;

    /// The NumPy file of its numbers, with `as_meant` as the conventions of netCDF mean them if they do.
    fn numbers(&self, as_meant: bool) -> Option<Url>;

    /// The same of another object of the file.
    fn numbers_of(&self, node: NodeId, as_meant: bool) -> Option<Url>;

    /// The place of the script, and of answers to searches; `None` where the page is a file, which has
    /// no script.
    fn script(&self) -> Option<Url>;

    /// The page of its members from number `first` on.
    fn members_from(&self, first: u64) -> Option<Url>;

    /// Its pictures.
    fn pictures(&self) -> Pictures;

    /// The picture `number` of a stack.
    fn frame(&self, number: u64) -> Option<Url>;

    /// The picture as the page draws it: of the whole array, or number so many of a stack.
    fn drawn(&self, number: Option<u64>) -> Option<Url>;

    /// What a link of a group leads to.
    fn member(&self, group: NodeId, link: &Link) -> Member;

    /// The object of the same file to which a link of a group leads; `None` where it leads to none.
    ///
    /// # Errors
    /// Fails if that cannot be found out now.
    fn target(&self, group: NodeId, link: &Link) -> Result<Option<Place>>;

    /// The page of an object of the same file, if it has one.
    fn page_of(&self, node: NodeId) -> Option<Url>;

    /// The mount as another object sees it that is drawn on the same page.
    fn beside<'s>(&'s self, node: &'s Node, place: &Place) -> Box<dyn Site + 's>;

    /// Bytes that an object takes in the file; `None` where that is not known, or costly to find.
    fn stored_bytes(&self, node: &Node) -> Option<u64>;
}

/// An object, and the group and the name in it under which it was met.
pub(crate) struct Place {
    pub(crate) node: NodeId,
    pub(crate) group: NodeId,
    pub(crate) name: Vec<u8>,
}

/// A page on the way to another.
pub(crate) struct Step {
    /// The name as in the file; empty for the root.
    pub(crate) name: Vec<u8>,
    pub(crate) url: Option<Url>,
}

/// A file of the mount that shows the same object.
pub(crate) struct Beside {
    /// The name of its tree; empty for the object's own file.
    pub(crate) tree: &'static [u8],
    pub(crate) suffix: &'static [u8],
    pub(crate) url: Url,
    /// Its path from the root of the mount.
    pub(crate) path: Vec<u8>,
    /// Its length, where that is known without a look at the elements.
    pub(crate) bytes: Option<u64>,
}

/// The pictures of an array.
pub(crate) enum Pictures {
    None,
    /// The whole array.
    One(Url),
    /// So many.
    Frames(u64),
}

/// What a link of a group leads to.
pub(crate) struct Member {
    pub(crate) target: Target,
    /// The page of the object that it leads to; `None` if it leads nowhere.
    pub(crate) page: Option<Url>,
}

/// The target of a link, as the page of its group shows it.
pub(crate) enum Target {
    /// An object whose place this is.
    Object(Arc<Node>),
    /// An object elsewhere, or nowhere: the text of the link.
    Elsewhere(Vec<u8>),
    /// It cannot be read.
    Unreadable(Error),
}
