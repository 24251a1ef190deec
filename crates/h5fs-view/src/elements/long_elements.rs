//! Elements whose bytes or text are long. Each open file writes only one of them at a time.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use h5fs_reader::array::{Engine, MemoryReservation};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::lock::lock;

use crate::limits;

/// Maximum length in bytes of an element, and of an element's text.
const LONG: usize = limits::TEXT_ELEMENT_BYTES as usize;

/// The state of one open file that limits its long elements: a lock, so that they are written one
/// at a time, and the memory budget.
pub(crate) struct LongElementLimiter {
    engine: Arc<Engine>,
    long_element_lock: Mutex<()>,
}

/// The memory that is reserved while one long element is written.
pub(crate) struct ReservedMemory<'a> {
    _turn: MutexGuard<'a, ()>,
    _held: MemoryReservation,
}

impl LongElementLimiter {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        let turn = Mutex::default();
        LongElementLimiter {
            engine,
            long_element_lock: turn,
        }
    }

    /// Returns whether an element of this many bytes is long, so that memory must be reserved for
    /// it.
    pub(crate) fn is_long(bytes: u64) -> bool {
        bytes > limits::UNCOUNTED_ELEMENT as u64
    }

    /// Reserves memory for one long element: for the element's bytes, for its text, and for the
    /// chunk of output that contains the text.
    ///
    /// # Errors
    /// `Io` (`ENOMEM`) if the memory budget of the mount has too little left.
    pub(crate) fn reserve_memory(&self) -> Result<ReservedMemory<'_>> {
        let turn = lock(&self.long_element_lock);
        let held = self.engine.reserve_memory(3 * limits::TEXT_ELEMENT_BYTES)?;
        Ok(ReservedMemory {
            _turn: turn,
            _held: held,
        })
    }

    /// Writes an element with `write`, whose argument is the maximum length of the element's text.
    /// If `room` is `None`, the first call has the limit of a short element. If the text exceeds
    /// this limit, memory is reserved, and a second call has the limit of a long element.
    ///
    /// # Errors
    /// Fails with the errors of `write` and of [`reserve_memory`](Self::reserve_memory).
    pub(crate) fn write(
        &self,
        room: Option<&ReservedMemory<'_>>,
        mut write: impl FnMut(usize) -> Result<()>,
    ) -> Result<()> {
        if room.is_some() {
            return write(LONG);
        }
        match write(limits::UNCOUNTED_ELEMENT) {
            Err(Error::Limit { .. }) => {
                let _room = self.reserve_memory()?;
                write(LONG)
            }
            written => written,
        }
    }
}

/// A timer for writing elements. An element with little text may take long, because a pointer can
/// lead to megabytes of other data. The clock is read once in `ELEMENTS_PER_CHECK` elements.
pub(crate) struct PaceTimer {
    started: Instant,
    elements: u32,
}

impl PaceTimer {
    /// Number of elements between two checks of the clock.
    const ELEMENTS_PER_CHECK: u32 = 16;
    /// Time after which writing pauses, so that the caller can check whether the request is
    /// cancelled.
    const LONG: Duration = Duration::from_millis(250);

    pub(crate) fn new() -> Self {
        PaceTimer {
            started: Instant::now(),
            elements: 0,
        }
    }

    /// Counts one element, and returns whether the elements so far have taken longer than `LONG`.
    pub(crate) fn is_slow(&mut self) -> bool {
        self.elements += 1;
        self.elements.is_multiple_of(Self::ELEMENTS_PER_CHECK)
            && self.started.elapsed() > Self::LONG
    }
}
