//! The common part of fixed and extensible arrays. Both find a chunk by its number, in blocks of
//! entries that are protected by checksums. Blocks with many entries are divided into pages.
//!
//! HDF5 3.0, VII.C and VII.D.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hdf5::file::metadata::{Metadata, verify_checksum};
use crate::hdf5::file::number_form::Address;
use crate::hdf5::index::entry::ChunkEntryFormat;
use crate::hdf5::index::numbering::ChunkNumbering;
use crate::hdf5::index::{ChunkGeometry, chunks_along, is_bit_set};
use crate::memory::request_budget::RequestBudget;
use crate::model::storage::{ChunkIndex, ChunkVisitor, IndexCursor, StoredChunk};
use crate::wire::{Count, Cursor, to_u64, to_usize};

const CHECKSUM: u64 = 4;

/// A chunk index that is an array: entry i locates the chunk with the number i.
pub(super) trait ChunkArray: Sized + fmt::Debug + Send + Sync {
    /// Returns a view of the same array whose reads are charged to `budget`.
    fn with_budget(&self, budget: &RequestBudget) -> Self;

    /// Returns the common part of the array.
    fn chunks(&self) -> &ChunkArrayLayout;

    /// Returns the chunk with the number `number`, or `None` if it was never stored. `root` is the
    /// address of the array's first block.
    fn chunk(&self, root: Address, number: u64) -> Result<Option<StoredChunk>>;

    /// Calls `visit` with the stored chunks whose number is `from` or higher. If `visit` breaks,
    /// returns the number of the next chunk. `root` is the address of the array's first block.
    fn visit(
        &self,
        root: Address,
        from: u64,
        visit: &mut ChunkVisitor<'_>,
    ) -> Result<ControlFlow<u64>>;
}

impl<A: ChunkArray> ChunkIndex for A {
    fn find(&self, place: &[u64]) -> Result<Option<StoredChunk>> {
        match (self.chunks().root, self.chunks().chunk_number(place)) {
            (Some(root), Some(number)) => self.chunk(root, number),
            _ => Ok(None),
        }
    }

    fn find_with_budget(
        &self,
        place: &[u64],
        budget: &RequestBudget,
    ) -> Result<Option<StoredChunk>> {
        self.with_budget(budget).find(place)
    }

    fn walk_from(
        &self,
        place: &mut IndexCursor,
        budget: &RequestBudget,
        visit: &mut ChunkVisitor<'_>,
    ) -> Result<()> {
        let from = place.0.first().copied().unwrap_or(0);
        if let Some(root) = self.chunks().root {
            let next = self
                .with_budget(budget)
                .visit(root, from, visit)?
                .break_value();
            place.0 = vec![next.unwrap_or(u64::MAX)];
        }
        Ok(())
    }
}

/// The common part of fixed and extensible arrays: the numbers of the chunks, and the form of their
/// entries.
#[derive(Debug, Clone)]
pub(super) struct ChunkArrayLayout {
    pub(super) meta: Arc<Metadata>,
    pub(super) geometry: ChunkGeometry,
    pub(super) numbering: ChunkNumbering,
    pub(super) form: ChunkEntryFormat,
    /// Absolute offset of the array's header, which is stored in all its blocks.
    pub(super) header: Address,
    /// Absolute offset of the array's first block, or `None` if no block was ever written.
    pub(super) root: Option<Address>,
}

impl ChunkArrayLayout {
    /// Returns a view of the same chunks whose reads are charged to `budget`.
    pub(super) fn with_budget(&self, budget: &RequestBudget) -> Self {
        ChunkArrayLayout {
            meta: self.meta.with_budget(budget),
            ..self.clone()
        }
    }

    /// Returns the number of the chunk with the grid coordinates `place`, or `None` if the chunk is
    /// outside of the current extent.
    fn chunk_number(&self, place: &[u64]) -> Option<u64> {
        if self.geometry.is_in_extent(place) {
            self.numbering.chunk_number(place)
        } else {
            None
        }
    }

    /// Returns the number of bytes of `count` entries together.
    pub(super) fn entries_size(&self, count: u64) -> u64 {
        count.times(to_u64(self.form.size))
    }

    /// Returns the number of bytes at the start of a block: signature, version, client ID and
    /// address of the array's header.
    pub(super) fn block_prefix_size(&self) -> usize {
        self.meta.structure_size(1, 0, 6)
    }

    /// Reads the block at `at`, see [`ArrayBlock::read`].
    pub(super) fn read_block(
        &self,
        at: Address,
        before: usize,
        after: u64,
        what: &'static str,
    ) -> Result<ArrayBlock> {
        ArrayBlock::read(&self.meta, at, before, after, what)
    }

