//! An array of a Zarr store: an array of the HDF5 or ASDF file, or a field of its elements.

use std::ops::Range;
use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::array::{Fill, Storage};
use h5fs_reader::model::datatype::{Class, Member};
use h5fs_reader::model::shape::product;
use h5fs_reader::model::storage::{ChunkGrid, ChunkIndex, StoredExtent};
use h5fs_reader::model::value::TextContext;
use h5fs_reader::model::{Array, Datatype, Shape};
use h5fs_reader::source::check_range;
use h5fs_reader::wire::{Count, Extent, to_u64, to_usize};

use crate::limits;
use crate::zarr::datatype::DataType;
use crate::zarr::grid::{self, ChunkGridKind};

/// An array of a Zarr store.
pub struct ZarrArray {
    /// The array of the file.
    pub array: Arc<Array>,
    /// The Zarr data type of the elements.
    pub data_type: DataType,
    /// The dimensions, slowest first. If elements are arrays, their dimensions follow the
    /// dimensions of the file's array.
    pub dims: Vec<u64>,
    /// Whether the store serves the file's chunks as stored, or decoded chunks.
    pub grid: ChunkGridKind,
    /// The shape of a chunk; no dimension is zero.
    pub chunk_shape: Vec<u64>,
    pub(super) field: ElementField,
}

/// The location of a store array's elements within the elements of the file's array.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ElementField {
    offset: usize,
    /// If the elements are in nested arrays of the file's element: the length of each dimension,
    /// and the distance between two neighbours in bytes.
    axes: Vec<(u64, usize)>,
}

/// A node of a Zarr store: an array of the file, or a part of its elements.
pub enum StoreNode {
    /// A group of the store. It has an array for each field of a record that has a Zarr data type.
    Fields(RecordArray),
    /// An array of the store.
    Array(ZarrArray),
}

/// An array of records in the file. The store has an array for each field of the records.
pub struct RecordArray {
    array: Arc<Array>,
    members: Vec<Member>,
    field: ElementField,
    grid: ChunkGridKind,
}

impl ElementField {
    /// Returns the number of store elements in one element of the file's array.
    pub(super) fn count(&self) -> Result<u64> {
        product(&self.dims())
    }

    fn dims(&self) -> Vec<u64> {
        self.axes.iter().map(|axis| axis.0).collect()
    }

    /// Returns the offset of store element `number` within an element of the file's array, in
    /// bytes.
    pub(super) fn element_offset(&self, number: u64) -> usize {
        let mut rest = number;
        let mut place = self.offset;
        for &(count, stride) in self.axes.iter().rev() {
            place += to_usize(rest % count).unwrap_or_default() * stride;
            rest /= count;
        }
        place
    }

    /// Returns whether store elements of `size` bytes are contiguous within an element of the
    /// file's array.
    pub(super) fn is_dense(&self, size: usize) -> bool {
        let mut dense = size;
        self.axes.iter().rev().all(|&(count, stride)| {
            let is_next = stride == dense;
            dense = dense.saturating_mul(to_usize(count).unwrap_or(usize::MAX));
            is_next
        })
    }
}

impl StoreNode {
    /// Returns the store node for `array`. `grid` is the kind of its chunk grid. Returns `None` if
    /// no part of the array has a Zarr data type.
    pub fn from_array(array: &Arc<Array>, grid: ChunkGridKind) -> Option<Self> {
        if array.shape == Shape::Null {
            return None;
        }
        Self::part(array, &array.datatype, ElementField::default(), grid)
    }

    fn part(
        array: &Arc<Array>,
        datatype: &Datatype,
        mut field: ElementField,
        grid: ChunkGridKind,
    ) -> Option<Self> {
        let mut base = datatype;
        while let Class::Array { base: inner, dims } = &base.class {
            let size = to_usize(inner.size.into()).ok()?;
            let mut stride = size;
            let mut axes = Vec::new();
            for &dim in dims.iter().rev() {
                axes.push((dim.into(), stride));
                stride = stride.checked_mul(to_usize(dim.into()).ok()?)?;
            }
            field.axes.extend(axes.into_iter().rev());
            base = inner;
        }
        if let Some(data_type) = DataType::from_datatype(base) {
            return ZarrArray::new(array, data_type, field, grid).map(StoreNode::Array);
        }
        let Class::Compound(members) = &base.class else {
            return None;
        };
        let record = RecordArray {
            array: Arc::clone(array),
            members: members.clone(),
            field,
            grid,
        };
        let has_fields = record
            .members
            .iter()
            .any(|member| record.part(member).is_some());
        has_fields.then_some(StoreNode::Fields(record))
    }
}

