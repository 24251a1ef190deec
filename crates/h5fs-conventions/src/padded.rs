//! Variables extended to the length of their unlimited dimensions, and [empty MATLAB
//! arrays](super::matlab_empty) in place of their stored dimensions.
//!
//! A stored netCDF variable ends with the last record that was written to it. The netCDF library,
//! and so every program that uses it, shows all variables over an unlimited dimension with the
//! length of the longest one. The fill value follows the stored elements.
//!
//! A writer may append to the file while it is mounted. The length of a dimension is then
//! determined once, and is used until the mount shows a later state of the file. A variable that
//! has grown since then is cut to that length. A last record that only some of the variables have
//! is cut, too. The header of a variable is read after the lengths of its dimensions are known.
//! Otherwise the view could show fill values where the file already had elements.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use h5fs_reader::array::Engine;
use h5fs_reader::error::Result;
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::memory::lock::lock;
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::memory::weighted_lru::WeightedLru;
use h5fs_reader::model::array::{Array, Fill, Mapping, OpenVirtualSource, Storage, VirtualSource};
use h5fs_reader::model::attribute_value::{attribute_content, check_value_count, decode_integers};
use h5fs_reader::model::datatype::{ByteOrder, Class, Member, ReferenceKind};
use h5fs_reader::model::number::ieee_bytes;
use h5fs_reader::model::overlay::ContainerOverlay;
use h5fs_reader::model::region::{Region, RegionAxis};
use h5fs_reader::model::storage::Pipeline;
use h5fs_reader::model::{Container, Node, NodeId, NodeKind, Reference, Shape};
use h5fs_reader::wire::to_usize;

use crate::dimensions::{is_only_dimension, is_scale, scale_from_list, scales_from_list};
use crate::matlab_empty;

/// A cache of the lengths of unlimited dimensions, for one state of the content of a file.
pub struct DimensionLengths {
    /// The length of each dimension, by the node of its dimension scale; `None` for a limited
    /// dimension.
    pub length_by_scale: Mutex<WeightedLru<NodeId, Option<u64>>>,
    /// For a growing file, a view that was opened after the cached lengths were found. The headers
    /// of variables are read from this view.
    header_view: Mutex<Option<Arc<dyn Container>>>,
}

impl DimensionLengths {
    /// Creates an empty cache, which occupies at most `most` bytes.
    pub fn new(most: u64) -> Self {
        DimensionLengths {
            length_by_scale: Mutex::new(WeightedLru::new(most)),
            header_view: Mutex::new(None),
        }
    }
}

/// Maximum number of times that the lengths of the variables over one dimension of a growing file
/// are read. Reading stops earlier if two reads agree and all variables have the same number of
/// records.
const MAX_READS: u32 = 8;

/// The pause between two reads of the variables' lengths in a growing file. A writer appends a
/// record to one variable after another, and needs time for all of them.
const READ_PAUSE: Duration = Duration::from_millis(4);

/// Bytes charged to the metadata budget for each variable that is examined, in addition to the
/// bytes read for it.
const VARIABLE_COST: u64 = 64;

/// A function that returns whether any link of the file leads to a node.
pub type LinkedCheck = dyn Fn(NodeId) -> Result<bool> + Send + Sync;

/// A container that shows variables with the full length of their unlimited dimensions.
pub struct PaddedContainer {
    inner: Arc<dyn Container>,
    engine: Arc<Engine>,
    /// The metadata budget of the request that examines variables.
    budget: RequestBudget,
    lengths: Arc<DimensionLengths>,
    is_linked: Arc<LinkedCheck>,
}

impl PaddedContainer {
    /// Wraps the container `inner`. `lengths` caches the lengths of the dimensions.
    pub fn new(
        inner: Arc<dyn Container>,
        engine: Arc<Engine>,
        budget: RequestBudget,
        lengths: Arc<DimensionLengths>,
        is_linked: Arc<LinkedCheck>,
    ) -> Self {
        PaddedContainer {
            inner,
            engine,
            budget,
            lengths,
            is_linked,
        }
    }

