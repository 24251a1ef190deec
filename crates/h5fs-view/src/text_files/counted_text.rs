//! A text of units (elements, rows or lines), each of which can be written by its number.
//!
//! The length of the text in bytes is counted once. Several threads write all units, and add up
//! their lengths. At intervals of some kilobytes, they also record a mark: the offset in the text
//! where a unit begins. A read begins at the last mark before its offset.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use h5fs_reader::array::{CancelToken, Engine};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::lock::lock;
use h5fs_reader::memory::marks::CheckpointList;
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::wire::to_u64;

use crate::limits;
use crate::text_files::bounds::TextLengthLimits;
use crate::text_files::streamed::{ResumableText, StreamedText};

/// The units of a text. A text before the first unit or after the last one is part of that unit.
pub trait TextUnits: Send + Sync {
    /// Returns the number of units.
    fn count(&self) -> u64;

    /// Returns the number of values that are formatted when all units are written. A value that is
    /// costly to format counts several times.
    fn value_count(&self) -> u64 {
        self.count()
    }

    /// Returns the lengths of the units, if all units except the first have equal lengths.
    fn uniform_units(&self) -> Option<UniformUnits> {
        None
    }

    /// Appends some units of the non-empty range `units` to `out`: at least one, and further ones
    /// until `out` holds `enough` bytes. Returns the number of the next unit. The function may stop
    /// earlier, in particular if units take long.
    ///
    /// # Errors
    /// Fails if a unit cannot be written. `out` may then contain a part of the text.
    /// [`Error::cancelled`] once the request is cancelled.
    fn write(
        &self,
        units: Range<u64>,
        enough: usize,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<u64>;

    /// Computes the length of the text that [`write`](Self::write) would append. Returns the number
    /// of the first unit that was not measured, and the total length of the measured units in
    /// bytes. `scratch` is an empty buffer.
    ///
    /// # Errors
    /// Fails as [`write`](Self::write) does.
    fn measure(
        &self,
        units: Range<u64>,
        enough: usize,
        cancel: &CancelToken,
        scratch: &mut Vec<u8>,
    ) -> Result<(u64, u64)> {
        let next = self.write(units, enough, cancel, scratch)?;
        Ok((next, to_u64(scratch.len())))
    }

    /// Returns the number of items of variable-length sequences that were read while units were
    /// written or measured. If several elements share one sequence, its items count for each
    /// element.
    fn sequence_items_read(&self) -> u64 {
        0
    }

    /// Returns the memory in bytes that the units' data occupies.
    fn own_bytes(&self) -> u64 {
        0
    }
}

/// The lengths of a text's units, all of which are equal except the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UniformUnits {
    /// Length of the first unit in bytes.
    pub first_length: u64,
    /// Length of every other unit in bytes.
    pub unit_length: u64,
}

/// The length of a text, and the offsets in it at which units begin.
#[derive(Debug)]
pub struct TextLengthIndex {
    bytes: u64,
    unit_offsets: UnitOffsets,
}

/// The known offsets in a text at which units begin.
#[derive(Debug)]
enum UnitOffsets {
    Uniform(UniformUnits),
    /// Only the first unit, at the offset 0.
    FirstOnly,
    /// The numbers of some units, by the offset in the text at which each begins.
    Marked(CheckpointList<u64>),
}

/// An open file whose content is a text of units.
pub type CountedFile<U> = StreamedText<UnitText<U>>;

/// A text of units (such as lines), whose length in bytes was counted before.
pub struct UnitText<U> {
    units: U,
    count: Arc<TextLengthIndex>,
}

/// Minimum distance in bytes between two offsets that are recorded as marks.
const MARK_DISTANCE: usize = 32 << 10;

/// Maximum number of offsets that are recorded as marks in a text.
const MAX_MARKS: usize = (limits::COUNTED_BYTES / MARK_DISTANCE as u64) as usize;

/// Number of units in a share. A thread measures one share at a time.
const SHARE_UNITS: u64 = 8192;

impl TextLengthIndex {
    /// Counts the length of the text of `units`; `None` if the text is too long to be counted.
    /// `budget` is the metadata budget of the request.
    ///
    /// # Errors
    /// `Io` if the count takes too long. Fails if a unit cannot be written.
    pub fn measure(
        units: &dyn TextUnits,
        engine: &Engine,
        budget: &RequestBudget,
    ) -> Result<Option<Self>> {
        Self::measure_since(Instant::now(), units, engine, budget)
    }

