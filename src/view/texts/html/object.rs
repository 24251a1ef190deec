//! The object that a page describes, and the functions that read it.

use std::sync::Arc;

use h5fs_reader::array::{CancelToken, Engine};
use h5fs_reader::error::Result;
use h5fs_reader::model::{Container, Node, NodeId};

use crate::view::csv::fields::ColumnReader;
use crate::view::pictures::shaded::ReadPart;
use crate::view::pictures::shaded::statistics::Shading;
use crate::view::texts::html::page_site::{NamedObject, PageLinks};
use crate::view::texts::json::SharedPaths;

/// The rows of a group's table, for the page of the group.
pub(crate) struct PageTableRows {
    /// The columns that the page shows, which may be only the first ones.
    pub(crate) fields: Box<dyn ColumnReader>,
    pub(crate) rows: u64,
    /// The number of all columns of the table.
    pub(crate) columns: usize,
}

/// The object that a page describes.
pub(crate) struct PageObject<'a> {
    pub(crate) container: &'a Arc<dyn Container>,
    pub(crate) engine: &'a Arc<Engine>,
    pub(crate) node: &'a Node,
    /// The path of the object, with names as in the file.
    pub(crate) path: &'a [u8],
    pub(crate) paths: SharedPaths,
    pub(crate) site: &'a dyn PageLinks,
    /// A function that returns the elements that a selector picks, and which of them are missing.
    /// An empty selector picks all elements.
    pub(crate) read_part: &'a ReadPart<'a>,
    /// A function that returns the statistics of the array's values and the scale for drawing them;
    /// `None` for values that are not drawn.
    pub(crate) shading: &'a dyn Fn() -> Result<Option<Shading>>,
    /// A function that returns the rows of the table, if the object is a group that is a table;
    /// `None` for other objects.
    pub(crate) group_rows: &'a dyn Fn() -> Result<Option<PageTableRows>>,
    /// Number of the first member that the page of a group shows.
    pub(crate) first_member: u64,
    /// The group on whose page the object is drawn; `None` if the page is about the object itself.
    pub(crate) group: Option<NodeId>,
    /// A function that draws another object on the page.
    pub(crate) draw_member: &'a DrawMember<'a>,
    /// The token of the request that opens the page.
    pub(crate) cancel: CancelToken,
}

/// A function that calls its second argument with the object to which the first argument refers,
/// prepared for drawing on the same page. Fails if the path of that object cannot be determined.
pub(crate) type DrawMember<'a> =
    dyn Fn(&MemberObject<'_>, &mut dyn FnMut(&PageObject<'_>)) -> Result<()> + 'a;

/// An object that is drawn on the page of a group that contains it.
pub(crate) struct MemberObject<'a> {
    pub(crate) node: &'a Node,
    pub(crate) place: NamedObject,
    /// The path of the object, with names as in the file; empty if the path must be looked up.
    pub(crate) path: Vec<u8>,
    pub(crate) group: NodeId,
}