impl RecordArray {
    /// Returns the names of the records' fields, as in the file.
    pub fn field_names(&self) -> impl Iterator<Item = &[u8]> {
        self.members.iter().map(|member| &*member.name)
    }

    /// Returns the store node for the field `name`; `None` if there is no such field, or if it does
    /// not have a Zarr data type.
    pub fn field(&self, name: &[u8]) -> Option<StoreNode> {
        let mut members = self.members.iter();
        self.part(members.find(|member| member.name == name)?)
    }

    fn part(&self, member: &Member) -> Option<StoreNode> {
        let mut field = self.field.clone();
        let offset = to_usize(member.offset.into()).ok()?;
        field.offset = field.offset.checked_add(offset)?;
        StoreNode::part(&self.array, &member.datatype, field, self.grid)
    }
}

impl ZarrArray {
    fn new(
        array: &Arc<Array>,
        data_type: DataType,
        field: ElementField,
        grid: ChunkGridKind,
    ) -> Option<Self> {
        let is_large = data_type.stored_size() > limits::ZARR_ELEMENT;
        if is_large || array.datatype.size > limits::ZARR_RECORD {
            return None;
        }
        let (own, inner) = (array.shape.dims(), &*field.dims());
        let rank = own.len().checked_add(inner.len())?;
        if rank > limits::RANK || inner.contains(&0) {
            return None;
        }
        let size = data_type.size().unwrap_or(data_type.stored_size());
        let bytes = field.count().ok()?.checked_mul(to_u64(size))?;
        let stored = array.chunk_shape.as_ref().filter(|_| has_chunk_grid(array));
        if stored.is_some_and(|stored| stored.len() != own.len() || stored.contains(&0)) {
            return None;
        }
        let mut chunk_shape = match (stored, grid) {
            (_, ChunkGridKind::Whole) => own.iter().map(|&dim| dim.max(1)).collect(),
            (Some(stored), ChunkGridKind::Stored | ChunkGridKind::Referenced) => stored.clone(),
            (Some(stored), ChunkGridKind::Decoded) => {
                let are_texts = data_type.size().is_none();
                grid::decoded_chunk_shape(&array.shape, stored, bytes, are_texts)
            }
            (None, ChunkGridKind::Referenced) => grid::divided_chunk_shape(own, bytes),
            (None, _) => grid::contiguous_chunk_shape(&array.shape, bytes),
        };
        chunk_shape.extend_from_slice(inner);
        let array = ZarrArray {
            array: Arc::clone(array),
            data_type,
            dims: [own, inner].concat(),
            grid,
            chunk_shape,
            field,
        };
        // An array is shown only if all readers accept its document.
        if array.data_type.size().is_some() {
            array
                .converted_fill_value(&TextContext::without_pointers(0))
                .ok()?;
        }
        product(&array.dims).ok()?;
        array
            .chunk_element_count()
            .ok()?
            .checked_mul(to_u64(size))
            .filter(|&bytes| bytes >> 62 == 0)?;
        Some(array)
    }

    /// Returns the number of elements in a chunk of the store.
    pub(super) fn chunk_element_count(&self) -> Result<u64> {
        product(&self.chunk_shape)
    }

    /// Returns the length of a chunk file in bytes; `None` if it depends on the lengths of texts.
    pub fn chunk_bytes(&self) -> Option<u64> {
        let size = to_u64(self.data_type.size()?);
        self.chunk_element_count().ok()?.checked_mul(size)
    }

    /// Returns the number of chunks along each dimension of the store's array.
    pub fn chunk_counts(&self) -> impl Iterator<Item = u64> {
        let sizes = self.dims.iter().zip(&self.chunk_shape);
        sizes.map(|(dim, chunk)| dim.div_ceil(*chunk))
    }

    /// Returns the chunk grid of the array in the file, if the file stores chunks.
    pub(super) fn stored_grid(&self) -> Option<&ChunkGrid> {
        match &self.array.storage {
            Ok(Storage::Chunked(chunked)) => Some(chunked),
            _ => None,
        }
    }

    /// Returns the chunk index of the array in the file, if the file stores chunks.
    pub fn chunk_index(&self) -> Option<&dyn ChunkIndex> {
        self.stored_grid().map(|chunked| &*chunked.index)
    }

    /// Returns the location of the stored bytes of the file's chunk at the grid indices `place`.
    ///
    /// # Errors
    /// `NotFound` if the chunk is not stored. Fails if the index cannot be read.
    pub fn stored_chunk_extent(&self, place: &[u64]) -> Result<StoredExtent> {
        let chunked = self.stored_grid().ok_or(Error::NotFound)?;
        let found = chunked
            .index
            .find(self.file_chunk_indices(place))?
            .ok_or(Error::NotFound)?;
        let (offset, length) = (found.offset, found.length);
        let extent = check_range(&*chunked.source, offset, length, "stored chunk")?;
        if offset < chunked.min_offset {
            return Err(Error::corrupt("chunk: its address is not possible", offset));
        }
        Ok(StoredExtent {
            source: Arc::clone(&chunked.source),
            extent,
        })
    }

