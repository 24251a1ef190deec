//! Fractal heaps: objects of any size in blocks of doubling size (HDF5 3.0, III.G).

use std::cmp::Ordering;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::filter;
use crate::hdf5::btree_v2::BtreeV2;
use crate::hdf5::file::metadata::{Metadata, verify_checksum};
use crate::hdf5::file::number_form::Address;
use crate::hdf5::message::filter_pipeline;
use crate::limits;
use crate::memory::buffer::Buffer;
use crate::model::storage::Pipeline;
use crate::source::check_range;
use crate::wire::checksum::lookup3_with_zeros;
use crate::wire::{Count, Cursor, to_u64, to_usize};

/// Assumed length in bytes of a heap or B-tree header that was not read yet.
pub(crate) const ASSUMED_HEADER_BYTES: u64 = 256;

const DIRECT_BLOCK: &str = "fractal heap direct block";

/// A fractal heap, given by its header. Finds and reads the heap's objects.
#[derive(Debug)]
pub(crate) struct FractalHeap {
    metadata: Arc<Metadata>,
    at: Address,
    id_length: usize,
    offset_width: usize,
    length_width: usize,
    checksummed: bool,
    pipeline: Pipeline,
    huge_objects: Option<Address>,
    table: DoublingTable,
    root: RootBlock,
    /// Whether the caller will read most of the heap's objects, so that blocks are requested ahead.
    is_full_listing: bool,
}

/// The location of the root block, from which all managed objects are reached.
#[derive(Debug)]
struct RootBlock {
    address: Option<Address>,
    /// Number of rows of the root indirect block, 0 if the root is a direct block.
    rows: u32,
    /// Stored size and filter mask of a filtered direct root block.
    stored_size_and_mask: (u64, u32),
}

/// The number of bytes of heap objects that one listing may still read. Objects do not overlap, so
/// together they are not longer than the file, unless filters compressed them. Without this limit,
/// an index could list one object any number of times.
#[derive(Debug)]
pub(crate) struct ListingAllowance(u64);

impl ListingAllowance {
    /// Returns the allowance of one listing in the file of `metadata`.
    pub(crate) fn new(metadata: &Metadata) -> Self {
        ListingAllowance(metadata.source().length().max(limits::HEAP_LISTING))
    }

    /// Fails with `Corrupt` once the allowance is exhausted. `at` is the heap's absolute offset,
    /// for the error.
    pub(crate) fn check(&self, at: Address) -> Result<()> {
        match self.0 {
            0 => Err(Error::corrupt("fractal heap: its objects overlap", at)),
            _ => Ok(()),
        }
    }

    fn spend(&mut self, bytes: usize) {
        self.0 = self.0.minus_or_zero(to_u64(bytes));
    }
}

/// The division of the heap's address space into rows of blocks. The size of a block doubles from
/// row to row, except that the blocks of the first two rows have the same size.
#[derive(Debug)]
struct DoublingTable {
    width: u64,
    starting_block_size: u64,
    max_direct_block_size: u64,
    max_heap_bits: u32,
}

/// A child block of an indirect block, by its entry in the doubling table.
struct ChildPosition {
    row: u32,
    entry: u64,
    /// Offset of the child's first byte in the part of the heap's address space that its parent
    /// covers.
    start: u64,
    size: u64,
}

/// The location and size of a block, as stored in its parent or in the heap header.
struct BlockEntry {
    address: Address,
    /// Offset of the block's first byte in the heap's address space.
    start: u64,
    /// Number of bytes of the heap's address space that the block covers.
    size: u64,
    /// Stored size and filter mask of a direct block, if the heap has filters.
    stored_size_and_mask: (u64, u32),
}

impl FractalHeap {
    /// Reads the heap header at absolute offset `at`.
    ///
    /// # Errors
    /// `Corrupt` for a wrong checksum or impossible sizes.
    pub(crate) fn open(metadata: &Arc<Metadata>, at: Address) -> Result<Self> {
        const WHAT: &str = "fractal heap header";
        let prefix = metadata.read_uncached(at.offset(), 9, WHAT)?;
        let mut cursor = Cursor::new(&prefix, at, WHAT);
        cursor.expect_signature(b"FRHP")?;
        cursor.read_version(0..=0)?;
        cursor.skip(2)?;
        let filters_length = usize::from(cursor.u16()?);
        let filtered = match filters_length {
            0 => 0,
            length => metadata.structure_size(0, 1, 4).plus(length),
        };
        let verify = |block: &[u8]| verify_checksum(block, at, WHAT);
        let length = metadata.structure_size(3, 12, 26).plus(filtered);
        let block = metadata.verified_block(at, to_u64(length), WHAT, verify)?;
        Self::parse(metadata, at, filters_length, &block)
    }