    /// Returns, for each dimension of the array `id`, its length if the dimension is unlimited. The
    /// result is empty if no dimension is unlimited.
    fn unlimited_lengths(&self, id: NodeId, array: &Array) -> Result<Vec<Option<u64>>> {
        let max = array.shape.max();
        // The arrays of a joined file have the length of their dimensions already.
        let is_joined = self.inner.members_csv().is_some();
        if is_joined || max.iter().all(Option::is_some) || array.storage.is_err() {
            return Ok(Vec::new());
        }
        let mut scales = scales_from_list(&*self.inner, id)?;
        if scales.is_empty() && is_scale(&*self.inner, id)? {
            scales.push(Some(id));
        }
        let axes = max.iter().zip(scales);
        let length = |(max, scale): (&Option<u64>, Option<NodeId>)| match (max, scale) {
            (None, Some(scale)) => self.dimension_length(scale),
            _ => Ok(None),
        };
        axes.map(length).collect()
    }

    /// Returns the length of the dimension that `scale` describes; `None` if the dimension is
    /// limited.
    fn dimension_length(&self, scale: NodeId) -> Result<Option<u64>> {
        if let Some(known) = lock(&self.lengths.length_by_scale).get(&scale) {
            return Ok(*known);
        }
        let length = if self.inner.is_growing() {
            self.growing_length(scale)?
        } else {
            max_length(self.lengths_of_variables(&*self.inner, scale)?)
        };
        let mut known = lock(&self.lengths.length_by_scale);
        // All views of one state of the file use the length that was found first.
        if let Some(first) = known.get(&scale) {
            return Ok(*first);
        }
        known.put(scale, length, 0);
        Ok(length)
    }

    /// Finds the length of a dimension in a growing file. If a writer has appended a record to only
    /// some of the variables, the function waits briefly for the others.
    fn growing_length(&self, scale: NodeId) -> Result<Option<u64>> {
        let mut found = None;
        for look in 0..MAX_READS {
            if look > 1 {
                sleep(READ_PAUSE);
            }
            let before = found.take();
            found = self.lengths_of_variables(&*self.fresh_container(), scale)?;
            let is_settled = before == found && found.as_deref().is_none_or(have_equal_lengths);
            if found.is_none() || is_settled {
                break;
            }
        }
        *lock(&self.lengths.header_view) = Arc::clone(&self.inner).fresh_view();
        Ok(complete_record_count(found))
    }

    /// Returns a fresh view of the file, which has its current content. For a file that is not
    /// growing, returns the wrapped container.
    fn fresh_container(&self) -> Arc<dyn Container> {
        match Arc::clone(&self.inner).fresh_view() {
            Some(file) => file.for_request(&self.budget),
            None => Arc::clone(&self.inner),
        }
    }

    /// Returns the view from which headers of variables are read. In a growing file, it was opened
    /// after the lengths of the dimensions were found.
    fn header_container(&self) -> Arc<dyn Container> {
        match &*lock(&self.lengths.header_view) {
            Some(file) => Arc::clone(file).for_request(&self.budget),
            None => Arc::clone(&self.inner),
        }
    }

    /// Returns the length of each variable over the dimension that `scale` describes; `None` if the
    /// dimension is limited. The attribute `REFERENCE_LIST` of the scale names the variables. The
    /// length of a scale without values is not included.
    fn lengths_of_variables(
        &self,
        file: &dyn Container,
        scale: NodeId,
    ) -> Result<Option<Vec<u64>>> {
        let node = file.node(scale)?;
        let shape = node.array().map(|array| &array.shape);
        let Some(shape) = shape.filter(|shape| shape.max().first() == Some(&None)) else {
            return Ok(None);
        };
        let mut lengths = Vec::new();
        if !is_only_dimension(file, scale)? {
            lengths.extend(shape.dims().first());
        }
        for (user, axis) in variables_over_scale(file, scale)? {
            self.budget.spend(VARIABLE_COST)?;
            match length_of_variable(file, user, axis, scale) {
                // If a variable was deleted, its address may now hold something else.
                Err(error) if !error.is_transient() && !(self.is_linked)(user)? => {}
                length => lengths.extend(length?),
            }
        }
        Ok(Some(lengths))
    }
}

