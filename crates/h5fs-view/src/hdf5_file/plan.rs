//! The position of everything in the computed file: the metadata, then the elements of each array,
//! then the values of variable-length arrays.

use std::collections::HashMap;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::hdf5::encode::object_header::ObjectHeader;
use h5fs_reader::hdf5::encode::superblock::{self, Superblock};
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::model::NodeId;
use h5fs_reader::wire::{to_u64, to_usize};

use crate::hdf5_file::chunk_index::ChunkIndex;
use crate::hdf5_file::dataset::Dataset;
use crate::hdf5_file::heap_layout::HeapLayout;
use crate::hdf5_file::metadata::{Addresses, HeaderWriter};
use crate::hdf5_file::objects::{
    ObjectCollector, ObjectContent, PlannedObject, PlannedObjects, RootGroup,
};
use crate::hdf5_file::source::Hdf5Source;
use crate::limits;

/// The elements of an array begin at a multiple of this many bytes.
const ELEMENT_ALIGNMENT: u64 = 4096;

/// Structures of the metadata begin at a multiple of this many bytes.
const METADATA_ALIGNMENT: u64 = 8;

/// The computed file: its metadata, and the positions of its arrays.
pub struct Hdf5Plan {
    metadata: Vec<u8>,
    /// The parts of the file behind the metadata, in order.
    segments: Vec<Segment>,
    datasets: Vec<Dataset>,
    /// The address of the heap collections of each dataset, or 0.
    collections: Vec<u64>,
    /// The address of the header of each node that an element can refer to.
    addresses: HashMap<NodeId, u64>,
    length: u64,
}

/// A part of the file that is computed from one array.
pub(super) struct Segment {
    pub(super) start: u64,
    pub(super) length: u64,
    /// Number of the dataset in the plan.
    dataset: usize,
    pub(super) content: SegmentContent,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentContent {
    Elements,
    /// The heap collections with the values of variable-length elements.
    Collections,
}

/// What the file contains from a position on.
pub(super) enum Part<'a> {
    /// Bytes of the metadata.
    Metadata(&'a [u8]),
    /// The segment with this number.
    Segment(usize, &'a Segment),
    /// Zeros up to this position.
    Gap(u64),
}

impl Hdf5Plan {
    /// Plans the file with the root `root`.
    ///
    /// # Errors
    /// `Limit` for too many objects or too many bytes of metadata. Fails if the description of an
    /// object cannot be read now, or if the request is cancelled.
    pub fn new(source: &Hdf5Source, root: &RootGroup, budget: &RequestBudget) -> Result<Self> {
        // The limits of a computed file bound what is read.
        budget.remove_limit();
        let cancel = &budget.cancel_token();
        let planned = ObjectCollector::collect(source, root, cancel)?;
        let mut planner = Planner::new(source, planned);
        planner.measure_metadata(cancel)?;
        planner.place_arrays();
        planner.finish(cancel)
    }

    /// Returns the number of bytes of the file.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the memory in bytes that the plan takes.
    pub fn weight(&self) -> u64 {
        let own = size_of_val(&*self.segments) + self.metadata.len();
        let addresses = self.addresses.len() * 2 * size_of::<(NodeId, u64)>();
        let datasets = self.datasets.iter().map(Dataset::weight);
        datasets.fold(to_u64(own + addresses), u64::saturating_add)
    }

    /// Returns the address of the header of each node that an element can refer to.
    pub(super) fn addresses(&self) -> &HashMap<NodeId, u64> {
        &self.addresses
    }

    pub(super) fn dataset(&self, segment: &Segment) -> &Dataset {
        &self.datasets[segment.dataset]
    }

    /// Returns the address of the heap collections of the segment's dataset.
    pub(super) fn collections_address(&self, segment: &Segment) -> u64 {
        self.collections.get(segment.dataset).copied().unwrap_or(0)
    }

    /// Returns the start of the first segment after `position`, or the length of the file.
    pub(super) fn next_segment(&self, position: u64) -> u64 {
        let next = self
            .segments
            .partition_point(|segment| segment.start <= position);
        let next = self.segments.get(next);
        next.map_or(self.length, |segment| segment.start)
    }

    /// Returns what the file contains at `position`, which is before its end.
    pub(super) fn part_at(&self, position: u64) -> Part<'_> {
        let metadata = to_usize(position).ok();
        let metadata = metadata.and_then(|start| self.metadata.get(start..));
        if let Some(bytes) = metadata.filter(|bytes| !bytes.is_empty()) {
            return Part::Metadata(bytes);
        }
        let next = self
            .segments
            .partition_point(|segment| segment.start <= position);
        let before = next
            .checked_sub(1)
            .map(|number| (number, &self.segments[number]));
        match before {
            Some((number, segment)) if position - segment.start < segment.length => {
                Part::Segment(number, segment)
            }
            _ => {
                let next = self.segments.get(next);
                Part::Gap(next.map_or(self.length, |segment| segment.start))
            }
        }
    }
}

/// The steps of planning: the sizes of the metadata, the positions of the arrays, and the bytes of
/// the metadata with these positions.
struct Planner<'a> {
    source: &'a Hdf5Source,
    planned: PlannedObjects,
    /// The value of the root attribute that lists what is absent.
    absent: Option<String>,
    addresses: Addresses,
    segments: Vec<Segment>,
    /// The first byte without content.
    end: u64,
}

