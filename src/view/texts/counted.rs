//! A text of units (elements, rows, lines), each of which can be written by its number.
//!
//! Its bytes are counted once: several threads write all units, and keep how many bytes they were
//! and, every some kilobytes, where a unit begins. A read then begins at the last such mark before its offset.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use crate::array::{CancelToken, Engine};
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::effort::Effort;
use crate::memory::lock::lock;
use crate::memory::marks::Marks;
use crate::view::texts::bounds::CountBounds;
use crate::view::texts::streamed::{ResumableText, Streamed};
use crate::wire::to_u64;

/// The units of a text. What stands before the first and behind the last belongs to those units.
pub(crate) trait Units: Send + Sync {
    /// How many there are.
    fn count(&self) -> u64;

    /// How many values are looked at to write all of them: those that cost more count more.
    fn values(&self) -> u64 {
        self.count()
    }

    /// Their bytes, where those are the same for all but the first.
    fn even(&self) -> Option<Even> {
        None
    }

    /// Appends the units of `units`, which is not empty, to `out`, at least one, until that has
    /// `enough` bytes; gives the number of the unit that comes next. It may stop sooner, and does
    /// where units take long.
    ///
    /// # Errors
    /// Fails if a unit cannot be written. Anything may have been appended then.
    fn write(&self, units: Range<u64>, enough: usize, out: &mut Vec<u8>) -> Result<u64>;

    /// The same, but the text is only measured: gives the unit that comes next, and the bytes of
    /// those before it. `scratch` is empty.
    ///
    /// # Errors
    /// Fails as [`write`](Self::write) does.
    fn measure(
        &self,
        units: Range<u64>,
        enough: usize,
        scratch: &mut Vec<u8>,
    ) -> Result<(u64, u64)> {
        let next = self.write(units, enough, scratch)?;
        Ok((next, to_u64(scratch.len())))
    }

    /// Elements of sequences that were followed while units were written or measured: one sequence
    /// that many elements share is followed for each of them.
    fn followed(&self) -> u64 {
        0
    }

    /// Bytes of memory that they take for themselves.
    fn own_bytes(&self) -> u64 {
        0
    }
}

/// The bytes of units that have the same number of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Even {
    /// Bytes of the first unit.
    pub(crate) first: u64,
    /// Bytes of each other.
    pub(crate) width: u64,
}

/// How long a text is, and where its units begin.
#[derive(Debug)]
pub(crate) struct Count {
    bytes: u64,
    places: Places,
}

/// Where units begin.
#[derive(Debug)]
enum Places {
    Even(Even),
    /// Only that of the first is known.
    FirstAlone,
    /// Numbers of some units, by the place at which the unit begins.
    Marked(Marks<u64>),
}

/// An open file with the text of units.
pub(crate) type Counted<U> = Streamed<UnitText<U>>;

/// The text of units.
pub(crate) struct UnitText<U> {
    units: U,
    count: Arc<Count>,
}

/// Bytes between two marks, at least.
const STRETCH: usize = 32 << 10;

/// Marks of a text, at most.
const MARKS: usize = (limits::COUNTED_BYTES / STRETCH as u64) as usize;

/// Units that a thread counts at a time.
const SHARE: u64 = 8192;

impl Count {
    /// Counts the text of `units`, whose metadata `effort` pays for; `None` where it is too long.
    ///
    /// # Errors
    /// `Io` where that takes too long; fails if a unit cannot be written.
    pub(crate) fn of(units: &dyn Units, engine: &Engine, effort: &Effort) -> Result<Option<Self>> {
        Self::since(Instant::now(), units, engine, effort)
    }

