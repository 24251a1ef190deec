//! The heap collections with the values of a variable-length array: one collection for each block
//! of elements, at an offset that is known without reading the values.

use h5fs_reader::array::{Bytes, CancelToken, Reader};
use h5fs_reader::error::{Result, ignore_permanent};
use h5fs_reader::hdf5::encode::global_heap;
use h5fs_reader::model::Container;
use h5fs_reader::wire::{to_u64, to_usize};

use crate::hdf5_file::range_writer::RangeWriter;

/// Number of elements whose values are in one collection. The index of an object in a collection
/// has 16 bits.
const BLOCK: u64 = 4096;

/// The positions of the heap collections of one array.
#[derive(Debug)]
pub(super) struct HeapLayout {
    elements: u64,
    /// Bytes of one stored element of the source.
    stored_size: u64,
    /// Bytes of one base element of a sequence, or 1 for a string.
    base_size: u64,
    /// The offset of each block's collection from the first collection, and the end of the last
    /// one, in bytes.
    starts: Vec<u64>,
}

/// The array whose values are read, and its file.
#[derive(Clone, Copy)]
pub(super) struct HeapSource<'a> {
    pub(super) reader: &'a Reader,
    pub(super) container: &'a dyn Container,
    pub(super) cancel: &'a CancelToken,
}

/// The stored elements of a block, and the bytes of the value of each element.
struct Block<'a> {
    stored: Bytes,
    stored_size: usize,
    lengths: Vec<u64>,
    base_size: u64,
    source: HeapSource<'a>,
}

impl HeapLayout {
    /// Reads the lengths of all elements, and computes the positions of the collections. A block
    /// that cannot be read has no collection, and reading its elements reports the error.
    ///
    /// # Errors
    /// Fails if an element cannot be read now, or if the request is cancelled.
    pub(super) fn measure(source: HeapSource<'_>, elements: u64, base_size: u64) -> Result<Self> {
        let mut layout = HeapLayout {
            elements,
            stored_size: source.reader.array().datatype.size.into(),
            base_size: base_size.max(1),
            starts: vec![0],
        };
        let mut end = 0_u64;
        let mut first = 0;
        while first < elements {
            let block = ignore_permanent(layout.read_block(source, first / BLOCK))?;
            let length = block.map_or(Ok(0), |block| block.collection_length())?;
            end = end.saturating_add(length);
            layout.starts.push(end);
            first = source
                .cancel
                .next_batch(first, first.saturating_add(BLOCK))?;
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

    fn read_block<'a>(&self, source: HeapSource<'a>, number: u64) -> Result<Block<'a>> {
        let first = number.saturating_mul(BLOCK);
        let count = BLOCK.min(self.elements.saturating_sub(first));
        let offset = first.saturating_mul(self.stored_size);
        let length = to_usize(count.saturating_mul(self.stored_size))?;
        let stored = source
            .reader
            .read_with_cancel(offset, length, source.cancel)?;
        let stored_size = to_usize(self.stored_size)?;
        let lengths = stored.chunks_exact(stored_size.max(1)).map(|element| {
            let bytes = source
                .container
                .variable_length_bytes(element, self.base_size)?;
            Ok(bytes.unwrap_or(0))
        });
        Ok(Block {
            lengths: lengths.collect::<Result<_>>()?,
            stored,
            stored_size,
            base_size: self.base_size,
            source,
        })
    }

    /// Writes the elements that are in the range of `out`, which begins with the first element.
    /// `address` is the address of the first collection.
    ///
    /// # Errors
    /// Fails if an element in the range cannot be read.
    pub(super) fn write_elements(
        &self,
        source: HeapSource<'_>,
        address: u64,
        out: &mut RangeWriter<'_>,
    ) -> Result<()> {
        let block_bytes = BLOCK * to_u64(global_heap::NULL_ELEMENT.len());
        let blocks = out.range.start / block_bytes..out.range.end.div_ceil(block_bytes);
        for (number, start) in blocks
            .clone()
            .zip(self.starts.iter().skip(to_usize(blocks.start)?))
        {
            out.position = number.saturating_mul(block_bytes);
            let block = self.read_block(source, number)?;
            block.write_elements(address.saturating_add(*start), out);
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
        source: HeapSource<'_>,
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
                let block = self.read_block(source, to_u64(number))?;
                block.write_collection(end - start, out)?;
            }
        }
        Ok(())
    }
}

impl Block<'_> {
    /// Returns the number of bytes of the block's collection, or 0 if no element has a value.
    fn collection_length(&self) -> Result<u64> {
        let mut lengths = self.lengths.iter().copied().filter(|&length| length > 0);
        match lengths.next() {
            Some(first) => global_heap::collection_length([first].into_iter().chain(lengths)),
            None => Ok(0),
        }
    }

    /// Writes the elements of the block, whose collection is at `address`.
    fn write_elements(&self, address: u64, out: &mut RangeWriter<'_>) {
        let mut index = 0;
        for &length in &self.lengths {
            let count = u32::try_from(length / self.base_size).unwrap_or(u32::MAX);
            let element = if length > 0 {
                index += 1;
                global_heap::encode_element(count, address, index)
            } else {
                global_heap::NULL_ELEMENT
            };
            out.write(&element);
        }
    }

    /// Writes the collection of the block, which has `length` bytes.
    fn write_collection(&self, length: u64, out: &mut RangeWriter<'_>) -> Result<()> {
        let end = out.position.saturating_add(length);
        out.write(&global_heap::encode_collection_header(length));
        let elements = self.stored.chunks_exact(self.stored_size.max(1));
        let mut index = 0;
        for (element, &length) in elements
            .zip(&self.lengths)
            .filter(|(_, length)| **length > 0)
        {
            index += 1;
            out.write(&global_heap::encode_object_header(index, length));
            let (container, base_size) = (self.source.container, self.base_size);
            out.write_part(length, |part| {
                let value = container.read_variable_length(element, base_size, part)?;
                Ok(value.unwrap_or_default())
            })?;
            let padded = global_heap::object_length(length)? - global_heap::HEADER_LENGTH;
            out.write_zeros(padded - length);
        }
        self.source.cancel.check_cancelled()?;
        let free = end.saturating_sub(out.position);
        out.write(&global_heap::encode_free_space(free)?);
        Ok(())
    }
}
