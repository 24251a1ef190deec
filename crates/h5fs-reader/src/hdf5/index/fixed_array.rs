//! The fixed array index, which has one entry for every chunk that the dataset can ever have.
//!
//! HDF5 3.0, VII.C. A data block with many entries is divided into pages of equal size. A bitmap
//! marks the pages that were ever written. The content of the other pages is undefined.

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
use crate::wire::to_u64;

const HEADER: &str = "fixed array header";
const DATA_BLOCK: &str = "fixed array data block";
const PAGE: &str = "fixed array data block page";

/// The index of a dataset whose chunks are in a fixed array.
#[derive(Debug, Clone)]
pub(crate) struct FixedArray {
    chunks: ChunkArrayLayout,
    paging: Paging,
}

impl FixedArray {
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
        let widths = meta.structure_size(1, 1, 0);
        // The fields of `widths` bytes follow signature, version, client, entry size and page bits,
        // which are eight bytes.
        let block = ArrayBlock::read(&meta, at, 8, to_u64(widths), HEADER)?;
        let mut cursor = block.cursor_after_signature(b"FAHD", filtered)?;
        let entry_size = usize::from(cursor.u8()?);
        let page_bits = cursor.u8()?;
        let entries = meta.read_length(&mut cursor)?;
        let root = meta.read_address(&mut cursor)?;

        let form = ChunkEntryFormat::new(&meta, filtered, entry_size, &geometry, &cursor)?;
        let numbering = ChunkNumbering::for_fixed_size(&geometry, at)?;
        if entries < numbering.chunk_count() {
            return Err(cursor.corrupt("fewer entries than chunks"));
        }
        Ok(FixedArray {
            chunks: ChunkArrayLayout {
                meta,
                geometry,
                numbering,
                form,
                header: at,
                root,
            },
            paging: Paging::new(entries, page_bits, PAGE),
        })
    }
}

impl ChunkArray for FixedArray {
    fn with_budget(&self, budget: &RequestBudget) -> Self {
        FixedArray {
            chunks: self.chunks.with_budget(budget),
            ..self.clone()
        }
    }

    fn chunks(&self) -> &ChunkArrayLayout {
        &self.chunks
    }

    fn chunk(&self, root: Address, number: u64) -> Result<Option<StoredChunk>> {
        let block = self.read_data_block(root)?;
        self.chunks
            .chunk_in_data_block(&self.data_block(&block)?, number)
    }

    fn visit(
        &self,
        root: Address,
        from: u64,
        visit: &mut ChunkVisitor<'_>,
    ) -> Result<ControlFlow<u64>> {
        let block = self.read_data_block(root)?;
        self.chunks
            .visit_all(&self.data_block(&block)?, from, visit)
    }
}

impl FixedArray {
    /// Reads the data block, which contains all entries, or the bitmap of its pages if it has
    /// pages.
    fn read_data_block(&self, at: Address) -> Result<ArrayBlock> {
        let prefix = self.chunks.block_prefix_size();
        let bitmap = self.paging.pages().div_ceil(8);
        let content = self.chunks.inline_entries_size(self.paging).max(bitmap);
        let block = self.chunks.read_block(at, prefix, content, DATA_BLOCK)?;
        self.chunks.cursor_after_prefix(&block, b"FADB")?;
        Ok(block)
    }

    fn data_block<'b>(&self, block: &'b ArrayBlock) -> Result<DataBlock<'b>> {
        Ok(DataBlock {
            block,
            paging: self.paging,
            start: 0,
            bitmap: block.content_cursor()?.rest(),
            first_bit: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdf5::testing::{at, file, walk_chunks, with_checksum, words};
    use crate::model::storage::ChunkIndex;

    const UNDEFINED: u64 = u64::MAX;

    /// Returns a file with five chunks of eight bytes in pages of two entries. Only the second page
    /// was written.
    fn blocks() -> [(usize, Vec<u8>); 3] {
        let header = [b"FAHD\0\0\x08\x01", &words(&[5, 100])[..]].concat();
        let data_block = [b"FADB\0\0", &words(&[0])[..], &[0b0100_0000]].concat();
        // The pages begin after the checksum at 100 + 15 + 4. Each page has two entries and a
        // checksum.
        let page = with_checksum(words(&[UNDEFINED, 7000]));
        [
            (0, with_checksum(header)),
            (100, with_checksum(data_block)),
            (119 + 20, page),
        ]
    }

    fn geometry() -> ChunkGeometry {
        ChunkGeometry::new(vec![5], vec![Some(5)], vec![1], 8, 0).unwrap()
    }

    fn open(blocks: [(usize, Vec<u8>); 3]) -> Result<FixedArray> {
        FixedArray::open(file(blocks), at(0), geometry(), false)
    }

    #[test]
    fn pages_never_written_hold_no_chunk() {
        let array = open(blocks()).unwrap();
        let chunk = StoredChunk {
            offset: 7000,
            length: 8,
            filter_mask: 0,
        };
        assert_eq!(array.find(&[3]), Ok(Some(chunk)));
        assert_eq!(array.find(&[2]), Ok(None));
        // The file does not even contain the bytes of this page.
        assert_eq!(array.find(&[4]), Ok(None));
        assert_eq!(walk_chunks(&array), Ok(vec![(vec![3], 7000)]));
    }

    #[test]
    fn a_damaged_page_affects_only_its_chunks() {
        let mut blocks = blocks();
        blocks[2].1[3] ^= 1;
        let array = open(blocks).unwrap();
        assert!(array.find(&[3]).is_err());
        assert_eq!(array.find(&[0]), Ok(None));
        assert!(walk_chunks(&array).is_err());
    }

    #[test]
    fn a_header_must_fit_the_dataset() {
        let blocks = blocks();
        let filtered = FixedArray::open(file(blocks.clone()), at(0), geometry(), true);
        assert!(filtered.is_err());
        let six = ChunkGeometry::new(vec![6], vec![Some(6)], vec![1], 8, 0).unwrap();
        assert!(FixedArray::open(file(blocks), at(0), six, false).is_err());
    }
}
