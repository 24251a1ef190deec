//! Chunks in a version 2 B-tree, for datasets with more than one unlimited dimension.
//!
//! HDF5 3.0, VII.E, and records of type 10 (unfiltered) and 11 (filtered) in III.A.2. A record
//! consists of an entry that locates the chunk, and of the chunk's grid coordinates, with eight
//! bytes per dimension. Records are sorted by the coordinates, row by row.

use std::sync::Arc;

use crate::error::Result;
use crate::hdf5::btree_v2::BtreeV2;
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::file::number_form::Address;
use crate::hdf5::index::entry::ChunkEntryFormat;
use crate::hdf5::index::{ChunkGeometry, StrayChunkCounter};
use crate::memory::request_budget::RequestBudget;
use crate::model::storage::{ChunkIndex, ChunkVisitor, IndexCursor, StoredChunk};
use crate::wire::{Count, Cursor};

const RECORD: &str = "chunk record of a B-tree (version 2)";
const UNFILTERED: u8 = 10;
const FILTERED: u8 = 11;

/// The index of a dataset whose chunks are in a version 2 B-tree.
#[derive(Debug)]
pub(crate) struct BtreeV2Index {
    meta: Arc<Metadata>,
    geometry: ChunkGeometry,
    tree: BtreeV2,
    form: ChunkEntryFormat,
    at: Address,
    record_type: u8,
}

impl BtreeV2Index {
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
        let record_type = if filtered { FILTERED } else { UNFILTERED };
        let tree = BtreeV2::open(Arc::clone(&meta), at, record_type)?;
        let place_size = geometry.rank().times(8);
        let entry_size = tree.record_size().minus_or_zero(place_size);
        let cursor = Cursor::new(&[], at, RECORD);
        let form = ChunkEntryFormat::new(&meta, filtered, entry_size, &geometry, &cursor)?;
        Ok(BtreeV2Index {
            meta,
            geometry,
            tree: tree.ordered_by_words(form.size),
            form,
            at,
            record_type,
        })
    }
}

impl ChunkIndex for BtreeV2Index {
    fn find(&self, place: &[u64]) -> Result<Option<StoredChunk>> {
        self.find_in(&self.current_tree()?, place)
    }

    fn find_with_budget(
        &self,
        place: &[u64],
        budget: &RequestBudget,
    ) -> Result<Option<StoredChunk>> {
        self.find_in(&self.current_tree()?.with_budget(budget), place)
    }

    fn walk_from(
        &self,
        from: &mut IndexCursor,
        budget: &RequestBudget,
        visit: &mut ChunkVisitor<'_>,
    ) -> Result<()> {
        let (position, passed) = match *from.0 {
            [position, passed] => (position, passed),
            _ => (0, 0),
        };
        let mut records = self.current_tree()?.with_budget(budget).cursor(position);
        let mut place = vec![0; self.geometry.rank()];
        let mut strays = StrayChunkCounter(passed);
        while let Some(record) = records.next_record()? {
            let mut cursor = self.cursor(&record);
            let chunk = self.form.read(&self.meta, &mut cursor)?;
            for along in &mut place {
                *along = cursor.u64()?;
            }
            let chunk = chunk.filter(|_| self.geometry.is_in_extent(&place));
            match chunk {
                Some(chunk) if visit(&place, chunk).is_break() => break,
                Some(_) => {}
                None => strays.count_one()?,
            }
        }
        from.0 = vec![records.position(), strays.0];
        Ok(())
    }
}

impl BtreeV2Index {
    /// Returns the tree, with its header read again if the file is growing. While a writer inserts
    /// chunks, the nodes change and no longer agree with the header that was read first.
    fn current_tree(&self) -> Result<BtreeV2> {
        if !self.meta.source().is_growing() {
            return Ok(self.tree.clone());
        }
        let meta = self.meta.fresh_view().with_budget(self.meta.budget());
        let tree = BtreeV2::open(meta, self.at, self.record_type)?;
        Ok(tree.ordered_by_words(self.form.size))
    }

    fn find_in(&self, tree: &BtreeV2, place: &[u64]) -> Result<Option<StoredChunk>> {
        if !self.geometry.is_in_extent(place) {
            return Ok(None);
        }
        let Some(record) = tree.find_words(place)? else {
            return Ok(None);
        };
        self.form.read(&self.meta, &mut self.cursor(&record))
    }

    /// Returns a cursor at the start of `record`, whose errors state the offset of the tree.
    fn cursor<'r>(&self, record: &'r [u8]) -> Cursor<'r> {
        Cursor::new(record, self.at, RECORD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdf5::testing::{at, file, walk_chunks, with_checksum, words};

    /// Opens an index with records of an address, a size of `width` bytes, a mask and two
    /// coordinates.
    fn open(width: usize, places: &[[u64; 2]]) -> Result<BtreeV2Index> {
        let used = u8::try_from(places.len()).unwrap();
        let record_size = u8::try_from(8 + width + 4 + 16).unwrap();
        let mut header = b"BTHD\0\x0b".to_vec();
        header.extend([0, 2, 0, 0, record_size, 0, 0, 0, 100, 40]);
        header.extend(words(&[100]));
        header.extend([used, 0]);
        header.extend(words(&[u64::from(used)]));
        let mut leaf = b"BTLF\0\x0b".to_vec();
        for (place, address) in places.iter().zip(1000..) {
            leaf.extend(words(&[address]));
            leaf.resize(leaf.len() + width - 1, 0);
            leaf.extend([1, 4, 0, 0, 0]); // the size in its highest byte, then the mask
            leaf.extend(words(place));
        }
        let geometry = ChunkGeometry::new(vec![6, 6], vec![None; 2], vec![2, 2], 8, 0)?;
        let meta = file([(0, with_checksum(header)), (100, with_checksum(leaf))]);
        BtreeV2Index::open(meta, at(0), geometry, true)
    }

    #[test]
    fn the_width_of_sizes_follows_from_the_record_size() {
        for (width, length) in [(1, 1), (2, 0x100), (5, 0x1_0000_0000)] {
            let index = open(width, &[[0, 1], [1, 0]]).unwrap();
            let chunk = StoredChunk {
                offset: 1001,
                length,
                filter_mask: 4,
            };
            assert_eq!(index.find(&[1, 0]), Ok(Some(chunk)));
            assert_eq!(index.find(&[1, 1]), Ok(None));
        }
        assert!(open(9, &[[0, 1]]).is_err());
    }

    #[test]
    fn chunks_outside_the_extent_are_ignored() {
        let index = open(2, &[[0, 1], [0, 3], [1, 0]]).unwrap();
        let expected = vec![(vec![0, 1], 1000), (vec![1, 0], 1002)];
        assert_eq!(walk_chunks(&index), Ok(expected));
        assert_eq!(index.find(&[0, 3]), Ok(None));
    }
}
