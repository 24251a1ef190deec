//! Copy plans: which runs of bytes of a chunk are copied to which offsets of the reply.

use std::convert::Infallible;

use crate::array::geometry::grid::{Grid, Slab};
use crate::array::kinds::fill_value::FillValue;
use crate::error::Result;
use crate::memory::cancel::WantedCheck;
use crate::source::Source;
use crate::wire::Count;

/// Largest gap between two runs, in bytes, that is read together with them. Reading such a gap
/// costs about the same as one more system call.
const MAX_GAP_BYTES: u64 = 16 << 10;

/// Maximum number of bytes and maximum number of runs that one read from an unfiltered chunk
/// covers.
const WINDOW_BYTES: u64 = 1 << 20;
const WINDOW_RUNS: usize = 4096;

/// The part of one chunk that lies in one box of the array. The part consists of runs of equal
/// length, each contiguous in the chunk and in the reply. Both offsets increase from run to run.
/// For a strided array, whose "chunk" is a whole block, the offsets in the block may also decrease.
#[derive(Debug)]
pub(in crate::array) struct CopyPlan {
    /// Offset of the first run in the chunk, in bytes.
    chunk_offset: i64,
    /// Offset of the first run in the reply, in bytes.
    reply_offset: usize,
    run: usize,
    /// The nested repetitions of the run, fastest first.
    loops: Vec<RunLoop>,
}

#[derive(Debug)]
struct RunLoop {
    count: u64,
    chunk_step: i64,
    reply_step: usize,
}

impl CopyPlan {
    /// Plans the copy of the part of the chunk at grid coordinates `place` (in merged dimensions)
    /// that lies in `slab`. The chunk and the slab must overlap.
    pub(in crate::array) fn new(grid: &Grid, slab: &Slab, place: &[u64]) -> CopyPlan {
        let mut plan = CopyPlan {
            chunk_offset: 0,
            reply_offset: to_index(slab.range_offset),
            run: 1,
            loops: Vec::new(),
        };
        let mut slab_stride = 1;
        for (i, axis) in grid.axes().iter().enumerate().rev() {
            let chunk_start = place[i] * axis.chunk;
            let slab_end = slab.start[i] + slab.count[i];
            let first = slab.start[i].max(chunk_start);
            let count = slab_end.min(chunk_start + axis.chunk) - first;
            plan.chunk_offset += (first - chunk_start).cast_signed() * axis.chunk_stride;
            plan.reply_offset += to_index((first - slab.start[i]) * slab_stride);
            plan.repeat(count, axis.chunk_stride, to_index(slab_stride));
            slab_stride *= slab.count[i];
        }
        plan
    }

    /// Repeats the plan so far `count` times, in steps of `from` bytes in the chunk and `to` bytes
    /// in the reply.
    fn repeat(&mut self, count: u64, from: i64, to: usize) {
        if count == 1 {
            return;
        }
        match self.loops.last_mut() {
            None if from == self.run as i64 && to == self.run => self.run *= to_index(count),
            Some(inner)
                if inner.chunk_step * inner.count.cast_signed() == from
                    && inner.reply_step * to_index(inner.count) == to =>
            {
                inner.count *= count;
            }
            _ => self.loops.push(RunLoop {
                count,
                chunk_step: from,
                reply_step: to,
            }),
        }
    }

    /// Returns the offset in the chunk of the first byte that the plan copies.
    pub(in crate::array) fn first_byte(&self) -> u64 {
        self.chunk_offset.cast_unsigned()
    }

    /// Returns the offset in the chunk of the last byte that the plan copies.
    pub(in crate::array) fn last_byte(&self) -> u64 {
        let loops = self.loops.iter();
        let steps = loops.map(|step| (step.count - 1) * step.chunk_step.cast_unsigned());
        self.first_byte() + steps.sum::<u64>() + (self.run - 1) as u64
    }

    /// Returns the number of bytes of all runs of the plan.
    pub(in crate::array) fn byte_count(&self) -> u64 {
        let runs: u64 = self.loops.iter().map(|step| step.count).product();
        runs * self.run as u64
    }

    /// Copies the runs from the decoded `chunk` to `reply`.
    pub(in crate::array) fn copy(&self, chunk: &[u8], reply: &mut [u8]) {
        // Short runs are copied faster if the compiler knows the length.
        match self.run {
            1 => self.copy_short::<1>(chunk, reply),
            2 => self.copy_short::<2>(chunk, reply),
            4 => self.copy_short::<4>(chunk, reply),
            8 => self.copy_short::<8>(chunk, reply),
            16 => self.copy_short::<16>(chunk, reply),
            run => self.copy_with(|from, to| {
                reply[to..to + run].copy_from_slice(&chunk[from..from + run]);
            }),
        }
    }

    fn copy_short<const RUN: usize>(&self, chunk: &[u8], reply: &mut [u8]) {
        self.copy_with(|from, to| {
            reply[to..to + RUN].copy_from_slice(&chunk[from..from + RUN]);
        });
    }

    fn copy_with(&self, mut copy: impl FnMut(usize, usize)) {
        let Ok(()) = self.for_each_run(|from, to| {
            copy(to_index(from.cast_unsigned()), to);
            Ok::<_, Infallible>(())
        });
    }

    /// Writes the fill value to all runs in `reply`, which begins at byte `offset` of the array.
    pub(in crate::array) fn fill(&self, value: &FillValue, offset: u64, reply: &mut [u8]) {
        let Ok(()) = self.for_each_run(|_, to| {
            value.fill(offset + to as u64, &mut reply[to..to + self.run]);
            Ok::<_, Infallible>(())
        });
    }

