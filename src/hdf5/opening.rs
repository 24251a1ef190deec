//! What it may take to describe a virtual dataset, or to open one of its sources. The extent of one may depend on those of
//! others, in a circle if the file is made so, and any number of times. What takes much memory is described by one thread
//! at a time.

use std::cell::{Cell, RefCell};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::limits;
use crate::wire::to_u64;

/// What is left to this thread.
#[derive(Debug, Clone, Copy)]
struct Left {
    /// Whether something is being described or opened.
    under_way: bool,
    levels: usize,
    bytes: u64,
    work: u64,
}

thread_local! {
    static LEFT: Cell<Left> = const {
        Cell::new(Left {
            under_way: false,
            levels: limits::VIRTUAL_DEPTH,
            bytes: limits::VIRTUAL_BYTES,
            work: limits::VIRTUAL_WORK,
        })
    };

    /// Held by this thread from when it takes much memory until the outermost thing is made.
    static TURN: RefCell<Option<MutexGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// Whose turn it is. Who has it waits for nothing that others keep while they wait for it.
static TURNS: Mutex<()> = Mutex::new(());

/// A description or a source, until it is made. What it held is then free again; the work is done, and free with the
/// outermost one.
#[derive(Debug)]
pub struct Opening {
    before: Left,
}

impl Opening {
    /// Of a description.
    pub fn description() -> Self {
        let before = LEFT.get();
        let under_way = true;
        LEFT.set(Left {
            under_way,
            ..before
        });
        Opening { before }
    }

    /// Of a source.
    ///
    /// # Errors
    /// `Limit` where it is opened for the sake of too many others, or these have taken too much already.
    pub fn source() -> Result<Self> {
        let opening = Self::description();
        let left = LEFT.get();
        done(0)?;
        let Some(levels) = left.levels.checked_sub(1) else {
            give_up();
            let most = to_u64(limits::VIRTUAL_DEPTH);
            let what = "virtual datasets within virtual datasets";
            return Err(Error::limit(what, most));
        };
        LEFT.set(Left { levels, ..left });
        Ok(opening)
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        let mut left = self.before;
        if left.under_way {
            left.work = LEFT.get().work;
        } else {
            TURN.take();
        }
        LEFT.set(left);
    }
}

/// Takes so many bytes of memory.
///
/// # Errors
/// `Limit` where all descriptions under way take too many.
pub fn hold(bytes: u64) -> Result<()> {
    let left = LEFT.get();
    let Some(bytes) = left.bytes.checked_sub(bytes) else {
        give_up();
        let what = "bytes of the parts of a virtual dataset";
        return Err(Error::limit(what, limits::VIRTUAL_BYTES));
    };
    LEFT.set(Left { bytes, ..left });
    await_turn(limits::VIRTUAL_BYTES.saturating_sub(bytes));
    Ok(())
}

/// Waits until no other thread takes much memory, where so many bytes are much.
pub fn await_turn(bytes: u64) {
    let much = bytes > limits::VIRTUAL_TURN && LEFT.get().under_way;
    if much && TURN.with_borrow(Option::is_none) {
        TURN.set(Some(TURNS.lock().unwrap_or_else(PoisonError::into_inner)));
    }
}

/// An object of so many bytes was parsed. Small ones do not count: there may be as many as there are sources.
///
/// # Errors
/// `Limit` where too much was parsed for the sake of one virtual dataset; whose fault it is then not the object's.
pub fn done(bytes: u64) -> Result<()> {
    let left = LEFT.get();
    if !left.under_way {
        return Ok(());
    }
    let large = if bytes < limits::VIRTUAL_SMALL {
        0
    } else {
        bytes
    };
    let work = left.work.saturating_sub(large);
    LEFT.set(Left { work, ..left });
    if work == 0 {
        let what = "bytes of large objects parsed for one virtual dataset";
        return Err(Error::limit(what, limits::VIRTUAL_WORK));
    }
    Ok(())
}

/// Nothing that is under way is to go on, or to be kept as if it could not be opened by itself.
fn give_up() {
    LEFT.set(Left {
        work: 0,
        ..LEFT.get()
    });
}
