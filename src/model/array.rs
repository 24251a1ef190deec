//! The description of an array: what it is and where its bytes stand, but not the bytes.
//!
//! Storage stands in the same file because an array may be made of others: of a block's bytes, or
//! of parts of other arrays.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::limits;
use crate::memory::cancel::CancelToken;
use crate::memory::piece;
use crate::model::region::Region;
use crate::model::regions::{RegionAt, Regions};
use crate::model::storage::{Chunked, Pieces, Pipeline, StoredExtent};
use crate::model::{Datatype, Shape};
use crate::wire::{Count, Extent, to_u64, to_usize};

/// HDF5: dataset. ASDF: ndarray.
#[derive(Debug)]
pub struct Array {
    /// The type of one stored element.
    pub datatype: Datatype,
    /// The extent.
    pub shape: Shape,
    /// The value of elements that are not stored.
    pub fill: Fill,
    /// The layout's name as the user is told it.
    pub layout: Layout,
    /// The chunks' shape in elements, where the file stores chunks.
    pub chunk_shape: Option<Vec<u64>>,
    /// The filters of the chunks, in writing order.
    pub pipeline: Pipeline,
    /// Where the bytes are, or why they cannot be read although all else is known.
    pub storage: Result<Storage>,
}

impl Array {
    /// Bytes of all elements, the size of the raw file.
    ///
    /// # Errors
    /// `Limit` where they do not fit 63 bits.
    pub fn bytes(&self) -> Result<u64> {
        const MOST: u64 = i64::MAX.unsigned_abs();
        let size = u64::from(self.datatype.size);
        let bytes = self.shape.elements()?.checked_mul(size);
        bytes
            .filter(|&bytes| bytes <= MOST)
            .ok_or_else(|| Error::limit("size of an array", MOST))
    }

    /// How many chunks it has, stored or not; `None` for one without chunks.
    pub fn chunk_count(&self) -> Option<u64> {
        let Ok(Storage::Chunked(chunked)) = &self.storage else {
            return None;
        };
        let along = self.shape.dims().iter().zip(&chunked.chunk_shape);
        let chunks = along.map(|(&extent, &chunk)| extent.div_ceil(chunk.max(1)));
        Some(chunks.fold(1, u64::times))
    }

    /// The shape and the bytes of the chunks, where they are decoded whole.
    pub fn decoded_chunk(&self) -> Option<(&[u64], u64)> {
        let shape = self.chunk_shape.as_deref()?;
        if self.pipeline.0.is_empty() {
            return None;
        }
        let itemsize = u64::from(self.datatype.size);
        let bytes = shape.iter().copied().fold(itemsize, u64::times);
        Some((shape, bytes))
    }

    /// Whether it has so few chunks that a listing counts the stored ones.
    pub fn has_listed_chunks(&self) -> bool {
        let count = self.chunk_count();
        count.is_some_and(|count| count <= limits::LISTED_CHUNKS)
    }

