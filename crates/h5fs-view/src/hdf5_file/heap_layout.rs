//! The heap collections with the values of an array whose elements point to a heap: one collection
//! for each block of elements, at an offset that is known without reading the values.

use h5fs_reader::array::Bytes;
use h5fs_reader::error::{Result, ignore_permanent};
use h5fs_reader::hdf5::encode::global_heap;
use h5fs_reader::wire::{to_u64, to_usize};

use crate::hdf5_file::element_source::{ElementSource, HeapPointer};
use crate::hdf5_file::elements::{ConvertedPart, ElementConversion};
use crate::hdf5_file::range_writer::RangeWriter;

/// Maximum number of values in one collection, unless one element has more. The index of an object
/// in a collection has 16 bits.
const COLLECTION_VALUES: u64 = 4096;

/// Maximum stored bytes that are read for one collection, unless one element has more.
const BLOCK_BYTES: u64 = 1 << 20;

/// The positions of the heap collections of one array.
#[derive(Debug)]
pub(super) struct HeapLayout {
    elements: u64,
    /// Number of elements whose values are in one collection.
    block: u64,
    /// Bytes of an element of the source.
    stored_size: u64,
    /// Bytes of an element of the computed file.
    size: u64,
    /// The offset of each block's collection from the first collection, and the end of the last
    /// one, in bytes.
    starts: Vec<u64>,
}

/// The sizes of an array whose elements point to a heap.
#[derive(Clone, Copy)]
pub(super) struct ElementSizes {
    pub(super) elements: u64,
    pub(super) stored_size: u64,
    pub(super) size: u64,
}

/// The stored elements of a block, and the bytes of their values, in order.
struct Block<'a> {
    stored: Bytes,
    stored_size: usize,
    /// `None` for null pointers.
    lengths: Vec<Option<u64>>,
    conversion: &'a ElementConversion,
    source: &'a ElementSource<'a>,
}

impl HeapLayout {
    /// Reads the lengths of all values, and computes the positions of the collections. A block that
    /// cannot be read has no collection, and reading its elements reports the error.
    ///
    /// # Errors
    /// Fails if an element cannot be read now, or if the request is cancelled.
    pub(super) fn measure(
        source: &ElementSource<'_>,
        conversion: &ElementConversion,
        sizes: ElementSizes,
    ) -> Result<Self> {
        let values = to_u64(conversion.heap_parts()).max(1);
        let fitting = BLOCK_BYTES / sizes.stored_size.max(1);
        let mut layout = HeapLayout {
            elements: sizes.elements,
            block: (COLLECTION_VALUES / values).min(fitting).max(1),
            stored_size: sizes.stored_size,
            size: sizes.size,
            starts: vec![0],
        };
        let mut end = 0_u64;
        let mut first = 0;
        while first < layout.elements {
            let block = layout.read_block(source, conversion, first / layout.block);
            let length = ignore_permanent(block)?.map_or(Ok(0), |block| block.collection_length());
            end = end.saturating_add(length?);
            layout.starts.push(end);
            first = source
                .cancel
                .next_batch(first, first.saturating_add(layout.block))?;
        }
        Ok(layout)
    }

