//! Chunk indices, which map the grid coordinates of a chunk to the location of its bytes in the
//! file.
//!
//! HDF5 3.0, VII (Appendix C). Grid coordinates count chunks in each dimension, slowest dimension
//! first. There are six kinds of chunk index, and the writer chooses one by how the dataset can
//! grow. Opening an index reads at most its header. Nodes, blocks and pages are read one at a time
//! when they are needed. An index whose address is undefined contains no chunks, because no chunk
//! was ever written, see [`UnwrittenIndex`].

mod array;
pub(crate) mod btree_v1;
pub(crate) mod btree_v2;
mod entry;
pub(crate) mod extensible_array;
pub(crate) mod fixed_array;
pub(crate) mod implicit;
mod numbering;
pub(crate) mod single;

use crate::error::{Error, Result};
use crate::hdf5::file::number_form::Address;
use crate::limits;
use crate::memory::request_budget::RequestBudget;
use crate::model::storage::{ChunkIndex, ChunkVisitor, IndexCursor, StoredChunk};
use crate::wire::{Count, to_u64};

/// The grid of a chunked dataset. All lists are in the order of the dimensions, slowest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChunkGeometry {
    dims: Vec<u64>,
    max: Vec<Option<u64>>,
    chunk_shape: Vec<u64>,
    chunk_bytes: u64,
}

impl ChunkGeometry {
    /// Creates the grid:
    ///
    /// - `dims` are the current dimensions.
    /// - `max` are the maximum dimensions (`None`: unlimited).
    /// - `chunk_shape` is the number of elements of a chunk in each dimension.
    /// - `chunk_bytes` is the number of bytes of a chunk before filters are applied.
    /// - `at` is the absolute offset that errors state.
    ///
    /// # Errors
    /// `Corrupt` if ranks differ or a chunk is empty, `Limit` for more than `limits::RANK`
    /// dimensions.
    pub(crate) fn new(
        dims: Vec<u64>,
        max: Vec<Option<u64>>,
        chunk_shape: Vec<u64>,
        chunk_bytes: u64,
        at: impl Into<Option<u64>> + Copy,
    ) -> Result<Self> {
        Error::check_limit(dims.len(), limits::RANK, "rank")?;
        if dims.len() != chunk_shape.len() || dims.len() != max.len() {
            return Err(Error::corrupt(
                "the rank of a chunk differs from its dataset",
                at,
            ));
        }
        if chunk_shape.contains(&0) || chunk_bytes == 0 {
            return Err(Error::corrupt("chunk without elements", at));
        }
        Ok(ChunkGeometry {
            dims,
            max,
            chunk_shape,
            chunk_bytes,
        })
    }

    /// Returns the number of dimensions.
    pub(crate) fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Returns the number of chunks in each dimension of the current extent.
    fn chunk_counts(&self) -> impl DoubleEndedIterator<Item = u64> {
        let dims = self.dims.iter().zip(&self.chunk_shape);
        dims.map(|(&dim, &chunk)| chunks_along(dim, chunk))
    }

    /// Returns whether some element of the chunk with the grid coordinates `place` is inside the
    /// dataset's current extent.
    fn is_in_extent(&self, place: &[u64]) -> bool {
        place.len() == self.rank()
            && place
                .iter()
                .zip(self.chunk_counts())
                .all(|(&at, count)| at < count)
    }
}

/// The index of a dataset without any written chunk. The file does not contain the index yet,
/// whatever its kind.
#[derive(Debug)]
pub(crate) struct UnwrittenIndex;

impl ChunkIndex for UnwrittenIndex {
    fn find(&self, _: &[u64]) -> Result<Option<StoredChunk>> {
        Ok(None)
    }

    fn walk_from(
        &self,
        _: &mut IndexCursor,
        _: &RequestBudget,
        _: &mut ChunkVisitor<'_>,
    ) -> Result<()> {
        Ok(())
    }
}

/// The number of chunks outside of their dataset's extent that a walk has skipped.
#[derive(Debug, Default)]
struct StrayChunkCounter(u64);

impl StrayChunkCounter {
    /// Adds one skipped chunk.
    ///
    /// # Errors
    /// `Limit` for more than [`limits::STRAY_CHUNKS`] skipped chunks.
    fn count_one(&mut self) -> Result<()> {
        let most = to_u64(limits::STRAY_CHUNKS);
        self.0 = self.0.plus_one();
        if self.0 <= most {
            Ok(())
        } else {
            Err(Error::limit("chunks outside their dataset", most))
        }
    }
}

/// Changes the grid coordinates `place` to those of the next chunk in row-major order. `grid` is
/// the number of chunks in each dimension. Returns `false` after the last chunk.
fn advance_in_grid(place: &mut [u64], grid: impl DoubleEndedIterator<Item = u64>) -> bool {
    for (along, count) in place.iter_mut().rev().zip(grid.rev()) {
        *along = along.plus_one();
        if *along < count {
            return true;
        }
        *along = 0;
    }
    false
}

/// Returns the number of chunks, of `chunk` elements each, that cover `dim` elements along one
/// dimension.
fn chunks_along(dim: u64, chunk: u64) -> u64 {
    match chunk {
        0 => 0, // never: a geometry does not have empty chunks
        _ => dim.div_ceil(chunk),
    }
}

/// Returns the location of a chunk that the index entry at absolute offset `at` describes.
///
/// # Errors
/// `Corrupt` for a chunk without bytes, or one whose end overflows.
fn stored_chunk(
    address: Address,
    length: u64,
    filter_mask: u32,
    at: impl Into<Option<u64>>,
) -> Result<StoredChunk> {
    if length == 0 || address.after(length).is_none() {
        return Err(Error::corrupt(
            "chunk index: a chunk size is not possible",
            at,
        ));
    }
    Ok(StoredChunk {
        offset: address.offset(),
        length,
        filter_mask,
    })
}

/// Returns whether bit `bit` of `bitmap` is set. Bit 0 is the highest bit of the first byte.
fn is_bit_set(bitmap: &[u8], bit: u64) -> bool {
    let byte = usize::try_from(bit / 8).ok().and_then(|i| bitmap.get(i));
    let mask = [0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01_u8];
    let mask = usize::try_from(bit % 8).ok().and_then(|i| mask.get(i));
    matches!((byte, mask), (Some(byte), Some(mask)) if byte & mask != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdf5::testing::at;

    #[test]
    fn bitmaps_begin_with_the_highest_bit() {
        let bitmap = [0x80, 0x02];
        let set: Vec<_> = (0..20).filter(|&bit| is_bit_set(&bitmap, bit)).collect();
        assert_eq!(set, [0, 14]);
    }

    #[test]
    fn partial_edge_chunks_are_in_the_extent() {
        let geometry = ChunkGeometry::new(vec![5, 4], vec![None; 2], vec![2, 2], 4, 0).unwrap();
        assert!(geometry.is_in_extent(&[2, 1]));
        assert!(!geometry.is_in_extent(&[3, 0]));
        assert!(!geometry.is_in_extent(&[0, 2]));
        assert!(!geometry.is_in_extent(&[0]));
    }

    #[test]
    fn impossible_chunks_are_refused() {
        assert!(stored_chunk(at(10), 0, 0, 0).is_err());
        assert!(stored_chunk(at(u64::MAX), 1, 0, 0).is_err());
        assert!(ChunkGeometry::new(vec![5], vec![None], vec![0], 4, 0).is_err());
        assert!(ChunkGeometry::new(vec![5], vec![None], vec![1, 1], 4, 0).is_err());
    }
}