impl<'a> Planner<'a> {
    fn new(source: &'a Hdf5Source, planned: PlannedObjects) -> Self {
        let count = planned.objects.len();
        Planner {
            source,
            absent: None,
            addresses: Addresses {
                headers: vec![0; count],
                elements: vec![None; count],
                chunk_indexes: vec![None; count],
                heap: 0,
            },
            planned,
            segments: Vec::new(),
            end: superblock::LENGTH,
        }
    }

    /// Returns the position for a structure of `length` bytes, and moves behind it.
    fn place(&mut self, length: u64, alignment: u64) -> u64 {
        let start = self
            .end
            .checked_next_multiple_of(alignment)
            .unwrap_or(u64::MAX);
        self.end = start.saturating_add(length);
        start
    }

    /// Determines the addresses of all structures of the metadata.
    fn measure_metadata(&mut self, cancel: &CancelToken) -> Result<()> {
        let mut writer = HeaderWriter::new(self.source, &self.planned, &self.addresses, None);
        let headers = writer.headers(cancel)?;
        let mut lengths: Vec<u64> = headers.iter().map(ObjectHeader::length).collect();
        drop(headers);
        let heap = to_u64(std::mem::take(&mut writer.heap).into_bytes()?.len());
        let absences = std::mem::take(&mut writer.absences);
        self.planned.absences.append(&absences);
        self.absent = self.planned.absences.text();
        if self.absent.is_some() {
            let absent = self.absent.as_deref();
            let mut writer = HeaderWriter::new(self.source, &self.planned, &self.addresses, absent);
            if let Some(first) = lengths.first_mut() {
                *first = writer.header(0)?.length();
            }
        }
        for (number, length) in lengths.into_iter().enumerate() {
            self.addresses.headers[number] = self.place(length, METADATA_ALIGNMENT);
        }
        self.addresses.heap = self.place(heap, METADATA_ALIGNMENT);
        for number in 0..self.planned.objects.len() {
            match &self.planned.objects[number].content {
                ObjectContent::Scalar(scalar) if !scalar.element.is_empty() => {
                    let length = to_u64(scalar.element.len());
                    let address = self.place(length, METADATA_ALIGNMENT);
                    self.addresses.elements[number] = Some(address);
                }
                ObjectContent::Dataset(dataset) => {
                    let chunks = dataset.chunks.filter(|chunks| chunks.count > 0);
                    let rank = dataset.shape.dims().len();
                    if let Some(chunks) = chunks {
                        let length = ChunkIndex::length(chunks.count, rank);
                        let address = self.place(length, METADATA_ALIGNMENT);
                        self.addresses.chunk_indexes[number] = Some(address);
                    }
                }
                _ => {}
            }
        }
        Error::check_limit(
            self.end,
            limits::HDF5_FILE_METADATA,
            "bytes of the metadata of a computed HDF5 file",
        )
    }

