//! A gate where memory-intensive work waits until enough of the work before it has ended.
//!
//! Work has a class and a weight. Within a class, work enters in the order of arrival, so heavy
//! work is never overtaken. The caller's rule decides which work may run together, and is called
//! with the gate locked. One class waits for another only if that rule says so.

use std::convert::Infallible;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::memory::lock::{lock, wait_for};
use crate::wire::Count;

/// Interval at which waiting work checks for cancellation and for room.
const RECHECK_INTERVAL: Duration = Duration::from_millis(10);

/// A gate that admits work when a rule of the caller permits it. The gate also guards a value of
/// type `T`, which the rule reads.
#[derive(Debug, Default)]
pub struct AdmissionGate<T> {
    state: Mutex<AdmissionState<T>>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct AdmissionState<T> {
    guarded: T,
    queue: AdmissionQueue,
    /// The number that the next arriving work receives.
    next_number: u64,
}

/// All work that waits at a gate or was admitted, in the order of arrival.
#[derive(Debug, Default)]
pub struct AdmissionQueue(Vec<AdmissionEntry>);

#[derive(Debug)]
struct AdmissionEntry {
    number: u64,
    class: usize,
    weight: u64,
    is_admitted: bool,
}

/// The ticket of one piece of work that waits at a gate or was admitted. Dropping the ticket ends
/// the work's stay, which makes room for other work.
#[derive(Debug)]
pub struct AdmissionTicket<T> {
    gate: Arc<AdmissionGate<T>>,
    number: u64,
}

/// Returns whether work of `weight` fits next to other work of weight `taken` within the bound
/// `most`. Work heavier than the bound runs alone.
pub fn fits(taken: u64, weight: u64, most: u64) -> bool {
    taken == 0 || taken.plus(weight) <= most
}

impl<T> AdmissionGate<T> {
    /// Waits until the work is the first that waits in its `class` and `has_room` returns true.
    /// Calls `go_on` before each wait. Both functions are called again after each change, and at
    /// regular intervals.
    ///
    /// # Errors
    /// Fails with the error of `go_on`.
    pub fn enter<E>(
        self: &Arc<Self>,
        (class, weight): (usize, u64),
        mut has_room: impl FnMut(&mut T, &AdmissionQueue) -> bool,
        go_on: impl Fn() -> Result<(), E>,
    ) -> Result<AdmissionTicket<T>, E> {
        // The ticket `place` is dropped after the lock guard, because dropping the ticket takes the
        // lock.
        let place = self.enqueue(class, weight);
        let mut state = lock(&self.state);
        let mut lets_in = |AdmissionState {
                               guarded,
                               queue: works,
                               ..
                           }: &mut AdmissionState<T>| {
            works.is_first(place.number, class) && has_room(guarded, works)
        };
        while !lets_in(&mut state) {
            go_on()?;
            state = wait_for(&self.changed, state, RECHECK_INTERVAL);
        }
        state.queue.admit(place.number);
        self.wake(state);
        Ok(place)
    }

    /// Reads the guarded value, or changes it in a way that does not make more room.
    pub fn with_guarded<R>(&self, look: impl FnOnce(&mut T, &AdmissionQueue) -> R) -> R {
        let state = &mut *lock(&self.state);
        look(&mut state.guarded, &state.queue)
    }

    /// Changes the guarded value, and wakes waiting work to check for room.
    pub fn update_guarded(&self, change: impl FnOnce(&mut T)) {
        let mut state = lock(&self.state);
        change(&mut state.guarded);
        self.wake(state);
    }

    fn enqueue(self: &Arc<Self>, class: usize, weight: u64) -> AdmissionTicket<T> {
        let mut state = lock(&self.state);
        let number = state.next_number;
        state.next_number = number.wrapping_add(1);
        state.queue.0.push(AdmissionEntry {
            number,
            class,
            weight,
            is_admitted: false,
        });
        let gate = Arc::clone(self);
        AdmissionTicket { gate, number }
    }

