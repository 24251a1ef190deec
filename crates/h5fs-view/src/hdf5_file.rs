//! A computed HDF5 file: the objects of a container as a file that every HDF5 library since version
//! 1.8 can read, without filters, virtual sources and external files.
//!
//! The file begins with all metadata, which is computed when the file is opened and kept in memory.
//! The elements of each array follow, at an offset that is known without decoding them. The values
//! of variable-length arrays are behind all elements. So every byte of the file can be computed on
//! its own.
//!
//! | file | content |
//! |---|---|
//! | `objects` | collects the objects from the container |
//! | `dataset`, `scalar`, `elements` | the type, shape and conversion of each dataset |
//! | `chunk_index` | the B-tree of the chunks of a growing dataset |
//! | `asdf_attributes` | attributes for what an ASDF file has in other places |
//! | `attribute_values`, `metadata_heap` | the values of attributes, with the addresses of the computed file |
//! | `metadata` | the bytes of the metadata |
//! | `plan` | the position of everything in the file |
//! | `element_source` | the stored elements of an array, and their conversion |
//! | `heap_layout` | the values to which the elements of an array point |
//! | `absences` | the list of what the computed file does not have |

mod absences;
mod asdf_attributes;
mod attribute_values;
mod chunk_index;
mod dataset;
mod element_source;
mod elements;
mod heap_layout;
mod metadata;
mod metadata_heap;
mod objects;
mod plan;
mod range_writer;
mod scalar;
mod source;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::{Arc, Mutex};

use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::lock::lock;
use h5fs_reader::wire::{to_u64, to_usize};

use crate::hdf5_file::dataset::{Dataset, OpenElements, missing_array_error};
use crate::hdf5_file::element_source::{ElementSource, HeapPointer};
pub use crate::hdf5_file::objects::RootGroup;
pub use crate::hdf5_file::plan::Hdf5Plan;
use crate::hdf5_file::plan::{Segment, SegmentContent};
use crate::hdf5_file::range_writer::RangeWriter;
pub use crate::hdf5_file::source::{ArrayOpener, Hdf5Source};
use crate::view::View;

/// Number of arrays that a file keeps open, so that reads in order decode each chunk once.
const OPEN_ARRAYS: usize = 4;

/// A computed HDF5 file.
pub struct Hdf5File {
    plan: Arc<Hdf5Plan>,
    source: Hdf5Source,
    /// The arrays that were read last, with the numbers of their segments.
    open: Mutex<Vec<(usize, Arc<OpenElements>)>>,
}

/// A segment with the stored elements of an array.
struct StoredSegment {
    start: u64,
    /// Number of bytes of the elements.
    length: u64,
    elements: Arc<OpenElements>,
}

impl StoredSegment {
    fn file(&self) -> &dyn View {
        &self.elements.file
    }

    fn end(&self) -> u64 {
        self.start.saturating_add(self.length)
    }
}

impl Hdf5File {
    /// Creates the file that `plan` describes.
    pub fn new(plan: Arc<Hdf5Plan>, source: Hdf5Source) -> Self {
        Hdf5File {
            plan,
            source,
            open: Mutex::default(),
        }
    }

    /// Returns the open array of the segment with this number.
    fn open_array(&self, number: usize, dataset: &Dataset) -> Result<Arc<OpenElements>> {
        let mut open = lock(&self.open);
        if let Some(at) = open.iter().position(|(own, _)| *own == number) {
            let found = open.remove(at);
            let array = Arc::clone(&found.1);
            open.push(found);
            return Ok(array);
        }
        drop(open);
        let node = self.source.container.node(dataset.node)?;
        let array = node.array().ok_or_else(missing_array_error)?;
        let opened = Arc::new(dataset.open(&self.source, array)?);
        let mut open = lock(&self.open);
        if open.len() >= OPEN_ARRAYS {
            open.remove(0);
        }
        open.push((number, Arc::clone(&opened)));
        Ok(opened)
    }

    /// Returns the segment at `position` if its bytes are stored elements of the source, which may
    /// have holes.
    fn stored_at(&self, position: u64) -> Result<Option<StoredSegment>> {
        let plan::Part::Segment(number, segment) = self.plan.part_at(position) else {
            return Ok(None);
        };
        let dataset = self.plan.dataset(segment);
        let length = segment.length.min(dataset.element_bytes);
        let is_stored = segment.content == SegmentContent::Elements
            && dataset.conversion.is_identity()
            && position - segment.start < length;
        if !is_stored {
            return Ok(None);
        }
        Ok(Some(StoredSegment {
            start: segment.start,
            length,
            elements: self.open_array(number, dataset)?,
        }))
    }

