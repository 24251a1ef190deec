//! Variables that are shorter than their unlimited dimensions, as long as these; MATLAB's [arrays
//! without elements](super::matlab_empty) as they are meant.
//!
//! A variable of netCDF ends with the last record that was written to it. netCDF's library, and so
//! every program that reads by it, has each as long as the longest one over the same unlimited
//! dimension, with the fill value behind what is stored.
//!
//! A writer may append to the file meanwhile. Then the length of a dimension is that of one moment,
//! and stays what it is as long as the state of the file is shown: a variable that has grown since is
//! cut, and so is a last record that not all variables have yet. The header of a variable is read
//! after the lengths of its dimensions, so that there is no fill where the file had an element when
//! the length was found.

use std::collections::HashSet;
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use crate::array::Engine;
use crate::error::Result;
use crate::memory::cancel::CancelToken;
use crate::memory::effort::Effort;
use crate::memory::lock::lock;
use crate::memory::weighted_lru::WeightedLru;
use crate::model::array::{Array, Fill, Mapping, OpenSource, Storage, VirtualSource};
use crate::model::attribute::Attribute;
use crate::model::attribute_value::{content, few, numbers};
use crate::model::datatype::{ByteOrder, Class, Member, ReferenceKind};
use crate::model::number::ieee_bytes;
use crate::model::region::{Axis, Region};
use crate::model::storage::Pipeline;
use crate::model::{
    Container, Extras, Link, LinkStream, LinkTarget, Node, NodeId, NodeKind, Reference, Shape,
};
use crate::view::elements::dimensions::{has_no_values, is_scale, listed, listed_at};
use crate::view::elements::matlab_empty;
use crate::wire::to_usize;

/// The lengths of unlimited dimensions in one state of a file.
pub(crate) struct Lengths {
    /// By their scales; none of a scale that is limited.
    pub(crate) known: Mutex<WeightedLru<NodeId, Option<u64>>>,
    /// The file that a writer appends to, no header of which is older than a known length.
    latest: Mutex<Option<Arc<dyn Container>>>,
}

impl Lengths {
    /// No lengths, of which at most `most` bytes will be kept.
    pub(crate) fn new(most: u64) -> Self {
        Lengths {
            known: Mutex::new(WeightedLru::new(most)),
            latest: Mutex::new(None),
        }
    }
}

/// How often the lengths over a dimension of a growing file are read at most, until two looks find
/// the same ones and all variables have the same records.
const LOOKS: u32 = 8;

/// The pause before a further look. A writer of records appends to one variable after another.
const PAUSE: Duration = Duration::from_millis(4);

/// Bytes that a look at a variable over a dimension counts for, beside what is read of it.
const USER: u64 = 64;

/// Tells whether a link of the file leads to a node.
pub(crate) type IsLinked = dyn Fn(NodeId) -> Result<bool> + Send + Sync;

/// A file whose variables are as long as their dimensions.
pub(crate) struct Padded {
    inner: Arc<dyn Container>,
    engine: Arc<Engine>,
    /// Pays for the variables that are looked at.
    effort: Effort,
    lengths: Arc<Lengths>,
    is_linked: Arc<IsLinked>,
}

impl Padded {
    /// That of `inner`. `lengths` are those that were found before.
    pub(crate) fn new(
        inner: Arc<dyn Container>,
        engine: Arc<Engine>,
        effort: Effort,
        lengths: Arc<Lengths>,
        is_linked: Arc<IsLinked>,
    ) -> Self {
        Padded {
            inner,
            engine,
            effort,
            lengths,
            is_linked,
        }
    }

    /// For each dimension of the array `id`, the length of the unlimited dimension that it is; no
    /// lengths where it has none.
    fn lengths_of(&self, id: NodeId, array: &Array) -> Result<Vec<Option<u64>>> {
        let max = array.shape.max();
        if max.iter().all(Option::is_some) || array.storage.is_err() {
            return Ok(Vec::new());
        }
        let mut scales = listed(&*self.inner, id)?;
        if scales.is_empty() && is_scale(&*self.inner, id)? {
            scales.push(Some(id));
        }
        let axes = max.iter().zip(scales);
        let length = |(max, scale): (&Option<u64>, Option<NodeId>)| match (max, scale) {
            (None, Some(scale)) => self.length(scale),
            _ => Ok(None),
        };
        axes.map(length).collect()
    }

    /// The length of the dimension of a scale; `None` of one that is limited.
    fn length(&self, scale: NodeId) -> Result<Option<u64>> {
        if let Some(known) = lock(&self.lengths.known).get(&scale) {
            return Ok(*known);
        }
        let length = if self.inner.is_growing() {
            self.growing_length(scale)?
        } else {
            longest(self.lengths_along(&*self.inner, scale)?)
        };
        let mut known = lock(&self.lengths.known);
        // All documents of a state have the length that was found first.
        if let Some(first) = known.get(&scale) {
            return Ok(*first);
        }
        known.put(scale, length, 0);
        Ok(length)
    }

