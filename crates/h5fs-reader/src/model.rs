//! The vocabulary that both formats share: nodes, links, datatypes, shapes, storage, attributes.
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
//! Unchecked arithmetic is denied in the lower modules, where numbers come from files. Counters use
//! the saturating operations of [`Count`]. All other arithmetic is checked and fails with an error.

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
pub mod overlay;
pub mod paths;
pub mod region;
pub(crate) mod regions;
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
pub use extras::AsdfExtras;
pub use link::{Link, LinkStream, LinkTarget, LinksInMemory};
pub use node::{Node, NodeId, NodeKind};
pub use scalar::{Scalar, ScalarValue};
pub use shape::Shape;

use crate::error::Result;
use crate::memory::request_budget::RequestBudget;
use crate::source::SharedSource;
use crate::wire::Count;

/// An open HDF5 or ASDF file: a graph of nodes, and the values that are stored outside of arrays.
pub trait Container: Send + Sync {
    /// Returns a view of the same file for one request. Metadata that is read through this view and
    /// its streams is charged to `budget`.
    fn for_request(self: Arc<Self>, budget: &RequestBudget) -> Arc<dyn Container>;

    /// Returns the node that the mount's root shows.
    fn root(&self) -> NodeId;

    /// Returns whether a writer is appending to the file. HDF5: if the file is open for
    /// single-writer/multiple-reader access (SWMR). ASDF: never.
    fn is_growing(&self) -> bool {
        false
    }

    /// Returns a fresh view of a file that a writer appends to, without any cached content. Returns
    /// `None` for any other file.
    fn fresh_view(self: Arc<Self>) -> Option<Arc<dyn Container>> {
        None
    }

    /// Returns the approximate memory in bytes that the open file takes. HDF5: little. ASDF: its
    /// tree and its block list.
    fn weight(&self) -> u64 {
        0
    }

    /// Returns whether reading a node may take long. The caller should then announce nodes with
    /// [`prefetch_nodes`](Self::prefetch_nodes).
    fn is_remote(&self) -> bool {
        false
    }

    /// Announces that the headers of these nodes will be read soon, so that a remote source can
    /// send them.
    fn prefetch_nodes(&self, _nodes: &[NodeId]) {}

    /// Announces that a caller will soon walk through everything below this group, so that a remote
    /// source can send the metadata.
    fn prefetch_subtree(&self, _group: NodeId) {}

    /// Announces that the content of these stored variable-length elements will be read soon.
    /// `elements` contains consecutive elements of `size` bytes each.
    fn prefetch_variable_length(&self, _elements: &[u8], _size: usize) {}

    /// Drops cached content of the file. The content is read again when it is needed.
    fn drop_caches(&self) {}

    /// Returns the parsed node with identity `id`. Repeated calls are cheap.
    ///
    /// # Errors
    /// Fails if the node's header is damaged or of an unsupported kind.
    fn node(&self, id: NodeId) -> Result<Arc<Node>>;

    /// Returns whether a node that cannot be read looks like a group, judged by the beginning of
    /// its header.
    fn is_likely_group(&self, _id: NodeId) -> bool {
        false
    }

    /// Returns the link of `group` called `name` (bytes as in the file). Of several links with this
    /// name, returns the first in index order.
    ///
    /// # Errors
    /// A missing link is `None` and never the error `NotFound`.
    fn link(&self, group: NodeId, name: &[u8]) -> Result<Option<Link>>;

    /// Returns the links of `group` in the file's index order, from the first.
    fn links(&self, group: NodeId) -> Result<Box<dyn LinkStream>>;

    /// Returns the path of an alias or a `$ref` as names from the root, each in the bytes that its
    /// group lists. The list is empty for the root itself and for all other links.
    ///
    /// # Errors
    /// Fails if the path is too long.
    fn alias_path(&self, _target: &LinkTarget) -> Result<Vec<Vec<u8>>> {
        Ok(Vec::new())
    }