/// Returns the greatest of the variables' lengths; zero for an empty list, and `None` if `lengths`
/// is `None`.
fn max_length(lengths: Option<Vec<u64>>) -> Option<u64> {
    lengths.map(|lengths| lengths.into_iter().max().unwrap_or(0))
}

/// Returns the number of records that all written variables have, if they differ by at most one
/// record. Otherwise returns the greatest of the variables' lengths; `None` if `lengths` is `None`.
fn complete_record_count(lengths: Option<Vec<u64>>) -> Option<u64> {
    let written = lengths.iter().flatten().filter(|length| **length > 0);
    let shortest = written.min().copied();
    let longest = max_length(lengths);
    let is_begun = shortest.and_then(|shortest| shortest.checked_add(1)) == longest;
    if is_begun { shortest } else { longest }
}

/// Returns whether all variables have equal lengths. Variables of length 0 are ignored, because
/// they are not written yet.
fn have_equal_lengths(lengths: &[u64]) -> bool {
    let mut written = lengths.iter().filter(|length| **length > 0);
    let first = written.next();
    written.all(|length| Some(length) == first)
}

/// Returns the variables that the attribute `REFERENCE_LIST` of a scale names, each once, with the
/// index of the dimension that the scale describes. The list may contain deleted variables.
fn variables_over_scale(file: &dyn Container, scale: NodeId) -> Result<Vec<(NodeId, usize)>> {
    let Some(list) = attribute_content(file, scale, b"REFERENCE_LIST")? else {
        return Ok(Vec::new());
    };
    let Class::Compound(members) = &list.datatype.class else {
        return Ok(Vec::new());
    };
    check_value_count(&list)?;
    let size = to_usize(list.datatype.size.into())?.max(1);
    let mut users = Vec::new();
    for element in list.elements.chunks_exact(size) {
        users.extend(variable_from_reference(file, members, element)?);
    }
    let mut met = HashSet::new();
    users.retain(|user| met.insert(*user));
    Ok(users)
}

/// Returns the variable and the dimension index of one element of a `REFERENCE_LIST`; `None` if the
/// reference is null or dangling.
fn variable_from_reference(
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
            Class::Reference(kind) => user = referenced_node(file, *kind, field)?,
            _ => axis = decode_integers(&member.datatype, field),
        }
    }
    let axis = axis.and_then(|axis| usize::try_from(*axis.first()?).ok());
    Ok(user.zip(axis))
}

fn referenced_node(
    file: &dyn Container,
    kind: ReferenceKind,
    element: &[u8],
) -> Result<Option<NodeId>> {
    Ok(match file.reference(kind, element)? {
        Reference::Object(node) => Some(node),
        _ => None,
    })
}

/// Returns the length of the variable `user` in dimension `axis`. Returns `None` unless the
/// object's own `DIMENSION_LIST` names the scale: if the variable was deleted, another object may
/// be at its address.
fn length_of_variable(
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
    let is_over = scale_from_list(file, user, axis)? == Some(scale);
    Ok(is_over.then_some(*length))
}