    /// Does the same as [`measure`](Self::measure), for a count that began at the time `started`.
    fn measure_since(
        started: Instant,
        units: &dyn TextUnits,
        engine: &Engine,
        budget: &RequestBudget,
    ) -> Result<Option<Self>> {
        if let Some(even) = units.uniform_units() {
            return Self::from_uniform(units, even).map(Some);
        }
        if units.value_count() > limits::COUNTED_VALUES {
            return Ok(None);
        }
        let shares = units.count().div_ceil(SHARE_UNITS);
        let helpers = engine.take_helpers(usize::try_from(shares.saturating_sub(1)).unwrap_or(0));
        let counting = CountInProgress {
            units,
            budget,
            shares,
            next: AtomicU64::new(0),
            bounds: TextLengthLimits::new_started_at(
                started,
                budget.cancel_token(),
                limits::COUNTED_BYTES,
            ),
            has_ended: AtomicBool::new(false),
            found: Mutex::default(),
        };
        thread::scope(|scope| {
            for _ in 0..helpers.count() {
                let thread = thread::Builder::new().name("h5fs-count".to_owned());
                if thread
                    .spawn_scoped(scope, || counting.measure_shares())
                    .is_err()
                {
                    break;
                }
            }
            counting.measure_shares();
        });
        counting.result()
    }

    /// Counts the length in bytes of a text that can only be written from front to back. Returns
    /// `None` if it exceeds [`limits::COUNTED_BYTES`]. `budget` is the metadata budget of the
    /// request. `begin_heavy` is called once the text is known to have more than one part.
    ///
    /// # Errors
    /// `Io` if the count takes too long. Fails if a part of the text cannot be written, or with the
    /// error of `begin_heavy`.
    pub fn measure_parts<T: ResumableText>(
        text: &T,
        budget: &RequestBudget,
        mut begin_heavy: impl FnMut() -> Result<()>,
    ) -> Result<Option<Self>> {
        let bounds = TextLengthLimits::new(budget.cancel_token(), limits::COUNTED_BYTES);
        let (mut place, mut bytes, mut part) = (text.begin(), 0, Vec::new());
        let mut is_short = true;
        // One part may describe many objects.
        budget.remove_limit();
        loop {
            bounds.cancel().check_cancelled()?;
            part.clear();
            let is_more = text.write_from(&mut place, MARK_DISTANCE, bounds.cancel(), &mut part)?;
            bytes += to_u64(part.len());
            if !is_more {
                let places = UnitOffsets::FirstOnly;
                return Ok(Some(TextLengthIndex {
                    bytes,
                    unit_offsets: places,
                }));
            }
            if !bounds.add_bytes(to_u64(part.len()))? {
                return Ok(None);
            }
            if std::mem::take(&mut is_short) {
                begin_heavy()?;
            }
        }
    }

    /// Returns the length of the text in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn from_uniform(units: &dyn TextUnits, even: UniformUnits) -> Result<Self> {
        const MOST: u64 = i64::MAX.unsigned_abs();
        let others = units.count().saturating_sub(1);
        let bytes = others.checked_mul(even.unit_length);
        let bytes = bytes.and_then(|bytes| bytes.checked_add(even.first_length));
        let bytes = bytes.filter(|&bytes| bytes <= MOST);
        Ok(TextLengthIndex {
            bytes: bytes.ok_or_else(|| Error::limit("size of a text", MOST))?,
            unit_offsets: UnitOffsets::Uniform(even),
        })
    }

    /// Returns the last unit at or before `offset` whose offset is known: its number and its
    /// offset. Returns `None` if the text must be written from its beginning.
    fn nearest_unit(&self, offset: u64) -> Option<(u64, u64)> {
        match &self.unit_offsets {
            UnitOffsets::FirstOnly => None,
            UnitOffsets::Marked(marks) => {
                let (start, unit) = marks.last_at_or_before(offset)?;
                Some((*unit, start))
            }
            UnitOffsets::Uniform(UniformUnits {
                first_length: first,
                unit_length: width,
            }) => {
                let others = offset.checked_sub(*first)?.checked_div(*width)?;
                Some((others + 1, first + others * width))
            }
        }
    }

    /// Returns the memory in bytes that the recorded offsets occupy.
    pub fn weight(&self) -> u64 {
        match &self.unit_offsets {
            UnitOffsets::Uniform(_) | UnitOffsets::FirstOnly => 0,
            UnitOffsets::Marked(marks) => marks.weight(),
        }
    }
}

/// A count of a text's length that several threads work on.
struct CountInProgress<'a> {
    units: &'a dyn TextUnits,
    budget: &'a RequestBudget,
    shares: u64,
    /// Number of the next share that no thread has taken.
    next: AtomicU64,
    bounds: TextLengthLimits,
    /// Whether all threads must stop, because of an error or because the text is too long.
    has_ended: AtomicBool,
    found: Mutex<PartialCount>,
}

/// Consecutive ranges of units that one thread has measured. For each range: the number of the unit
/// after it, and the length of its text in bytes.
type MeasuredRanges = Vec<(u64, u64)>;