    fn parse(metadata: &Arc<Metadata>, at: Address, filters: usize, block: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(block, at, "fractal heap header");
        cursor.skip(4 + 1)?;
        let id_length = usize::from(cursor.u16()?);
        cursor.skip(2)?; // length of the filters' description
        let flags = cursor.u8()?;
        let max_managed_size = u64::from(cursor.u32()?);
        metadata.read_length(&mut cursor)?; // next huge object ID
        let huge_objects = metadata.read_address(&mut cursor)?;
        metadata.read_length(&mut cursor)?; // free space in managed blocks
        metadata.read_address(&mut cursor)?; // free space manager
        cursor.skip(metadata.structure_size(0, 8, 0))?; // spaces, iterator, object statistics
        let width = u64::from(cursor.u16()?);
        let starting_block_size = metadata.read_length(&mut cursor)?;
        let max_direct_block_size = metadata.read_length(&mut cursor)?;
        let max_heap_bits = u32::from(cursor.u16()?);
        cursor.skip(2)?; // starting rows of the root indirect block
        let address = metadata.read_address(&mut cursor)?;
        let rows = u32::from(cursor.u16()?);
        let (filtered, pipeline) = match filters {
            0 => ((0, 0), Pipeline::default()),
            length => {
                let filtered = (metadata.read_length(&mut cursor)?, cursor.u32()?);
                let at = cursor.offset();
                let body = cursor.read_bytes(length)?;
                let mut body = Cursor::new(body, at, "filter pipeline message");
                (filtered, filter_pipeline::read(&mut body)?)
            }
        };
        let table = DoublingTable {
            width,
            starting_block_size,
            max_direct_block_size,
            max_heap_bits,
        };
        table.check(&cursor)?;
        let length_width = length_width(max_direct_block_size, max_managed_size);
        Ok(FractalHeap {
            metadata: Arc::clone(metadata),
            at,
            id_length,
            offset_width: usize::try_from(max_heap_bits.div_ceil(8)).unwrap_or(usize::MAX),
            length_width,
            checksummed: flags & 0b10 != 0,
            pipeline,
            huge_objects,
            table,
            root: RootBlock {
                address,
                rows,
                stored_size_and_mask: filtered,
            },
            is_full_listing: false,
        })
    }

    /// Returns the same heap for a caller that will read most of its objects.
    pub(crate) fn for_full_listing(self) -> Self {
        FractalHeap {
            is_full_listing: true,
            ..self
        }
    }

    /// Returns an object like [`read_object`](Self::read_object), and subtracts its length from
    /// `allowance`.
    pub(crate) fn object_within_allowance(
        &self,
        allowance: &mut ListingAllowance,
        id: &[u8],
    ) -> Result<Vec<u8>> {
        let object = self.read_object(id)?;
        allowance.spend(object.len());
        Ok(object)
    }

    /// Returns the object with the ID `id`. Bytes of `id` after the heap's ID length are ignored.
    ///
    /// # Errors
    /// `Corrupt` if the ID is invalid.
    pub(crate) fn read_object(&self, id: &[u8]) -> Result<Vec<u8>> {
        let id = id.get(..self.id_length).unwrap_or(id);
        let mut cursor = Cursor::new(id, self.at, "fractal heap ID");
        let first = cursor.u8()?;
        match (first >> 6, first >> 4 & 0b11) {
            (0, 0) => self.read_managed(&mut cursor),
            (0, 1) => self.read_huge(&mut cursor),
            (0, 2) => self.read_tiny(first & 0x0f, &mut cursor),
            (version, kind) => Err(cursor.unsupported(&format!("version {version}, type {kind}"))),
        }
    }

    fn read_managed(&self, id: &mut Cursor<'_>) -> Result<Vec<u8>> {
        let offset = id.uint(self.offset_width)?;
        let length = id.uint(self.length_width)?;
        let (block, start) = self.direct_block(offset)?;
        let length = to_usize(length)?;
        let within = offset.checked_sub(start).map(to_usize).transpose()?;
        let rest = within.and_then(|within| block.get(within..));
        rest.and_then(|rest| rest.get(..length))
            .map(<[u8]>::to_vec)
            .ok_or_else(|| id.corrupt("reaches past its block"))
    }

