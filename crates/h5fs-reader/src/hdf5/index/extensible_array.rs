//! The extensible array index, for datasets that grow in one dimension. Its entries are in blocks
//! whose sizes double.
//!
//! HDF5 3.0, VII.D. The first entries are in the index block itself, and the others are in super
//! blocks. Super block u has 2^(u/2) data blocks of min * 2^((u+1)/2) entries each. Divisions round
//! down, and min is the minimum number of entries from the header. The index block contains the
//! addresses of the data blocks of the first super blocks. Each later super block has a secondary
//! block with the addresses of its data blocks. If the data blocks are paged, the secondary block
//! also contains the bitmap of their pages.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::Result;
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::file::number_form::Address;
use crate::hdf5::index::ChunkGeometry;
use crate::hdf5::index::array::{ArrayBlock, ChunkArray, ChunkArrayLayout, DataBlock, Paging};
use crate::hdf5::index::entry::ChunkEntryFormat;
use crate::hdf5::index::numbering::ChunkNumbering;
use crate::memory::request_budget::RequestBudget;
use crate::model::storage::{ChunkVisitor, StoredChunk};
use crate::wire::{Count, Cursor, to_u64, to_usize};

/// Assumed number of bytes of a block in addition to its content.
const ASSUMED_PREFIX_BYTES: u64 = 64;

const HEADER: &str = "extensible array header";
const INDEX_BLOCK: &str = "extensible array index block";
const SECONDARY_BLOCK: &str = "extensible array secondary block";
const DATA_BLOCK: &str = "extensible array data block";
const PAGE: &str = "extensible array data block page";

/// The index of a dataset whose chunks are in an extensible array.
#[derive(Debug, Clone)]
pub(crate) struct ExtensibleArray {
    chunks: ChunkArrayLayout,
    sizes: CreationParameters,
}

/// The creation parameters in the header of an extensible array. The sizes of all its blocks follow
/// from them.
#[derive(Debug, Clone, Copy)]
struct CreationParameters {
    max_bits: u8,
    index_entries: u64,
    min_entries: u64,
    min_pointers: u64,
    page_bits: u8,
}

/// A super block: a set of data blocks of equal size. It is not a structure of its own in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SuperBlock {
    /// Number of data blocks of the super block.
    blocks: u64,
    /// Number of entries of each data block.
    entries: u64,
    /// Number of entries in all earlier super blocks, without the entries in the index block.
    start: u64,
}

impl SuperBlock {
    /// Returns the number of entries in all data blocks of the array before data block `i` of this
    /// super block. Entries in the index block are not counted.
    fn block_start(&self, i: u64) -> u64 {
        self.start.plus(i.times(self.entries))
    }
}

