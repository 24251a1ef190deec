//! The description of an array: its type, its shape and the location of its bytes, but not the
//! bytes.
//!
//! Storage is described here too, because an array may consist of a block, or of parts of other
//! arrays.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::limits;
use crate::memory::allocation_size;
use crate::memory::cancel::CancelToken;
use crate::model::region::Region;
use crate::model::regions::{RegionList, RegionPosition};
use crate::model::selection::Selection;
use crate::model::storage::{ChunkGrid, PieceDecoder, Pipeline, StoredExtent};
use crate::model::{Container, Datatype, Shape};
use crate::wire::{Count, Extent, to_u64, to_usize};

/// The description of an array. HDF5: dataset. ASDF: ndarray.
#[derive(Debug)]
pub struct Array {
    /// The type of one stored element.
    pub datatype: Datatype,
    /// The extent: the length of each dimension.
    pub shape: Shape,
    /// The value of elements that are not stored.
    pub fill: Fill,
    /// The layout of the elements in the file, as shown to the user.
    pub layout: Layout,
    /// The chunks' shape in elements, if the file stores chunks.
    pub chunk_shape: Option<Vec<u64>>,
    /// The filters of the chunks, in writing order.
    pub pipeline: Pipeline,
    /// The location of the bytes, or the error if the description is readable but the bytes are
    /// not.
    pub storage: Result<Storage>,
}

impl Array {
    /// Returns the number of bytes of all elements, which is the size of the raw file.
    ///
    /// # Errors
    /// `Limit` if the size exceeds 63 bits.
    pub fn byte_length(&self) -> Result<u64> {
        const MOST: u64 = i64::MAX.unsigned_abs();
        let size = u64::from(self.datatype.size);
        let bytes = self.shape.elements()?.checked_mul(size);
        bytes
            .filter(|&bytes| bytes <= MOST)
            .ok_or_else(|| Error::limit("size of an array", MOST))
    }

    /// Returns the number of chunks, stored or not. Returns `None` for an array without chunks.
    pub fn chunk_count(&self) -> Option<u64> {
        let Ok(Storage::Chunked(chunked)) = &self.storage else {
            return None;
        };
        let along = self.shape.dims().iter().zip(&chunked.chunk_shape);
        let chunks = along.map(|(&extent, &chunk)| extent.div_ceil(chunk.max(1)));
        Some(chunks.fold(1, u64::times))
    }

    /// Returns the shape of a chunk and its decoded size in bytes. Returns `None` unless the array
    /// has chunks with filters.
    pub fn filtered_chunk(&self) -> Option<(&[u64], u64)> {
        let shape = self.chunk_shape.as_deref()?;
        if self.pipeline.0.is_empty() {
            return None;
        }
        let itemsize = u64::from(self.datatype.size);
        let bytes = shape.iter().copied().fold(itemsize, u64::times);
        Some((shape, bytes))
    }

    /// Returns whether the array has so few chunks that a directory listing computes the size of
    /// the stored chunks.
    pub fn has_listed_chunks(&self) -> bool {
        let count = self.chunk_count();
        count.is_some_and(|count| count <= limits::LISTED_CHUNKS)
    }

    /// Returns the approximate memory in bytes that the description takes.
    pub fn weight(&self) -> u64 {
        let storage = self.storage.as_ref().map_or(0, Storage::weight);
        let dims = to_u64(self.shape.dims().len()) << 5;
        u64::sum([
            to_u64(size_of::<Array>()),
            dims,
            self.datatype.weight(),
            storage,
            self.pipeline.weight(),
        ])
    }
}

/// The value of elements that are not stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Fill {
    /// The format's default, which is zero. In HDF5, also used if the fill value is undefined.
    Zero,
    /// One element's bytes, in the stored type.
    Value(Arc<[u8]>),
}

impl Fill {
    /// Returns whether every byte is zero.
    pub fn is_zero(&self) -> bool {
        match self {
            Fill::Zero => true,
            Fill::Value(element) => element.iter().all(|&byte| byte == 0),
        }
    }
}

