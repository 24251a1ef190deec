//! Hints to a remote source: the byte ranges that a read needs now, and those that later reads may
//! need.
//!
//! The request's thread looks up the chunks, requests their bytes, and may wait for the chunk
//! index. The decode threads then find the chunk locations in memory.

use std::ops::{ControlFlow, Range};
use std::sync::Mutex;

use crate::array::chunks::{ArrayChunks, ChunkForm};
use crate::array::geometry::span::ChunkPart;
use crate::limits;
use crate::memory::lock::lock;
use crate::memory::request_budget::RequestBudget;
use crate::model::storage::{ChunkGrid, PieceDecoder};
use crate::source::Urgency;
use crate::wire::{Count, Extent, merge_ranges};

/// The set of chunks that readers of one array have touched. The set grows until it is large enough
/// to request the whole array.
#[derive(Debug, Default)]
pub(in crate::array) struct TouchedChunks(Mutex<TouchedSet>);

#[derive(Debug, Default)]
struct TouchedSet {
    /// Distinct chunk numbers, fewer than [`limits::TOUCHED_CHUNKS`].
    chunks: Vec<u64>,
    is_complete: bool,
}

impl TouchedChunks {
    /// Records the chunks that a read touches in an array of `count` chunks. Returns true once,
    /// when enough chunks were touched to request the whole array.
    pub(in crate::array) fn record_touches(
        &self,
        chunks: impl Iterator<Item = u64>,
        count: u64,
    ) -> bool {
        // A single touched chunk does not suggest that others follow.
        let enough = count.div_ceil(8).clamp(2, limits::TOUCHED_CHUNKS) as usize;
        let mut state = lock(&self.0);
        if state.is_complete {
            return false;
        }
        for chunk in chunks.take(enough) {
            if !state.chunks.contains(&chunk) {
                state.chunks.push(chunk);
            }
        }
        state.is_complete = state.chunks.len() >= enough;
        if state.is_complete {
            state.chunks = Vec::new();
        }
        state.is_complete
    }
}

impl ArrayChunks {
    /// Requests from the source the bytes that a read of `parts` waits for. The wait for the chunk
    /// index ends once the request of `budget` is cancelled.
    pub(in crate::array) fn prefetch_needed<'p>(
        &self,
        parts: impl Iterator<Item = &'p ChunkPart>,
        budget: &RequestBudget,
    ) {
        if let Some(block) = self.remote_block() {
            let (first, last) = parts.fold((u64::MAX, 0), |(first, last), part| {
                (first.min(part.number), last.max(part.number))
            });
            return prefetch_pieces(block, first..last.plus_one(), Urgency::Needed);
        }
        let Some(chunked) = self.chunk_grid() else {
            return;
        };
        let mut ranges = Vec::new();
        for part in parts {
            let left = limits::RANGES_AT_ONCE - ranges.len();
            if left == 0 {
                break;
            }
            // The read itself reports errors of the index.
            match self.locate(part.number, budget) {
                Ok(ChunkForm::Encoded(encoded)) => {
                    ranges.extend(encoded.stored.map(|stored| (stored.offset, stored.length)));
                }
                Ok(ChunkForm::Raw(_, base)) => {
                    let plans = part.plans.iter();
                    ranges.extend(
                        plans
                            .flat_map(|plan| plan.source_ranges(base, left))
                            .take(left),
                    );
                }
                Ok(ChunkForm::Absent) | Err(_) => {}
            }
        }
        prefetch_ranges(chunked, &ranges, Urgency::Needed);
    }

    /// Requests from the source the stored bytes of the chunks `numbers`, which later reads may
    /// need.
    pub(in crate::array) fn prefetch_expected(&self, numbers: Range<u64>) {
        if let Some(block) = self.encoded_block() {
            return prefetch_pieces(block, numbers, Urgency::Expected);
        }
        let Some(chunked) = self.chunk_grid() else {
            return;
        };
        let mut ranges = Vec::new();
        for number in numbers {
            match self.locate(number, &RequestBudget::default()) {
                Ok(ChunkForm::Encoded(encoded)) => {
                    ranges.extend(encoded.stored.map(|stored| (stored.offset, stored.length)));
                }
                Ok(ChunkForm::Raw(_, base)) => ranges.push((base, self.grid.chunk_bytes())),
                Ok(ChunkForm::Absent) => {}
                Err(_) => break,
            }
        }
        prefetch_ranges(chunked, &ranges, Urgency::Expected);
    }

    /// Requests the stored bytes of the whole array from the source, unless the array is large.
    pub(in crate::array) fn prefetch_all(&self) {
        if let Some(block) = self.remote_block() {
            if block.stored_bytes() <= limits::WHOLE_BYTES {
                prefetch_pieces(block, 0..self.grid.chunk_count(), Urgency::Expected);
            }
            return;
        }
        if let Some(chunked) = self.chunk_grid()
            && self.grid.chunk_count() <= limits::WHOLE_CHUNKS
            && let Some(ranges) = stored_ranges(chunked)
        {
            for ranges in ranges.chunks(limits::RANGES_AT_ONCE) {
                prefetch_ranges(chunked, ranges, Urgency::Expected);
            }
        }
    }
}

/// Requests the stored bytes of `pieces` of an encoded block from its source.
fn prefetch_pieces(block: &dyn PieceDecoder, pieces: Range<u64>, urgency: Urgency) {
    for part in block.stored_extents(pieces) {
        let range = (part.extent.start(), part.extent.length());
        part.source.prefetch(&[range], urgency);
    }
}

fn prefetch_ranges(chunked: &ChunkGrid, ranges: &[(u64, u64)], urgency: Urgency) {
    if !ranges.is_empty() {
        chunked.source.prefetch(ranges, urgency);
    }
}

/// Returns the offset and length of the stored bytes of all chunks, with adjacent ranges merged.
/// Returns `None` if they exceed the limits for requesting a whole array, or if the chunk index
/// cannot be read.
pub(in crate::array) fn stored_ranges(chunked: &ChunkGrid) -> Option<Vec<(u64, u64)>> {
    let mut ranges: Vec<Extent> = Vec::new();
    let mut bytes = 0_u64;
    let walked = chunked
        .index
        .walk(&RequestBudget::for_request(), &mut |_, stored| {
            bytes = bytes.plus(stored.length);
            // The read itself refuses a range whose end overflows.
            ranges.extend(Extent::checked(stored.offset, stored.length));
            if bytes <= limits::WHOLE_BYTES && ranges.len() as u64 <= limits::WHOLE_CHUNKS {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
    walked.ok()?;
    if bytes > limits::WHOLE_BYTES || ranges.len() as u64 > limits::WHOLE_CHUNKS {
        return None;
    }
    ranges.sort_unstable_by_key(|range| range.start());
    Some(merge_ranges(
        ranges.iter().map(|range| (range.start(), range.length())),
    ))
}
