//! The object that a page is about.

use std::sync::Arc;

use crate::array::Engine;
use crate::error::Result;
use crate::model::{Container, Node, NodeId};
use crate::view::csv::fields::Fields;
use crate::view::pictures::shaded::PartOf;
use crate::view::pictures::shaded::statistics::Shading;
use crate::view::texts::html::site::{Place, Site};
use crate::view::texts::json::SharedPaths;

/// The table that a group is.
pub(crate) struct GroupRows {
    /// The columns that are shown.
    pub(crate) fields: Box<dyn Fields>,
    pub(crate) rows: u64,
    /// How many columns there are.
    pub(crate) columns: usize,
}

/// The object that a page is about.
pub(crate) struct Object<'a> {
    pub(crate) container: &'a Arc<dyn Container>,
    pub(crate) engine: &'a Arc<Engine>,
    pub(crate) node: &'a Node,
    /// Its path, names as in the file.
    pub(crate) path: &'a [u8],
    pub(crate) paths: SharedPaths,
    pub(crate) site: &'a dyn Site,
    /// The elements that a selector picks, all for an empty one, and which of them are missing.
    pub(crate) part: &'a PartOf<'a>,
    /// What is known of the values, and the range in which they are drawn; `None` where they are not.
    pub(crate) shading: &'a dyn Fn() -> Result<Option<Shading>>,
    /// The table that a group is; `None` where it is none.
    pub(crate) rows: &'a dyn Fn() -> Result<Option<GroupRows>>,
    /// The first member of the group that is shown.
    pub(crate) first: u64,
    /// The group on whose page it is drawn; `None` on its own page.
    pub(crate) group: Option<NodeId>,
    /// Has another object drawn on the page.
    pub(crate) other: &'a DrawOther<'a>,
}

/// Has `draw` called for an object that is drawn on the page of another one. Fails if that cannot be
/// seen from there.
pub(crate) type DrawOther<'a> = dyn Fn(&Other<'_>, &mut dyn FnMut(&Object<'_>)) -> Result<()> + 'a;

/// An object that is drawn on the page of a group.
pub(crate) struct Other<'a> {
    pub(crate) node: &'a Node,
    pub(crate) place: Place,
    /// Its path, names as in the file; empty where it is to be found.
    pub(crate) path: Vec<u8>,
    pub(crate) group: NodeId,
}
