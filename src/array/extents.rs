//! Arrays that stand in a source, or in several, as they are.

use crate::error::{Error, Result};
use crate::memory::buffer::{Buffer, BufferPool};
use crate::model::storage::{Extent, Help, Pieces};

/// Bytes of a piece.
const PIECE: u64 = 256 << 10;

/// Each extent with the offset of its first byte in the array.
#[derive(Debug)]
pub(super) struct Extents(Vec<(u64, Extent)>);

impl Extents {
    /// An array in `extents`, which follow each other.
    pub(super) fn new(extents: &[Extent]) -> Self {
        let mut next = 0_u64;
        let with_start = |extent: &Extent| {
            let start = next;
            next = next.saturating_add(extent.length);
            (start, extent.clone())
        };
        Extents(extents.iter().map(with_start).collect())
    }

    /// Bytes `offset..end` of the array.
    ///
    /// # Errors
    /// `Corrupt` where the extents end before; otherwise as a source cannot be read.
    pub(super) fn read(&self, offset: u64, end: u64, pool: &BufferPool) -> Result<Buffer> {
        let mut reply = pool.buffer((end - offset) as usize);
        let mut next = offset;
        let is_before =
            |(start, extent): &(u64, Extent)| start.saturating_add(extent.length) <= offset;
        for (start, extent) in &self.0[self.0.partition_point(is_before)..] {
            let stop = start.saturating_add(extent.length).min(end);
            if next >= stop {
                continue;
            }
            let target = &mut reply[(next - offset) as usize..(stop - offset) as usize];
            let at = extent.offset.checked_add(next - start);
            let at = at.ok_or_else(|| Error::corrupt("address of an array", extent.offset))?;
            extent.source.read_at(at, target)?;
            next = stop;
        }
        if next < end {
            let what = format!("array's storage ends at its byte {next}");
            return Err(Error::corrupt(what, None));
        }
        Ok(reply)
    }
}

/// Extents in pieces, which a cache can keep.
#[derive(Debug)]
pub(super) struct ExtentPieces {
    extents: Extents,
    length: u64,
}

impl ExtentPieces {
    /// The first `length` bytes of `extents`.
    pub(super) fn new(extents: Extents, length: u64) -> Self {
        ExtentPieces { extents, length }
    }
}

impl Pieces for ExtentPieces {
    fn bytes(&self) -> u64 {
        self.length
    }

    fn piece_bytes(&self) -> Result<u64> {
        Ok(PIECE)
    }

    fn stored_bytes(&self) -> u64 {
        self.length
    }

    fn decode(&self, piece: u64, help: &mut Help<'_>) -> Result<Buffer> {
        let start = piece.checked_mul(PIECE).filter(|&at| at < self.length);
        let start = start.ok_or(Error::NotFound)?;
        let end = start.saturating_add(PIECE).min(self.length);
        self.extents.read(start, end, help.pool)
    }
}
