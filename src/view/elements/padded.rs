//! Variables that are shorter than their unlimited dimensions, as long as these.
//!
//! A variable of netCDF ends with the last record that was written to it. netCDF's library, and so
//! every program that reads by it, has each as long as the longest one over the same unlimited
//! dimension, with the fill value behind what is stored.

use std::collections::HashSet;
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex};

use crate::error::Result;
use crate::memory::cancel::CancelToken;
use crate::memory::effort::Effort;
use crate::memory::lock::lock;
use crate::memory::weighted_lru::WeightedLru;
use crate::model::array::{Array, Mapping, OpenSource, Storage, VirtualSource};
use crate::model::attribute::Attribute;
use crate::model::attribute_value::{content, few, numbers};
use crate::model::datatype::{Class, Member, ReferenceKind};
use crate::model::region::{Axis, Region};
use crate::model::storage::Pipeline;
use crate::model::{
    Container, Extras, Link, LinkStream, LinkTarget, Node, NodeId, NodeKind, Reference, Shape,
};
use crate::view::elements::dimensions::{has_no_values, is_scale, listed, listed_at};
use crate::wire::to_usize;

/// The lengths of unlimited dimensions in one state of a file, by their scales; none of a scale that
/// is limited.
pub(crate) type Lengths = Mutex<WeightedLru<NodeId, Option<u64>>>;

/// Bytes that a look at a variable over a dimension counts for, beside what is read of it.
const USER: u64 = 64;

/// Tells whether a link of the file leads to a node.
pub(crate) type IsLinked = dyn Fn(NodeId) -> Result<bool> + Send + Sync;

/// A file whose variables are as long as their dimensions.
pub(crate) struct Padded {
    inner: Arc<dyn Container>,
    /// Pays for the variables that are looked at.
    effort: Effort,
    lengths: Arc<Lengths>,
    is_linked: Arc<IsLinked>,
}

impl Padded {
    /// That of `inner`. `lengths` are those that were found before.
    pub(crate) fn new(
        inner: Arc<dyn Container>,
        effort: Effort,
        lengths: Arc<Lengths>,
        is_linked: Arc<IsLinked>,
    ) -> Self {
        Padded {
            inner,
            effort,
            lengths,
            is_linked,
        }
    }

    /// The dimensions of the array `id`; `None` where they are its own.
    fn dims(&self, id: NodeId, array: &Array) -> Result<Option<Vec<u64>>> {
        let max = array.shape.max();
        if max.iter().all(Option::is_some) || array.storage.is_err() {
            return Ok(None);
        }
        let mut scales = listed(&*self.inner, id)?;
        if scales.is_empty() && is_scale(&*self.inner, id)? {
            scales.push(Some(id));
        }
        let mut dims = array.shape.dims().to_vec();
        for ((dim, max), scale) in dims.iter_mut().zip(max).zip(scales) {
            if let (None, Some(scale)) = (max, scale) {
                *dim = self.length(scale)?.unwrap_or(0).max(*dim);
            }
        }
        Ok((dims != array.shape.dims()).then_some(dims))
    }

    /// The length of the dimension of a scale; `None` of one that is limited.
    fn length(&self, scale: NodeId) -> Result<Option<u64>> {
        if let Some(known) = lock(&self.lengths).get(&scale) {
            return Ok(*known);
        }
        let length = self.longest(scale)?;
        lock(&self.lengths).put(scale, length, 0);
        Ok(length)
    }

    /// The length of the longest variable over the dimension of a scale, which lists them. Those of
    /// a dimension that is no variable itself do not count.
    fn longest(&self, scale: NodeId) -> Result<Option<u64>> {
        let node = self.inner.node(scale)?;
        let shape = node.array().map(|array| &array.shape);
        let Some(shape) = shape.filter(|shape| shape.max().first() == Some(&None)) else {
            return Ok(None);
        };
        let mut longest = if has_no_values(&*self.inner, scale)? {
            0
        } else {
            shape.dims().first().copied().unwrap_or(0)
        };
        for (user, axis) in self.users(scale)? {
            self.effort.spend(USER)?;
            let length = match self.length_along(user, axis, scale) {
                // Something else may stand where a variable was deleted.
                Err(error) if !error.is_passing() && !(self.is_linked)(user)? => None,
                length => length?,
            };
            longest = longest.max(length.unwrap_or(0));
        }
        Ok(Some(longest))
    }

