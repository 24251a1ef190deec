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
//! | `attribute_values`, `metadata_heap` | the values of attributes, with the addresses of the computed file |
//! | `metadata` | the bytes of the metadata |
//! | `plan` | the position of everything in the file |
//! | `heap_layout` | the values of a variable-length array |
//! | `absences` | the list of what the computed file does not have |

mod absences;
mod attribute_values;
mod chunk_index;
mod dataset;
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

use h5fs_reader::array::{Bytes, CancelToken, Reader};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::lock::lock;
use h5fs_reader::wire::{to_u64, to_usize};

use crate::elements::raw::RawElements;
use crate::hdf5_file::dataset::{Dataset, missing_array_error};
use crate::hdf5_file::elements::ElementConversion;
use crate::hdf5_file::heap_layout::HeapSource;
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
    open: Mutex<Vec<(usize, Arc<OpenArray>)>>,
}

/// An array that is open for reading.
struct OpenArray {
    reader: Arc<Reader>,
    elements: RawElements,
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
    fn open_array(&self, number: usize, dataset: &Dataset) -> Result<Arc<OpenArray>> {
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
        let reader = (self.source.open_array)(dataset.node, array)?;
        let opened = Arc::new(OpenArray {
            elements: RawElements::new(Arc::clone(&reader)),
            reader,
        });
        let mut open = lock(&self.open);
        if open.len() >= OPEN_ARRAYS {
            open.remove(0);
        }
        open.push((number, Arc::clone(&opened)));
        Ok(opened)
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
            match (&segment.content, &dataset.conversion, &dataset.heap) {
                (SegmentContent::Elements, ElementConversion::None, _) => {
                    let length = to_usize(range.end - range.start)?;
                    let bytes = array.elements.read_for(range.start, length, cancel)?;
                    out.extend_from_slice(&bytes);
                }
                (SegmentContent::Elements, ElementConversion::References(offsets), _) => {
                    self.read_references(&array, dataset, offsets, range, cancel, out)?;
                }
                (content, _, Some(heap)) => {
                    let source = HeapSource {
                        reader: &array.reader,
                        container: &*self.source.container,
                        cancel,
                    };
                    let mut out = RangeWriter::new(range, out);
                    match content {
                        SegmentContent::Elements => {
                            let address = self.plan.collections_address(segment);
                            heap.write_elements(source, address, &mut out)?;
                        }
                        SegmentContent::Collections => heap.write_collections(source, &mut out)?,
                    }
                }
                _ => {}
            }
        }
        if to_u64(out.len()) != before + present.saturating_sub(range.start) {
            return Err(Error::corrupt("array: fewer elements than its shape", None));
        }
        // After the last row, the last chunk contains zeros.
        out.resize(to_usize(before + wanted)?, 0);
        Ok(())
    }

    /// Appends elements whose object references get the addresses of the computed file.
    fn read_references(
        &self,
        array: &OpenArray,
        dataset: &Dataset,
        offsets: &[usize],
        range: Range<u64>,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let size = u64::from(dataset.datatype.size).max(1);
        let first = range.start / size * size;
        let last = range.end.div_ceil(size).saturating_mul(size);
        let bytes = array
            .elements
            .read_for(first, to_usize(last - first)?, cancel)?;
        let mut bytes = bytes.into_vec();
        for element in bytes.chunks_exact_mut(to_usize(size)?) {
            for &offset in offsets {
                if let Some(reference) = element.get_mut(offset..offset.saturating_add(8)) {
                    let address = self.plan.address_of(&*self.source.container, reference)?;
                    reference.copy_from_slice(&address.to_le_bytes());
                }
            }
        }
        let start = to_usize(range.start - first)?;
        let end = to_usize(range.end - first)?.min(bytes.len());
        out.extend_from_slice(bytes.get(start..end).unwrap_or_default());
        Ok(())
    }
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
}