    /// Calls `visit` with every attribute of the node, in the file's order, until `visit` breaks.
    ///
    /// # Errors
    /// Fails if the list is damaged. An attribute that is itself damaged is passed to `visit` with
    /// its error as content.
    fn attributes(
        &self,
        id: NodeId,
        visit: &mut dyn FnMut(Attribute) -> ControlFlow<()>,
    ) -> Result<()>;

    /// Calls `visit` like [`attributes`](Self::attributes), from attribute number `next` on. Sets
    /// `next` to the number after the last attribute that was passed to `visit` or could not be
    /// read.
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
            at = at.plus_one();
            if at <= first {
                return ControlFlow::Continue(());
            }
            *next = at;
            visit(attribute)
        })
    }

    /// Returns the attribute called `name` (bytes as in the file), or `None` if the node has no
    /// such attribute.
    fn attribute(&self, id: NodeId, name: &[u8]) -> Result<Option<Attribute>>;

    /// Returns the number of bytes that a stored variable-length element points to, if the base
    /// elements of its sequence have `base_size` bytes each. Returns `None` for a null element.
    /// Reads only the element itself, not its content.
    ///
    /// # Errors
    /// `Limit` for an element of more than
    /// [`limits::VARIABLE_LENGTH_BYTES`](crate::limits::VARIABLE_LENGTH_BYTES).
    fn variable_length_bytes(&self, element: &[u8], base_size: u64) -> Result<Option<u64>>;

    /// Returns the range `part` of the bytes that a stored variable-length element points to,
    /// truncated where they end. Returns `None` for a null element.
    ///
    /// # Errors
    /// `Corrupt` for an element with an invalid pointer. `Limit` for an element of more than
    /// [`limits::VARIABLE_LENGTH_BYTES`](crate::limits::VARIABLE_LENGTH_BYTES).
    fn read_variable_length(
        &self,
        element: &[u8],
        base_size: u64,
        part: Range<u64>,
    ) -> Result<Option<Vec<u8>>>;

    /// Returns the file offset of the structure that contains a stored variable-length element's
    /// content (HDF5: the global heap collection), or 0 if the offset is unknown. Reading several
    /// elements is cheapest in the order of these offsets.
    fn variable_length_offset(&self, _element: &[u8]) -> u64 {
        0
    }

    /// Returns the length in bytes of the text that a stored variable-length string points to: the
    /// bytes before the first NUL. Returns 0 for a null element.
    ///
    /// # Errors
    /// Fails as [`read_variable_length`](Self::read_variable_length) does.
    fn text_length(&self, element: &[u8]) -> Result<u64>;

    /// Returns the target of one stored element that is a reference of kind `kind`.
    fn reference(&self, kind: datatype::ReferenceKind, element: &[u8]) -> Result<Reference>;

    /// Returns the elements that a stored region reference selects, whatever their number of runs.
    /// Returns `None` if the selection cannot be read. ASDF does not define region references.
    fn region(&self, _element: &[u8]) -> Result<Option<region::Region>> {
        Ok(None)
    }

    /// Returns the array to which a stored region reference points, and the encoded selection (HDF5
    /// 3.0, VIII.A "Dataspace Selection"). Returns `None` for a null or dangling reference.
    ///
    /// # Errors
    /// `Limit` for a selection of more than [`limits::REGION_BYTES`](crate::limits::REGION_BYTES).
    fn encoded_region(&self, _element: &[u8]) -> Result<Option<(NodeId, Vec<u8>)>> {
        Ok(None)
    }

    /// Returns the list of the member files of a joined file, as CSV. Returns `None` for a single
    /// file.
    fn members_csv(&self) -> Option<&[u8]> {
        None
    }

    /// Returns the content of the file outside of its graph of nodes. Returns `None` for an HDF5
    /// file.
    fn asdf_extras(&self) -> Option<&dyn AsdfExtras> {
        None
    }

    /// Returns whether an offset in `source` is an offset in the opened file. ASDF files may have
    /// blocks in other files.
    fn is_own_source(&self, source: &SharedSource) -> bool {
        let is_in_file = self.asdf_extras().is_none_or(|extras| {
            let text = extras.tree_text();
            text.is_some_and(|text| Arc::ptr_eq(&text.source, source))
        });
        is_in_file && !source.is_composite()
    }
}
