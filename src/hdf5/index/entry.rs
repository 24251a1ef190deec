//! Entries that say where one chunk is, as fixed and extensible arrays and version 2 B-trees hold
//! them.
//!
//! HDF5 3.0, VII.C and VII.D, "Data Block Element". An address; in filtered datasets then the
//! stored size and the filter mask. The width of the size follows from the size of the whole entry.

use crate::error::Result;
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::index::{Geometry, stored_chunk};
use crate::model::storage::StoredChunk;
use crate::wire::{Count, Cursor};

const FILTER_MASK: usize = 4;

#[derive(Debug, Clone, Copy)]
pub(super) struct EntryForm {
    /// Bytes of the whole entry.
    pub(super) size: usize,
    /// Bytes of the stored size, if there is one.
    length_width: Option<usize>,
    /// Stored size of a chunk where the entry does not say it.
    chunk_bytes: u64,
}

impl EntryForm {
    /// Entries of `size` bytes; `cursor` stands behind the number in the file, for errors.
    pub(super) fn new(
        meta: &Metadata,
        filtered: bool,
        size: usize,
        geometry: &Geometry,
        cursor: &Cursor<'_>,
    ) -> Result<Self> {
        let beside_address = size.checked_sub(meta.size_of_offsets().bytes());
        let length_width = match (filtered, beside_address) {
            (false, Some(0)) => None,
            (true, Some(rest)) if (FILTER_MASK.one_more()..=12).contains(&rest) => {
                Some(rest.left_after(FILTER_MASK))
            }
            _ => return Err(cursor.corrupt("impossible size of an entry")),
        };
        Ok(EntryForm {
            size,
            length_width,
            chunk_bytes: geometry.chunk_bytes,
        })
    }

    /// Whether entries have a size and a mask.
    pub(super) fn filtered(&self) -> bool {
        self.length_width.is_some()
    }

    /// The entry at `cursor`; `None` where no chunk is stored.
    pub(super) fn read(
        &self,
        meta: &Metadata,
        cursor: &mut Cursor<'_>,
    ) -> Result<Option<StoredChunk>> {
        let at = cursor.at();
        let address = meta.address(cursor)?;
        let (length, filter_mask) = match self.length_width {
            Some(width) => (cursor.uint(width)?, cursor.u32()?),
            None => (self.chunk_bytes, 0),
        };
        address
            .map(|offset| stored_chunk(offset, length, filter_mask, at))
            .transpose()
    }
}