/// Returns the array with the dimensions `dims`. Elements that the stored array does not have are
/// netCDF's fill value.
pub fn pad_array(array: &Arc<Array>, dims: Vec<u64>) -> Array {
    let common: Vec<u64> = array
        .shape
        .dims()
        .iter()
        .zip(&dims)
        .map(|(own, dim)| *own.min(dim))
        .collect();
    let fill = fill_value(array);
    let is_unwritten = matches!(array.storage, Ok(Storage::Empty | Storage::Fill));
    let is_fill = common.contains(&0) || is_unwritten && fill == array.fill;
    let whole = || {
        Region::Regular(
            common
                .iter()
                .copied()
                .map(RegionAxis::all_indices)
                .collect(),
        )
    };
    let mapping = || Mapping {
        region: whole(),
        source_region: if common == array.shape.dims() {
            Region::All
        } else {
            whole()
        },
        source: Arc::new(UnpaddedArray(Arc::clone(array))),
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

/// Returns the array with the dimensions `dims`, like [`pad_array`], for a file that grows. The
/// result always has the stored array's chunk shape, whether the array is padded, cut or unchanged.
fn resize_array(array: &Arc<Array>, dims: Vec<u64>) -> Array {
    let is_cut = dims
        .iter()
        .zip(array.shape.dims())
        .all(|(dim, own)| dim <= own);
    let (pipeline, storage, fill) = match &array.storage {
        // With `has_unfiltered_edge_chunks`, edge chunks are stored without filters. After the cut,
        // other chunks would count as edge chunks.
        Ok(Storage::Chunked(chunked)) if is_cut && !chunked.has_unfiltered_edge_chunks => (
            array.pipeline.clone(),
            Ok(Storage::Chunked(chunked.clone())),
            array.fill.clone(),
        ),
        _ => {
            let padded = pad_array(array, dims.clone());
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

/// Returns the fill value of an array. If the file has none, returns netCDF's default for the
/// datatype (`NC_FILL_SHORT` and so on in netcdf.h).
fn fill_value(array: &Array) -> Fill {
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
        // The default is 15 * 2^119.
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

/// The stored array, as the source of the padded array.
#[derive(Debug)]
struct UnpaddedArray(Arc<Array>);

impl VirtualSource for UnpaddedArray {
    fn open(&self, _: &CancelToken) -> Result<Option<OpenVirtualSource>> {
        let array = Arc::clone(&self.0);
        Ok(Some(OpenVirtualSource {
            array,
            file: None,
            recode: None,
        }))
    }

    fn name(&self) -> String {
        "the variable".to_owned()
    }

    fn is_in_other_file(&self) -> bool {
        false
    }

    fn weight(&self) -> u64 {
        self.0.weight()
    }
}

impl fmt::Debug for PaddedContainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Padded")
    }
}

impl ContainerOverlay for PaddedContainer {
    fn inner(&self) -> &Arc<dyn Container> {
        &self.inner
    }

    fn overlay_node(&self, id: NodeId) -> Result<Arc<Node>> {
        let node = self.inner.node(id)?;
        let NodeKind::Array(array) = &node.kind else {
            return Ok(node);
        };
        if let Some(meant) = matlab_empty::empty_array_node(&*self.inner, &self.engine, &node)? {
            return Ok(meant);
        }
        let lengths = self.unlimited_lengths(id, array)?;
        if lengths.iter().all(Option::is_none) {
            return Ok(node);
        }
        let is_growing = self.inner.is_growing();
        let node = if is_growing {
            self.header_container().node(id)?
        } else {
            node
        };
        let NodeKind::Array(array) = &node.kind else {
            return Ok(node);
        };
        let mut dims = array.shape.dims().to_vec();
        for (dim, length) in dims.iter_mut().zip(lengths) {
            *dim = match length {
                // A scale whose `REFERENCE_LIST` is empty gives a length of 0, which is not a known
                // length.
                Some(length) if is_growing && length > 0 => length,
                length => length.unwrap_or(0).max(*dim),
            };
        }
        if dims == array.shape.dims() {
            return Ok(node);
        }
        let array = if is_growing {
            resize_array(array, dims)
        } else {
            pad_array(array, dims)
        };
        Ok(Arc::new(node.with_array(Arc::new(array))))
    }

    fn with_inner(&self, inner: Arc<dyn Container>, budget: &RequestBudget) -> Arc<dyn Container> {
        Arc::new(PaddedContainer {
            inner,
            engine: Arc::clone(&self.engine),
            budget: budget.clone(),
            lengths: Arc::clone(&self.lengths),
            is_linked: Arc::clone(&self.is_linked),
        })
    }
}

#[cfg(test)]
mod tests;
