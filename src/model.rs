//! The terms of both formats: nodes, links, datatypes, shapes, storage, attributes.
//!
//! | term | HDF5 | ASDF |
//! |---|---|---|
//! | container | a file | a file |
//! | node | object (group, dataset, committed datatype) | tree node |
//! | group | group | mapping, sequence |
//! | link | link | mapping entry, sequence item, alias, `$ref` |
//! | array | dataset | ndarray |
//! | attribute | attribute | none |
//!
//! Plain arithmetic is denied on the lower floors, where numbers come from files. What counts things
//! has the operations of [`Count`]; everything else is `checked_`, and an error.

#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::disallowed_methods,
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::as_conversions
    )
)]

pub mod array;
pub mod attribute;
pub mod attribute_value;
pub mod datatype;
pub mod datetime64;
pub mod extras;
pub mod link;
pub mod link_order;
pub mod ndl;
pub mod node;
pub mod number;
pub mod numpy;
pub mod paths;
pub mod region;
pub mod regions;
pub mod scalar;
pub mod selection;
pub mod selector;
pub mod shape;
pub mod storage;
pub mod text;
pub mod text_length;
pub mod value;
pub mod walk;

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

pub use array::Array;
pub use attribute::{Attribute, Reference};
pub use datatype::Datatype;
pub use extras::Extras;
pub use link::{Link, LinkStream, LinkTarget, LinksInMemory};
pub use node::{Node, NodeId, NodeKind};
pub use scalar::{Scalar, ScalarValue};
pub use shape::Shape;

use crate::error::Result;
use crate::memory::effort::Effort;
use crate::wire::Count;

/// One open file of either format: a graph of nodes, and the values that live outside arrays.
pub trait Container: Send + Sync {
    /// The same file for a request: `effort` pays for the metadata that is read through the result
    /// and through its streams.
    fn for_request(self: Arc<Self>, effort: &Effort) -> Arc<dyn Container>;

    /// The node that the mount's root shows.
    fn root(&self) -> NodeId;

    /// Whether a writer appends to the file meanwhile. HDF5: one that lets others read (SWMR).
    /// ASDF: no.
    fn is_growing(&self) -> bool {
        false
    }

    /// The file that a writer appends to as it is from now on: nothing of it was read before.
    /// `None` of any other file.
    fn refreshed(self: Arc<Self>) -> Option<Arc<dyn Container>> {
        None
    }

    /// Bytes of memory, about, that it takes as long as it is open. HDF5: few. ASDF: its tree and
    /// its blocks.
    fn weight(&self) -> u64 {
        0
    }

    /// Whether looking at its nodes may take long: then it pays to say which ones are next.
    fn is_far(&self) -> bool {
        false
    }

    /// Says that these nodes are about to be asked for.
    fn expect(&self, _nodes: &[NodeId]) {}

    /// Says that somebody is about to walk through what is beneath this group.
    fn expect_beneath(&self, _group: NodeId) {}

    /// Says that what these stored variable-length elements lead to is about to be asked for;
    /// `elements` has one after another, of `size` bytes each.
    fn expect_variable_length(&self, _elements: &[u8], _size: usize) {}

    /// Drops what is kept of the file; it is read again when it is needed.
    fn forget(&self) {}

    /// The node itself, parsed; repeated calls are cheap.
    ///
    /// # Errors
    /// Fails if its header is damaged or of a kind that is not built.
    fn node(&self, id: NodeId) -> Result<Arc<Node>>;

    /// Whether a node that cannot be read looks like a group, as far as its beginning tells.
    fn looks_like_group(&self, _id: NodeId) -> bool {
        false
    }

    /// The link of `group` called `name` (bytes as in the file), the first in index order.
    ///
    /// # Errors
    /// `NotFound` is never returned; absence is `None`.
    fn link(&self, group: NodeId, name: &[u8]) -> Result<Option<Link>>;

    /// The links of `group` in the file's index order, from the first.
    fn links(&self, group: NodeId) -> Result<Box<dyn LinkStream>>;

    /// The names from the root, any bytes, that an alias or a `$ref` leads over, each as its group
    /// lists it; none for the root itself. No other link has any.
    ///
    /// # Errors
    /// Fails if the path is too long.
    fn names(&self, _target: &LinkTarget) -> Result<Vec<Vec<u8>>> {
        Ok(Vec::new())
    }

    /// Hands every attribute of the node to `visit` in the file's order until it breaks off.
    ///
    /// # Errors
    /// Fails if the list is damaged; an attribute that is itself damaged is handed on with its
    /// error as value.
    fn attributes(
        &self,
        id: NodeId,
        visit: &mut dyn FnMut(Attribute) -> ControlFlow<()>,
    ) -> Result<()>;

    /// Like [`attributes`](Self::attributes), from number `next` on, which is then behind the last
    /// one that was handed on or could not be.
    ///
    /// # Errors
    /// Fails as `attributes` does.
    fn attributes_from(
        &self,
        id: NodeId,
        next: &mut u64,
        visit: &mut dyn FnMut(Attribute) -> ControlFlow<()>,
    ) -> Result<()> {
        let first = *next;
        let mut at = 0_u64;
        self.attributes(id, &mut |attribute| {
            at = at.one_more();
            if at <= first {
                return ControlFlow::Continue(());
            }
            *next = at;
            visit(attribute)
        })
    }

    /// The attribute called `name` (bytes as in the file).
    fn attribute(&self, id: NodeId, name: &[u8]) -> Result<Option<Attribute>>;

    /// Bytes that one stored variable-length element points to, in base elements of `base_size`
    /// bytes; `None` for a null element. Nothing but the element is looked at.
    ///
    /// # Errors
    /// `Limit` for an element over the limit.
    fn variable_length_bytes(&self, element: &[u8], base_size: u64) -> Result<Option<u64>>;

    /// The part `part` of these bytes, cut short where they end.
    ///
    /// # Errors
    /// `Corrupt` for an element that points nowhere, `Limit` for one over the limit.
    fn variable_length(
        &self,
        element: &[u8],
        base_size: u64,
        part: Range<u64>,
    ) -> Result<Option<Vec<u8>>>;

    /// Where that is found. Following several elements costs least in the order of their places.
    fn variable_length_place(&self, _element: &[u8]) -> u64 {
        0
    }

    /// Bytes before the first NUL of what one stored element of bytes points to; 0 for a null
    /// element.
    ///
    /// # Errors
    /// Fails as [`variable_length`](Self::variable_length) does.
    fn text_bytes(&self, element: &[u8]) -> Result<u64>;

    /// The target of one stored reference element of `kind`.
    fn reference(&self, kind: datatype::ReferenceKind, element: &[u8]) -> Result<Reference>;

    /// The elements of its array that a stored region reference picks, however many runs they are;
    /// `None` where that cannot be read. ASDF has no such references.
    fn region(&self, _element: &[u8]) -> Result<Option<region::Region>> {
        Ok(None)
    }

    /// The files that it is made of, as CSV; `None` of a file by itself.
    fn members(&self) -> Option<&[u8]> {
        None
    }

    /// The content of the file beside its graph of nodes. HDF5: none.
    fn extras(&self) -> Option<&dyn Extras> {
        None
    }
}
