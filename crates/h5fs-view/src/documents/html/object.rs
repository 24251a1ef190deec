//! The object that a page describes, and the functions that read it.

use std::sync::Arc;

use h5fs_reader::array::{CancelToken, Engine};
use h5fs_reader::error::Result;
use h5fs_reader::model::{Container, Node, NodeId};

use crate::csv::fields::ColumnReader;
use crate::documents::html::page_site::{NamedObject, PageLinks};
use crate::json::SharedPaths;
use crate::pictures::shaded::ReadPart;
use crate::pictures::shaded::statistics::Shading;

/// The rows of a group's table, for the page of the group.
pub struct PageTableRows {
    /// The columns that the page shows, which may be only the first ones.
    pub fields: Box<dyn ColumnReader>,
    /// The number of rows of the table.
    pub rows: u64,
    /// The number of all columns of the table.
    pub columns: usize,
}

/// The object that a page describes.
pub struct PageObject<'a> {
    /// The objects of the file.
    pub container: &'a Arc<dyn Container>,
    /// Reads the elements of arrays.
    pub engine: &'a Arc<Engine>,
    /// The object itself.
    pub node: &'a Node,
    /// The path of the object, with names as in the file.
    pub path: &'a [u8],
    /// Finds the path of an object.
    pub paths: SharedPaths,
    /// The URLs of other files and pages of the mount.
    pub site: &'a dyn PageLinks,
    /// A function that returns the elements that a selector picks, and which of them are missing.
    /// An empty selector picks all elements.
    pub read_part: &'a ReadPart<'a>,
    /// A function that returns the statistics of the array's values and the scale for drawing them;
    /// `None` for values that are not drawn.
    pub shading: &'a dyn Fn() -> Result<Option<Shading>>,
    /// A function that returns the rows of the table, if the object is a group that is a table;
    /// `None` for other objects.
    pub group_rows: &'a dyn Fn() -> Result<Option<PageTableRows>>,
    /// Number of the first member that the page of a group shows.
    pub first_member: u64,
    /// The group on whose page the object is drawn; `None` if the page is about the object itself.
    pub group: Option<NodeId>,
    /// A function that draws another object on the page.
    pub draw_member: &'a DrawMember<'a>,
    /// The token of the request that opens the page.
    pub cancel: CancelToken,
}

/// A function that calls its second argument with the object to which the first argument refers,
/// prepared for drawing on the same page. Fails if the path of that object cannot be determined.
pub type DrawMember<'a> =
    dyn Fn(&MemberObject<'_>, &mut dyn FnMut(&PageObject<'_>)) -> Result<()> + 'a;

/// An object that is drawn on the page of a group that contains it.
pub struct MemberObject<'a> {
    /// The object itself.
    pub node: &'a Node,
    /// The group and the name under which the object was found.
    pub place: NamedObject,
    /// The path of the object, with names as in the file; empty if the path must be looked up.
    pub path: Vec<u8>,
    /// The group whose page shows the object.
    pub group: NodeId,
}