    /// Copies the runs from an unfiltered chunk at offset `base` of `source` to `reply`. Reads also
    /// small gaps between the runs.
    pub(in crate::array) fn copy_from_source(
        &self,
        source: &dyn Source,
        base: u64,
        reply: &mut [u8],
        is_wanted: &WantedCheck<'_>,
    ) -> Result<()> {
        let mut window = ReadWindow {
            source,
            is_wanted,
            base,
            run: self.run,
            runs: Vec::new(),
            scratch: Vec::new(),
        };
        self.for_each_run(|from, to| {
            let from = from.cast_unsigned();
            if !window.can_add_run(from) {
                window.flush(reply)?;
            }
            window.runs.push((from, to));
            Ok(())
        })?;
        window.flush(reply)
    }

    /// Returns the ranges of the source that [`copy_from_source`](Self::copy_from_source) reads for
    /// the chunk at `base`, each as an offset and a length. Returns at most `most` ranges.
    pub(in crate::array) fn source_ranges(&self, base: u64, most: usize) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        let run = self.run as u64;
        // If there are too many ranges, only the first ones are returned.
        let _ = self.for_each_run(|from, _| {
            // The addition cannot overflow, because the chunk is inside its source.
            let at = base + from.cast_unsigned();
            let is_full = ranges.len() >= most;
            match ranges.last_mut() {
                Some((start, length)) if at.minus_or_zero(*start + *length) <= MAX_GAP_BYTES => {
                    *length = at + run - *start;
                }
                _ if is_full => return Err(()),
                _ => ranges.push((at, run)),
            }
            Ok(())
        });
        ranges
    }

    /// Returns the length in bytes of every run of the plan.
    pub(in crate::array) fn run_bytes(&self) -> usize {
        self.run
    }

    /// Calls `visit` for every run, with the run's offset in the chunk and its offset in the reply.
    pub(in crate::array) fn for_each_run<E>(
        &self,
        mut visit: impl FnMut(i64, usize) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut done = vec![0; self.loops.len()];
        let (mut from, mut to) = (self.chunk_offset, self.reply_offset);
        'runs: loop {
            visit(from, to)?;
            for (done, step) in done.iter_mut().zip(&self.loops) {
                *done += 1;
                from += step.chunk_step;
                to += step.reply_step;
                if *done < step.count {
                    continue 'runs;
                }
                from -= step.chunk_step * step.count.cast_signed();
                to -= step.reply_step * to_index(step.count);
                *done = 0;
            }
            return Ok(());
        }
    }
}

/// Runs that are read with one system call.
struct ReadWindow<'a> {
    source: &'a dyn Source,
    is_wanted: &'a WantedCheck<'a>,
    base: u64,
    run: usize,
    runs: Vec<(u64, usize)>,
    scratch: Vec<u8>,
}

impl ReadWindow<'_> {
    /// Returns whether the run at offset `from` of the chunk should be read together with the runs
    /// before it.
    fn can_add_run(&self, from: u64) -> bool {
        let (Some(first), Some(last)) = (self.runs.first(), self.runs.last()) else {
            return true;
        };
        let run = self.run as u64;
        from - (last.0 + run) <= MAX_GAP_BYTES
            && from + run - first.0 <= WINDOW_BYTES
            && self.runs.len() < WINDOW_RUNS
    }

    fn flush(&mut self, reply: &mut [u8]) -> Result<()> {
        let (Some(&(first, to)), Some(&(last, _))) = (self.runs.first(), self.runs.last()) else {
            return Ok(());
        };
        let run = self.run;
        let at = self.base + first;
        if self.runs.len() == 1 {
            self.source
                .read_cancellable(at, &mut reply[to..to + run], self.is_wanted)?;
        } else {
            self.scratch.resize(to_index(last - first) + run, 0);
            self.source
                .read_cancellable(at, &mut self.scratch, self.is_wanted)?;
            for &(from, to) in &self.runs {
                let from = to_index(from - first);
                reply[to..to + run].copy_from_slice(&self.scratch[from..from + run]);
            }
        }
        self.runs.clear();
        Ok(())
    }
}

/// Converts an offset that is known to lie within a buffer in memory.
fn to_index(offset: u64) -> usize {
    offset as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::memory::MemorySource;

    /// Returns 4 x 6 bytes in chunks of 2 x 3. The chunk at (1, 1) holds columns 3 to 5 of rows 2
    /// and 3.
    fn grid() -> Grid {
        Grid::new(&[4, 6], &[2, 3], 1).unwrap()
    }

    #[test]
    fn a_chunk_is_copied_to_its_columns() {
        let grid = grid();
        // Rows 2 and 3, from byte 12 to the end.
        let slabs = grid.slabs(12, 24);
        let plan = CopyPlan::new(&grid, &slabs[0], &[1, 1]);
        let mut reply = [0; 12];
        plan.copy(&[1, 2, 3, 4, 5, 6], &mut reply);
        assert_eq!(reply, [0, 0, 0, 1, 2, 3, 0, 0, 0, 4, 5, 6]);
        assert_eq!((plan.first_byte(), plan.last_byte()), (0, 5));

        let source = MemorySource::new(vec![9, 9, 1, 2, 3, 4, 5, 6]);
        let mut read = [0; 12];
        plan.copy_from_source(&source, 2, &mut read, &|| true)
            .unwrap();
        assert_eq!(read, reply);
    }

    #[test]
    fn contiguous_rows_are_one_run() {
        let grid = Grid::new(&[4, 6], &[2, 6], 2).unwrap();
        let slabs = grid.slabs(24, 48);
        let plan = CopyPlan::new(&grid, &slabs[0], &[1]);
        assert_eq!((plan.run, plan.loops.len()), (24, 0));
    }
}
