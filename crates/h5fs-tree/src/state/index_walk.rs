//! The progress of listing a directory of chunks by walking a chunk index.

use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;

use h5fs_reader::error::Result;
use h5fs_reader::memory;
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::model::storage::{ChunkIndex, IndexCursor};

/// Number of chunks that one step of a walk of the chunk index returns.
const BATCH: usize = 1024;

/// The progress of walking the chunk index for a listing.
#[derive(Default)]
pub(crate) struct IndexWalk {
    cursor: IndexCursor,
    /// The name (a chunk index) from which the last search started.
    start_name: u64,
    /// Names from `start_name` on that the walk has already found.
    found_names: VecDeque<u64>,
    /// If the store's chunks differ from the file's: the lowest names that the walk has found.
    lowest_names: BTreeSet<u64>,
}

impl IndexWalk {
    /// Returns the memory of the walk in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let ahead = memory::allocation_size(self.found_names.capacity() * size_of::<u64>());
        let met = memory::allocation_size(self.lowest_names.len() * 2 * size_of::<u64>());
        let cursor = memory::allocation_size(size_of_val(&*self.cursor.0));
        ahead.saturating_add(met).saturating_add(cursor)
    }

    /// Returns the first name from `at` on that the walk has already found, and the name after it.
    fn next_cached_name(&mut self, at: u64) -> Option<(Option<u64>, u64)> {
        if at < self.start_name {
            *self = IndexWalk::default();
        }
        self.start_name = at;
        let passed = self
            .found_names
            .iter()
            .take_while(|number| **number < at)
            .count();
        self.found_names.drain(..passed);
        let number = self.found_names.front()?;
        Some((Some(*number), number + 1))
    }

    /// Finds the first entry whose name is `at` or higher, if the store's chunks differ from the
    /// file's. `around` converts the indices of a chunk in the file to a name. The chunk index has
    /// another order than the names, so each walk of the whole index finds only the next few names.
    pub(crate) fn find_converted(
        &mut self,
        index: &dyn ChunkIndex,
        around: &dyn Fn(&[u64]) -> Option<u64>,
        at: u64,
        budget: &RequestBudget,
    ) -> Result<Option<(Option<u64>, u64)>> {
        if let Some(known) = self.next_cached_name(at) {
            return Ok(Some(known));
        }
        let mut passed = 0;
        let met = &mut self.lowest_names;
        index.walk_from(&mut self.cursor, budget, &mut |place, _| {
            passed += 1;
            met.extend(around(place).filter(|number| *number >= at));
            if met.len() > BATCH {
                met.pop_last();
            }
            if passed < BATCH {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        if passed > 0 {
            return Ok(Some((None, at)));
        }
        self.cursor = IndexCursor::default();
        self.found_names = std::mem::take(&mut self.lowest_names).into_iter().collect();
        Ok(self.next_cached_name(at))
    }

    /// Finds the first chunk in the file whose first indices are `above`, and whose next index is
    /// at least `at` and less than `width`. Every chunk index has the chunks of one directory in
    /// numerical order.
    pub(crate) fn find(
        &mut self,
        index: &dyn ChunkIndex,
        (above, width): (&[u64], u64),
        at: u64,
        budget: &RequestBudget,
    ) -> Result<Option<(Option<u64>, u64)>> {
        if let Some(known) = self.next_cached_name(at) {
            return Ok(Some(known));
        }
        let mut passed = 0;
        let ahead = &mut self.found_names;
        let walked = index.walk_from(&mut self.cursor, budget, &mut |place, _| {
            passed += 1;
            let below = place.strip_prefix(above).and_then(<[u64]>::first);
            ahead.extend(below.filter(|number| (at..width).contains(number)));
            if passed < BATCH {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        match walked {
            // Chunks before the damage are returned first.
            Err(error) if self.found_names.is_empty() => Err(error),
            Ok(()) if passed == 0 => Ok(None),
            _ => Ok(Some((None, at))),
        }
    }
}