    /// Returns the direct block that contains the byte at `offset` of the heap's address space, and
    /// the offset of the block's first byte.
    fn direct_block(&self, offset: u64) -> Result<(Arc<[u8]>, u64)> {
        let nowhere = || Error::corrupt("fractal heap: an object is outside all blocks", self.at);
        let mut block = BlockEntry {
            address: self.root.address.ok_or_else(nowhere)?,
            start: 0,
            size: self.table.starting_block_size,
            stored_size_and_mask: self.root.stored_size_and_mask,
        };
        let mut rows = self.root.rows;
        if rows == 0 {
            return Ok((self.read_direct(&block)?, 0));
        }
        for _ in 0..limits::TREE_DEPTH {
            let within = offset.checked_sub(block.start);
            let child = within.and_then(|within| self.table.child_at_offset(within));
            let child = child.filter(|child| child.row < rows).ok_or_else(nowhere)?;
            let found = self.child_entry(&block, rows, &child)?;
            let found = found.ok_or_else(nowhere)?;
            if self.is_full_listing {
                self.prefetch_siblings(&block, rows, &child, &found);
            }
            block = found;
            if child.row < self.table.max_direct_rows() {
                return Ok((self.read_direct(&block)?, block.start));
            }
            rows = self
                .table
                .rows_of_indirect(child.size)
                .ok_or_else(nowhere)?;
        }
        Err(Error::limit(
            "depth of a fractal heap",
            to_u64(limits::TREE_DEPTH),
        ))
    }

    /// Asks a remote source for the blocks after `child` in the indirect block `parent`, unless the
    /// block `found`, which is that child, is already available.
    fn prefetch_siblings(
        &self,
        parent: &BlockEntry,
        rows: u32,
        child: &ChildPosition,
        found: &BlockEntry,
    ) {
        let all = u64::from(rows).times(self.table.width);
        let later = child.entry.plus_one()..all;
        let siblings = later.filter_map(|entry| {
            let child = self.table.child_of_entry(entry)?;
            let block = self.child_entry(parent, rows, &child).ok()??;
            Some((block.address, self.stored_size(&child, &block)))
        });
        let length = self.stored_size(child, found);
        let expect = || siblings;
        self.metadata
            .prefetch_with_siblings(found.address, length, expect);
    }

    /// Returns the number of bytes that `block`, the block of `child`, has in the file.
    fn stored_size(&self, child: &ChildPosition, block: &BlockEntry) -> u64 {
        match child.row < self.table.max_direct_rows() {
            true if self.pipeline.0.is_empty() => block.size,
            true => block.stored_size_and_mask.0,
            false => {
                let rows = self.table.rows_of_indirect(block.size);
                self.indirect_size(rows.unwrap_or(0))
            }
        }
    }

    /// Returns the number of bytes that an indirect block stores for each direct block.
    fn direct_entry_size(&self) -> u64 {
        if self.pipeline.0.is_empty() {
            to_u64(self.metadata.size_of_offsets().bytes())
        } else {
            to_u64(self.metadata.structure_size(1, 1, 4))
        }
    }

    /// Returns how many direct and how many indirect blocks an indirect block of `rows` rows can
    /// list.
    fn entry_counts(&self, rows: u32) -> (u64, u64) {
        let direct = u64::from(rows.min(self.table.max_direct_rows()));
        let indirect = u64::from(rows).minus_or_zero(direct);
        let width = self.table.width;
        (direct.times(width), indirect.times(width))
    }

    /// Returns the number of bytes of an indirect block with `rows` rows.
    fn indirect_size(&self, rows: u32) -> u64 {
        let (direct, indirect) = self.entry_counts(rows);
        let offsets = to_u64(self.metadata.size_of_offsets().bytes());
        let entries = direct.times(self.direct_entry_size());
        Count::sum([
            self.block_header_size(),
            entries,
            indirect.times(offsets),
            4,
        ])
    }