    /// The variables over the dimension of a scale that it lists, and which of their dimensions it
    /// is, each once. A variable that was deleted stays in that list.
    fn users(&self, scale: NodeId) -> Result<Vec<(NodeId, usize)>> {
        let Some(list) = content(&*self.inner, scale, b"REFERENCE_LIST")? else {
            return Ok(Vec::new());
        };
        let Class::Compound(members) = &list.datatype.class else {
            return Ok(Vec::new());
        };
        few(&list)?;
        let size = to_usize(list.datatype.size.into())?.max(1);
        let mut users = Vec::new();
        for element in list.elements.chunks_exact(size) {
            users.extend(self.user(members, element)?);
        }
        let mut met = HashSet::new();
        users.retain(|user| met.insert(*user));
        Ok(users)
    }

    /// The variable that one element of such a list stands for, and which of its dimensions; `None`
    /// where it leads to nothing.
    fn user(&self, members: &[Member], element: &[u8]) -> Result<Option<(NodeId, usize)>> {
        let (mut user, mut axis) = (None, None);
        for member in members {
            let start = to_usize(member.offset.into())?;
            let length = to_usize(member.datatype.size.into())?;
            let field = element.get(start..start.saturating_add(length));
            let field = field.unwrap_or_default();
            match &member.datatype.class {
                Class::Reference(kind) => user = self.referenced(*kind, field)?,
                _ => axis = numbers(&member.datatype, field),
            }
        }
        let axis = axis.and_then(|axis| usize::try_from(*axis.first()?).ok());
        Ok(user.zip(axis))
    }

    fn referenced(&self, kind: ReferenceKind, element: &[u8]) -> Result<Option<NodeId>> {
        Ok(match self.inner.reference(kind, element)? {
            Reference::Object(node) => Some(node),
            _ => None,
        })
    }

    /// The length of a variable along that dimension; `None` unless it says itself that the
    /// dimension is that of the scale: it may stand where a deleted one stood.
    fn length_along(&self, user: NodeId, axis: usize, scale: NodeId) -> Result<Option<u64>> {
        let node = self.inner.node(user)?;
        let dims = node.array().map(|array| array.shape.dims());
        let Some(length) = dims.and_then(|dims| dims.get(axis)) else {
            return Ok(None);
        };
        let is_over = listed_at(&*self.inner, user, axis)? == Some(scale);
        Ok(is_over.then_some(*length))
    }
}

/// The array with these dimensions: the fill value stands where it has no elements.
fn padded(array: &Arc<Array>, dims: Vec<u64>) -> Array {
    let own = array.shape.dims();
    let is_fill = own.contains(&0) || matches!(array.storage, Ok(Storage::Empty | Storage::Fill));
    let mapping = || Mapping {
        region: Region::Regular(own.iter().copied().map(Axis::whole).collect()),
        source_region: Region::All,
        source: Arc::new(Unpadded(Arc::clone(array))),
    };
    Array {
        datatype: array.datatype.clone(),
        shape: Shape::fixed(dims),
        fill: array.fill.clone(),
        layout: array.layout,
        chunk_shape: array.chunk_shape.clone().filter(|_| is_fill),
        pipeline: Pipeline::default(),
        storage: Ok(if is_fill {
            Storage::Fill
        } else {
            Storage::Virtual(std::iter::once(mapping()).collect())
        }),
    }
}

/// The array as it is stored.
#[derive(Debug)]
struct Unpadded(Arc<Array>);

impl VirtualSource for Unpadded {
    fn open(&self, _: &CancelToken) -> Result<Option<OpenSource>> {
        let array = Arc::clone(&self.0);
        Ok(Some(OpenSource {
            array,
            file: None,
            recode: None,
        }))
    }

    fn name(&self) -> String {
        "the variable".to_owned()
    }