impl CreationParameters {
    /// Reads the creation parameters, of one byte each, from the header.
    ///
    /// # Errors
    /// `Corrupt` if the parameters are impossible, such as a minimum that is not a power of two.
    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let sizes = CreationParameters {
            max_bits: cursor.u8()?,
            index_entries: u64::from(cursor.u8()?),
            min_entries: u64::from(cursor.u8()?),
            min_pointers: u64::from(cursor.u8()?),
            page_bits: cursor.u8()?,
        };
        let powers = sizes.min_entries.is_power_of_two() && sizes.min_pointers.is_power_of_two();
        if !powers || sizes.max_bits > 64 || sizes.super_blocks() < sizes.direct_super_blocks() {
            return Err(cursor.corrupt("its sizes are not possible"));
        }
        Ok(sizes)
    }

    fn super_blocks(&self) -> u32 {
        let min_bits = self.min_entries.checked_ilog2().unwrap_or(0);
        let max_bits = u32::from(self.max_bits);
        max_bits.plus_one().minus_or_zero(min_bits)
    }

    /// Returns the number of super blocks whose data blocks are addressed by the index block, and
    /// not by a secondary block.
    fn direct_super_blocks(&self) -> u32 {
        let bits = self.min_pointers.checked_ilog2().unwrap_or(0);
        bits.times(2)
    }

    /// Returns the super block with the number `u`, or `None` if its sizes exceed 64 bits.
    fn super_block(&self, u: u32) -> Option<SuperBlock> {
        let blocks = 1_u64.checked_shl(u / 2)?;
        let doubled = 1_u64.checked_shl(u.checked_add(1)? / 2)?;
        let before = 1_u64.checked_shl(u)?.checked_sub(1)?;
        let entries = self.min_entries.checked_mul(doubled)?;
        let start = self.min_entries.checked_mul(before)?;
        start.checked_add(blocks.checked_mul(entries)?)?; // its end
        Some(SuperBlock {
            blocks,
            entries,
            start,
        })
    }

    /// Returns the number of data blocks of all super blocks before super block `u`. The index
    /// block must address super block `u`.
    fn blocks_before(&self, u: u32) -> u64 {
        let before = (0..u).filter_map(|u| self.super_block(u));
        Count::sum(before.map(|block| block.blocks))
    }

    /// Returns the number of the super block that contains entry `i`, and the super block. `i` does
    /// not count the entries in the index block. Returns `None` after the last entry.
    fn find_super_block(&self, i: u64) -> Option<(u32, SuperBlock)> {
        let doubled = i.checked_div(self.min_entries)?.checked_add(1)?;
        let u = doubled.checked_ilog2()?;
        (u < self.super_blocks()).then_some(())?;
        Some((u, self.super_block(u)?))
    }

    /// Returns the number of bytes of the field "Block Offset" in secondary blocks and data blocks.
    fn offset_width(&self) -> usize {
        usize::from(self.max_bits.div_ceil(8))
    }

    /// Returns how the entries of a data block of `super_block` are distributed over pages.
    fn paging(&self, super_block: SuperBlock) -> Paging {
        Paging::new(super_block.entries, self.page_bits, PAGE)
    }
}

/// A super block, and the block that contains the addresses of its data blocks.
#[derive(Debug)]
struct DataBlockAddresses {
    super_block: SuperBlock,
    paging: Paging,
    /// The index block or secondary block that contains the addresses.
    block: ArrayBlock,
    /// Number of bytes from the start of the content of `block` to the address of the super block's
    /// first data block.
    before: u64,
    /// Number of addresses of data blocks in `block` before those of this super block.
    addresses_before: u64,
    /// Whether the content of `block` begins with the bitmap of written pages.
    has_bitmap: bool,
}

impl ExtensibleArray {
    /// Opens the index. `at` is the absolute offset of the header, and `filtered` states whether
    /// the dataset has filters.
    ///
    /// # Errors
    /// `Corrupt` if the header is damaged or does not fit the dataset.
    pub(crate) fn open(
        meta: Arc<Metadata>,
        at: Address,
        geometry: ChunkGeometry,
        filtered: bool,
    ) -> Result<Self> {
        let statistics = meta.structure_size(0, 6, 0);
        let widths = meta.structure_size(1, 6, 0);
        // The fields of `widths` bytes follow signature, version, client, entry size and the sizes,
        // which are twelve bytes.
        let block = ArrayBlock::read(&meta, at, 12, to_u64(widths), HEADER)?;
        let mut cursor = block.cursor_after_signature(b"EAHD", filtered)?;
        let entry_size = usize::from(cursor.u8()?);
        let sizes = CreationParameters::read(&mut cursor)?;
        cursor.skip(statistics)?;
        let root = meta.read_address(&mut cursor)?;
        let form = ChunkEntryFormat::new(&meta, filtered, entry_size, &geometry, &cursor)?;
        let numbering = ChunkNumbering::for_growing(&geometry, at)?;
        Ok(ExtensibleArray {
            chunks: ChunkArrayLayout {
                meta,
                geometry,
                numbering,
                form,
                header: at,
                root,
            },
            sizes,
        })
    }
}

