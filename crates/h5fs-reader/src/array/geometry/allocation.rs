//! The stored parts of an array, for `st_blocks`, SEEK_DATA and SEEK_HOLE.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use crate::array::geometry::grid::Grid;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::request_budget::RequestBudget;
use crate::model::storage::ChunkGrid;
use crate::wire::{Count, Extent};

/// The number of stored bytes of an array, and the ranges of the array that contain data.
///
/// A hole is a range whose bytes are all known to be zero, because no element is stored there and
/// the fill value is zero.
#[derive(Debug, Clone)]
pub struct Allocation {
    /// Number of bytes that the array takes in the file, encoded by its filters. The number is
    /// extrapolated if the array has more chunks than are counted.
    pub stored_bytes: u64,
    /// Ranges of the array's bytes that may hold data, sorted. No range is empty, and no two of
    /// them touch. All other bytes are holes.
    data: Arc<[Range<u64>]>,
    length: u64,
}

impl Allocation {
    /// Returns the allocation of an array of `length` bytes without holes.
    pub(in crate::array) fn dense(stored_bytes: u64, length: u64) -> Self {
        Allocation {
            stored_bytes,
            data: whole_range(length),
            length,
        }
    }

    /// Returns the allocation of an array of `length` bytes without stored bytes. The whole array
    /// is a hole if its fill value is zero.
    pub(in crate::array) fn unallocated(zero_fill: bool, length: u64) -> Self {
        Allocation {
            stored_bytes: 0,
            data: if zero_fill {
                [].into()
            } else {
                whole_range(length)
            },
            length,
        }
    }

    /// Returns the allocation of an array of `length` bytes in the chunks of `grid`. If the chunk
    /// index is larger than one request may examine, the result is extrapolated from the examined
    /// part.
    ///
    /// # Errors
    /// Fails if the chunk index is damaged.
    pub(in crate::array) fn from_chunks(
        grid: &Grid,
        chunked: &ChunkGrid,
        zero_fill: bool,
        length: u64,
    ) -> Result<Self> {
        let mut walked = CountedChunks::default();
        let bands = ChunkRows::from_grid(grid);
        let budget = RequestBudget::for_request();
        let walk = chunked.index.walk(&budget, &mut |place, stored| {
            if !grid.is_inside(place) {
                return ControlFlow::Continue(());
            }
            if walked.chunks == limits::ALLOCATION_WALK as u64 {
                walked.cut_off = true;
                return ControlFlow::Break(());
            }
            walked.chunks += 1;
            walked.bytes = walked.bytes.plus(stored.length);
            walked.bands.push(bands.band_number(place));
            ControlFlow::Continue(())
        });
        match walk {
            Err(Error::Limit { .. } | Error::BudgetExceeded { .. }) => walked.cut_off = true,
            walk => walk?,
        }
        if walked.cut_off {
            return Ok(Allocation {
                stored_bytes: walked.extrapolate(grid).min(chunked.source.length()),
                data: whole_range(length),
                length,
            });
        }
        let data = if zero_fill {
            bands.ranges(walked.bands, length)
        } else {
            whole_range(length)
        };
        Ok(Allocation {
            // The sum exceeds the file's length if a damaged index lets chunks overlap.
            stored_bytes: walked.bytes.min(chunked.source.length()),
            data,
            length,
        })
    }

    /// Returns the first offset, from `offset` on, that may hold data other than zeros. Returns
    /// `None` if only holes follow.
    pub fn next_data(&self, offset: u64) -> Option<u64> {
        let next = self.data.partition_point(|range| range.end <= offset);
        self.data.get(next).map(|range| range.start.max(offset))
    }

    /// Returns the first offset, from `offset` on, that lies in a hole. The array's end counts as a
    /// hole.
    pub fn next_hole(&self, offset: u64) -> u64 {
        let next = self.data.partition_point(|range| range.end <= offset);
        match self.data.get(next) {
            Some(range) if range.start <= offset => range.end,
            _ => offset.min(self.length),
        }
    }

    /// Returns whether every byte is known to be zero.
    pub fn is_hole(&self) -> bool {
        self.data.is_empty()
    }
}

fn whole_range(length: u64) -> Arc<[Range<u64>]> {
    let whole = 0..length;
    if whole.is_empty() {
        [].into()
    } else {
        [whole].into()
    }
}

/// The number and the stored bytes of the chunks that a walk over the chunk index has visited.
#[derive(Default)]
struct CountedChunks {
    chunks: u64,
    bytes: u64,
    bands: Vec<u64>,
    cut_off: bool,
}

impl CountedChunks {
    /// Returns the estimated stored bytes of all chunks, assuming that the remaining chunks are
    /// like the counted ones.
    fn extrapolate(&self, grid: &Grid) -> u64 {
        let all = u128::from(self.bytes) * u128::from(grid.chunk_count());
        u64::try_from(all / u128::from(self.chunks.max(1))).unwrap_or(u64::MAX)
    }
}

/// Rows of chunks along the slowest dimension that has more than one element. The elements of each
/// row are contiguous in the array.
struct ChunkRows {
    axis: usize,
    /// Length in bytes of the array's part in one row of chunks. The last row may be shorter.
    bytes: u64,
}

impl ChunkRows {
    fn from_grid(grid: &Grid) -> Self {
        let dims = grid.dims();
        let axis = dims.iter().position(|&dim| dim > 1).unwrap_or(0);
        let row: u64 = dims.iter().skip(axis + 1).product::<u64>() * grid.element_bytes();
        let rows = grid.chunk_shape().get(axis).copied().unwrap_or(1);
        ChunkRows {
            axis,
            bytes: row.times(rows),
        }
    }

    fn band_number(&self, place: &[u64]) -> u64 {
        place.get(self.axis).copied().unwrap_or(0)
    }

    fn ranges(&self, mut bands: Vec<u64>, length: u64) -> Arc<[Range<u64>]> {
        bands.sort_unstable();
        bands.dedup();
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for band in bands {
            let start = band * self.bytes;
            let end = Extent::saturating(start, self.bytes).end().min(length);
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => ranges.push(start..end),
            }
        }
        ranges.into()
    }
}