    /// The same where a writer appends to the file. It may be between two variables of a record,
    /// and is waited for a moment.
    fn growing_length(&self, scale: NodeId) -> Result<Option<u64>> {
        let mut found = None;
        for look in 0..LOOKS {
            if look > 1 {
                sleep(PAUSE);
            }
            let before = found.take();
            found = self.lengths_along(&*self.refreshed(), scale)?;
            let is_settled = before == found && found.as_deref().is_none_or(are_equal);
            if found.is_none() || is_settled {
                break;
            }
        }
        *lock(&self.lengths.latest) = Arc::clone(&self.inner).refreshed();
        Ok(complete(found))
    }

    /// The file as it is now.
    fn refreshed(&self) -> Arc<dyn Container> {
        match Arc::clone(&self.inner).refreshed() {
            Some(file) => file.for_request(&self.effort),
            None => Arc::clone(&self.inner),
        }
    }

    /// The file of which the header of a variable is read after the lengths of its dimensions.
    fn latest(&self) -> Arc<dyn Container> {
        match &*lock(&self.lengths.latest) {
            Some(file) => Arc::clone(file).for_request(&self.effort),
            None => Arc::clone(&self.inner),
        }
    }

    /// The lengths of the variables over the dimension of a scale, which lists them; `None` of one
    /// that is limited. That of a dimension that is no variable itself does not count.
    fn lengths_along(&self, file: &dyn Container, scale: NodeId) -> Result<Option<Vec<u64>>> {
        let node = file.node(scale)?;
        let shape = node.array().map(|array| &array.shape);
        let Some(shape) = shape.filter(|shape| shape.max().first() == Some(&None)) else {
            return Ok(None);
        };
        let mut lengths = Vec::new();
        if !has_no_values(file, scale)? {
            lengths.extend(shape.dims().first());
        }
        for (user, axis) in users(file, scale)? {
            self.effort.spend(USER)?;
            match length_along(file, user, axis, scale) {
                // Something else may stand where a variable was deleted.
                Err(error) if !error.is_passing() && !(self.is_linked)(user)? => {}
                length => lengths.extend(length?),
            }
        }
        Ok(Some(lengths))
    }
}

/// The greatest of some lengths, zero without any.
fn longest(lengths: Option<Vec<u64>>) -> Option<u64> {
    lengths.map(|lengths| lengths.into_iter().max().unwrap_or(0))
}

/// The same without a record that the writer has begun and not ended.
fn complete(lengths: Option<Vec<u64>>) -> Option<u64> {
    let written = lengths.iter().flatten().filter(|length| **length > 0);
    let shortest = written.min().copied();
    let longest = longest(lengths);
    let is_begun = shortest.and_then(|shortest| shortest.checked_add(1)) == longest;
    if is_begun { shortest } else { longest }
}

/// Whether all lengths are equal, but for variables of which nothing was written.
fn are_equal(lengths: &[u64]) -> bool {
    let mut written = lengths.iter().filter(|length| **length > 0);
    let first = written.next();
    written.all(|length| Some(length) == first)
}

/// The variables over the dimension of a scale that it lists, and which of their dimensions it
/// is, each once. A variable that was deleted stays in that list.
fn users(file: &dyn Container, scale: NodeId) -> Result<Vec<(NodeId, usize)>> {
    let Some(list) = content(file, scale, b"REFERENCE_LIST")? else {
        return Ok(Vec::new());
    };
    let Class::Compound(members) = &list.datatype.class else {
        return Ok(Vec::new());
    };
    few(&list)?;
    let size = to_usize(list.datatype.size.into())?.max(1);
    let mut users = Vec::new();
    for element in list.elements.chunks_exact(size) {
        users.extend(user(file, members, element)?);
    }
    let mut met = HashSet::new();
    users.retain(|user| met.insert(*user));
    Ok(users)
}

/// The variable that one element of such a list stands for, and which of its dimensions; `None`
/// where it leads to nothing.
fn user(
    file: &dyn Container,
    members: &[Member],
    element: &[u8],
) -> Result<Option<(NodeId, usize)>> {
    let (mut user, mut axis) = (None, None);
    for member in members {
        let start = to_usize(member.offset.into())?;
        let length = to_usize(member.datatype.size.into())?;
        let field = element.get(start..start.saturating_add(length));
        let field = field.unwrap_or_default();
        match &member.datatype.class {
            Class::Reference(kind) => user = referenced(file, *kind, field)?,
            _ => axis = numbers(&member.datatype, field),
        }
    }
    let axis = axis.and_then(|axis| usize::try_from(*axis.first()?).ok());
    Ok(user.zip(axis))
}

fn referenced(file: &dyn Container, kind: ReferenceKind, element: &[u8]) -> Result<Option<NodeId>> {
    Ok(match file.reference(kind, element)? {
        Reference::Object(node) => Some(node),
        _ => None,
    })
}

/// The length of a variable along that dimension; `None` unless it says itself that the
/// dimension is that of the scale: it may stand where a deleted one stood.
fn length_along(
    file: &dyn Container,
    user: NodeId,
    axis: usize,
    scale: NodeId,
) -> Result<Option<u64>> {
    let node = file.node(user)?;
    let dims = node.array().map(|array| array.shape.dims());
    let Some(length) = dims.and_then(|dims| dims.get(axis)) else {
        return Ok(None);
    };
    let is_over = listed_at(file, user, axis)? == Some(scale);
    Ok(is_over.then_some(*length))
}

