//! Arrays whose bytes are stored unencoded in one source or in several.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::limits;
use crate::memory::buffer::{Buffer, BufferPool};
use crate::memory::cancel::WantedCheck;
use crate::model::storage::{DecodeContext, PieceDecoder, StoredExtent};
use crate::source::{SharedSource, Urgency};
use crate::wire::{Count, Extent};

/// Length in bytes of one piece of [`ExtentPieces`].
const PIECE_BYTES: u64 = 256 << 10;

/// A list of stored extents, each with the range of the array's bytes that it contains.
#[derive(Debug)]
pub(in crate::array) struct Extents(Vec<(Extent, StoredExtent)>);

impl Extents {
    /// Returns the list of `extents` for an array whose bytes are the bytes of the extents, one
    /// after another.
    pub(in crate::array) fn new(extents: &[StoredExtent]) -> Self {
        let mut next = 0_u64;
        let with_place = |stored: &StoredExtent| {
            let place = Extent::saturating(next, stored.extent.length());
            next = place.end();
            (place, stored.clone())
        };
        Extents(extents.iter().map(with_place).collect())
    }

    /// Returns the sources and extents that contain the bytes `wanted` of the array, in order.
    fn overlapping(&self, wanted: Extent) -> impl Iterator<Item = (&SharedSource, Extent)> {
        let is_before = |(place, _): &(Extent, _)| place.end() <= wanted.start();
        let met = self.0[self.0.partition_point(is_before)..].iter();
        let met = met.take_while(move |(place, _)| place.start() < wanted.end());
        met.map(move |(place, stored)| {
            let part = place.intersect(wanted);
            let skipped = part.start() - place.start();
            let part = stored.extent.skip(skipped).first(part.length());
            (&stored.source, part)
        })
    }

    /// Returns whether any of the bytes `offset..end` of the array is in a remote source.
    pub(in crate::array) fn is_remote(&self, offset: u64, end: u64) -> bool {
        let mut met = self.overlapping(Extent::from_range(offset, end));
        met.any(|(source, _)| source.is_remote())
    }

    /// Returns whether a sequential reader gets bytes after `offset..end` sooner if they are
    /// requested ahead.
    pub(in crate::array) fn benefits_from_prefetch(&self, offset: u64, end: u64) -> bool {
        let mut met = self.overlapping(Extent::from_range(offset, end));
        met.any(|(source, _)| source.benefits_from_prefetch())
    }

    /// Requests `ranges` of the array's bytes from the sources that contain them, before they are
    /// read.
    pub(in crate::array) fn prefetch(
        &self,
        ranges: impl Iterator<Item = Range<u64>>,
        urgency: Urgency,
    ) {
        let met = ranges.flat_map(|range| self.overlapping(range.into()));
        let asked =
            met.filter(|(source, part)| !part.is_empty() && source.benefits_from_prefetch());
        let asked: Vec<_> = asked.take(limits::RANGES_AT_ONCE).collect();
        for group in asked.chunk_by(|(one, _), (next, _)| Arc::ptr_eq(one, next)) {
            let ranges = group.iter().map(|(_, part)| (part.start(), part.length()));
            group[0].0.prefetch(&ranges.collect::<Vec<_>>(), urgency);
        }
    }

    /// Reads bytes `offset..end` of the array.
    ///
    /// # Errors
    /// `Corrupt` if the extents end before `end`. Otherwise the error of the source that cannot be
    /// read, or [`Error::cancelled`] once no request waits for the bytes.
    pub(in crate::array) fn read(
        &self,
        offset: u64,
        end: u64,
        (pool, is_wanted): (&BufferPool, &WantedCheck<'_>),
    ) -> Result<Buffer> {
        let mut reply = pool.buffer((end - offset) as usize)?;
        let mut rest = &mut reply[..];
        for (source, part) in self.overlapping(Extent::from_range(offset, end)) {
            let here;
            (here, rest) = rest.split_at_mut(part.length() as usize);
            if !part.is_empty() {
                source.read_cancellable(part.start(), here, is_wanted)?;
            }
        }
        if !rest.is_empty() {
            let what = format!(
                "array's storage ends at its byte {}",
                end - rest.len() as u64
            );
            return Err(Error::corrupt(what, None));
        }
        Ok(reply)
    }
}

/// The bytes of extents, divided into pieces that a cache can keep.
#[derive(Debug)]
pub(in crate::array) struct ExtentPieces {
    extents: Extents,
    length: u64,
}

impl ExtentPieces {
    /// Returns the pieces of the first `length` bytes of `extents`.
    pub(in crate::array) fn new(extents: Extents, length: u64) -> Self {
        ExtentPieces { extents, length }
    }
}

impl PieceDecoder for ExtentPieces {
    fn byte_length(&self) -> u64 {
        self.length
    }

    fn piece_bytes(&self) -> Result<u64> {
        Ok(PIECE_BYTES)
    }

    fn stored_bytes(&self) -> u64 {
        self.length
    }

    fn stored_extents(&self, pieces: Range<u64>) -> Vec<StoredExtent> {
        let end = pieces.end.times(PIECE_BYTES).min(self.length);
        let met = self
            .extents
            .overlapping(Extent::from_range(pieces.start.times(PIECE_BYTES), end));
        let part = |(source, extent): (&SharedSource, Extent)| StoredExtent {
            source: Arc::clone(source),
            extent,
        };
        met.take(limits::RANGES_AT_ONCE).map(part).collect()
    }

    fn decode(&self, piece: u64, help: &mut DecodeContext<'_>) -> Result<Buffer> {
        let start = piece
            .checked_mul(PIECE_BYTES)
            .filter(|&at| at < self.length);
        let start = start.ok_or(Error::NotFound)?;
        let piece = Extent::from_range(start, self.length).first(PIECE_BYTES);
        self.extents
            .read(start, piece.end(), (help.pool, help.is_wanted))
    }
}