    /// Reads the location of `child` from the indirect block `parent` of `rows` rows. Returns
    /// `None` if the child was never allocated.
    fn child_entry(
        &self,
        parent: &BlockEntry,
        rows: u32,
        child: &ChildPosition,
    ) -> Result<Option<BlockEntry>> {
        const WHAT: &str = "fractal heap indirect block";
        let metadata = &self.metadata;
        let address = parent.address;
        let offsets = to_u64(metadata.size_of_offsets().bytes());
        let direct_entry = self.direct_entry_size();
        let (direct, _) = self.entry_counts(rows);
        let length = self.indirect_size(rows);
        let verify = |block: &[u8]| verify_checksum(block, address, WHAT);
        let block = metadata.verified_block(address, length, WHAT, verify)?;
        let mut cursor = Cursor::new(&block, address, WHAT);
        cursor.expect_signature(b"FHIB")?;
        self.check_block_header(&mut cursor, parent.start)?;
        let (before, is_direct) = match child.entry.checked_sub(direct) {
            None => (child.entry.times(direct_entry), true),
            Some(after) => (direct.times(direct_entry).plus(after.times(offsets)), false),
        };
        cursor.skip(to_usize(before)?)?;
        let Some(address) = metadata.read_address(&mut cursor)? else {
            return Ok(None);
        };
        let filtered = if is_direct && !self.pipeline.0.is_empty() {
            (metadata.read_length(&mut cursor)?, cursor.u32()?)
        } else {
            (0, 0)
        };
        let start = parent.start.checked_add(child.start);
        let start = start.ok_or_else(|| cursor.corrupt("a child is after the end of the heap"))?;
        Ok(Some(BlockEntry {
            address,
            start,
            size: child.size,
            stored_size_and_mask: filtered,
        }))
    }

    /// Returns the number of bytes of the header of every block: signature, version, heap address,
    /// block offset. Direct blocks may have a checksum after it.
    fn block_header_size(&self) -> u64 {
        let others = self.offset_width.plus(4 + 1);
        to_u64(self.metadata.structure_size(1, 0, others))
    }

    /// Checks the version, heap address and block offset after a block's signature. `start` is the
    /// expected block offset. Thus a wrong block at the address is detected.
    fn check_block_header(&self, cursor: &mut Cursor<'_>, start: u64) -> Result<()> {
        cursor.read_version(0..=0)?;
        if self.metadata.read_address(cursor)? != Some(self.at) {
            return Err(cursor.corrupt("belongs to another heap"));
        }
        if cursor.uint(self.offset_width)? == start {
            Ok(())
        } else {
            Err(cursor.corrupt("its offset in the heap is wrong"))
        }
    }

    /// Returns the decoded bytes of a direct block.
    fn read_direct(&self, block: &BlockEntry) -> Result<Arc<[u8]>> {
        let bytes = self.fetch_direct(block)?;
        let mut cursor = Cursor::new(&bytes, block.address, DIRECT_BLOCK);
        cursor.expect_signature(b"FHDB")?;
        self.check_block_header(&mut cursor, block.start)?;
        Ok(bytes)
    }

    fn fetch_direct(&self, block: &BlockEntry) -> Result<Arc<[u8]>> {
        const WHAT: &str = DIRECT_BLOCK;
        let verify = |bytes: &[u8]| self.verify_direct(bytes, block.address);
        if self.pipeline.0.is_empty() {
            return self
                .metadata
                .verified_block(block.address, block.size, WHAT, verify);
        }
        let (stored, filter_mask) = block.stored_size_and_mask;
        if block.size > limits::METADATA_BLOCK || stored > limits::METADATA_BLOCK {
            return Err(Error::limit(WHAT, limits::METADATA_BLOCK));
        }
        self.metadata.cached_block(block.address, stored, || {
            let bytes = stored.plus(block.size);
            self.metadata.budget().spend(bytes)?;
            let stored = self
                .metadata
                .read_uncached(block.address.offset(), stored, WHAT)?;
            let length = to_usize(block.size)?;
            let bytes = self.decode_filters(filter_mask, stored, length)?;
            verify(&bytes)?;
            Ok(bytes)
        })
    }

    /// Checks the checksum of a direct block, if the heap has checksums. The checksum is after the
    /// block's header and covers the whole block, with the checksum's own bytes as zero.
    fn verify_direct(&self, bytes: &[u8], at: Address) -> Result<()> {
        if !self.checksummed {
            return Ok(());
        }
        let mut cursor = Cursor::new(bytes, at, DIRECT_BLOCK);
        let place = to_usize(self.block_header_size())?;
        cursor.skip(place)?;
        let stored = cursor.u32()?;
        if lookup3_with_zeros(bytes, place) == stored {
            Ok(())
        } else {
            Err(cursor.corrupt("wrong checksum"))
        }
    }