    /// Appends the bytes of a segment in `range`, which is relative to its start.
    fn read_segment(
        &self,
        (number, segment): (usize, &Segment),
        range: Range<u64>,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let dataset = self.plan.dataset(segment);
        let wanted = range.end - range.start;
        let present = match segment.content {
            SegmentContent::Elements => range.end.min(dataset.element_bytes),
            SegmentContent::Collections => range.end,
        };
        let before = to_u64(out.len());
        if range.start < present {
            let array = self.open_array(number, dataset)?;
            let range = range.start..present;
            let source = ElementSource {
                reader: &array.reader,
                container: &*self.source.container,
                addresses: self.plan.addresses(),
                cancel,
            };
            let conversion = &dataset.conversion;
            match (segment.content, &dataset.heap) {
                (SegmentContent::Elements, _) if conversion.is_identity() => {
                    let length = to_usize(range.end - range.start)?;
                    let bytes = array.file.read_for(range.start, length, cancel)?;
                    out.extend_from_slice(&bytes);
                }
                (SegmentContent::Elements, None) => {
                    convert_elements(&source, dataset, &mut RangeWriter::new(range, out))?;
                }
                (content, Some(heap)) => {
                    let mut out = RangeWriter::new(range, out);
                    match content {
                        SegmentContent::Elements => {
                            let address = self.plan.collections_address(segment);
                            heap.write_elements(&source, conversion, address, &mut out)?;
                        }
                        SegmentContent::Collections => {
                            heap.write_collections(&source, conversion, &mut out)?;
                        }
                    }
                }
                (SegmentContent::Collections, None) => {}
            }
        }
        if to_u64(out.len()) != before + present.saturating_sub(range.start) {
            return Err(Error::corrupt("array: fewer elements than its shape", None));
        }
        // After the last row, the last chunk contains zeros.
        out.resize(to_usize(before + wanted)?, 0);
        Ok(())
    }
}

/// Writes the elements in the range of `out` of a dataset without values on a heap.
fn convert_elements(
    source: &ElementSource<'_>,
    dataset: &Dataset,
    out: &mut RangeWriter<'_>,
) -> Result<()> {
    let size = u64::from(dataset.datatype.size).max(1);
    let first = out.range.start / size * size;
    let last = out.range.end.div_ceil(size).saturating_mul(size);
    let length = to_usize(last - first)?;
    let stored = source
        .reader
        .read_with_cancel(first, length, source.cancel)?;
    out.position = first;
    let size = to_usize(size)?;
    let mut no_pointer = HeapPointer::default;
    for element in stored.chunks_exact(size) {
        out.write(&source.convert(&dataset.conversion, element, size, &mut no_pointer)?);
    }
    Ok(())
}

impl View for Hdf5File {
    fn length(&self) -> u64 {
        self.plan.length()
    }

    fn own_bytes(&self) -> u64 {
        self.plan.weight()
    }

    fn read_for(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        let end = offset
            .saturating_add(to_u64(length))
            .min(self.plan.length());
        let mut out = Vec::new();
        let mut position = offset.min(end);
        while position < end {
            let reached = out.len();
            match self.plan.part_at(position) {
                plan::Part::Metadata(bytes) => {
                    let wanted = to_usize(end - position)?.min(bytes.len());
                    out.extend_from_slice(bytes.get(..wanted).unwrap_or_default());
                }
                plan::Part::Segment(number, segment) => {
                    let start = position - segment.start;
                    let stop = (end - segment.start).min(segment.length);
                    self.read_segment((number, segment), start..stop, cancel, &mut out)?;
                }
                plan::Part::Gap(next) => {
                    let zeros = to_usize(next.min(end) - position)?;
                    out.resize(reached.saturating_add(zeros), 0);
                }
            }
            position = cancel.next_batch(position, position + to_u64(out.len() - reached))?;
        }
        Ok(out.into())
    }

    fn stops_on_cancel(&self) -> bool {
        true
    }

    fn data_at(&self, offset: u64) -> Result<Option<u64>> {
        let mut position = offset;
        while position < self.plan.length() {
            let Some(stored) = self.stored_at(position)? else {
                return Ok(Some(position));
            };
            let data = stored.file().data_at(position - stored.start)?;
            match data.filter(|&data| data < stored.length) {
                Some(data) => return Ok(Some(stored.start + data)),
                None => position = stored.end(),
            }
        }
        Ok(None)
    }

    fn hole_at(&self, offset: u64) -> Result<u64> {
        let mut position = offset;
        while position < self.plan.length() {
            match self.stored_at(position)? {
                Some(stored) => {
                    let hole = stored.file().hole_at(position - stored.start)?;
                    if hole < stored.length {
                        return Ok(stored.start + hole);
                    }
                    position = stored.end();
                }
                None => position = self.plan.next_segment(position),
            }
        }
        Ok(self.plan.length())
    }
}