    /// Bytes of memory that the description takes, about.
    pub fn weight(&self) -> u64 {
        let storage = self.storage.as_ref().map_or(0, Storage::weight);
        let dims = to_u64(self.shape.dims().len()) << 5;
        u64::together([
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
    /// The format's default: zeros (HDF5: also where the fill value is undefined).
    Zero,
    /// One element's bytes, in the stored type.
    Value(Arc<[u8]>),
}

impl Fill {
    /// Whether every byte is zero.
    pub fn is_zero(&self) -> bool {
        match self {
            Fill::Zero => true,
            Fill::Value(element) => element.iter().all(|&byte| byte == 0),
        }
    }
}

/// Where the file keeps the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// In the object header.
    Compact,
    /// In one piece.
    Contiguous,
    /// In chunks.
    Chunked,
    /// In other datasets.
    Virtual,
    /// In other files, raw.
    External,
    /// ASDF: in the tree.
    Inline,
    /// ASDF: in a block.
    Block,
}

/// Where an array's bytes stand, in C order of its elements.
#[derive(Debug)]
pub enum Storage {
    /// Nothing is stored and nothing is to be read: no elements.
    Empty,
    /// No space was ever allocated: every element is the fill value.
    Fill,
    /// The elements themselves. HDF5: compact. ASDF: inline.
    Inline(Arc<[u8]>),
    /// Pieces that follow each other. HDF5: contiguous (one piece), external raw files (one each).
    Extents(Vec<StoredExtent>),
    /// A grid of chunks.
    Chunked(Chunked),
    /// ASDF: a block that has to be decoded, as one-dimensional bytes.
    Encoded(Arc<dyn Pieces>),
    /// ASDF: elements at strides over the bytes of a block.
    Strided(Strided),
    /// HDF5: parts of other datasets; where several cover an element, the last one counts.
    Virtual(Mappings),
}

impl Storage {
    fn weight(&self) -> u64 {
        match self {
            Storage::Inline(bytes) => piece(bytes.len()),
            Storage::Extents(extents) => {
                let sources = extents.iter().map(|extent| extent.source.weight());
                piece(size_of_val(&**extents)).with_more(u64::together(sources))
            }
            Storage::Virtual(mappings) => mappings.weight(),
            _ => 0,
        }
    }
}

/// Elements that stand at strides over the bytes of another array, which several may share.
#[derive(Debug, Clone)]
pub struct Strided {
    /// The block's decoded bytes: rank 1, one byte an element. The same allocation for all arrays
    /// over one block, so that what is decoded for one serves the others.
    pub base: Arc<Array>,
    /// Where the first element is, in bytes from the base's start.
    pub offset: u64,
    /// Bytes from one element to the next along each dimension, slowest first; may be zero or
    /// negative. Same rank as the array. Every element lies within the base.
    pub strides: Vec<i64>,
}

/// An array that a part of a virtual array comes from.
#[derive(Clone)]
pub struct OpenSource {
    /// The array.
    pub array: Arc<Array>,
    /// The file that it is in. The reader of the array keeps it open: parts of an array that is
    /// virtual in turn may be there.
    pub file: Option<Arc<dyn Any + Send + Sync>>,
    /// What makes its elements those of the virtual array; `None` where they are the same, or numbers
    /// of another type.
    pub recode: Option<Arc<dyn Recode>>,
}

/// Makes elements of one array those of another.
pub trait Recode: Send + Sync + fmt::Debug {
    /// Fills `element` with what a stored element is there.
    ///
    /// # Errors
    /// Fails if the lengths are not those that it was made for.
    fn recode(&self, stored: &[u8], element: &mut [u8]) -> Result<()>;
}

/// An array that another one takes elements from.
pub trait VirtualSource: Send + Sync + fmt::Debug {
    /// The array; `None` where there is no such file or no such array in it, which is no fault.
    ///
    /// # Errors
    /// Fails if the file may not be opened, or is damaged, or its absence is not to be passed over;
    /// [`Error::unwanted`](crate::error::Error::unwanted) once `cancel` says that the request that
    /// waits for it has gone.
    fn open(&self, cancel: &CancelToken) -> Result<Option<OpenSource>>;

    /// What it is called in a message.
    fn name(&self) -> String;

    /// Whether it is in another file, so that what its elements point to is no part of the virtual
    /// array's file.
    fn is_elsewhere(&self) -> bool;

    /// Whether opening it takes requests to a server, so that several are opened at the same time.
    fn is_far(&self) -> bool {
        false
    }

    /// Bytes of memory that what is known of it takes, about.
    fn weight(&self) -> u64;
}

/// A part of an array that is made of elements of another: the k-th element of one region is the
/// k-th of the other.
#[derive(Debug, Clone)]
pub struct Mapping {
    /// Where the elements are in the array that is made.
    pub region: Region,
    /// Where they are in the source.
    pub source_region: Region,
    /// The source.
    pub source: Arc<dyn VirtualSource>,
}

/// Mappings in their order.
#[derive(Debug, Default)]
pub struct Mappings {
    list: Vec<Packed>,
    regions: Regions,
    /// Bytes of memory that the sources take, about.
    sources: u64,
}

#[derive(Debug)]
struct Packed {
    region: RegionAt,
    source_region: RegionAt,
    source: Arc<dyn VirtualSource>,
}

impl Mappings {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// None yet, but these regions for those that come.
    pub fn of_regions(regions: Regions) -> Self {
        Mappings {
            regions,
            ..Mappings::default()
        }
    }

    /// The regions of all of them.
    pub fn regions(&mut self) -> &mut Regions {
        &mut self.regions
    }

    /// Appends one: where the elements are in the array, where they are in the source, and the
    /// source.
    pub fn push(
        &mut self,
        region: RegionAt,
        source_region: RegionAt,
        source: Arc<dyn VirtualSource>,
    ) {
        let last = self.list.last();
        if last.is_none_or(|last| !Arc::ptr_eq(&last.source, &source)) {
            let own = piece(to_usize(source.weight()).unwrap_or(usize::MAX));
            self.sources = self.sources.with_more(own);
        }
        self.list.push(Packed {
            region,
            source_region,
            source,
        });
    }

    /// The one at a place.
    pub fn get(&self, place: usize) -> Option<Mapping> {
        self.list.get(place).map(|packed| self.unpacked(packed))
    }

    /// Whether one of them may have elements in a block of the array.
    pub fn touch(&self, block: &[Extent]) -> bool {
        self.touched(block).next().is_some()
    }

    /// The places of those that may have elements in a block of the array.
    pub fn touched(&self, block: &[Extent]) -> impl Iterator<Item = usize> {
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

    /// All, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Mapping> {
        self.list.iter().map(|packed| self.unpacked(packed))
    }

    /// Gives back what was allocated for more of them.
    pub fn shrink(&mut self) {
        self.list.shrink_to_fit();
        self.regions.shrink();
    }

    /// Bytes of memory that they take, about.
    pub fn weight(&self) -> u64 {
        let list = piece(size_of_val(&*self.list));
        u64::together([list, self.regions.weight(), self.sources])
    }

    fn unpacked(&self, packed: &Packed) -> Mapping {
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
            let region = packed.regions.keep(&mapping.region);
            let source_region = packed.regions.keep(&mapping.source_region);
            packed.push(region, source_region, mapping.source);
        }
        packed.shrink();
        packed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::region::Axis;

    #[derive(Debug)]
    struct Nowhere;

    impl VirtualSource for Nowhere {
        fn open(&self, _: &CancelToken) -> Result<Option<OpenSource>> {
            Ok(None)
        }

        fn name(&self) -> String {
            String::new()
        }

        fn is_elsewhere(&self) -> bool {
            false
        }

        fn weight(&self) -> u64 {
            84
        }
    }

    #[test]
    fn a_block_that_no_part_covers() {
        let part = |start, length| Mapping {
            region: Region::Regular(vec![Axis {
                start,
                ..Axis::whole(length)
            }]),
            source_region: Region::All,
            source: Arc::new(Nowhere),
        };
        let mappings: Mappings = [part(0, 3), part(10, 2)].into_iter().collect();
        let touch = |start, length| mappings.touch(&[Extent::cut(start, length)]);
        assert!(touch(2, 1) && touch(0, 20) && touch(11, 5));
        assert!(!touch(3, 7) && !touch(12, 1));
    }

    #[test]
    fn what_is_put_in_comes_out() {
        let axis = |start| Axis {
            start,
            ..Axis::whole(3)
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
        let source: Arc<dyn VirtualSource> = Arc::new(Nowhere);
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
        assert_eq!(size_of::<Axis>(), 40);
        let list = to_u64(regions.len() * size_of::<Packed>());
        assert_eq!(mappings.weight(), list + numbers + 4 * 16 + 84);
    }
}
