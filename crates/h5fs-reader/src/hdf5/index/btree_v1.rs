//! Chunks in a version 1 B-tree, the only chunk index before HDF5 1.10.
//!
//! HDF5 3.0, III.A.1, node type 1. The key of a chunk contains the chunk's offset in elements, its
//! stored size and its filter mask. The last key of a node has no chunk and is only an upper bound.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::error::Result;
use crate::hdf5::btree_v1::{BtreeV1, EntryPosition, Node};
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::file::number_form::Address;
use crate::hdf5::index::{ChunkGeometry, StrayChunkCounter, stored_chunk};
use crate::memory::request_budget::RequestBudget;
use crate::model::storage::{ChunkIndex, ChunkVisitor, IndexCursor, StoredChunk};
use crate::wire::{Count, Cursor};

/// Number of bytes of a key before the chunk's offset: the stored size and the filter mask.
const SIZE_AND_MASK: usize = 8;

/// The index of a dataset whose chunks are in a version 1 B-tree.
#[derive(Debug)]
pub(crate) struct BtreeV1Index {
    tree: BtreeV1,
    geometry: ChunkGeometry,
    filtered: bool,
}

impl BtreeV1Index {
    /// Creates the index without reading. `root` is the absolute offset of the root node, and
    /// `filtered` states whether the dataset has filters. An unfiltered chunk must have the size of
    /// its elements.
    pub(crate) fn new(
        meta: Arc<Metadata>,
        root: Address,
        geometry: ChunkGeometry,
        filtered: bool,
    ) -> Self {
        let rank = geometry.rank();
        BtreeV1Index {
            tree: BtreeV1::for_chunks(meta, root, rank),
            geometry,
            filtered,
        }
    }

    /// Returns the chunk at `address` that the key at `cursor` describes, or `None` for the
    /// undefined address. Writes the chunk's grid coordinates to `place`.
    fn parse_chunk(
        &self,
        mut cursor: Cursor<'_>,
        address: Option<Address>,
        place: &mut [u64],
    ) -> Result<Option<StoredChunk>> {
        let at = cursor.offset();
        let length = u64::from(cursor.u32()?);
        let filter_mask = cursor.u32()?;
        self.read_grid_coordinates(&mut cursor, place)?;
        let Some(offset) = address else {
            return Ok(None);
        };
        match self.filtered {
            true => stored_chunk(offset, length, filter_mask, at).map(Some),
            false if length == self.geometry.chunk_bytes => {
                stored_chunk(offset, length, 0, at).map(Some)
            }
            // A missing filter message would have this effect.
            false => Err(cursor.corrupt("an unfiltered chunk has an unexpected size")),
        }
    }

    /// Reads the chunk's offset in elements from `cursor`, and writes the chunk's grid coordinates
    /// to `place`.
    fn read_grid_coordinates(&self, cursor: &mut Cursor<'_>, place: &mut [u64]) -> Result<()> {
        for (along, &chunk) in place.iter_mut().zip(&self.geometry.chunk_shape) {
            let offset = cursor.u64()?;
            if offset.checked_rem(chunk) != Some(0) {
                return Err(cursor.corrupt("a chunk is not on the grid"));
            }
            *along = offset.checked_div(chunk).unwrap_or(0);
        }
        match cursor.u64()? {
            0 => Ok(()),
            _ => Err(cursor.corrupt("a chunk begins inside an element")),
        }
    }

    /// Checks that the keys around key `i` of `node` are in order. This check is needed after a
    /// search that found no chunk, because one damaged key can hide existing chunks.
    fn check_order(&self, node: &Node, i: usize) -> Result<()> {
        let mut before: Option<Vec<u64>> = None;
        // The last key is only a bound.
        for i in i.minus_or_zero(1)..i.plus(3).min(node.child_count()) {
            let mut cursor = node.key(i)?;
            cursor.skip(SIZE_AND_MASK)?;
            let mut place = vec![0; self.geometry.rank()];
            self.read_grid_coordinates(&mut cursor, &mut place)?;
            if before.is_some_and(|before| before >= place) {
                return Err(cursor.corrupt("the keys are not sorted"));
            }
            before = Some(place);
        }
        Ok(())
    }

    fn find_in(&self, tree: &BtreeV1, place: &[u64]) -> Result<Option<StoredChunk>> {
        if !self.geometry.is_in_extent(place) {
            return Ok(None);
        }
        let mut node = tree.read_root()?;
        let mut path = Vec::new();
        loop {
            // Child i contains the chunks from key i on, before key i + 1.
            let after = node.find_first_key(0, |key| Ok(self.compare(key, place)?.is_gt()))?;
            let after = after.unwrap_or(node.child_count()).min(node.child_count());
            let Some(i) = after.checked_sub(1) else {
                path.push((node, 0));
                break;
            };
            if node.level() > 0 {
                let child = tree.descend_first(&node, i)?;
                path.push((std::mem::replace(&mut node, child), i));
                continue;
            }
            if self.compare(node.key(i)?, place)?.is_ne() {
                path.push((node, i));
                break;
            }
            if i > 0 && self.compare(node.key(i.minus_or_zero(1))?, place)?.is_eq() {
                return Err(node.key(i)?.corrupt("a chunk occurs twice"));
            }
            let mut found = place.to_vec();
            return self.parse_chunk(node.key(i)?, tree.child(&node, i)?, &mut found);
        }
        for (node, i) in path {
            self.check_order(&node, i)?;
        }
        Ok(None)
    }