    /// Returns a cursor after the signature, version, client ID and header address of `block`,
    /// which must belong to this array.
    pub(super) fn cursor_after_prefix<'b>(
        &self,
        block: &'b ArrayBlock,
        signature: &[u8],
    ) -> Result<Cursor<'b>> {
        let mut cursor = block.cursor_after_signature(signature, self.form.is_filtered())?;
        if self.meta.read_address(&mut cursor)? == Some(self.header) {
            Ok(cursor)
        } else {
            Err(cursor.corrupt("belongs to another array"))
        }
    }

    /// Returns the number of bytes of the entries in a data block itself, which is 0 if they are in
    /// pages.
    pub(super) fn inline_entries_size(&self, paging: Paging) -> u64 {
        match paging.pages() {
            0 => self.entries_size(paging.entries),
            _ => 0,
        }
    }

    /// Returns the chunk that entry `i` of the data block `data` locates, or `None` if the chunk
    /// was never stored.
    pub(super) fn chunk_in_data_block(
        &self,
        data: &DataBlock<'_>,
        i: u64,
    ) -> Result<Option<StoredChunk>> {
        if data.paging.pages() == 0 {
            return self.entry(data.block, i);
        }
        let (page, i) = data.paging.locate(i);
        match self.read_page(data, page)? {
            Some(page) => self.entry(&page, i),
            None => Ok(None),
        }
    }

    /// Calls `visit` with the stored chunks of the data block `data` whose number is `from` or
    /// higher. If `visit` breaks, returns the number of the next chunk.
    pub(super) fn visit_all(
        &self,
        data: &DataBlock<'_>,
        from: u64,
        visit: &mut ChunkVisitor<'_>,
    ) -> Result<ControlFlow<u64>> {
        let DataBlock { paging, start, .. } = *data;
        if paging.pages() == 0 {
            return self.visit(data.block, (start, paging.entries), from, visit);
        }
        let (first_page, _) = paging.locate(from.minus_or_zero(start));
        for page in first_page..paging.pages() {
            let Some(block) = self.read_page(data, page)? else {
                continue;
            };
            let (first, count) = paging.page_span(page);
            let span = (start.plus(first), count);
            let visited = self.visit(&block, span, from, visit)?;
            if visited.is_break() {
                return Ok(visited);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Reads page `page` of the data block `data`. Returns `None` if the page was never written.
    /// Each page has its own checksum.
    fn read_page(&self, data: &DataBlock<'_>, page: u64) -> Result<Option<ArrayBlock>> {
        let DataBlock { block, paging, .. } = *data;
        if !is_bit_set(data.bitmap, data.first_bit.plus(page)) {
            return Ok(None);
        }
        let past = || block.corrupt("its end is after the end of all files");
        let at = self.page_address(data, page).ok_or_else(past)?;
        let stride = self.page_stride(paging);
        self.meta.prefetch_with_siblings(at, stride, || {
            let later = page.plus_one()..paging.pages();
            let is_written = |&page: &u64| {
                let bit = data.first_bit.plus(page);
                is_bit_set(data.bitmap, bit)
            };
            let place = |page| Some((self.page_address(data, page)?, stride));
            later.filter(is_written).filter_map(place)
        });
        let (_, count) = paging.page_span(page);
        let page = self.read_block(at, 0, self.entries_size(count), paging.what)?;
        Ok(Some(page))
    }

    /// Returns the number of bytes from one page of a data block to the next.
    fn page_stride(&self, paging: Paging) -> u64 {
        self.entries_size(paging.page_entries).plus(CHECKSUM)
    }

    fn page_address(&self, data: &DataBlock<'_>, page: u64) -> Option<Address> {
        let before = self.page_stride(data.paging).checked_mul(page)?;
        data.block.end()?.after(before)
    }

    pub(super) fn entry(&self, block: &ArrayBlock, i: u64) -> Result<Option<StoredChunk>> {
        let mut cursor = block.content_cursor()?;
        cursor.skip(to_usize(self.entries_size(i))?)?;
        self.form.read(&self.meta, &mut cursor)
    }

    /// Calls `visit` with the stored chunks in the first `count` entries of `block` whose number is
    /// `from` or higher. Entry 0 of `block` locates the chunk with the number `first`. If `visit`
    /// breaks, returns the number of the next chunk.
    pub(super) fn visit(
        &self,
        block: &ArrayBlock,
        (first, count): (u64, u64),
        from: u64,
        visit: &mut ChunkVisitor<'_>,
    ) -> Result<ControlFlow<u64>> {
        let skipped = from.minus_or_zero(first).min(count);
        let mut cursor = block.content_cursor()?;
        cursor.skip(to_usize(self.entries_size(skipped))?)?;
        let mut place = vec![0; self.geometry.rank()];
        for i in skipped..count {
            let Some(chunk) = self.form.read(&self.meta, &mut cursor)? else {
                continue;
            };
            let number = first.plus(i);
            self.numbering.write_grid_coordinates(number, &mut place);
            if self.geometry.is_in_extent(&place) && visit(&place, chunk).is_break() {
                return Ok(ControlFlow::Break(number.plus_one()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// A block of an array whose checksum was verified.
#[derive(Debug, Clone)]
pub(super) struct ArrayBlock {
    bytes: Arc<[u8]>,
    at: Address,
    /// Number of bytes in the block before the entries, or before the bitmap of pages.
    header_size: usize,
    what: &'static str,
}

impl ArrayBlock {
    /// Reads the block at `at`, which has a header of `before` bytes, a content of `after` bytes,
    /// and a checksum of both.
    pub(super) fn read(
        meta: &Metadata,
        at: Address,
        before: usize,
        after: u64,
        what: &'static str,
    ) -> Result<Self> {
        let length = Count::sum([to_u64(before), after, CHECKSUM]);
        let verify = |block: &[u8]| verify_checksum(block, at, what);
        Ok(ArrayBlock {
            bytes: meta.verified_block(at, length, what, verify)?,
            at,
            header_size: before,
            what,
        })
    }

    /// Returns a cursor after the signature, version and client ID of the block. The client ID
    /// states whether chunks are filtered, and must agree with the dataset.
    pub(super) fn cursor_after_signature(
        &self,
        signature: &[u8],
        filtered: bool,
    ) -> Result<Cursor<'_>> {
        let mut cursor = Cursor::new(&self.bytes, self.at, self.what);
        cursor.expect_signature(signature)?;
        cursor.read_version(0..=0)?;
        if cursor.u8()? == u8::from(filtered) {
            Ok(cursor)
        } else {
            Err(cursor.corrupt("it belongs to another client"))
        }
    }

    /// Returns a cursor at the first entry of the block, or at its bitmap of pages.
    pub(super) fn content_cursor(&self) -> Result<Cursor<'_>> {
        let mut cursor = Cursor::new(&self.bytes, self.at, self.what);
        cursor.skip(self.header_size)?;
        Ok(cursor)
    }

    /// Returns the absolute offset of the byte after the block, or `None` on overflow.
    fn end(&self) -> Option<Address> {
        self.at.after(to_u64(self.bytes.len()))
    }

    /// Returns the error that the block is corrupt because of `why`.
    pub(super) fn corrupt(&self, why: &str) -> Error {
        Error::corrupt(format!("{}: {why}", self.what), self.at)
    }
}

/// A data block of an array. Its entries are in the block itself or in pages after it.
pub(super) struct DataBlock<'b> {
    pub(super) block: &'b ArrayBlock,
    pub(super) paging: Paging,
    /// The number of the chunk that the first entry of the data block locates.
    pub(super) start: u64,
    /// The bitmap that marks the pages that were ever written, if the data block has pages.
    pub(super) bitmap: &'b [u8],
    /// The number of the bit in `bitmap` for the first page of the data block.
    pub(super) first_bit: u64,
}

/// The distribution of a data block's entries over pages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paging {
    /// Number of entries of the data block.
    pub(super) entries: u64,
    /// Maximum number of entries of a page.
    page_entries: u64,
    /// The page's name in the specification.
    what: &'static str,
}

impl Paging {
    /// Creates a distribution over pages of 2 to the power of `page_bits` entries.
    pub(super) fn new(entries: u64, page_bits: u8, what: &'static str) -> Self {
        let page_entries = 1_u64.checked_shl(u32::from(page_bits));
        Paging {
            entries,
            page_entries: page_entries.unwrap_or(u64::MAX),
            what,
        }
    }

    /// Returns the number of pages of the data block, 0 if all entries are in the data block
    /// itself.
    pub(super) fn pages(&self) -> u64 {
        if self.entries > self.page_entries {
            chunks_along(self.entries, self.page_entries)
        } else {
            0
        }
    }

    /// Returns the number of the page that contains entry `i` of the data block, and the entry's
    /// number in that page.
    pub(super) fn locate(&self, i: u64) -> (u64, u64) {
        let page = i.checked_div(self.page_entries).unwrap_or(0);
        (page, i.checked_rem(self.page_entries).unwrap_or(0))
    }

    /// Returns the number of the first entry of page `page`, and the number of entries of the page.
    /// The last page may be shorter.
    pub(super) fn page_span(&self, page: u64) -> (u64, u64) {
        let first = page.times(self.page_entries);
        let rest = self.entries.minus_or_zero(first);
        (first, rest.min(self.page_entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_page_is_short() {
        let paging = Paging::new(2500, 10, "page");
        assert_eq!(paging.pages(), 3);
        assert_eq!(paging.locate(1025), (1, 1));
        assert_eq!(paging.page_span(1), (1024, 1024));
        assert_eq!(paging.page_span(2), (2048, 452));
        assert_eq!(Paging::new(1024, 10, "page").pages(), 0);
        assert_eq!(Paging::new(u64::MAX, 255, "page").pages(), 0);
    }
}