    fn wake(&self, state: MutexGuard<'_, AdmissionState<T>>) {
        let somebody_waits = state.queue.0.iter().any(|work| !work.is_admitted);
        drop(state);
        if somebody_waits {
            self.changed.notify_all();
        }
    }
}

impl<T> AdmissionTicket<T> {
    /// Reduces the weight of the work to `weight`.
    pub fn reduce_weight(&self, weight: u64) {
        let mut state = lock(&self.gate.state);
        let own = state.queue.0.iter_mut();
        for work in own.filter(|work| work.number == self.number) {
            work.weight = work.weight.min(weight);
        }
        self.gate.wake(state);
    }
}

impl AdmissionQueue {
    /// Returns the weight of each admitted piece of work of `class`.
    pub fn admitted_weights(&self, class: usize) -> impl Iterator<Item = u64> {
        let inside = self
            .0
            .iter()
            .filter(move |work| work.class == class && work.is_admitted);
        inside.map(|work| work.weight)
    }

    /// Returns the weight of the first work of `class` that waits, or `None` if none waits.
    pub(crate) fn first_waiting_weight(&self, class: usize) -> Option<u64> {
        self.waiting(class).next().map(|first| first.weight)
    }

    fn waiting(&self, class: usize) -> impl Iterator<Item = &AdmissionEntry> {
        let all = self.0.iter();
        all.filter(move |work| work.class == class && !work.is_admitted)
    }

    fn is_first(&self, number: u64, class: usize) -> bool {
        let first = self.waiting(class).next();
        first.is_some_and(|first| first.number == number)
    }

    fn admit(&mut self, number: u64) {
        for work in &mut self.0 {
            work.is_admitted |= work.number == number;
        }
    }
}

impl<T> Drop for AdmissionTicket<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.gate.state);
        state.queue.0.retain(|work| work.number != self.number);
        self.gate.wake(state);
    }
}

/// A gate that admits one caller at a time, in the order of arrival.
pub type FairLock = AdmissionGate<()>;

/// The exclusive turn of one caller at a [`FairLock`]. Dropping the guard admits the next caller.
pub type FairLockGuard = AdmissionTicket<()>;

impl FairLock {
    /// Waits for the caller's turn. Calls `go_on` before each wait.
    ///
    /// # Errors
    /// Fails with the error of `go_on`.
    pub(crate) fn wait<E>(
        self: &Arc<Self>,
        go_on: impl Fn() -> Result<(), E>,
    ) -> Result<FairLockGuard, E> {
        self.enter(
            (0, 0),
            |(), works| works.admitted_weights(0).next().is_none(),
            go_on,
        )
    }

    /// Waits for the caller's turn. The wait has no time limit and cannot be cancelled.
    pub(crate) fn await_turn(self: &Arc<Self>) -> FairLockGuard {
        let Ok(turn) = self.wait(|| Ok::<(), Infallible>(()));
        turn
    }
}

#[cfg(test)]
impl<T> AdmissionGate<T> {
    /// Returns the number of waiting callers.
    pub(crate) fn waiting(&self) -> usize {
        let state = lock(&self.state);
        let waiting = state.queue.0.iter().filter(|work| !work.is_admitted);
        waiting.count()
    }