    /// Returns the number of bytes of all collections.
    pub(super) fn length(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Returns the memory in bytes that the positions take.
    pub(super) fn weight(&self) -> u64 {
        to_u64(self.starts.capacity() * size_of::<u64>())
    }

    fn read_block<'a>(
        &self,
        source: &'a ElementSource<'a>,
        conversion: &'a ElementConversion,
        number: u64,
    ) -> Result<Block<'a>> {
        let first = number.saturating_mul(self.block);
        let count = self.block.min(self.elements.saturating_sub(first));
        let offset = first.saturating_mul(self.stored_size);
        let length = to_usize(count.saturating_mul(self.stored_size))?;
        let stored = source
            .reader
            .read_with_cancel(offset, length, source.cancel)?;
        let mut block = Block {
            stored,
            stored_size: to_usize(self.stored_size)?.max(1),
            lengths: Vec::new(),
            conversion,
            source,
        };
        let pointers = block.pointers();
        let lengths = pointers.map(|(part, pointer)| source.value_length(part, pointer));
        block.lengths = lengths.collect::<Result<_>>()?;
        Ok(block)
    }

    /// Writes the elements that are in the range of `out`, which begins with the first element.
    /// `address` is the address of the first collection.
    ///
    /// # Errors
    /// Fails if an element in the range cannot be read.
    pub(super) fn write_elements(
        &self,
        source: &ElementSource<'_>,
        conversion: &ElementConversion,
        address: u64,
        out: &mut RangeWriter<'_>,
    ) -> Result<()> {
        let block_bytes = self.block.saturating_mul(self.size).max(1);
        let blocks = out.range.start / block_bytes..out.range.end.div_ceil(block_bytes);
        for (number, start) in blocks
            .clone()
            .zip(self.starts.iter().skip(to_usize(blocks.start)?))
        {
            out.position = number.saturating_mul(block_bytes);
            let block = self.read_block(source, conversion, number)?;
            block.write_elements(address.saturating_add(*start), to_usize(self.size)?, out)?;
        }
        Ok(())
    }

    /// Writes the bytes of the collections that are in the range of `out`, which begins with the
    /// first collection.
    ///
    /// # Errors
    /// Fails if a value in the range cannot be read.
    pub(super) fn write_collections(
        &self,
        source: &ElementSource<'_>,
        conversion: &ElementConversion,
        out: &mut RangeWriter<'_>,
    ) -> Result<()> {
        let first = self
            .starts
            .partition_point(|&start| start <= out.range.start);
        for number in first.saturating_sub(1)..self.starts.len().saturating_sub(1) {
            let (start, end) = (self.starts[number], self.starts[number + 1]);
            if start >= out.range.end {
                break;
            }
            if start < end {
                out.position = start;
                let block = self.read_block(source, conversion, to_u64(number))?;
                block.write_collection(end - start, out)?;
            }
        }
        Ok(())
    }
}

impl Block<'_> {
    /// Iterates over the pointers to a heap in the stored elements.
    fn pointers(&self) -> impl Iterator<Item = (&ConvertedPart, &[u8])> {
        let elements = self.stored.chunks_exact(self.stored_size);
        elements.flat_map(|element| self.conversion.heap_pointers(element))
    }

    /// Returns the number of bytes of the block's collection, or 0 if no element has a value.
    fn collection_length(&self) -> Result<u64> {
        let mut lengths = self.lengths.iter().copied().flatten();
        match lengths.next() {
            Some(first) => global_heap::collection_length([first].into_iter().chain(lengths)),
            None => Ok(0),
        }
    }

    /// Writes the elements of the block, whose collection is at `address`.
    fn write_elements(&self, address: u64, size: usize, out: &mut RangeWriter<'_>) -> Result<()> {
        let mut index = 0;
        let mut lengths = self.lengths.iter();
        let mut next_pointer = || {
            let Some(length) = lengths.next().copied().flatten() else {
                return HeapPointer::default();
            };
            index += 1;
            HeapPointer {
                length,
                address,
                index,
            }
        };
        for element in self.stored.chunks_exact(self.stored_size) {
            let source = self.source;
            let converted = source.convert(self.conversion, element, size, &mut next_pointer)?;
            out.write(&converted);
        }
        Ok(())
    }

    /// Writes the collection of the block, which has `length` bytes.
    fn write_collection(&self, length: u64, out: &mut RangeWriter<'_>) -> Result<()> {
        let end = out.position.saturating_add(length);
        out.write(&global_heap::encode_collection_header(length));
        let mut index = 0;
        for ((part, pointer), length) in self.pointers().zip(&self.lengths) {
            let Some(length) = *length else {
                continue;
            };
            index += 1;
            out.write(&global_heap::encode_object_header(index, length));
            out.write_part(length, |range| self.source.read_value(part, pointer, range))?;
            let padded = global_heap::object_length(length)? - global_heap::HEADER_LENGTH;
            out.write_zeros(padded - length);
        }
        self.source.cancel.check_cancelled()?;
        let free = end.saturating_sub(out.position);
        out.write(&global_heap::encode_free_space(free)?);
        Ok(())
    }
}