    fn is_elsewhere(&self) -> bool {
        false
    }

    fn weight(&self) -> u64 {
        self.0.weight()
    }
}

impl fmt::Debug for Padded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Padded")
    }
}

impl Container for Padded {
    fn node(&self, id: NodeId) -> Result<Arc<Node>> {
        let node = self.inner.node(id)?;
        let NodeKind::Array(array) = &node.kind else {
            return Ok(node);
        };
        let Some(dims) = self.dims(id, array)? else {
            return Ok(node);
        };
        Ok(Arc::new(Node {
            id,
            kind: NodeKind::Array(Arc::new(padded(array, dims))),
            assembled: node.assembled.clone(),
            link_count: node.link_count,
            modified: node.modified,
            comment: node.comment.clone(),
            tag: node.tag.clone(),
            error: node.error.clone(),
        }))
    }

    fn for_request(self: Arc<Self>, effort: &Effort) -> Arc<dyn Container> {
        let inner = Arc::clone(&self.inner).for_request(effort);
        Arc::new(Padded {
            inner,
            effort: effort.clone(),
            lengths: Arc::clone(&self.lengths),
            is_linked: Arc::clone(&self.is_linked),
        })
    }

    fn root(&self) -> NodeId {
        self.inner.root()
    }

    fn is_growing(&self) -> bool {
        self.inner.is_growing()
    }

    fn weight(&self) -> u64 {
        self.inner.weight()
    }

    fn is_far(&self) -> bool {
        self.inner.is_far()
    }

    fn expect(&self, nodes: &[NodeId]) {
        self.inner.expect(nodes);
    }

    fn expect_beneath(&self, group: NodeId) {
        self.inner.expect_beneath(group);
    }

    fn expect_variable_length(&self, elements: &[u8], size: usize) {
        self.inner.expect_variable_length(elements, size);
    }

    fn forget(&self) {
        self.inner.forget();
    }

    fn looks_like_group(&self, id: NodeId) -> bool {
        self.inner.looks_like_group(id)
    }

    fn link(&self, group: NodeId, name: &[u8]) -> Result<Option<Link>> {
        self.inner.link(group, name)
    }

    fn links(&self, group: NodeId) -> Result<Box<dyn LinkStream>> {
        self.inner.links(group)
    }

    fn names(&self, target: &LinkTarget) -> Result<Vec<Vec<u8>>> {
        self.inner.names(target)
    }

    fn attributes(
        &self,
        id: NodeId,
        visit: &mut dyn FnMut(Attribute) -> ControlFlow<()>,
    ) -> Result<()> {
        self.inner.attributes(id, visit)
    }

    fn attributes_from(
        &self,
        id: NodeId,
        next: &mut u64,
        visit: &mut dyn FnMut(Attribute) -> ControlFlow<()>,
    ) -> Result<()> {
        self.inner.attributes_from(id, next, visit)
    }

    fn attribute(&self, id: NodeId, name: &[u8]) -> Result<Option<Attribute>> {
        self.inner.attribute(id, name)
    }

    fn variable_length_bytes(&self, element: &[u8], base_size: u64) -> Result<Option<u64>> {
        self.inner.variable_length_bytes(element, base_size)
    }

    fn variable_length(
        &self,
        element: &[u8],
        base_size: u64,
        part: Range<u64>,
    ) -> Result<Option<Vec<u8>>> {
        self.inner.variable_length(element, base_size, part)
    }

    fn variable_length_place(&self, element: &[u8]) -> u64 {
        self.inner.variable_length_place(element)
    }

    fn text_bytes(&self, element: &[u8]) -> Result<u64> {
        self.inner.text_bytes(element)
    }

    fn reference(&self, kind: ReferenceKind, element: &[u8]) -> Result<Reference> {
        self.inner.reference(kind, element)
    }

    fn region(&self, element: &[u8]) -> Result<Option<Region>> {
        self.inner.region(element)
    }

    fn members(&self) -> Option<&[u8]> {
        self.inner.members()
    }

    fn extras(&self) -> Option<&dyn Extras> {
        self.inner.extras()
    }
}

#[cfg(test)]
mod tests;
