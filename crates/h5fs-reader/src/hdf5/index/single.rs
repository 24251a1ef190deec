//! The single chunk index: the layout message itself contains the location of the only chunk.
//!
//! HDF5 3.0, VII.A. The chunk has the dataset's maximum size.

use crate::error::{Error, Result};
use crate::hdf5::file::number_form::Address;
use crate::hdf5::index::{ChunkGeometry, stored_chunk};
use crate::memory::request_budget::RequestBudget;
use crate::model::storage::{ChunkIndex, ChunkVisitor, IndexCursor, StoredChunk};

/// The index of a dataset that has only one chunk.
#[derive(Debug)]
pub(crate) struct SingleChunkIndex {
    geometry: ChunkGeometry,
    chunk: Option<StoredChunk>,
}

impl SingleChunkIndex {
    /// Creates the index. `address` is the chunk's absolute offset, and `filtered` is the stored
    /// size and filter mask of a chunk with filters. `at` is the location of the layout message,
    /// for errors.
    ///
    /// # Errors
    /// `Corrupt` if one chunk does not cover the dataset.
    pub(crate) fn new(
        address: Option<Address>,
        filtered: Option<(u64, u32)>,
        geometry: ChunkGeometry,
        at: impl Into<Option<u64>> + Copy,
    ) -> Result<Self> {
        if geometry.chunk_counts().any(|count| count > 1) {
            return Err(Error::corrupt(
                "single chunk index: more than one chunk",
                at,
            ));
        }
        let (length, filter_mask) = filtered.unwrap_or((geometry.chunk_bytes, 0));
        let chunk = address.map(|offset| stored_chunk(offset, length, filter_mask, at));
        Ok(SingleChunkIndex {
            geometry,
            chunk: chunk.transpose()?,
        })
    }
}

impl ChunkIndex for SingleChunkIndex {
    fn find(&self, place: &[u64]) -> Result<Option<StoredChunk>> {
        Ok(self.chunk.filter(|_| self.geometry.is_in_extent(place)))
    }

    fn walk_from(
        &self,
        place: &mut IndexCursor,
        _: &RequestBudget,
        visit: &mut ChunkVisitor<'_>,
    ) -> Result<()> {
        const BEHIND: u64 = 1;
        let first = vec![0; self.geometry.rank()];
        if place.0 == [BEHIND] {
            return Ok(());
        }
        if let Some(chunk) = self.find(&first)? {
            let _ = visit(&first, chunk); // the only chunk, so a break has the same effect
        }
        place.0 = vec![BEHIND];
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdf5::testing::at;

    fn geometry(dims: [u64; 2]) -> ChunkGeometry {
        ChunkGeometry::new(dims.to_vec(), vec![Some(4), Some(4)], vec![4, 4], 32, 0).unwrap()
    }

    #[test]
    fn the_source_of_the_chunk_size_depends_on_filters() {
        let raw = SingleChunkIndex::new(Some(at(100)), None, geometry([4, 3]), 0).unwrap();
        let length =
            |index: &SingleChunkIndex| index.find(&[0, 0]).unwrap().map(|chunk| chunk.length);
        assert_eq!(length(&raw), Some(32));
        let filtered =
            SingleChunkIndex::new(Some(at(100)), Some((7, 1)), geometry([4, 3]), 0).unwrap();
        assert_eq!(length(&filtered), Some(7));
        assert_eq!(raw.find(&[0, 1]), Ok(None));
    }

    #[test]
    fn one_chunk_must_be_enough() {
        assert!(SingleChunkIndex::new(Some(at(100)), None, geometry([5, 1]), 0).is_err());
        let empty = SingleChunkIndex::new(Some(at(100)), None, geometry([0, 4]), 0).unwrap();
        assert_eq!(empty.find(&[0, 0]), Ok(None));
    }
}