/// The layout of an array's elements in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// In the object header.
    Compact,
    /// In one contiguous range of the file.
    Contiguous,
    /// In chunks.
    Chunked,
    /// In other datasets.
    Virtual,
    /// In raw data files (HDF5: external data files).
    External,
    /// ASDF: in the tree.
    Inline,
    /// ASDF: in a block.
    Block,
}

/// The location of an array's bytes, in C order of its elements.
#[derive(Debug)]
pub enum Storage {
    /// The array is empty, so that it does not have stored elements.
    Empty,
    /// No space was allocated in the file: every element has the fill value.
    Fill,
    /// The bytes of the elements, in memory. HDF5: compact. ASDF: inline.
    Inline(Arc<[u8]>),
    /// Consecutive extents. HDF5: contiguous (one extent), external raw files (one extent each).
    Extents(Vec<StoredExtent>),
    /// A grid of chunks.
    Chunked(ChunkGrid),
    /// ASDF: an encoded block, as one-dimensional bytes.
    Encoded(Arc<dyn PieceDecoder>),
    /// ASDF: elements at strides in the bytes of a block.
    Strided(StridedLayout),
    /// A selection of the elements of another array.
    Selected(SelectedLayout),
    /// HDF5: parts of other datasets. If several parts cover an element, the last part is used.
    Virtual(Mappings),
}

impl Storage {
    fn weight(&self) -> u64 {
        match self {
            Storage::Inline(bytes) => allocation_size(bytes.len()),
            Storage::Extents(extents) => {
                let sources = extents.iter().map(|extent| extent.source.weight());
                allocation_size(size_of_val(&**extents)).plus(u64::sum(sources))
            }
            Storage::Virtual(mappings) => mappings.weight(),
            _ => 0,
        }
    }
}

/// Elements at strides in the bytes of another array. Several arrays may share the base.
#[derive(Debug, Clone)]
pub struct StridedLayout {
    /// The block's decoded bytes as an array of rank 1 with one byte per element. All arrays over
    /// one block share the same allocation, so that they also share decoded pieces.
    pub base: Arc<Array>,
    /// The offset of the first element from the base's start, in bytes.
    pub offset: u64,
    /// Bytes from one element to the next in each dimension, slowest first. Strides may be zero or
    /// negative. The rank equals the array's rank, and every element lies within the base.
    pub strides: Vec<i64>,
}

/// A selection of the elements of another array.
#[derive(Debug, Clone)]
pub struct SelectedLayout {
    /// The array whose elements are selected.
    pub base: Arc<Array>,
    /// The selected elements.
    pub selection: Selection,
}

/// An open source array of a virtual array.
#[derive(Clone)]
pub struct OpenVirtualSource {
    /// The description of the source array.
    pub array: Arc<Array>,
    /// The file of the source array, if the reader of the array must keep it open: the source may
    /// itself be a virtual array with parts in that file.
    pub file: Option<Arc<dyn Any + Send + Sync>>,
    /// The recoding of the source's elements to elements of the virtual array. `None` if both have
    /// the same type, or are numbers that are converted by value.
    pub recode: Option<Arc<dyn ElementRecoder>>,
}

/// An open source array in the file of a member of a joined directory.
pub struct MemberSource {
    /// The description of the source array.
    pub array: Arc<Array>,
    /// The file of the member.
    pub container: Arc<dyn Container>,
    /// The path of the file, relative to the directory.
    pub path: Vec<u8>,
}

/// A conversion of the stored elements of one array to the stored elements of another array.
pub trait ElementRecoder: Send + Sync + fmt::Debug {
    /// Writes the recoded form of the element `stored` to `element`.
    ///
    /// # Errors
    /// Fails if the lengths of `stored` or `element` differ from the lengths that the recoding was
    /// created for.
    fn recode(&self, stored: &[u8], element: &mut [u8]) -> Result<()>;
}