    /// The same, with a count that was begun at `started`.
    fn since(
        started: Instant,
        units: &dyn Units,
        engine: &Engine,
        effort: &Effort,
    ) -> Result<Option<Self>> {
        if let Some(even) = units.even() {
            return Self::even(units, even).map(Some);
        }
        if units.values() > limits::COUNTED_VALUES {
            return Ok(None);
        }
        let shares = units.count().div_ceil(SHARE);
        let helpers = engine.helpers(usize::try_from(shares.saturating_sub(1)).unwrap_or(0));
        let counting = Counting {
            units,
            effort,
            shares,
            next: AtomicU64::new(0),
            bounds: CountBounds::since(started, effort.cancel(), limits::COUNTED_BYTES),
            is_over: AtomicBool::new(false),
            found: Mutex::default(),
        };
        thread::scope(|scope| {
            for _ in 0..helpers.count() {
                let thread = thread::Builder::new().name("h5fs-count".to_owned());
                if thread.spawn_scoped(scope, || counting.work()).is_err() {
                    break;
                }
            }
            counting.work();
        });
        counting.result()
    }

    /// Counts a text that can only be written from front to back, for the request that `effort` is
    /// granted to; `None` where it is too long. `begin_heavy` is called once it is known not to be
    /// short.
    ///
    /// # Errors
    /// `Io` where that takes too long; fails if a part of the text cannot be written, or with the
    /// error of `begin_heavy`.
    pub(crate) fn of_parts<T: ResumableText>(
        text: &T,
        effort: &Effort,
        mut begin_heavy: impl FnMut() -> Result<()>,
    ) -> Result<Option<Self>> {
        let bounds = CountBounds::new(effort.cancel(), limits::COUNTED_BYTES);
        let (mut place, mut bytes, mut part) = (text.begin(), 0, Vec::new());
        let mut is_short = true;
        // One part may be about very many objects.
        effort.lift();
        loop {
            bounds.cancel().go_on()?;
            part.clear();
            let is_more = text.write_on(&mut place, STRETCH, &mut part)?;
            bytes += to_u64(part.len());
            if !is_more {
                let places = Places::FirstAlone;
                return Ok(Some(Count { bytes, places }));
            }
            if !bounds.pass(to_u64(part.len()))? {
                return Ok(None);
            }
            if std::mem::take(&mut is_short) {
                begin_heavy()?;
            }
        }
    }

    /// Bytes of the text.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn even(units: &dyn Units, even: Even) -> Result<Self> {
        const MOST: u64 = i64::MAX.unsigned_abs();
        let others = units.count().saturating_sub(1);
        let bytes = others.checked_mul(even.width);
        let bytes = bytes.and_then(|bytes| bytes.checked_add(even.first));
        let bytes = bytes.filter(|&bytes| bytes <= MOST);
        Ok(Count {
            bytes: bytes.ok_or_else(|| Error::limit("size of a text", MOST))?,
            places: Places::Even(even),
        })
    }

    /// The unit at or before `offset` from which the text can be written, and where it begins.
    fn near(&self, offset: u64) -> Option<(u64, u64)> {
        match &self.places {
            Places::FirstAlone => None,
            Places::Marked(marks) => {
                let (start, unit) = marks.before(offset)?;
                Some((*unit, start))
            }
            Places::Even(Even { first, width }) => {
                let others = offset.checked_sub(*first)?.checked_div(*width)?;
                Some((others + 1, first + others * width))
            }
        }
    }

    /// Bytes of memory that it takes.
    pub(crate) fn weight(&self) -> u64 {
        match &self.places {
            Places::Even(_) | Places::FirstAlone => 0,
            Places::Marked(marks) => marks.weight(),
        }
    }
}

/// A count that is under way.
struct Counting<'a> {
    units: &'a dyn Units,
    effort: &'a Effort,
    shares: u64,
    /// The share that is counted next.
    next: AtomicU64,
    bounds: CountBounds,
    /// Whether no more is to be counted.
    is_over: AtomicBool,
    found: Mutex<Found>,
}

/// The stretches that one share has: the unit behind each, and its bytes.
type Stretches = Vec<(u64, u64)>;

/// The part of the text that is counted without a gap, and shares behind it.
struct Found {
    shares: u64,
    bytes: u64,
    marks: Marks<u64>,
    ahead: BTreeMap<u64, Stretches>,
    error: Option<Error>,
}

