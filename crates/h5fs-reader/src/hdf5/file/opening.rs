//! The budget for describing a virtual dataset or opening one of its sources. To describe a virtual
//! dataset means to read its list of parts and to compute its extent. The extent may depend on
//! other virtual datasets, any number of times and even cyclically. Only one thread of a mount at a
//! time may describe an object that takes much memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::error::{Error, Result};
use crate::limits;
use crate::memory::gate::{FairLock, FairLockGuard};
use crate::memory::lock::lock;
use crate::wire::{Count, to_u64};

/// The budget for describing a virtual dataset (reading its list of parts and computing its extent)
/// or opening one of its sources. Both may be nested: a source may be another virtual dataset. A
/// nested description or source receives a copy of the remaining memory and nesting levels of its
/// parent. The work of all of them is counted together.
#[derive(Debug, Clone)]
pub(crate) struct OpeningBudget {
    levels: usize,
    bytes: u64,
    /// The lock that admits one thread of the mount at a time to take much memory. The thread that
    /// holds the lock never waits for resources of threads that wait for the lock.
    description_lock: Arc<FairLock>,
    outermost_opening: Option<Arc<OutermostOpening>>,
}

/// The common state of the outermost description or source and all nested ones.
#[derive(Debug)]
struct OutermostOpening {
    /// Number of bytes of large objects that may still be parsed.
    work: AtomicU64,
    /// The guard of the lock `description_lock`. It is held from the time when a description or
    /// source takes much memory until the outermost one is complete.
    description_guard: Mutex<Option<FairLockGuard>>,
}

impl OpeningBudget {
    /// Returns the full budget, which applies while no virtual dataset is being described. All
    /// files of a mount share the lock `turns`.
    pub(crate) fn full_budget(turns: &Arc<FairLock>) -> Self {
        OpeningBudget {
            levels: limits::VIRTUAL_DEPTH,
            bytes: limits::VIRTUAL_BYTES,
            description_lock: Arc::clone(turns),
            outermost_opening: None,
        }
    }

    /// Returns the budget for describing a virtual dataset within this budget.
    pub(crate) fn nested_description(&self) -> Self {
        let outermost = || {
            Arc::new(OutermostOpening {
                work: AtomicU64::new(limits::VIRTUAL_WORK),
                description_guard: Mutex::default(),
            })
        };
        OpeningBudget {
            outermost_opening: Some(self.outermost_opening.clone().unwrap_or_else(outermost)),
            ..self.clone()
        }
    }

    /// Returns the budget for opening a source of a virtual dataset that is described within this
    /// budget.
    ///
    /// # Errors
    /// `Limit` if the sources are nested too deeply, or if the outer descriptions have exhausted
    /// the budget.
    pub(crate) fn nested_source(&self) -> Result<Self> {
        let opening = self.nested_description();
        opening.charge_work(0)?;
        let Some(levels) = opening.levels.checked_sub(1) else {
            opening.exhaust();
            let most = to_u64(limits::VIRTUAL_DEPTH);
            let what = "virtual datasets within virtual datasets";
            return Err(Error::limit(what, most));
        };
        Ok(OpeningBudget { levels, ..opening })
    }

    /// Charges `bytes` bytes of memory to the budget.
    ///
    /// # Errors
    /// `Limit` if the description and the outer ones together take more than
    /// [`limits::VIRTUAL_BYTES`].
    pub(crate) fn charge_memory(&mut self, bytes: u64) -> Result<()> {
        let Some(bytes) = self.bytes.checked_sub(bytes) else {
            self.exhaust();
            let what = "bytes of the parts of a virtual dataset";
            return Err(Error::limit(what, limits::VIRTUAL_BYTES));
        };
        self.bytes = bytes;
        self.lock_if_large(limits::VIRTUAL_BYTES.minus_or_zero(bytes));
        Ok(())
    }

    /// Acquires the lock `description_lock` if a virtual dataset is being described and `bytes`,
    /// the memory that the caller takes, exceeds [`limits::VIRTUAL_TURN`]. Waits while another
    /// thread holds the lock. The lock is held until the outermost description is complete.
    pub(crate) fn lock_if_large(&self, bytes: u64) {
        if let Some(under_way) = &self.outermost_opening
            && bytes > limits::VIRTUAL_TURN
        {
            let mut turn = lock(&under_way.description_guard);
            turn.get_or_insert_with(|| self.description_lock.await_turn());
        }
    }

    /// Charges the work of parsing an object of `bytes` bytes. Small objects are free, because each
    /// source may have one.
    ///
    /// # Errors
    /// `Limit` if more than [`limits::VIRTUAL_WORK`] bytes were parsed for one virtual dataset.
    /// Earlier objects may have used most of this limit.
    pub(crate) fn charge_work(&self, bytes: u64) -> Result<()> {
        let Some(under_way) = &self.outermost_opening else {
            return Ok(());
        };
        let large = if bytes < limits::VIRTUAL_SMALL {
            0
        } else {
            bytes
        };
        let left = under_way.work.load(Ordering::Relaxed).minus_or_zero(large);
        under_way.work.store(left, Ordering::Relaxed);
        if left == 0 {
            let what = "bytes of large objects parsed for one virtual dataset";
            return Err(Error::limit(what, limits::VIRTUAL_WORK));
        }
        Ok(())
    }

    /// Exhausts the work budget, so that all current descriptions fail. Otherwise, a nested
    /// description would be cached with an error that it would not have on its own.
    fn exhaust(&self) {
        if let Some(under_way) = &self.outermost_opening {
            under_way.work.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_openings_share_the_remaining_budget() {
        let none = OpeningBudget::full_budget(&Arc::default());
        none.charge_work(2 * limits::VIRTUAL_WORK)
            .expect("nothing is under way");
        let mut outermost = none.nested_description();
        outermost.charge_memory(limits::VIRTUAL_BYTES - 10).unwrap();
        outermost
            .nested_source()
            .unwrap()
            .charge_memory(10)
            .unwrap();
        outermost
            .nested_source()
            .unwrap()
            .charge_memory(10)
            .expect("they are free again");
        outermost
            .nested_source()
            .unwrap()
            .charge_work(limits::VIRTUAL_WORK - 1)
            .unwrap();
        outermost
            .nested_source()
            .unwrap()
            .charge_work(limits::VIRTUAL_WORK)
            .expect_err("counted together");
        outermost.nested_source().expect_err("given up");
        none.nested_source().expect("another one");
        let mut nested = none.nested_description();
        for _ in 0..limits::VIRTUAL_DEPTH {
            nested = nested.nested_source().unwrap();
        }
        nested.nested_source().expect_err("too deep");
        nested.charge_work(0).expect_err("given up");
    }

    #[test]
    fn one_thread_at_a_time_takes_much_memory() {
        let turns = Arc::<FairLock>::default();
        let is_taken =
            || turns.with_guarded(|(), works| works.admitted_weights(0).next().is_some());
        let [first, second] =
            [(); 2].map(|()| OpeningBudget::full_budget(&turns).nested_description());
        first.lock_if_large(limits::VIRTUAL_TURN);
        assert!(!is_taken(), "that is not much");
        first.lock_if_large(limits::VIRTUAL_TURN + 1);
        first
            .nested_source()
            .unwrap()
            .lock_if_large(limits::VIRTUAL_TURN + 1);
        std::thread::scope(|scope| {
            scope.spawn(|| second.lock_if_large(limits::VIRTUAL_TURN + 1));
            turns.await_waiting(1);
            drop(first);
        });
        assert!(is_taken());
        drop(second);
        assert!(!is_taken());
    }
}