/// A source of a virtual array's elements: an array, possibly in another file, that is opened when
/// it is needed.
pub trait VirtualSource: Send + Sync + fmt::Debug {
    /// Opens the source array. Returns `None` if the file or its array does not exist, which is not
    /// an error.
    ///
    /// # Errors
    /// Fails if the file may not be opened, is damaged, or is required but missing. Fails with
    /// [`Error::cancelled`](crate::error::Error::cancelled) once `cancel` reports that the waiting
    /// request has gone.
    fn open(&self, cancel: &CancelToken) -> Result<Option<OpenVirtualSource>>;

    /// Opens the source if its stored elements are the elements of the virtual array, and are in
    /// the file of a member of a joined directory. Returns `None` for all other sources.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does.
    fn open_in_member(&self, _cancel: &CancelToken) -> Result<Option<MemberSource>> {
        Ok(None)
    }

    /// Returns the name of the source for messages.
    fn name(&self) -> String;

    /// Returns whether the source is in another file. Pointers in its elements are then invalid in
    /// the virtual array's file.
    fn is_in_other_file(&self) -> bool;

    /// Returns whether opening the source takes requests to a server. Several such sources are
    /// opened at the same time.
    fn is_remote(&self) -> bool {
        false
    }

    /// Returns the approximate memory in bytes that the description of the source takes.
    fn weight(&self) -> u64;
}

/// A part of a virtual array that consists of elements of a source array. The k-th element of one
/// region is the k-th element of the other.
#[derive(Debug, Clone)]
pub struct Mapping {
    /// The region of the elements in the virtual array.
    pub region: Region,
    /// The region of the elements in the source array.
    pub source_region: Region,
    /// The source array.
    pub source: Arc<dyn VirtualSource>,
}

/// The mappings of a virtual array, in order.
#[derive(Debug, Default)]
pub struct Mappings {
    list: Vec<PackedMapping>,
    regions: RegionList,
    /// Approximate memory in bytes that the sources of all mappings take.
    source_weight: u64,
}

#[derive(Debug)]
struct PackedMapping {
    region: RegionPosition,
    source_region: RegionPosition,
    source: Arc<dyn VirtualSource>,
}

impl Mappings {
    /// Returns the number of mappings.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Creates an empty list of mappings. The regions of the mappings that are appended later must
    /// already be in `regions`, or be added with [`regions`](Self::regions).
    pub(crate) fn with_regions(regions: RegionList) -> Self {
        Mappings {
            regions,
            ..Mappings::default()
        }
    }

    /// Returns the list that stores the regions of all mappings, so that a caller can add regions.
    pub(crate) fn regions(&mut self) -> &mut RegionList {
        &mut self.regions
    }

    /// Appends a mapping: the elements' region in the array, their region in the source, and the
    /// source.
    pub fn push(
        &mut self,
        region: RegionPosition,
        source_region: RegionPosition,
        source: Arc<dyn VirtualSource>,
    ) {
        let last = self.list.last();
        if last.is_none_or(|last| !Arc::ptr_eq(&last.source, &source)) {
            let own = allocation_size(to_usize(source.weight()).unwrap_or(usize::MAX));
            self.source_weight = self.source_weight.plus(own);
        }
        self.list.push(PackedMapping {
            region,
            source_region,
            source,
        });
    }

    /// Returns the mapping with the index `place`, or `None` after the last mapping.
    pub fn get(&self, place: usize) -> Option<Mapping> {
        self.list.get(place).map(|packed| self.unpacked(packed))
    }

    /// Returns whether any mapping may have elements in `block`, which is a range of indices in
    /// each dimension of the array.
    pub fn may_overlap(&self, block: &[Extent]) -> bool {
        self.overlapping(block).next().is_some()
    }

    /// Returns the indices of the mappings that may have elements in `block`, which is a range of
    /// indices in each dimension of the array.
    pub fn overlapping(&self, block: &[Extent]) -> impl Iterator<Item = usize> {
        let all = self.list.iter().enumerate();
        let touched = all.filter(move |(_, packed)| match self.regions.get(packed.region) {
            Region::Nothing => false,
            Region::All | Region::Blocks(_) => true,
            Region::Regular(axes) => {
                let mut axes = axes.iter().zip(block);
                axes.all(|(axis, own)| axis.start < own.end() && own.start() < axis.end())
            }
        });
        touched.map(|(place, _)| place)
    }