/// The array with these dimensions: netCDF's fill value stands where it has no elements.
pub(crate) fn padded(array: &Arc<Array>, dims: Vec<u64>) -> Array {
    let common: Vec<u64> = array
        .shape
        .dims()
        .iter()
        .zip(&dims)
        .map(|(own, dim)| *own.min(dim))
        .collect();
    let fill = fill_of(array);
    let is_unwritten = matches!(array.storage, Ok(Storage::Empty | Storage::Fill));
    let is_fill = common.contains(&0) || is_unwritten && fill == array.fill;
    let whole = || Region::Regular(common.iter().copied().map(Axis::whole).collect());
    let mapping = || Mapping {
        region: whole(),
        source_region: if common == array.shape.dims() {
            Region::All
        } else {
            whole()
        },
        source: Arc::new(Unpadded(Arc::clone(array))),
    };
    Array {
        datatype: array.datatype.clone(),
        shape: Shape::fixed(dims),
        fill,
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

/// The same of an array that grows: it has the same chunks in each state of its file, whether they
/// are padded, cut, or as the file has them.
fn resized(array: &Arc<Array>, dims: Vec<u64>) -> Array {
    let is_cut = dims
        .iter()
        .zip(array.shape.dims())
        .all(|(dim, own)| dim <= own);
    let (pipeline, storage, fill) = match &array.storage {
        // A chunk that sticks out of the shorter array need not stick out of the array.
        Ok(Storage::Chunked(chunked)) if is_cut && !chunked.partial_unfiltered => (
            array.pipeline.clone(),
            Ok(Storage::Chunked(chunked.clone())),
            array.fill.clone(),
        ),
        _ => {
            let padded = padded(array, dims.clone());
            (padded.pipeline, padded.storage, padded.fill)
        }
    };
    let max = array.shape.max().to_vec();
    Array {
        datatype: array.datatype.clone(),
        shape: Shape::Simple { dims, max },
        fill,
        layout: array.layout,
        chunk_shape: array.chunk_shape.clone(),
        pipeline,
        storage,
    }
}

/// The fill value of an array: where the file has none, the default of netCDF for its type
/// (`NC_FILL_SHORT` and so on in netcdf.h).
fn fill_of(array: &Array) -> Fill {
    let (Fill::Zero, size) = (&array.fill, array.datatype.size) else {
        return array.fill.clone();
    };
    let (bits, order): (u64, _) = match &array.datatype.class {
        Class::Integer {
            order,
            signed: true,
            ..
        } => match size {
            1 => (0x81, order),
            2 => (0x8001, order),
            4 => (0x8000_0001, order),
            8 => (0x8000_0000_0000_0002, order),
            _ => return Fill::Zero,
        },
        Class::Integer { order, .. } => match size {
            8 => (u64::MAX - 1, order),
            1 | 2 | 4 => (u64::MAX, order),
            _ => return Fill::Zero,
        },
        // 15 * 2^119.
        Class::Float(format) if ieee_bytes(size, format).is_some() => match size {
            4 => (0x7CF0_0000, &format.order),
            8 => (0x479E_0000_0000_0000, &format.order),
            _ => return Fill::Zero,
        },
        _ => return Fill::Zero,
    };
    let mut bytes = bits.to_le_bytes();
    let bytes = bytes.get_mut(..size as usize).unwrap_or_default();
    if *order == ByteOrder::Big {
        bytes.reverse();
    }
    Fill::Value(Arc::from(&*bytes))
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
        if let Some(meant) = matlab_empty::meant(&*self.inner, &self.engine, &node)? {
            return Ok(meant);
        }
        let lengths = self.lengths_of(id, array)?;
        if lengths.iter().all(Option::is_none) {
            return Ok(node);
        }
        let is_growing = self.inner.is_growing();
        let node = if is_growing {
            self.latest().node(id)?
        } else {
            node
        };
        let NodeKind::Array(array) = &node.kind else {
            return Ok(node);
        };
        let mut dims = array.shape.dims().to_vec();
        for (dim, length) in dims.iter_mut().zip(lengths) {
            *dim = match length {
                // A scale that lists no variable does not say how long they are.
                Some(length) if is_growing && length > 0 => length,
                length => length.unwrap_or(0).max(*dim),
            };
        }
        if dims == array.shape.dims() {
            return Ok(node);
        }
        let array = if is_growing {
            resized(array, dims)
        } else {
            padded(array, dims)
        };
        Ok(Arc::new(node.with_array(Arc::new(array))))
    }

    fn for_request(self: Arc<Self>, effort: &Effort) -> Arc<dyn Container> {
        let inner = Arc::clone(&self.inner).for_request(effort);
        Arc::new(Padded {
            inner,
            engine: Arc::clone(&self.engine),
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

    fn refreshed(self: Arc<Self>) -> Option<Arc<dyn Container>> {
        Arc::clone(&self.inner).refreshed()
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