    /// Reads a huge object, which is stored outside of the heap's blocks. Its ID contains either
    /// its location or the key of a record in a version 2 B-tree.
    fn read_huge(&self, id: &mut Cursor<'_>) -> Result<Vec<u8>> {
        let metadata = &self.metadata;
        let is_filtered = !self.pipeline.0.is_empty();
        let in_id = if is_filtered {
            metadata.structure_size(1, 2, 4)
        } else {
            metadata.structure_size(1, 1, 0)
        };
        if self.id_length.minus_or_zero(1) >= in_id {
            return self.read_huge_at(is_filtered, id);
        }
        let key = id.uint(self.id_length.minus_or_zero(1).min(8))?;
        let missing = || id.corrupt("no huge object has that ID");
        let at = self.huge_objects.ok_or_else(missing)?;
        let record_type = if is_filtered { 2 } else { 1 };
        let index = BtreeV2::open(Arc::clone(metadata), at, record_type)?;
        let key_at = index
            .record_size()
            .minus_or_zero(metadata.structure_size(0, 1, 0));
        let mut compare = |record: &[u8]| -> Result<Ordering> {
            let mut cursor = Cursor::new(record, at, "huge object record");
            cursor.skip(key_at)?;
            Ok(key.cmp(&metadata.read_length(&mut cursor)?))
        };
        let record = index.find(&mut compare)?.ok_or_else(missing)?;
        self.read_huge_at(
            is_filtered,
            &mut Cursor::new(&record, at, "huge object record"),
        )
    }

    /// Reads the huge object whose address and length are next in `cursor`. Of an unfiltered object
    /// that is too long, only the first [`limits::HEAP_OBJECT`] bytes are returned. They contain
    /// the name if the object is an attribute.
    fn read_huge_at(&self, is_filtered: bool, cursor: &mut Cursor<'_>) -> Result<Vec<u8>> {
        const WHAT: &str = "huge object";
        let address = self.metadata.read_defined_address(cursor)?.offset();
        let length = self.metadata.read_length(cursor)?;
        if !is_filtered {
            check_range(&**self.metadata.source(), address, length, WHAT)?;
            let first = length.min(limits::HEAP_OBJECT);
            self.metadata.budget().spend(first)?;
            return self.metadata.read_uncached(address, first, WHAT);
        }
        let filter_mask = cursor.u32()?;
        let size = self.metadata.read_length(cursor)?;
        Error::check_limit(length.max(size), limits::HEAP_OBJECT, WHAT)?;
        self.metadata.budget().spend(length.plus(size))?;
        let stored = self.metadata.read_uncached(address, length, WHAT)?;
        self.decode_filters(filter_mask, stored, to_usize(size)?)
    }

    fn decode_filters(&self, filter_mask: u32, stored: Vec<u8>, length: usize) -> Result<Vec<u8>> {
        let context = &mut filter::DecoderResources::default();
        let stored = stored.into();
        filter::decode(
            &self.pipeline,
            filter_mask,
            stored,
            length,
            context,
            &|| true,
        )
        .map(Buffer::into_vec)
    }

    /// Returns a tiny object, which is stored in its ID. In longer IDs, the length of the object
    /// takes one more byte.
    fn read_tiny(&self, low_bits: u8, id: &mut Cursor<'_>) -> Result<Vec<u8>> {
        const SHORT_FORM: usize = 17;
        let length = if self.id_length.minus_or_zero(1) <= SHORT_FORM {
            usize::from(low_bits)
        } else {
            usize::from(low_bits) << 8 | usize::from(id.u8()?)
        };
        id.read_bytes(length.plus_one()).map(<[u8]>::to_vec)
    }
}

impl DoublingTable {
    fn check(&self, cursor: &Cursor<'_>) -> Result<()> {
        let powers_of_two = [
            self.width,
            self.starting_block_size,
            self.max_direct_block_size,
        ];
        let possible = powers_of_two.iter().all(|size| size.is_power_of_two())
            && self.starting_block_size <= self.max_direct_block_size
            && self.max_direct_block_size <= limits::METADATA_BLOCK
            && (1..=64).contains(&self.max_heap_bits)
            && self.width.checked_mul(self.starting_block_size).is_some();
        if possible {
            Ok(())
        } else {
            Err(cursor.corrupt("its block sizes are not possible"))
        }
    }

    /// Returns the number of rows of the doubling table that consist of direct blocks.
    fn max_direct_rows(&self) -> u32 {
        let doublings = self.max_direct_block_size.ilog2();
        doublings
            .minus_or_zero(self.starting_block_size.ilog2())
            .plus(2)
    }