    /// Returns all mappings in order.
    pub fn iter(&self) -> impl Iterator<Item = Mapping> {
        self.list.iter().map(|packed| self.unpacked(packed))
    }

    /// Releases unused allocated memory.
    pub fn shrink(&mut self) {
        self.list.shrink_to_fit();
        self.regions.shrink();
    }

    /// Returns the approximate memory in bytes that the mappings take.
    pub fn weight(&self) -> u64 {
        let list = allocation_size(size_of_val(&*self.list));
        u64::sum([list, self.regions.weight(), self.source_weight])
    }

    fn unpacked(&self, packed: &PackedMapping) -> Mapping {
        Mapping {
            region: self.regions.get(packed.region),
            source_region: self.regions.get(packed.source_region),
            source: Arc::clone(&packed.source),
        }
    }
}

impl FromIterator<Mapping> for Mappings {
    fn from_iter<I: IntoIterator<Item = Mapping>>(mappings: I) -> Self {
        let mut packed = Mappings::default();
        for mapping in mappings {
            let region = packed.regions.store(&mapping.region);
            let source_region = packed.regions.store(&mapping.source_region);
            packed.push(region, source_region, mapping.source);
        }
        packed.shrink();
        packed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::region::RegionAxis;

    #[derive(Debug)]
    struct NoStorage;

    impl VirtualSource for NoStorage {
        fn open(&self, _: &CancelToken) -> Result<Option<OpenVirtualSource>> {
            Ok(None)
        }

        fn name(&self) -> String {
            String::new()
        }

        fn is_in_other_file(&self) -> bool {
            false
        }

        fn weight(&self) -> u64 {
            84
        }
    }

    #[test]
    fn overlapping_finds_only_covering_mappings() {
        let part = |start, length| Mapping {
            region: Region::Regular(vec![RegionAxis {
                start,
                ..RegionAxis::all_indices(length)
            }]),
            source_region: Region::All,
            source: Arc::new(NoStorage),
        };
        let mappings: Mappings = [part(0, 3), part(10, 2)].into_iter().collect();
        let touch = |start, length| mappings.may_overlap(&[Extent::saturating(start, length)]);
        assert!(touch(2, 1) && touch(0, 20) && touch(11, 5));
        assert!(!touch(3, 7) && !touch(12, 1));
    }

    #[test]
    fn stored_regions_are_returned_unchanged() {
        let axis = |start| RegionAxis {
            start,
            ..RegionAxis::all_indices(3)
        };
        let regions = [
            Region::All,
            Region::Regular(vec![axis(1), axis(2)]),
            Region::Blocks(vec![(vec![1, 2], vec![3, 4]), (vec![5, 6], vec![7, 8])]),
            Region::Nothing,
            Region::Regular(Vec::new()),
            Region::Blocks(vec![(vec![9], vec![10])]),
            Region::Blocks(Vec::new()),
        ];
        let pairs = || regions.iter().zip(regions.iter().rev());
        let source: Arc<dyn VirtualSource> = Arc::new(NoStorage);
        let mappings: Mappings = pairs()
            .map(|(region, source_region)| Mapping {
                region: region.clone(),
                source_region: source_region.clone(),
                source: Arc::clone(&source),
            })
            .collect();
        assert_eq!(mappings.len(), regions.len());
        for (mapping, (region, source_region)) in mappings.iter().zip(pairs()) {
            assert_eq!(
                (&mapping.region, &mapping.source_region),
                (region, source_region)
            );
        }
        assert_eq!(mappings.get(1).unwrap().region, regions[1]);
        assert!(mappings.get(regions.len()).is_none());
        let numbers = 2 * (2 * 40 + 8 * 8 + 2 * 8);
        assert_eq!(size_of::<RegionAxis>(), 40);
        let list = to_u64(regions.len() * size_of::<PackedMapping>());
        assert_eq!(mappings.weight(), list + numbers + 4 * 16 + 84);
    }
}