    /// Determines the positions of the elements, and then of the values of variable length.
    fn place_arrays(&mut self) {
        let lengths: Vec<(usize, u64, u64)> = self
            .datasets()
            .map(|(number, dataset)| {
                let heap = dataset.heap.as_ref().map_or(0, HeapLayout::length);
                (number, dataset.stored_bytes(), heap)
            })
            .collect();
        for (dataset, &(number, length, _)) in lengths.iter().enumerate() {
            if length > 0 {
                let start = self.place(length, ELEMENT_ALIGNMENT);
                self.addresses.elements[number] = Some(start);
                self.add_segment(dataset, SegmentContent::Elements, start, length);
            }
        }
        for (dataset, &(_, _, length)) in lengths.iter().enumerate() {
            if length > 0 {
                let start = self.place(length, METADATA_ALIGNMENT);
                self.add_segment(dataset, SegmentContent::Collections, start, length);
            }
        }
    }

    fn add_segment(&mut self, dataset: usize, content: SegmentContent, start: u64, length: u64) {
        self.segments.push(Segment {
            start,
            length,
            dataset,
            content,
        });
    }

    /// Iterates over the datasets, each with the number of its object.
    fn datasets(&self) -> impl Iterator<Item = (usize, &Dataset)> {
        let objects = self.planned.objects.iter().enumerate();
        objects.filter_map(|(number, object)| match &object.content {
            ObjectContent::Dataset(dataset) => Some((number, &**dataset)),
            _ => None,
        })
    }

    /// Writes the metadata with the true addresses.
    fn finish(self, cancel: &CancelToken) -> Result<Hdf5Plan> {
        const MOST: u64 = i64::MAX.unsigned_abs();
        Error::check_limit(self.end, MOST, "size of a computed HDF5 file")?;
        let mut metadata = Vec::new();
        let root = self.addresses.headers.first().copied().unwrap_or(0);
        let superblock = Superblock {
            root,
            end_of_file: self.end,
        };
        metadata.extend(superblock.encode());
        let absent = self.absent.as_deref();
        let mut writer = HeaderWriter::new(self.source, &self.planned, &self.addresses, absent);
        let headers = writer.headers(cancel)?;
        for (header, &address) in headers.iter().zip(&self.addresses.headers) {
            put_at(&mut metadata, address, &header.encode())?;
        }
        drop(headers);
        let heap = std::mem::take(&mut writer.heap).into_bytes()?;
        put_at(&mut metadata, self.addresses.heap, &heap)?;
        for (number, object) in self.planned.objects.iter().enumerate() {
            self.put_object_parts(number, object, &mut metadata)?;
        }
        Ok(self.into_plan(metadata))
    }

    /// Writes the element of a scalar, or the chunk index of a dataset.
    fn put_object_parts(
        &self,
        number: usize,
        object: &PlannedObject,
        metadata: &mut Vec<u8>,
    ) -> Result<()> {
        let elements = self.addresses.elements[number];
        match (
            &object.content,
            elements,
            self.addresses.chunk_indexes[number],
        ) {
            (ObjectContent::Scalar(scalar), Some(address), _) => {
                put_at(metadata, address, &scalar.element)
            }
            (ObjectContent::Dataset(dataset), Some(elements), Some(address)) => {
                let Some(chunks) = dataset.chunks else {
                    return Ok(());
                };
                let index = ChunkIndex {
                    address,
                    first_chunk: elements,
                    chunks,
                    rank: dataset.shape.dims().len(),
                };
                put_at(metadata, address, &index.encode()?)
            }
            _ => Ok(()),
        }
    }

    fn into_plan(self, metadata: Vec<u8>) -> Hdf5Plan {
        let has_references = self
            .datasets()
            .any(|(_, dataset)| dataset.conversion.has_references());
        let numbers = self.planned.numbers.iter().filter(|_| has_references);
        let addresses = numbers
            .filter_map(|(node, &number)| Some((*node, *self.addresses.headers.get(number)?)));
        let mut collections = vec![0; self.datasets().count()];
        for segment in &self.segments {
            if segment.content == SegmentContent::Collections {
                collections[segment.dataset] = segment.start;
            }
        }
        Hdf5Plan {
            addresses: addresses.collect(),
            collections,
            metadata,
            segments: self.segments,
            length: self.end,
            datasets: self
                .planned
                .objects
                .into_iter()
                .filter_map(|object| match object.content {
                    ObjectContent::Dataset(dataset) => Some(*dataset),
                    _ => None,
                })
                .collect(),
        }
    }
}

/// Appends `bytes` at `address`, after zeros.
fn put_at(metadata: &mut Vec<u8>, address: u64, bytes: &[u8]) -> Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    metadata.resize(to_usize(address)?, 0);
    metadata.extend_from_slice(bytes);
    Ok(())
}