    /// Waits until exactly `many` callers wait.
    pub(crate) fn await_waiting(&self, many: usize) {
        while self.waiting() != many {
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;
    use crate::error::{Error, Result};

    const MOST: u64 = 10;

    /// Enters a gate where each class has a room of `MOST`, or gives up after `patience` checks.
    fn enter(
        gate: &Arc<AdmissionGate<()>>,
        class: usize,
        weight: u64,
        patience: u64,
    ) -> Result<FairLockGuard> {
        let looks = AtomicU64::new(0);
        let has_room = |(): &mut (), works: &AdmissionQueue| {
            fits(works.admitted_weights(class).sum(), weight, MOST)
        };
        let is_patient = || looks.fetch_add(1, Ordering::Relaxed) < patience;
        let go_on = || is_patient().then_some(()).ok_or_else(Error::cancelled);
        gate.enter((class, weight), has_room, go_on)
    }

    fn is_refused(gate: &Arc<AdmissionGate<()>>, class: usize, weight: u64) -> bool {
        enter(gate, class, weight, 0).is_err_and(|error| error.is_cancelled())
    }

    #[test]
    fn work_is_admitted_in_order_of_arrival() {
        let (turns, order) = (Arc::<FairLock>::default(), Mutex::new(Vec::new()));
        let first = turns.await_turn();
        thread::scope(|scope| {
            for number in 0..8 {
                let (turns, order) = (&turns, &order);
                scope.spawn(move || {
                    let _turn = turns.await_turn();
                    order.lock().unwrap().push(number);
                });
                turns.await_waiting(number + 1);
            }
            drop(first);
        });
        assert_eq!(*order.lock().unwrap(), (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn cancelled_work_does_not_block_others() {
        let turns = Arc::<FairLock>::default();
        let first = turns.await_turn();
        let refused = turns.wait(|| Err(Error::cancelled()));
        assert!(refused.is_err_and(|error| error.is_cancelled()));
        assert_eq!(turns.waiting(), 0);
        drop(first);
        assert!(turns.wait(|| Err(Error::cancelled())).is_ok());
    }

    #[test]
    fn oversized_work_runs_alone() {
        let gate = Arc::default();
        let light = [1, MOST - 1].map(|weight| enter(&gate, 0, weight, 0).unwrap());
        assert!(is_refused(&gate, 0, 10 * MOST));
        drop(light);
        let _heavy = enter(&gate, 0, 10 * MOST, 0).unwrap();
        assert!(is_refused(&gate, 0, 1));
    }

    #[test]
    fn heavy_work_is_not_overtaken() {
        let gate = Arc::default();
        let light = enter(&gate, 0, 1, 0).unwrap();
        thread::scope(|scope| {
            let heavy = scope.spawn(|| enter(&gate, 0, MOST, u64::MAX).map(drop));
            gate.await_waiting(1);
            assert!(
                is_refused(&gate, 0, 1),
                "there is room, and one came before"
            );
            drop(light);
            heavy.join().unwrap().unwrap();
        });
    }

    #[test]
    fn classes_do_not_wait_for_each_other() {
        let gate = Arc::default();
        let slow = enter(&gate, 0, 10 * MOST, 0).unwrap();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| enter(&gate, 0, MOST, u64::MAX).map(drop));
            }
            gate.await_waiting(8);
            let fast: Vec<_> = (0..MOST).map(|_| enter(&gate, 1, 1, 0)).collect();
            assert!(fast.iter().all(Result::is_ok) && is_refused(&gate, 1, 1));
            assert_eq!(gate.waiting(), 8);
            drop(slow);
        });
        assert!(gate.with_guarded(|(), works| works.0.is_empty()));
    }

    #[test]
    fn a_panic_releases_the_gate() {
        let turns = Arc::<FairLock>::default();
        let panics = |work: &dyn Fn()| catch_unwind(AssertUnwindSafe(work)).is_err();
        assert!(panics(&|| {
            let _turn = turns.await_turn();
            panic!("inside, on purpose");
        }));
        assert!(panics(&|| {
            let _place = turns.enter((0, 0), |(), _| panic!("on purpose"), || Ok::<(), Error>(()));
        }));
        let turn = turns.wait(|| Err(Error::cancelled())).unwrap();
        assert!(panics(&|| {
            let _turn = turns.wait(|| -> Result<()> { panic!("while it waits, on purpose") });
        }));
        assert_eq!(turns.waiting(), 0);
        drop(turn);
        assert!(turns.wait(|| Err(Error::cancelled())).is_ok());
    }
}