    /// Compares the chunk of the key at `cursor` with the chunk that has the grid coordinates
    /// `place`, in row-major order.
    fn compare(&self, mut cursor: Cursor<'_>, place: &[u64]) -> Result<Ordering> {
        cursor.skip(SIZE_AND_MASK)?;
        for (&along, &chunk) in place.iter().zip(&self.geometry.chunk_shape) {
            // The offset of a chunk inside the extent does not overflow. A saturated offset would
            // follow all keys.
            let order = cursor.u64()?.cmp(&along.times(chunk));
            if order.is_ne() {
                return Ok(order);
            }
        }
        Ok(Ordering::Equal)
    }
}

impl ChunkIndex for BtreeV1Index {
    fn find(&self, place: &[u64]) -> Result<Option<StoredChunk>> {
        self.find_in(&self.tree, place)
    }

    fn find_with_budget(
        &self,
        place: &[u64],
        budget: &RequestBudget,
    ) -> Result<Option<StoredChunk>> {
        self.find_in(&self.tree.with_budget(budget), place)
    }

    fn walk_from(
        &self,
        from: &mut IndexCursor,
        budget: &RequestBudget,
        visit: &mut ChunkVisitor<'_>,
    ) -> Result<()> {
        let mut entries = self.tree.with_budget(budget).entries()?;
        let mut place = vec![0; self.geometry.rank()];
        let mut strays = StrayChunkCounter::default();
        if let Some((passed, at)) = from.0.split_first() {
            strays = StrayChunkCounter(*passed);
            entries.seek(&EntryPosition::from_numbers(at))?;
        }
        while let Some(entry) = entries.next_entry()? {
            let chunk = self.parse_chunk(entry.key()?, entry.child()?, &mut place)?;
            // After a dataset has shrunk, old libraries leave chunks outside of it in the index.
            let chunk = chunk.filter(|_| self.geometry.is_in_extent(&place));
            match chunk {
                Some(chunk) if visit(&place, chunk).is_break() => break,
                Some(_) => {}
                None => strays.count_one()?,
            }
        }
        from.0 = [&[strays.0], entries.position().to_numbers().as_slice()].concat();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdf5::testing::{at, file, walk_chunks, words};

    /// Returns a leaf with the size, mask, element offset and address of each chunk, and a last
    /// key.
    fn leaf(chunks: &[(u32, u32, u64, u64)]) -> Vec<u8> {
        let used = u16::try_from(chunks.len()).unwrap();
        let mut block = b"TREE\x01\0".to_vec();
        block.extend(used.to_le_bytes());
        block.extend([0xff; 16]);
        for (size, mask, offset, address) in chunks {
            block.extend(size.to_le_bytes());
            block.extend(mask.to_le_bytes());
            block.extend(words(&[*offset, 0, *address]));
        }
        block.extend(words(&[0, u64::MAX, 0]));
        block
    }

    /// Opens a dataset of ten elements of two bytes in chunks of four.
    fn open(chunks: &[(u32, u32, u64, u64)], filtered: bool) -> BtreeV1Index {
        let geometry = ChunkGeometry::new(vec![10], vec![None], vec![4], 8, 0).unwrap();
        BtreeV1Index::new(file([(0, leaf(chunks))]), at(0), geometry, filtered)
    }

    #[test]
    fn chunks_outside_the_extent_are_ignored() {
        let index = open(&[(8, 0, 0, 500), (8, 0, 8, 600), (8, 0, 12, 700)], false);
        let walked = walk_chunks(&index);
        assert_eq!(walked, Ok(vec![(vec![0], 500), (vec![2], 600)]));
        assert_eq!(index.find(&[1]), Ok(None));
        assert_eq!(index.find(&[3]), Ok(None));
    }

    #[test]
    fn unfiltered_chunks_have_one_size() {
        let chunks = [(3, 2, 4, 500)];
        let chunk = |length, filter_mask| StoredChunk {
            offset: 500,
            length,
            filter_mask,
        };
        assert_eq!(open(&chunks, true).find(&[1]), Ok(Some(chunk(3, 2))));
        assert!(open(&chunks, false).find(&[1]).is_err());
        assert_eq!(
            open(&[(8, 2, 4, 500)], false).find(&[1]),
            Ok(Some(chunk(8, 0)))
        );
    }

    #[test]
    fn chunks_off_the_grid_are_damage() {
        assert!(walk_chunks(&open(&[(8, 0, 3, 500)], false)).is_err());
        assert!(open(&[(0, 0, 4, 500)], true).find(&[1]).is_err());
    }

    #[test]
    fn a_damaged_key_hides_no_chunk() {
        let sound = [0, 4, 8, 12, 16, 20].map(|start| (8, 0, start, 500));
        let geometry = || ChunkGeometry::new(vec![24], vec![None], vec![4], 8, 0).unwrap();
        for damaged in 0..sound.len() {
            for start in [0, 5, 6, 8, 16, 1 << 40, (1 << 40) + 1] {
                let mut chunks = sound;
                chunks[damaged].2 = start;
                let index = BtreeV1Index::new(file([(0, leaf(&chunks))]), at(0), geometry(), false);
                let out_of_order = !chunks.is_sorted_by(|one, next| one.2 < next.2);
                if !out_of_order && start % 4 == 0 {
                    continue;
                }
                for place in 0..sound.len() as u64 {
                    assert_ne!(index.find(&[place]), Ok(None), "{damaged} {start} {place}");
                }
            }
        }
    }
}
