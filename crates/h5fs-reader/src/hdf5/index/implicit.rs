//! The implicit index: all chunks are contiguous, so no lookup is needed.
//!
//! HDF5 3.0, VII.B. Writers use this index for datasets without filters whose space was allocated
//! at creation.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::file::number_form::Address;
use crate::hdf5::index::numbering::ChunkNumbering;
use crate::hdf5::index::{ChunkGeometry, advance_in_grid, stored_chunk};
use crate::memory::request_budget::RequestBudget;
use crate::model::storage::{ChunkIndex, ChunkVisitor, IndexCursor, StoredChunk};
use crate::source::check_range;

/// The index of a dataset whose chunks are stored in the order of their numbers, from one address
/// on.
#[derive(Debug)]
pub(crate) struct ImplicitIndex {
    meta: Arc<Metadata>,
    geometry: ChunkGeometry,
    numbering: ChunkNumbering,
    at: Address,
}

impl ImplicitIndex {
    /// Creates the index. `at` is the absolute offset of the chunk with the number 0.
    ///
    /// # Errors
    /// `Corrupt` for a dataset with an unlimited dimension.
    pub(crate) fn new(meta: Arc<Metadata>, at: Address, geometry: ChunkGeometry) -> Result<Self> {
        let numbering = ChunkNumbering::for_fixed_size(&geometry, at)?;
        Ok(ImplicitIndex {
            meta,
            geometry,
            numbering,
            at,
        })
    }
}

impl ChunkIndex for ImplicitIndex {
    fn find(&self, place: &[u64]) -> Result<Option<StoredChunk>> {
        if !self.geometry.is_in_extent(place) {
            return Ok(None);
        }
        let length = self.geometry.chunk_bytes;
        let before = self
            .numbering
            .chunk_number(place)
            .and_then(|number| number.checked_mul(length));
        let offset = before
            .and_then(|before| self.at.after(before))
            .ok_or_else(|| {
                Error::corrupt(
                    "implicit index: a chunk is after the end of all files",
                    self.at,
                )
            })?;
        stored_chunk(offset, length, 0, self.at).map(Some)
    }

    /// Visits the chunks from the position `from` on, row by row.
    ///
    /// # Errors
    /// `Corrupt` at the first chunk after the end of the file, because a dataset may claim any
    /// number of chunks.
    fn walk_from(
        &self,
        from: &mut IndexCursor,
        _: &RequestBudget,
        visit: &mut ChunkVisitor<'_>,
    ) -> Result<()> {
        const BEHIND: u64 = 1;
        let (done, place) = from.0.split_first().unwrap_or((&0, &[]));
        if *done == BEHIND {
            return Ok(());
        }
        let mut place = place.to_vec();
        place.resize(self.geometry.rank(), 0);
        while let Some(chunk) = self.find(&place)? {
            let source = &**self.meta.source();
            check_range(source, chunk.offset, chunk.length, "implicit index: chunk")?;
            let is_enough = visit(&place, chunk).is_break();
            if !advance_in_grid(&mut place, self.geometry.chunk_counts()) {
                break;
            }
            if is_enough {
                from.0 = [&[0], place.as_slice()].concat();
                return Ok(());
            }
        }
        from.0 = vec![BEHIND];
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::hdf5::testing::{at, file};

    fn index(max: u64, file_bytes: usize) -> ImplicitIndex {
        let meta = file([(0, vec![0; file_bytes])]);
        let max = vec![Some(4), Some(max)];
        let geometry = ChunkGeometry::new(vec![4, 3], max, vec![2, 2], 8, 0).unwrap();
        ImplicitIndex::new(meta, at(100), geometry).unwrap()
    }

    /// Checks rows of five chunks, two of them in the extent.
    #[test]
    fn chunks_in_the_extent_are_visited() {
        let mut met = Vec::new();
        index(10, 200)
            .walk(&RequestBudget::default(), &mut |place, chunk| {
                met.push((place.to_vec(), chunk.offset));
                ControlFlow::Continue(())
            })
            .unwrap();
        let expected = [([0, 0], 100), ([0, 1], 108), ([1, 0], 140), ([1, 1], 148)];
        assert_eq!(met, expected.map(|(place, at)| (place.to_vec(), at)));
    }

    #[test]
    fn a_walk_ends_with_the_file() {
        let mut met = 0;
        let walked = index(1 << 40, 200).walk(&RequestBudget::default(), &mut |_, _| {
            met += 1;
            ControlFlow::Continue(())
        });
        assert!(walked.is_err());
        assert_eq!(met, 2);
    }
}