    fn first_row_size(&self) -> u64 {
        self.width.times(self.starting_block_size)
    }

    /// Returns the number of rows of an indirect block that covers `size` bytes of the heap's
    /// address space, or `None` if `size` is less than one row.
    fn rows_of_indirect(&self, size: u64) -> Option<u32> {
        let doublings = size
            .checked_ilog2()?
            .checked_sub(self.first_row_size().ilog2())?;
        doublings.checked_add(1)
    }

    /// Returns the child block that entry number `entry` of an indirect block describes. Returns
    /// `None` on overflow.
    fn child_of_entry(&self, entry: u64) -> Option<ChildPosition> {
        let row = entry.checked_div(self.width)?;
        let column = entry.checked_rem(self.width)?;
        let doublings = u32::try_from(row.minus_or_zero(1)).ok()?;
        let size = self.starting_block_size.checked_shl(doublings)?;
        // All previous rows together have the size of this row, except for the first two rows.
        let before = match row {
            0 => 0,
            _ => self.width.checked_mul(size)?,
        };
        Some(ChildPosition {
            row: u32::try_from(row).ok()?,
            entry,
            start: before.checked_add(column.checked_mul(size)?)?,
            size,
        })
    }

    /// Returns the child block that contains the byte at `offset` of the part of the address space
    /// that its parent covers. Returns `None` on overflow.
    fn child_at_offset(&self, offset: u64) -> Option<ChildPosition> {
        let first_row = self.first_row_size();
        let (row, row_start, size) = if offset < first_row {
            (0, 0, self.starting_block_size)
        } else {
            let row = offset
                .ilog2()
                .checked_sub(first_row.ilog2())?
                .checked_add(1)?;
            let doublings = row.checked_sub(1)?;
            let row_start = first_row.checked_shl(doublings)?;
            (
                row,
                row_start,
                self.starting_block_size.checked_mul(1 << doublings)?,
            )
        };
        let column = offset.checked_sub(row_start)?.checked_div(size)?;
        let entry = u64::from(row)
            .checked_mul(self.width)?
            .checked_add(column)?;
        let start = row_start.checked_add(column.checked_mul(size)?)?;
        Some(ChildPosition {
            row,
            entry,
            start,
            size,
        })
    }
}

/// Returns the number of bytes of the length field in the ID of a managed object.
fn length_width(max_direct_block_size: u64, max_managed_size: u64) -> usize {
    let log2 = |size: u64| size.checked_ilog2().unwrap_or(0);
    let by_block = log2(max_direct_block_size).div_ceil(8);
    let by_object = log2(max_managed_size).wrapping_div(8).plus_one();
    usize::try_from(by_block.min(by_object)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starting size 512, width 4: rows with blocks of 512, 512, 1024, 2048 … bytes.
    const TABLE: DoublingTable = DoublingTable {
        width: 4,
        starting_block_size: 512,
        max_direct_block_size: 65_536,
        max_heap_bits: 32,
    };

    #[test]
    fn offsets_lead_to_blocks() {
        let place = |offset| {
            TABLE
                .child_at_offset(offset)
                .map(|child| (child.row, child.entry, child.start))
        };
        assert_eq!(place(0), Some((0, 0, 0)));
        assert_eq!(place(2047), Some((0, 3, 1536)));
        assert_eq!(place(2048), Some((1, 4, 2048)));
        assert_eq!(place(4096 + 1024), Some((2, 9, 4096 + 1024)));
    }

    #[test]
    fn entries_and_offsets_lead_to_the_same_blocks() {
        for entry in 0..40 {
            let child = TABLE.child_of_entry(entry).unwrap();
            for offset in [child.start, child.start + child.size - 1] {
                let found = TABLE.child_at_offset(offset).unwrap();
                let (place, own) = ((found.row, found.start, found.size), found.entry);
                assert_eq!((place, own), ((child.row, child.start, child.size), entry));
            }
        }
    }

    /// A child of 131072 bytes has seven rows: 2048 · 2^6 bytes.
    #[test]
    fn rows_follow_from_the_span() {
        assert_eq!(TABLE.rows_of_indirect(131_072), Some(7));
        assert_eq!(TABLE.rows_of_indirect(1024), None);
        assert_eq!(TABLE.max_direct_rows(), 9);
    }

    #[test]
    fn lengths_are_as_wide_as_blocks_or_objects_need() {
        assert_eq!(length_width(65_536, 4096), 2);
        assert_eq!(length_width(65_536, 100), 1);
    }
}
