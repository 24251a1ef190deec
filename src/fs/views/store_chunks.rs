//! The names in a directory of chunks, in the order of their numbers.

use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;

use crate::error::Result;
use crate::memory;
use crate::memory::effort::Effort;
use crate::model::storage::{ChunkIndex, IndexCursor};
use crate::view::zarr::array::ZarrArray;

/// Chunks for each of which a listing of a Zarr store asks the index; it walks over the index
/// where a directory may have more.
const ASKED_CHUNKS: u64 = 65_536;

/// Chunks that the index hands on at a time.
const BATCH: usize = 1024;

/// The names in a directory of chunks.
pub(in crate::fs) struct ChunkNames<'a> {
    array: &'a ZarrArray,
    /// The numbers by which the directory is come to.
    above: &'a [u64],
    /// How many there may be.
    width: u64,
    way: Way<'a>,
}

/// How those that are there are found.
enum Way<'a> {
    /// All are there.
    All,
    /// The index is asked for each.
    Ask,
    /// The index is walked over.
    Walk(&'a dyn ChunkIndex),
    /// The same where the chunks are not the file's own.
    WalkAround(&'a dyn ChunkIndex),
}

/// How far a listing has come in the index.
#[derive(Default)]
pub(in crate::fs) struct Walk {
    cursor: IndexCursor,
    /// The number that was asked for last.
    at: u64,
    /// Those that the index has handed on since.
    ahead: VecDeque<u64>,
    /// Of chunks that are not the file's own: the first ones that a walk has met by now.
    met: BTreeSet<u64>,
}

impl<'a> ChunkNames<'a> {
    pub(in crate::fs) fn new(array: &'a ZarrArray, above: &'a [u64]) -> Self {
        let width = if array.has_no_chunks() {
            0
        } else {
            array.chunks().nth(above.len()).unwrap_or(0)
        };
        let mut names = ChunkNames {
            array,
            above,
            width,
            way: Way::All,
        };
        if names.are_chunks() && !array.has_all_chunks() {
            names.way = match array.index() {
                Some(index) if width > ASKED_CHUNKS && array.has_stored_shape() => Way::Walk(index),
                Some(index) if width > ASKED_CHUNKS => Way::WalkAround(index),
                Some(_) => Way::Ask,
                None if array.has_own_grid() && width <= ASKED_CHUNKS => Way::Ask,
                None => Way::All,
            };
        }
        names
    }

    /// Whether they are those of chunks, and not of directories.
    pub(in crate::fs) fn are_chunks(&self) -> bool {
        self.above.len() + 1 == self.array.dims.len()
    }

    /// The first one from number `at` on, if it was come to, and the number at which the search goes
    /// on; `None` where there are no more. `effort` pays for the index.
    ///
    /// # Errors
    /// Fails if the index is damaged.
    pub(in crate::fs) fn find(
        &self,
        walk: &mut Walk,
        at: u64,
        effort: &Effort,
    ) -> Result<Option<(Option<u64>, u64)>> {
        let is_there = match self.way {
            _ if at >= self.width => return Ok(None),
            Way::All => true,
            Way::Ask => self.array.holds(&[self.above, &[at]].concat())?,
            Way::Walk(index) => return walk.find(index, (self.above, self.width), at, effort),
            Way::WalkAround(index) => {
                let around = |place: &[u64]| {
                    let around = self.array.around(place);
                    let number = around.strip_prefix(self.above)?.first().copied();
                    number.filter(|number| *number < self.width)
                };
                return walk.find_around(index, &around, at, effort);
            }
        };
        Ok(Some((is_there.then_some(at), at + 1)))
    }
}

impl Walk {
    /// Bytes of memory that it takes.
    pub(in crate::fs) fn own_bytes(&self) -> u64 {
        let ahead = memory::piece(self.ahead.capacity() * size_of::<u64>());
        let met = memory::piece(self.met.len() * 2 * size_of::<u64>());
        let cursor = memory::piece(size_of_val(&*self.cursor.0));
        ahead.saturating_add(met).saturating_add(cursor)
    }

    /// Those known ahead from number `at` on.
    fn known(&mut self, at: u64) -> Option<(Option<u64>, u64)> {
        if at < self.at {
            *self = Walk::default();
        }
        self.at = at;
        let passed = self.ahead.iter().take_while(|number| **number < at).count();
        self.ahead.drain(..passed);
        let number = self.ahead.front()?;
        Some((Some(*number), number + 1))
    }

    /// The first chunk from number `at` on, if it was come to, of those that the file's own ones are
    /// `around`. The index has these in another order: each walk over all of it finds some more.
    fn find_around(
        &mut self,
        index: &dyn ChunkIndex,
        around: &dyn Fn(&[u64]) -> Option<u64>,
        at: u64,
        effort: &Effort,
    ) -> Result<Option<(Option<u64>, u64)>> {
        if let Some(known) = self.known(at) {
            return Ok(Some(known));
        }
        let mut passed = 0;
        let met = &mut self.met;
        index.walk_from(&mut self.cursor, effort, &mut |place, _| {
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
        self.ahead = std::mem::take(&mut self.met).into_iter().collect();
        Ok(self.known(at))
    }

    /// The first chunk below `above`, of which there may be `width`, from number `at` on, if it was
    /// come to. Those of one directory stand in the order of their numbers in every index.
    fn find(
        &mut self,
        index: &dyn ChunkIndex,
        (above, width): (&[u64], u64),
        at: u64,
        effort: &Effort,
    ) -> Result<Option<(Option<u64>, u64)>> {
        if let Some(known) = self.known(at) {
            return Ok(Some(known));
        }
        let mut passed = 0;
        let ahead = &mut self.ahead;
        let walked = index.walk_from(&mut self.cursor, effort, &mut |place, _| {
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
            // Those before the damage come first.
            Err(error) if self.ahead.is_empty() => Err(error),
            Ok(()) if passed == 0 => Ok(None),
            _ => Ok(Some((None, at))),
        }
    }
}
