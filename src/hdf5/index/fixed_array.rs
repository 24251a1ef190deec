//! The fixed array index: one entry for every chunk that the dataset can ever have.
//!
//! HDF5 3.0, VII.C. A data block of many entries is cut into pages of equal stride, of which a bitmap
//! says which were ever written; what stands in the others is chance.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::Result;
use crate::hdf5::index::array::{Block, NumberedChunks, Paging, client};
use crate::hdf5::index::entry::EntryForm;
use crate::hdf5::index::numbering::Numbering;
use crate::hdf5::index::{Geometry, bit_is_set};
use crate::hdf5::metadata::{Metadata, verify_checksum};
use crate::model::storage::{ChunkIndex, ChunkVisitor, StoredChunk};
use crate::wire::{Cursor, to_u64};

const HEADER: &str = "fixed array header";
const DATA_BLOCK: &str = "fixed array data block";
const PAGE: &str = "fixed array data block page";

/// A dataset whose chunks are in a fixed array; without one, no chunk is stored.
#[derive(Debug)]
pub struct FixedArray(Option<Array>);

#[derive(Debug)]
struct Array {
    chunks: NumberedChunks,
    paging: Paging,
    data_block: Option<u64>,
}

impl FixedArray {
    /// `address` is the absolute offset of the header; `filtered`, whether the dataset has filters.
    ///
    /// # Errors
    /// `Corrupt` where the header is damaged or does not fit the dataset.
    pub fn open(
        meta: Arc<Metadata>,
        address: Option<u64>,
        geometry: Geometry,
        filtered: bool,
    ) -> Result<Self> {
        let array = address.map(|at| Array::open(meta, at, geometry, filtered));
        array.transpose().map(FixedArray)
    }
}

impl ChunkIndex for FixedArray {
    fn find(&self, place: &[u64]) -> Result<Option<StoredChunk>> {
        match &self.0 {
            Some(array) => array.find(place),
            None => Ok(None),
        }
    }

    fn walk(&self, visit: &mut ChunkVisitor<'_>) -> Result<()> {
        match &self.0 {
            Some(array) => array.walk(visit),
            None => Ok(()),
        }
    }
}

impl Array {
    fn open(meta: Arc<Metadata>, at: u64, geometry: Geometry, filtered: bool) -> Result<Self> {
        let widths = meta
            .size_of_offsets()
            .saturating_add(meta.size_of_lengths());
        let length = to_u64(widths.saturating_add(12));
        let verify = |block: &[u8]| verify_checksum(block, at, HEADER);
        let block = meta.block(at, length, HEADER, verify)?;
        let mut cursor = Cursor::new(&block, at, HEADER);
        cursor.signature(b"FAHD")?;
        client(&mut cursor, filtered)?;
        let entry_size = usize::from(cursor.u8()?);
        let page_bits = cursor.u8()?;
        let entries = meta.length(&mut cursor)?;
        let data_block = meta.address(&mut cursor)?;

        let form = EntryForm::new(&meta, filtered, entry_size, &geometry, &cursor)?;
        let numbering = Numbering::limited(&geometry, at)?;
        if entries < numbering.total() {
            return Err(cursor.corrupt("fewer entries than chunks"));
        }
        Ok(Array {
            chunks: NumberedChunks {
                meta,
                geometry,
                numbering,
                form,
                header: at,
            },
            paging: Paging::new(entries, page_bits, PAGE),
            data_block,
        })
    }

    fn find(&self, place: &[u64]) -> Result<Option<StoredChunk>> {
        let (Some(number), Some(at)) = (self.chunks.number(place), self.data_block) else {
            return Ok(None);
        };
        let data_block = self.data_block(at)?;
        if self.paging.pages() == 0 {
            return self.chunks.entry(&data_block, number);
        }
        let (page, i) = self.paging.locate(number);
        match self.page(&data_block, page)? {
            Some(page) => self.chunks.entry(&page, i),
            None => Ok(None),
        }
    }

    fn walk(&self, visit: &mut ChunkVisitor<'_>) -> Result<()> {
        let Some(at) = self.data_block else {
            return Ok(());
        };
        let data_block = self.data_block(at)?;
        if self.paging.pages() == 0 {
            let all = self.paging.entries;
            return self.chunks.visit(&data_block, 0, all, visit).map(|_| ());
        }
        for page in 0..self.paging.pages() {
            let Some(block) = self.page(&data_block, page)? else {
                continue;
            };
            let (first, count) = self.paging.span(page);
            if let ControlFlow::Break(()) = self.chunks.visit(&block, first, count, visit)? {
                break;
            }
        }
        Ok(())
    }

    /// The data block: with all entries, or with the bitmap of its pages.
    fn data_block(&self, at: u64) -> Result<Block> {
        let prefix = self.chunks.prefix();
        let content = match self.paging.pages() {
            0 => self.chunks.bytes(self.paging.entries),
            pages => pages.div_ceil(8),
        };
        let block = self.chunks.block(at, prefix, content, DATA_BLOCK)?;
        self.chunks.owned(&block, b"FADB")?;
        Ok(block)
    }

    /// Page `page`, `None` where it was never written.
    fn page(&self, data_block: &Block, page: u64) -> Result<Option<Block>> {
        if !bit_is_set(data_block.content()?.rest(), page) {
            return Ok(None);
        }
        let pages = data_block.end()?;
        self.chunks.page(pages, page, self.paging).map(Some)
    }
}