impl Default for Found {
    fn default() -> Self {
        Found {
            shares: 0,
            bytes: 0,
            marks: Marks::new(MARKS, to_u64(STRETCH)),
            ahead: BTreeMap::new(),
            error: None,
        }
    }
}

impl Counting<'_> {
    /// Counts one share after another until none is left.
    fn work(&self) {
        let mut scratch = Vec::new();
        while !self.is_over.load(Ordering::Relaxed) {
            let share = self.next.fetch_add(1, Ordering::Relaxed);
            if share >= self.shares {
                return;
            }
            self.effort.renew();
            match self.count(share, &mut scratch) {
                Ok(stretches) => lock(&self.found).add(share, stretches),
                Err(error) => {
                    self.is_over.store(true, Ordering::Relaxed);
                    lock(&self.found).error.get_or_insert(error);
                }
            }
        }
    }

    fn count(&self, share: u64, scratch: &mut Vec<u8>) -> Result<Stretches> {
        let end = (share * SHARE + SHARE).min(self.units.count());
        let mut at = share * SHARE;
        let mut stretches = Vec::new();
        while at < end && !self.is_over.load(Ordering::Relaxed) {
            scratch.clear();
            let (next, bytes) = self.units.measure(at..end, STRETCH, scratch)?;
            stretches.push((next, bytes));
            at = self.bounds.cancel().advance(at, next)?;
            let is_short = self.bounds.pass(bytes)?;
            if !is_short || self.units.followed() > limits::COUNTED_VALUES {
                self.is_over.store(true, Ordering::Relaxed);
            }
        }
        Ok(stretches)
    }

    fn result(self) -> Result<Option<Count>> {
        let found = self.found.into_inner();
        let found = found.unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(error) = found.error {
            return Err(error);
        }
        Ok((!self.is_over.into_inner()).then_some(Count {
            bytes: found.bytes,
            places: Places::Marked(found.marks),
        }))
    }
}

impl Found {
    fn add(&mut self, share: u64, stretches: Stretches) {
        self.ahead.insert(share, stretches);
        while let Some(stretches) = self.ahead.remove(&self.shares) {
            for (next, bytes) in stretches {
                self.bytes += bytes;
                self.marks.pass(self.bytes, || next);
            }
            self.shares += 1;
        }
    }
}

#[cfg(test)]
impl<T: ResumableText> Streamed<T> {
    /// A file that shows `text`, counted here.
    pub(crate) fn of_parts(text: T) -> Self {
        let count = Count::of_parts(&text, &Effort::default(), || Ok(()));
        let length = count.expect("a text").expect("a short one").bytes;
        Streamed::new(text, length)
    }
}

#[cfg(test)]
impl<U: Units> Counted<U> {
    /// A file with the text of `units`, counted here.
    pub(crate) fn of_units(units: U) -> Self {
        let count = Count::of(&units, &Engine::new(0, 2), &Effort::default());
        let count = count.expect("a text").expect("a short one");
        Self::of(units, Arc::new(count))
    }
}

impl<U: Units> Counted<U> {
    /// A file with the text of `units`, which were counted.
    pub(crate) fn of(units: U, count: Arc<Count>) -> Self {
        let length = count.bytes;
        Streamed::new(UnitText { units, count }, length)
    }
}

impl<U: Units> ResumableText for UnitText<U> {
    /// The number of the next unit.
    type Progress = u64;

    fn begin(&self) -> u64 {
        0
    }

    fn near(&self, offset: u64) -> Option<(u64, u64)> {
        self.count.near(offset)
    }

    fn has_places(&self) -> bool {
        true
    }

    fn write_on(&self, place: &mut u64, enough: usize, out: &mut Vec<u8>) -> Result<bool> {
        // One part at a time: the reader looks between two whether it is to end.
        let count = self.units.count();
        if *place < count {
            let next = self.units.write(*place..count, enough, out)?;
            *place = CancelToken::default().advance(*place, next)?;
        }
        Ok(*place < count)
    }

    fn own_bytes(&self) -> u64 {
        self.units.own_bytes()
    }
}

#[cfg(test)]
mod tests;