impl ChunkArray for ExtensibleArray {
    fn with_budget(&self, budget: &RequestBudget) -> Self {
        ExtensibleArray {
            chunks: self.chunks.with_budget(budget),
            ..self.clone()
        }
    }

    fn chunks(&self) -> &ChunkArrayLayout {
        &self.chunks
    }

    fn chunk(&self, root: Address, number: u64) -> Result<Option<StoredChunk>> {
        let index = self.index_block(root)?;
        let Some(i) = number.checked_sub(self.sizes.index_entries) else {
            return self.chunks.entry(&index, number);
        };
        let Some((u, super_block)) = self.sizes.find_super_block(i) else {
            return Ok(None);
        };
        let rest = i.minus_or_zero(super_block.start);
        let data_block = rest.checked_div(super_block.entries).unwrap_or(0);
        let entry = rest.checked_rem(super_block.entries).unwrap_or(0);
        let Some(addresses) = self.locate_addresses(&index, u)? else {
            return Ok(None);
        };
        let Some(block) = self.read_data_block(&addresses, data_block)? else {
            return Ok(None);
        };
        let data_block = self.data_block(&addresses, data_block, &block)?;
        self.chunks.chunk_in_data_block(&data_block, entry)
    }

    fn visit(
        &self,
        root: Address,
        from: u64,
        visit: &mut ChunkVisitor<'_>,
    ) -> Result<ControlFlow<u64>> {
        let index = self.index_block(root)?;
        let in_index = (0, self.sizes.index_entries);
        let visited = self.chunks.visit(&index, in_index, from, visit)?;
        if visited.is_break() {
            return Ok(visited);
        }
        let before = from.minus_or_zero(self.sizes.index_entries);
        let first = self.sizes.find_super_block(before).map(|(u, _)| u);
        for u in first.unwrap_or(self.sizes.super_blocks())..self.sizes.super_blocks() {
            let visited = self.walk_super_block(&index, u, from, visit)?;
            if visited.is_break() {
                return Ok(visited);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl ExtensibleArray {
    fn walk_super_block(
        &self,
        index: &ArrayBlock,
        u: u32,
        from: u64,
        visit: &mut ChunkVisitor<'_>,
    ) -> Result<ControlFlow<u64>> {
        let Some(addresses) = self.locate_addresses(index, u)? else {
            return Ok(ControlFlow::Continue(()));
        };
        let SuperBlock { start, entries, .. } = addresses.super_block;
        let before = from.minus_or_zero(self.sizes.index_entries);
        let first = before.minus_or_zero(start).checked_div(entries);
        for i in first.unwrap_or(0)..addresses.super_block.blocks {
            let Some(block) = self.read_data_block(&addresses, i)? else {
                continue;
            };
            let data_block = self.data_block(&addresses, i, &block)?;
            let visited = self.chunks.visit_all(&data_block, from, visit)?;
            if visited.is_break() {
                return Ok(visited);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn index_block(&self, at: Address) -> Result<ArrayBlock> {
        let entries = self.chunks.entries_size(self.sizes.index_entries);
        let super_blocks = self.sizes.super_blocks();
        let secondary = super_blocks.minus_or_zero(self.sizes.direct_super_blocks());
        let addresses = self
            .sizes
            .blocks_before(self.sizes.direct_super_blocks())
            .plus(u64::from(secondary));
        let content = entries.plus(self.address_bytes(addresses));
        let prefix = self.chunks.block_prefix_size();
        let block = self.chunks.read_block(at, prefix, content, INDEX_BLOCK)?;
        self.chunks.cursor_after_prefix(&block, b"EAIB")?;
        Ok(block)
    }

    /// Returns where the addresses of the data blocks of super block `u` are stored. `index` is the
    /// index block. Returns `None` if the super block was not written.
    fn locate_addresses(&self, index: &ArrayBlock, u: u32) -> Result<Option<DataBlockAddresses>> {
        let entries = self.chunks.entries_size(self.sizes.index_entries);
        if u >= self.sizes.direct_super_blocks() {
            let Some(at) = self.secondary_address(index, u)? else {
                return Ok(None);
            };
            self.prefetch_secondary(index, u, at);
            return self.secondary_block(index, u, at).map(Some);
        }
        let super_block = self.super_block(index, u)?;
        let first_block = self.sizes.blocks_before(u);
        Ok(Some(DataBlockAddresses {
            super_block,
            paging: self.sizes.paging(super_block),
            block: index.clone(),
            before: entries.plus(self.address_bytes(first_block)),
            addresses_before: first_block,
            has_bitmap: false,
        }))
    }

    /// Returns the address of the secondary block of super block `u`, which the index block `index`
    /// stores after the addresses of data blocks. Returns `None` for the undefined address.
    fn secondary_address(&self, index: &ArrayBlock, u: u32) -> Result<Option<Address>> {
        let direct = self.sizes.direct_super_blocks();
        let slots = self.sizes.blocks_before(direct);
        let slots = slots.plus(u.minus_or_zero(direct).into());
        let entries = self.chunks.entries_size(self.sizes.index_entries);
        self.address_at(index, entries.plus(self.address_bytes(slots)))
    }

    /// Asks a remote source for the secondary block of super block `u`, at address `at`, and the
    /// secondary blocks after it, unless the block at `at` is already available.
    fn prefetch_secondary(&self, index: &ArrayBlock, u: u32, at: Address) {
        let length = |u| {
            let super_block = self.sizes.super_block(u)?;
            Some(
                self.secondary_content(super_block)
                    .plus(ASSUMED_PREFIX_BYTES),
            )
        };
        let place = |u| Some((self.secondary_address(index, u).ok()??, length(u)?));
        let later = u.plus_one()..self.sizes.super_blocks();
        let first = length(u).unwrap_or(ASSUMED_PREFIX_BYTES);
        let meta = &self.chunks.meta;
        meta.prefetch_with_siblings(at, first, || later.filter_map(place));
    }

    /// Returns the number of bytes of the bitmap of pages and the addresses in the secondary block
    /// of `super_block`.
    fn secondary_content(&self, super_block: SuperBlock) -> u64 {
        self.bitmap_bytes(super_block)
            .plus(self.address_bytes(super_block.blocks))
    }

    /// Returns the number of bytes of the bitmap of all pages of `super_block`.
    fn bitmap_bytes(&self, super_block: SuperBlock) -> u64 {
        let pages = self.sizes.paging(super_block).pages();
        pages.div_ceil(8).times(super_block.blocks)
    }

    /// Reads the secondary block of super block `u` at address `at`: the bitmap of pages, if there
    /// are any, and the addresses of the data blocks.
    fn secondary_block(
        &self,
        index: &ArrayBlock,
        u: u32,
        at: Address,
    ) -> Result<DataBlockAddresses> {
        let super_block = self.super_block(index, u)?;
        let paging = self.sizes.paging(super_block);
        let bitmap = self.bitmap_bytes(super_block);
        let content = self.secondary_content(super_block);
        let prefix = self.block_header_size();
        let block = self
            .chunks
            .read_block(at, prefix, content, SECONDARY_BLOCK)?;
        if self.stored_block_offset(&block, b"EASB")? != super_block.start {
            return Err(block.corrupt("its offset in the array is wrong"));
        }
        Ok(DataBlockAddresses {
            super_block,
            paging,
            block,
            before: bitmap,
            addresses_before: 0,
            has_bitmap: true,
        })
    }

    fn super_block(&self, index: &ArrayBlock, u: u32) -> Result<SuperBlock> {
        let super_block = self.sizes.super_block(u);
        super_block.ok_or_else(|| index.corrupt("the number of a super block is too large"))
    }

    /// Reads data block `i` of a super block, without the pages after it. Returns `None` if the
    /// block was never written.
    fn read_data_block(
        &self,
        addresses: &DataBlockAddresses,
        i: u64,
    ) -> Result<Option<ArrayBlock>> {
        let address = |i| {
            let before = addresses.before.plus(self.address_bytes(i));
            self.address_at(&addresses.block, before)
        };
        let Some(at) = address(i)? else {
            return Ok(None);
        };
        let content = self.chunks.inline_entries_size(addresses.paging);
        let length = content.plus(ASSUMED_PREFIX_BYTES);
        self.chunks.meta.prefetch_with_siblings(at, length, || {
            let later = i.plus_one()..addresses.super_block.blocks;
            later.filter_map(|i| Some((address(i).ok()??, length)))
        });
        let prefix = self.block_header_size();
        let block = self.chunks.read_block(at, prefix, content, DATA_BLOCK)?;
        let offset = self.stored_block_offset(&block, b"EADB")?;
        let start = addresses.super_block.block_start(i);
        // For a data block that the index block addresses, the HDF5 library computes the offset
        // from the number of the block among all data blocks.
        let counted = addresses
            .super_block
            .block_start(addresses.addresses_before.plus(i));
        if offset == start || offset == counted {
            Ok(Some(block))
        } else {
            Err(block.corrupt("its offset in the array is wrong"))
        }
    }

    /// Returns data block `i` of a super block, with the position of its bits in the bitmap of
    /// pages. The bits of all data blocks are contiguous, although whole bytes are reserved for
    /// each block.
    fn data_block<'b>(
        &self,
        addresses: &'b DataBlockAddresses,
        i: u64,
        block: &'b ArrayBlock,
    ) -> Result<DataBlock<'b>> {
        let bitmap = addresses.block.content_cursor()?;
        let paging = addresses.paging;
        if paging.pages() > 0 && !addresses.has_bitmap {
            return Err(bitmap.unsupported("paged data block without a bitmap"));
        }
        let before = addresses.super_block.block_start(i);
        Ok(DataBlock {
            block,
            paging,
            start: before.plus(self.sizes.index_entries),
            bitmap: bitmap.rest(),
            first_bit: i.times(paging.pages()),
        })
    }

    /// Returns the address that `block` stores `before` bytes after the start of its content.
    /// Returns `None` for the undefined address.
    fn address_at(&self, block: &ArrayBlock, before: u64) -> Result<Option<Address>> {
        let mut cursor = block.content_cursor()?;
        cursor.skip(to_usize(before)?)?;
        self.chunks.meta.read_address(&mut cursor)
    }

    /// Returns the field "Block Offset" of `block`: the number of entries of the array before the
    /// block. A wrong block at the address is detected by this number.
    fn stored_block_offset(&self, block: &ArrayBlock, signature: &[u8]) -> Result<u64> {
        let mut cursor = self.chunks.cursor_after_prefix(block, signature)?;
        cursor.uint(self.sizes.offset_width())
    }

    /// Returns the number of bytes of the header of a secondary block or data block, from the
    /// signature to the content.
    fn block_header_size(&self) -> usize {
        let width = self.sizes.offset_width();
        self.chunks.block_prefix_size().plus(width)
    }

    fn address_bytes(&self, count: u64) -> u64 {
        count.times(to_u64(self.chunks.meta.size_of_offsets().bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdf5::testing::{at, file, walk_chunks, with_checksum, words};
    use crate::model::storage::ChunkIndex;

    const UNDEFINED: u64 = u64::MAX;

    /// Checks the library's defaults. According to the specification's table, the index block has
    /// six data block addresses. The data blocks have 16, 32, 32, 32, 64 and 64 entries. The index
    /// block also has 25 secondary block addresses.
    #[test]
    fn super_blocks_double() {
        let sizes = CreationParameters {
            max_bits: 32,
            index_entries: 4,
            min_entries: 16,
            min_pointers: 4,
            page_bits: 10,
        };
        assert_eq!(sizes.direct_super_blocks(), 4);
        assert_eq!(sizes.blocks_before(4), 6);
        assert_eq!(sizes.super_blocks() - sizes.direct_super_blocks(), 25);
        let entries: Vec<_> = (0..4)
            .map(|u| sizes.super_block(u).unwrap().entries)
            .collect();
        assert_eq!(entries, [16, 32, 32, 64]);
        // 16 + 32 + 2 * 32 = 112 entries come before the fourth.
        assert_eq!(sizes.find_super_block(111).unwrap().0, 2);
        assert_eq!(sizes.find_super_block(112).unwrap().0, 3);
        // Twenty-nine super blocks: 16 * (2^29 - 1) entries.
        let total = 16 * ((1 << 29) - 1);
        assert_eq!(sizes.find_super_block(total - 1).unwrap().0, 28);
        assert_eq!(sizes.find_super_block(total), None);
    }

    /// Returns a small file:
    ///
    /// - One entry is in the index block.
    /// - The super blocks have 1 x 2, 1 x 4, 2 x 4 and 2 x 8 entries.
    /// - The index block addresses the first two super blocks.
    /// - Data blocks of eight entries are divided into two pages.
    /// - The stored chunks are 0, 2 and 23.
    /// - Chunk 23 is at the start of the first page of the fourth super block's second data block.
    fn blocks() -> [(usize, Vec<u8>); 6] {
        let header = [
            &b"EAHD\0\0\x08\x05\x01\x02\x02\x02"[..],
            &words(&[0; 6]),
            &words(&[100]),
        ]
        .concat();
        // One entry, two data blocks, and secondary blocks for the third to the fifth super block.
        let addresses = [5000, 300, UNDEFINED, UNDEFINED, 400, UNDEFINED];
        let index = [b"EAIB\0\0", &words(&[0])[..], &words(&addresses)].concat();
        let direct = [
            b"EADB\0\0",
            &words(&[0])[..],
            &[0],
            &words(&[UNDEFINED, 6000]),
        ]
        .concat();
        // The third page of the super block is written. One byte of the bitmap is reserved for each
        // data block, but the bits are contiguous.
        let bitmap = [0b0010_0000, 0];
        let secondary = [
            b"EASB\0\0",
            &words(&[0])[..],
            &[14],
            &bitmap,
            &words(&[UNDEFINED, 500]),
        ]
        .concat();
        let paged = [b"EADB\0\0", &words(&[0])[..], &[14 + 8]].concat();
        let page = words(&[7000, UNDEFINED, UNDEFINED, UNDEFINED]);
        [
            (0, with_checksum(header)),
            (100, with_checksum(index)),
            (300, with_checksum(direct)),
            (400, with_checksum(secondary)),
            (500, with_checksum(paged)),
            (500 + 19, with_checksum(page)),
        ]
    }

    fn open(blocks: [(usize, Vec<u8>); 6]) -> ExtensibleArray {
        let geometry = ChunkGeometry::new(vec![31], vec![None], vec![1], 8, 0).unwrap();
        ExtensibleArray::open(file(blocks), at(0), geometry, false).unwrap()
    }

    #[test]
    fn page_bits_follow_each_other_over_data_blocks() {
        let array = open(blocks());
        let stored = vec![(vec![0], 5000), (vec![2], 6000), (vec![23], 7000)];
        assert_eq!(walk_chunks(&array), Ok(stored.clone()));
        for number in 0..31 {
            let found = array.find(&[number]).unwrap();
            let expected = stored.iter().find(|(place, _)| place[0] == number);
            assert_eq!(
                found.map(|chunk| chunk.offset),
                expected.map(|(_, offset)| *offset)
            );
        }
    }

    #[test]
    fn a_block_at_a_wrong_address_is_rejected() {
        let mut blocks = blocks();
        let twice = [b"EASB\0\0", &words(&[0])[..], &[14, 0b1010_0000, 0]].concat();
        blocks[3].1 = with_checksum([twice, words(&[500, 500])].concat());
        let array = open(blocks);
        assert!(array.find(&[15]).is_err());
        assert!(array.find(&[23]).unwrap().is_some());
    }
}
