//! Entries that locate one chunk, in fixed arrays, extensible arrays and version 2 B-trees.
//!
//! HDF5 3.0, VII.C and VII.D, "Data Block Element". An entry is an address. In filtered datasets,
//! the stored size and the filter mask follow. The width of the size follows from the size of the
//! whole entry.

use crate::error::Result;
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::index::{ChunkGeometry, stored_chunk};
use crate::model::storage::StoredChunk;
use crate::wire::{Count, Cursor};

const FILTER_MASK: usize = 4;

#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkEntryFormat {
    /// Number of bytes of the whole entry.
    pub(super) size: usize,
    /// Number of bytes of the stored size, or `None` if entries do not contain a size.
    length_width: Option<usize>,
    /// Stored size in bytes of every chunk, if entries do not contain a size.
    chunk_bytes: u64,
}

impl ChunkEntryFormat {
    /// Creates the form of entries of `size` bytes. `cursor` is the location for errors.
    ///
    /// # Errors
    /// `Corrupt` if `size` is not possible.
    pub(super) fn new(
        meta: &Metadata,
        filtered: bool,
        size: usize,
        geometry: &ChunkGeometry,
        cursor: &Cursor<'_>,
    ) -> Result<Self> {
        let beside_address = size.checked_sub(meta.size_of_offsets().bytes());
        let length_width = match (filtered, beside_address) {
            (false, Some(0)) => None,
            (true, Some(rest)) if (FILTER_MASK.plus_one()..=12).contains(&rest) => {
                Some(rest.minus_or_zero(FILTER_MASK))
            }
            _ => return Err(cursor.corrupt("the size of an entry is not possible")),
        };
        Ok(ChunkEntryFormat {
            size,
            length_width,
            chunk_bytes: geometry.chunk_bytes,
        })
    }

    /// Returns whether entries contain a stored size and a filter mask.
    pub(super) fn is_filtered(&self) -> bool {
        self.length_width.is_some()
    }

    /// Reads the entry at `cursor`. Returns `None` if the chunk was never stored.
    pub(super) fn read(
        &self,
        meta: &Metadata,
        cursor: &mut Cursor<'_>,
    ) -> Result<Option<StoredChunk>> {
        let at = cursor.offset();
        let address = meta.read_address(cursor)?;
        let (length, filter_mask) = match self.length_width {
            Some(width) => (cursor.uint(width)?, cursor.u32()?),
            None => (self.chunk_bytes, 0),
        };
        address
            .map(|offset| stored_chunk(offset, length, filter_mask, at))
            .transpose()
    }
}