/// The result of a count so far: the total length of all shares before the first unfinished one,
/// and the lengths of later shares that are already finished.
struct PartialCount {
    shares: u64,
    bytes: u64,
    marks: CheckpointList<u64>,
    ahead: BTreeMap<u64, MeasuredRanges>,
    error: Option<Error>,
}

impl Default for PartialCount {
    fn default() -> Self {
        PartialCount {
            shares: 0,
            bytes: 0,
            marks: CheckpointList::new(MAX_MARKS, to_u64(MARK_DISTANCE)),
            ahead: BTreeMap::new(),
            error: None,
        }
    }
}

impl CountInProgress<'_> {
    /// Measures one share after another until no share is left. Each thread of the count calls this
    /// function.
    fn measure_shares(&self) {
        let mut scratch = Vec::new();
        while !self.has_ended.load(Ordering::Relaxed) {
            let share = self.next.fetch_add(1, Ordering::Relaxed);
            if share >= self.shares {
                return;
            }
            self.budget.renew();
            match self.count(share, &mut scratch) {
                Ok(measured) => lock(&self.found).add(share, measured),
                Err(error) => {
                    self.has_ended.store(true, Ordering::Relaxed);
                    lock(&self.found).error.get_or_insert(error);
                }
            }
        }
    }

    fn count(&self, share: u64, scratch: &mut Vec<u8>) -> Result<MeasuredRanges> {
        let end = (share * SHARE_UNITS + SHARE_UNITS).min(self.units.count());
        let mut at = share * SHARE_UNITS;
        let mut measured = Vec::new();
        while at < end && !self.has_ended.load(Ordering::Relaxed) {
            scratch.clear();
            let cancel = self.bounds.cancel();
            let (next, bytes) = self
                .units
                .measure(at..end, MARK_DISTANCE, cancel, scratch)?;
            measured.push((next, bytes));
            at = cancel.next_batch(at, next)?;
            let is_short = self.bounds.add_bytes(bytes)?;
            if !is_short || self.units.sequence_items_read() > limits::COUNTED_VALUES {
                self.has_ended.store(true, Ordering::Relaxed);
            }
        }
        Ok(measured)
    }

    fn result(self) -> Result<Option<TextLengthIndex>> {
        let found = self.found.into_inner();
        let found = found.unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(error) = found.error {
            return Err(error);
        }
        Ok((!self.has_ended.into_inner()).then_some(TextLengthIndex {
            bytes: found.bytes,
            unit_offsets: UnitOffsets::Marked(found.marks),
        }))
    }
}

impl PartialCount {
    fn add(&mut self, share: u64, measured: MeasuredRanges) {
        self.ahead.insert(share, measured);
        while let Some(measured) = self.ahead.remove(&self.shares) {
            for (next, bytes) in measured {
                self.bytes += bytes;
                self.marks.record(self.bytes, || next);
            }
            self.shares += 1;
        }
    }
}

#[cfg(test)]
impl<T: ResumableText> StreamedText<T> {
    /// Creates a file with the text `text`, and counts the text's length.
    pub(crate) fn from_parts(text: T) -> Self {
        let count = TextLengthIndex::measure_parts(&text, &RequestBudget::default(), || Ok(()));
        let length = count.expect("a text").expect("a short one").bytes;
        StreamedText::new(text, length)
    }
}

#[cfg(test)]
impl<U: TextUnits> CountedFile<U> {
    /// Creates a file with the text of `units`, and counts the text's length.
    pub(crate) fn from_units(units: U) -> Self {
        let count = TextLengthIndex::measure(&units, &Engine::new(0, 2), &RequestBudget::default());
        let count = count.expect("a text").expect("a short one");
        Self::from_count(units, Arc::new(count))
    }
}

impl<U: TextUnits> CountedFile<U> {
    /// Creates a file with the text of `units`. `count` is the length of this text, which was
    /// counted before.
    pub fn from_count(units: U, count: Arc<TextLengthIndex>) -> Self {
        let length = count.bytes;
        StreamedText::new(UnitText { units, count }, length)
    }
}

impl<U: TextUnits> ResumableText for UnitText<U> {
    /// The number of the unit that is written next.
    type ResumePoint = u64;

    fn begin(&self) -> u64 {
        0
    }

    fn nearest_resume_point(&self, offset: u64) -> Option<(u64, u64)> {
        self.count.nearest_unit(offset)
    }

    fn has_resume_points(&self) -> bool {
        true
    }

    fn write_from(
        &self,
        place: &mut u64,
        enough: usize,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        // Only one part is written, so that the reader can check for cancellation between two
        // parts.
        let count = self.units.count();
        if *place < count {
            let next = self.units.write(*place..count, enough, cancel, out)?;
            *place = cancel.next_batch(*place, next)?;
        }
        Ok(*place < count)
    }

    fn own_bytes(&self) -> u64 {
        self.units.own_bytes()
    }
}

#[cfg(test)]
mod tests;
