//! The cost of describing a virtual dataset, or of opening one of its sources. The extent of one
//! may depend on those of others, in a circle if the file is made so, and any number of times. What
//! takes much memory is described by one thread of a mount at a time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::error::{Error, Result};
use crate::limits;
use crate::memory::gate::{Turn, Turns};
use crate::memory::lock::lock;
use crate::wire::{Count, to_u64};

/// The budget of a description or a source. One that is opened for another has the rest of
/// that one's bytes and levels; their work is counted together.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    levels: usize,
    bytes: u64,
    /// Lets one thread of a mount at a time take much memory. The thread that has the turn waits
    /// for nothing that others keep while they wait for it.
    turns: Arc<Turns>,
    under_way: Option<Arc<UnderWay>>,
}

/// The common state of the outermost description or source and of all within it.
#[derive(Debug)]
struct UnderWay {
    /// Bytes of large objects that may still be parsed.
    work: AtomicU64,
    /// Held from when one of them takes much memory until the outermost is made.
    turn: Mutex<Option<Turn>>,
}

impl Opening {
    /// Nothing is described or opened yet. All files of a mount have the same `turns`.
    pub(crate) fn none(turns: &Arc<Turns>) -> Self {
        Opening {
            levels: limits::VIRTUAL_DEPTH,
            bytes: limits::VIRTUAL_BYTES,
            turns: Arc::clone(turns),
            under_way: None,
        }
    }

    /// A description, for what is under way.
    pub(crate) fn description(&self) -> Self {
        let outermost = || {
            Arc::new(UnderWay {
                work: AtomicU64::new(limits::VIRTUAL_WORK),
                turn: Mutex::default(),
            })
        };
        Opening {
            under_way: Some(self.under_way.clone().unwrap_or_else(outermost)),
            ..self.clone()
        }
    }

    /// A source, for what is under way.
    ///
    /// # Errors
    /// `Limit` where it is opened for the sake of too many others, or these have taken too much
    /// already.
    pub(crate) fn source(&self) -> Result<Self> {
        let opening = self.description();
        opening.done(0)?;
        let Some(levels) = opening.levels.checked_sub(1) else {
            opening.give_up();
            let most = to_u64(limits::VIRTUAL_DEPTH);
            let what = "virtual datasets within virtual datasets";
            return Err(Error::limit(what, most));
        };
        Ok(Opening { levels, ..opening })
    }

    /// Takes so many bytes of memory.
    ///
    /// # Errors
    /// `Limit` where all descriptions under way take too many.
    pub(crate) fn hold(&mut self, bytes: u64) -> Result<()> {
        let Some(bytes) = self.bytes.checked_sub(bytes) else {
            self.give_up();
            let what = "bytes of the parts of a virtual dataset";
            return Err(Error::limit(what, limits::VIRTUAL_BYTES));
        };
        self.bytes = bytes;
        self.await_turn(limits::VIRTUAL_BYTES.left_after(bytes));
        Ok(())
    }

    /// Waits until no other thread takes much memory, where so many bytes are much.
    pub(crate) fn await_turn(&self, bytes: u64) {
        if let Some(under_way) = &self.under_way
            && bytes > limits::VIRTUAL_TURN
        {
            let mut turn = lock(&under_way.turn);
            turn.get_or_insert_with(|| self.turns.await_turn());
        }
    }

    /// An object of so many bytes was parsed. Small ones do not count: there may be as many as
    /// there are sources.
    ///
    /// # Errors
    /// `Limit` where too much was parsed for the sake of one virtual dataset; the object that was
    /// parsed last need not be at fault.
    pub(crate) fn done(&self, bytes: u64) -> Result<()> {
        let Some(under_way) = &self.under_way else {
            return Ok(());
        };
        let large = if bytes < limits::VIRTUAL_SMALL {
            0
        } else {
            bytes
        };
        let left = under_way.work.load(Ordering::Relaxed).left_after(large);
        under_way.work.store(left, Ordering::Relaxed);
        if left == 0 {
            let what = "bytes of large objects parsed for one virtual dataset";
            return Err(Error::limit(what, limits::VIRTUAL_WORK));
        }
        Ok(())
    }

    /// Nothing that is under way is to go on, or to be kept as if it could not be opened by itself.
    fn give_up(&self) {
        if let Some(under_way) = &self.under_way {
            under_way.work.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_opened_for_another_has_what_is_left() {
        let none = Opening::none(&Arc::default());
        none.done(2 * limits::VIRTUAL_WORK)
            .expect("nothing is under way");
        let mut outermost = none.description();
        outermost.hold(limits::VIRTUAL_BYTES - 10).unwrap();
        outermost.source().unwrap().hold(10).unwrap();
        outermost
            .source()
            .unwrap()
            .hold(10)
            .expect("they are free again");
        outermost
            .source()
            .unwrap()
            .done(limits::VIRTUAL_WORK - 1)
            .unwrap();
        outermost
            .source()
            .unwrap()
            .done(limits::VIRTUAL_WORK)
            .expect_err("counted together");
        outermost.source().expect_err("given up");
        none.source().expect("another one");
        let mut nested = none.description();
        for _ in 0..limits::VIRTUAL_DEPTH {
            nested = nested.source().unwrap();
        }
        nested.source().expect_err("too deep");
        nested.done(0).expect_err("given up");
    }

    #[test]
    fn one_thread_at_a_time_takes_much() {
        let turns = Arc::<Turns>::default();
        let is_taken = || turns.look(|(), works| works.inside(0).next().is_some());
        let [first, second] = [(); 2].map(|()| Opening::none(&turns).description());
        first.await_turn(limits::VIRTUAL_TURN);
        assert!(!is_taken(), "that is not much");
        first.await_turn(limits::VIRTUAL_TURN + 1);
        first.source().unwrap().await_turn(limits::VIRTUAL_TURN + 1);
        std::thread::scope(|scope| {
            scope.spawn(|| second.await_turn(limits::VIRTUAL_TURN + 1));
            turns.await_waiting(1);
            drop(first);
        });
        assert!(is_taken());
        drop(second);
        assert!(!is_taken());
    }
}
