//! Elements whose bytes, or whose text, are long: few are written at a time.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::array::{Engine, HeldMemory};
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::lock::lock;

/// Bytes of an element, and of its text, at most.
const LONG: usize = limits::TEXT_ELEMENT_BYTES as usize;

/// The long elements of one open file, which are written one after another.
pub(in crate::view) struct LongElements {
    engine: Arc<Engine>,
    turn: Mutex<()>,
}

/// Room for one long element, for as long as it is written.
pub(in crate::view) struct Room<'a> {
    _turn: MutexGuard<'a, ()>,
    _held: HeldMemory,
}

impl LongElements {
    pub(in crate::view) fn new(engine: Arc<Engine>) -> Self {
        let turn = Mutex::default();
        LongElements { engine, turn }
    }

    /// Whether elements of so many bytes are long.
    pub(in crate::view) fn are(bytes: u64) -> bool {
        bytes > limits::UNCOUNTED_ELEMENT as u64
    }

    /// Room for one: for its bytes, its text, and a part of the view's text that holds it.
    ///
    /// # Errors
    /// `Io` (`ENOMEM`) where, with all that is open, too many are written at a time.
    pub(in crate::view) fn room(&self) -> Result<Room<'_>> {
        let turn = lock(&self.turn);
        let held = self.engine.hold(3 * limits::TEXT_ELEMENT_BYTES)?;
        Ok(Room {
            _turn: turn,
            _held: held,
        })
    }

    /// Writes an element, for which there may be room already. It is told how long its text may be;
    /// where a short one does not do, it is called again, for a long one.
    ///
    /// # Errors
    /// Fails with the errors of `write`, and of [`room`](Self::room).
    pub(in crate::view) fn write(
        &self,
        room: Option<&Room<'_>>,
        mut write: impl FnMut(usize) -> Result<()>,
    ) -> Result<()> {
        if room.is_some() {
            return write(LONG);
        }
        match write(limits::UNCOUNTED_ELEMENT) {
            Err(Error::Limit { .. }) => {
                let _room = self.room()?;
                write(LONG)
            }
            written => written,
        }
    }
}

/// The pace at which elements are written. The clock is looked at now and then: an element may
/// point to megabytes of which none is text.
pub(in crate::view) struct Pace {
    started: Instant,
    elements: u32,
}

impl Pace {
    /// Elements between two looks at the clock.
    const LOOK: u32 = 16;
    /// Time after which the writing is left for a moment, to look whether it is still wanted.
    const LONG: Duration = Duration::from_millis(250);

    pub(in crate::view) fn new() -> Self {
        Pace {
            started: Instant::now(),
            elements: 0,
        }
    }

    /// Passes an element; whether those until now have taken long.
    pub(in crate::view) fn is_slow(&mut self) -> bool {
        self.elements += 1;
        self.elements.is_multiple_of(Self::LOOK) && self.started.elapsed() > Self::LONG
    }
}