    /// Returns whether the store has no chunk files for the array.
    pub fn has_no_chunks(&self) -> bool {
        let is_stored = !matches!(self.array.storage, Ok(Storage::Empty | Storage::Fill));
        self.dims.contains(&0) || !is_stored && !self.has_file_for_every_chunk()
    }

    /// Returns the indices of a chunk in the file's chunk grid, from its indices in the store. The
    /// store's array may have further dimensions.
    pub(super) fn file_chunk_indices<'p>(&self, place: &'p [u64]) -> &'p [u64] {
        place
            .get(..self.array.shape.dims().len())
            .unwrap_or_default()
    }

    /// Returns whether chunks that are not stored are also files in the store. This is the case if
    /// the fill value is an integer that a double cannot represent, because readers could round it.
    pub fn has_file_for_every_chunk(&self) -> bool {
        const EXACT: u64 = 1 << 53;
        let number = || self.converted_fill_value(&TextContext::without_pointers(0));
        self.data_type.is_long_integer()
            && !self.array.fill.is_zero()
            && number().is_ok_and(|bytes| match <[u8; 8]>::try_from(bytes) {
                Ok(bytes) => i64::from_le_bytes(bytes).unsigned_abs() > EXACT,
                Err(_) => false,
            })
    }

    /// Returns whether the chunk at the grid indices `place` is a file in the store. The indices
    /// must be in the grid.
    ///
    /// # Errors
    /// Fails if the chunk index cannot be read.
    pub fn has_chunk_file(&self, place: &[u64]) -> Result<bool> {
        if self.has_file_for_every_chunk() {
            return Ok(true);
        }
        match &self.array.storage {
            Ok(Storage::Empty | Storage::Fill) => Ok(false),
            Ok(Storage::Chunked(_)) => self.has_stored_chunk(place),
            Ok(Storage::Virtual(parts)) if self.has_source_grid() => {
                Ok(parts.may_overlap(&self.chunk_extents(place)))
            }
            // Reading the chunk reports why it cannot be read.
            Ok(_) | Err(_) => Ok(true),
        }
    }

    /// Returns whether the array is virtual and the arrays that it maps have chunks, so that the
    /// store uses these chunks for its grid.
    pub fn has_source_grid(&self) -> bool {
        matches!(self.array.storage, Ok(Storage::Virtual(_))) && self.array.chunk_shape.is_some()
    }

    /// Returns whether the store's chunk at `place` overlaps at least one chunk that the file
    /// stores.
    ///
    /// # Errors
    /// Fails if the chunk index cannot be read.
    pub(super) fn has_stored_chunk(&self, place: &[u64]) -> Result<bool> {
        let Some(index) = self.chunk_index() else {
            return Ok(false);
        };
        let parts = self.stored_chunk_ranges(place);
        let mut at: Vec<u64> = parts.iter().map(|part| part.start).collect();
        loop {
            if index.find(&at)?.is_some() {
                return Ok(true);
            }
            if !advance_indices(&mut at, &parts) {
                return Ok(false);
            }
        }
    }

    /// Returns, for each dimension, the grid indices of the file's chunks that the store's chunk at
    /// `place` overlaps.
    fn stored_chunk_ranges(&self, place: &[u64]) -> Vec<Range<u64>> {
        let stored = self.array.chunk_shape.as_deref().unwrap_or_default();
        let block = self.chunk_extents(place).into_iter().zip(stored);
        let places = block.map(|(block, &stored)| {
            let end = block.end().div_ceil(stored.max(1));
            block.start() / stored.max(1)..end
        });
        places.collect()
    }

    /// Returns, for each dimension, the range of the file's elements that are in the store's chunk
    /// at `place`.
    pub(super) fn chunk_extents(&self, place: &[u64]) -> Vec<Extent> {
        let axes = self.file_chunk_indices(place).iter().zip(&self.chunk_shape);
        let axes = axes.zip(self.array.shape.dims());
        let block = axes.map(|((place, chunk), dim)| {
            let start = place.times(*chunk);
            Extent::saturating(start, (*chunk).min(dim.minus_or_zero(start)))
        });
        block.collect()
    }

    /// Returns the grid indices of the store's chunk that contains the file's chunk at `place`.
    pub fn containing_chunk(&self, place: &[u64]) -> Vec<u64> {
        let stored = self.array.chunk_shape.as_deref().unwrap_or_default();
        let axes = place.iter().zip(stored).zip(&self.chunk_shape);
        axes.map(|((place, stored), chunk)| place.times(*stored) / chunk)
            .collect()
    }

    /// Returns whether the store's chunks have the same shape as the file's chunks.
    pub fn has_stored_chunk_shape(&self) -> bool {
        let own = self.file_chunk_indices(&self.chunk_shape);
        self.array.chunk_shape.as_deref() == Some(own)
    }

    /// Returns the fill value of an element of the file's array.
    pub(super) fn element_fill_value(&self) -> Vec<u8> {
        match &self.array.fill {
            Fill::Value(element) => element.to_vec(),
            Fill::Zero => vec![0; to_usize(self.array.datatype.size.into()).unwrap_or_default()],
        }
    }

    /// Returns the part of the file's fill value that belongs to one store element, in the file's
    /// datatype.
    ///
    /// # Errors
    /// `Corrupt` if the fill value is shorter than an element.
    pub(super) fn stored_fill_value(&self) -> Result<Vec<u8>> {
        let size = self.data_type.stored_size();
        let Fill::Value(element) = &self.array.fill else {
            return Ok(vec![0; size]);
        };
        let start = self.field.offset;
        let own = element.get(start..start.saturating_add(size));
        let short = || Error::corrupt("fill value: shorter than an element", None);
        own.map(<[u8]>::to_vec).ok_or_else(short)
    }

    /// Returns the fill value in the store's data type. If it is a text, `context` follows its
    /// pointer.
    ///
    /// # Errors
    /// Fails if the fill value cannot be read.
    pub(super) fn converted_fill_value(&self, context: &TextContext<'_>) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.data_type
            .convert(&self.stored_fill_value()?, context, &mut out)?;
        Ok(out)
    }

    /// Returns whether the numbers in the file are big-endian. Returns `None` if converting them
    /// takes more than a change of byte order, or if the store's element is only a part of an
    /// element of the file, such as a field of a record.
    pub(super) fn is_big_endian(&self) -> Option<bool> {
        self.data_type
            .is_big_endian()
            .filter(|_| self.is_whole_element())
    }

    /// Returns whether the elements in a chunk of the store have the same bytes as in the file.
    pub(super) fn has_same_bytes(&self) -> bool {
        self.data_type.has_same_bytes() && self.is_whole_element()
    }

    /// Returns whether the field covers all bytes of the file's elements.
    fn is_whole_element(&self) -> bool {
        let size = self.data_type.stored_size();
        let count = self.field.count().unwrap_or_default();
        let all = to_u64(size).checked_mul(count);
        all == Some(self.array.datatype.size.into()) && self.field.is_dense(size)
    }
}

