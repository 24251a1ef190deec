//! Arrays that stand in a source, or in several, as they are.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::limits;
use crate::memory::buffer::{Buffer, BufferPool};
use crate::model::storage::{Extent, Help, Pieces};
use crate::source::Urgency;

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

    /// The extents that bytes `offset..end` of the array meet: where each begins in the array, and
    /// the range there that it has.
    fn met(&self, offset: u64, end: u64) -> impl Iterator<Item = (&Extent, u64, u64)> {
        let is_before =
            |(start, extent): &(u64, Extent)| start.saturating_add(extent.length) <= offset;
        let met = self.0[self.0.partition_point(is_before)..].iter();
        let met = met.take_while(move |(start, _)| *start < end);
        met.map(move |(start, extent)| {
            let from = offset.saturating_sub(*start);
            let to = extent.length.min(end.saturating_sub(*start));
            (extent, from, to)
        })
    }

    /// Whether reading bytes `offset..end` may take long.
    pub(super) fn is_far(&self, offset: u64, end: u64) -> bool {
        let mut met = self.met(offset, end);
        met.any(|(extent, ..)| extent.source.is_far())
    }

    /// Whether a sequential reader gets bytes behind `offset..end` sooner if they are asked for.
    pub(super) fn reads_ahead(&self, offset: u64, end: u64) -> bool {
        let mut met = self.met(offset, end);
        met.any(|(extent, ..)| extent.source.reads_ahead())
    }

    /// Asks sources for these ranges of the array.
    pub(super) fn ask(&self, ranges: impl Iterator<Item = Range<u64>>, urgency: Urgency) {
        let met = ranges.flat_map(|range| self.met(range.start, range.end));
        let asked = met.filter(|(extent, from, to)| from < to && extent.source.reads_ahead());
        let asked: Vec<_> = asked.take(limits::RANGES_AT_ONCE).collect();
        let of_one = |one: &(&Extent, _, _), next: &(&Extent, _, _)| {
            Arc::ptr_eq(&one.0.source, &next.0.source)
        };
        for group in asked.chunk_by(of_one) {
            let range = |(extent, from, to): &(&Extent, u64, u64)| {
                (extent.offset.saturating_add(*from), to - from)
            };
            let ranges: Vec<_> = group.iter().map(range).collect();
            group[0].0.source.prefetch(&ranges, urgency);
        }
    }

    /// Bytes `offset..end` of the array.
    ///
    /// # Errors
    /// `Corrupt` where the extents end before; otherwise as a source cannot be read.
    pub(super) fn read(&self, offset: u64, end: u64, pool: &BufferPool) -> Result<Buffer> {
        let mut reply = pool.buffer((end - offset) as usize)?;
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

    fn place(&self, pieces: Range<u64>) -> Vec<Extent> {
        let end = pieces.end.saturating_mul(PIECE).min(self.length);
        let met = self.extents.met(pieces.start.saturating_mul(PIECE), end);
        let part = |(extent, from, to): (&Extent, u64, u64)| Extent {
            source: Arc::clone(&extent.source),
            offset: extent.offset.saturating_add(from),
            length: to.saturating_sub(from),
        };
        met.take(limits::RANGES_AT_ONCE).map(part).collect()
    }

    fn decode(&self, piece: u64, help: &mut Help<'_>) -> Result<Buffer> {
        let start = piece.checked_mul(PIECE).filter(|&at| at < self.length);
        let start = start.ok_or(Error::NotFound)?;
        let end = start.saturating_add(PIECE).min(self.length);
        self.extents.read(start, end, help.pool)
    }
}