/// Advances the indices `at` to the next ones in C order. `places` has the range of each index.
/// Returns `false` after the last ones.
fn advance_indices(at: &mut [u64], places: &[Range<u64>]) -> bool {
    for (at, places) in at.iter_mut().zip(places).rev() {
        *at = at.plus_one();
        if *at < places.end {
            return true;
        }
        *at = places.start;
    }
    false
}

/// Returns whether the store's grid follows the chunk shape of the file's array, if it has a chunk
/// shape. This includes arrays without stored elements and virtual datasets.
fn has_chunk_grid(array: &Array) -> bool {
    matches!(
        array.storage,
        Ok(Storage::Chunked(_) | Storage::Fill | Storage::Empty | Storage::Virtual(_)) | Err(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::model::array::Layout;
    use h5fs_reader::model::storage::Pipeline;
    use h5fs_reader::testing::{int, member, type_of};

    fn is_shown(datatype: Datatype) -> bool {
        let array = Array {
            datatype,
            shape: Shape::fixed(vec![4]),
            fill: Fill::Zero,
            layout: Layout::Contiguous,
            chunk_shape: None,
            pipeline: Pipeline::default(),
            storage: Ok(Storage::Fill),
        };
        StoreNode::from_array(&Arc::new(array), ChunkGridKind::Decoded).is_some()
    }

    #[test]
    fn elements_and_records_have_a_bound() {
        let opaque = |size| type_of(size, Class::Opaque { tag: Vec::new() });
        let most = u32::try_from(limits::ZARR_ELEMENT).unwrap();
        assert!(is_shown(opaque(most)) && !is_shown(opaque(most + 1)));
        let record = |size| type_of(size, Class::Compound(vec![member("a", 0, int(2))]));
        let most = limits::ZARR_RECORD;
        assert!(is_shown(record(most)) && !is_shown(record(most + 1)));
    }
}
