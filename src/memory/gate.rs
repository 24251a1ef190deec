//! The gate: work that takes much waits here, until there is room for it.
//!
//! Work has a class and a weight. Within a class, it is let in in the order in which it came, so
//! that no heavy work is passed for ever. What may be inside together is the caller's rule, which
//! is asked under the gate's lock; one class waits for another only if that rule says so.

use std::convert::Infallible;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::memory::lock::{lock, wait_for};
use crate::wire::Count;

/// How often work that waits asks whether it is to go on, and whether there is room by now.
const LOOK: Duration = Duration::from_millis(10);

/// Lets work in. Beside the work, it guards a `T` that the rule looks at.
#[derive(Debug, Default)]
pub(crate) struct Gate<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State<T> {
    guarded: T,
    works: Works,
    /// The number of the next work.
    next: u64,
}

/// The work that waits or is inside, in the order of its coming.
#[derive(Debug, Default)]
pub(crate) struct Works(Vec<Work>);

#[derive(Debug)]
struct Work {
    number: u64,
    class: usize,
    weight: u64,
    is_inside: bool,
}

/// The place of work that waits or is inside, left when dropped.
#[derive(Debug)]
pub(crate) struct Place<T> {
    gate: Arc<Gate<T>>,
    number: u64,
}

/// Whether work of so much `weight` may be beside others that have `taken` so much of the `most`
/// that there is. Work that is heavier than that is let in alone.
pub(crate) fn fits(taken: u64, weight: u64, most: u64) -> bool {
    taken == 0 || taken.with_more(weight) <= most
}

impl<T> Gate<T> {
    /// Waits until work is the first of its `class` that waits and `has_room`, as long as it may
    /// `go_on`. Both are asked again whenever something has changed, and now and then.
    ///
    /// # Errors
    /// Fails as `go_on` does.
    pub(crate) fn enter<E>(
        self: &Arc<Self>,
        (class, weight): (usize, u64),
        mut has_room: impl FnMut(&mut T, &Works) -> bool,
        go_on: impl Fn() -> Result<(), E>,
    ) -> Result<Place<T>, E> {
        // Dropped after the lock is given back, which it takes.
        let place = self.queue_up(class, weight);
        let mut state = lock(&self.state);
        let mut lets_in = |State { guarded, works, .. }: &mut State<T>| {
            works.is_first(place.number, class) && has_room(guarded, works)
        };
        while !lets_in(&mut state) {
            go_on()?;
            state = wait_for(&self.changed, state, LOOK);
        }
        state.works.let_in(place.number);
        self.wake(state);
        Ok(place)
    }

    /// Looks at what is guarded, or changes it so that there is no more room than before.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&mut T, &Works) -> R) -> R {
        let state = &mut *lock(&self.state);
        look(&mut state.guarded, &state.works)
    }

    /// Changes what is guarded; the work that waits looks whether there is room now.
    pub(crate) fn change(&self, change: impl FnOnce(&mut T)) {
        let mut state = lock(&self.state);
        change(&mut state.guarded);
        self.wake(state);
    }

    fn queue_up(self: &Arc<Self>, class: usize, weight: u64) -> Place<T> {
        let mut state = lock(&self.state);
        let number = state.next;
        state.next = number.wrapping_add(1);
        state.works.0.push(Work {
            number,
            class,
            weight,
            is_inside: false,
        });
        let gate = Arc::clone(self);
        Place { gate, number }
    }

    fn wake(&self, state: MutexGuard<'_, State<T>>) {
        let somebody_waits = state.works.0.iter().any(|work| !work.is_inside);
        drop(state);
        if somebody_waits {
            self.changed.notify_all();
        }
    }
}

impl<T> Place<T> {
    /// Gives back all but so much of the weight.
    pub(crate) fn lighten(&self, weight: u64) {
        let mut state = lock(&self.gate.state);
        let own = state.works.0.iter_mut();
        for work in own.filter(|work| work.number == self.number) {
            work.weight = work.weight.min(weight);
        }
        self.gate.wake(state);
    }
}

impl Works {
    /// The weights of the work of a class that is inside.
    pub(crate) fn inside(&self, class: usize) -> impl Iterator<Item = u64> {
        let inside = self
            .0
            .iter()
            .filter(move |work| work.class == class && work.is_inside);
        inside.map(|work| work.weight)
    }

    /// The weight of the first work of a class that waits.
    pub(crate) fn first(&self, class: usize) -> Option<u64> {
        self.waiting(class).next().map(|first| first.weight)
    }

    fn waiting(&self, class: usize) -> impl Iterator<Item = &Work> {
        let all = self.0.iter();
        all.filter(move |work| work.class == class && !work.is_inside)
    }

    fn is_first(&self, number: u64, class: usize) -> bool {
        let first = self.waiting(class).next();
        first.is_some_and(|first| first.number == number)
    }

    fn let_in(&mut self, number: u64) {
        for work in &mut self.0 {
            work.is_inside |= work.number == number;
        }
    }
}

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.gate.state);
        state.works.0.retain(|work| work.number != self.number);
        self.gate.wake(state);
    }
}

/// A gate that lets in one at a time.
pub(crate) type Turns = Gate<()>;

/// A turn, over when dropped.
pub(crate) type Turn = Place<()>;

impl Turns {
    /// Waits for the caller's turn, as long as it may `go_on`.
    ///
    /// # Errors
    /// Fails as `go_on` does.
    pub(crate) fn wait<E>(self: &Arc<Self>, go_on: impl Fn() -> Result<(), E>) -> Result<Turn, E> {
        self.enter((0, 0), |(), works| works.inside(0).next().is_none(), go_on)
    }

    /// Waits for the caller's turn, however long that takes.
    pub(crate) fn await_turn(self: &Arc<Self>) -> Turn {
        let Ok(turn) = self.wait(|| Ok::<(), Infallible>(()));
        turn
    }
}

#[cfg(test)]
impl<T> Gate<T> {
    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        let state = lock(&self.state);
        let waiting = state.works.0.iter().filter(|work| !work.is_inside);
        waiting.count()
    }

    /// Waits until so many wait.
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

    /// Enters a gate at which each class has as much room, or gives up after some looks.
    fn enter(gate: &Arc<Gate<()>>, class: usize, weight: u64, patience: u64) -> Result<Turn> {
        let looks = AtomicU64::new(0);
        let has_room = |(): &mut (), works: &Works| fits(works.inside(class).sum(), weight, MOST);
        let is_patient = || looks.fetch_add(1, Ordering::Relaxed) < patience;
        let go_on = || is_patient().then_some(()).ok_or_else(Error::unwanted);
        gate.enter((class, weight), has_room, go_on)
    }

    fn refuses(gate: &Arc<Gate<()>>, class: usize, weight: u64) -> bool {
        enter(gate, class, weight, 0).is_err_and(|error| error.is_unwanted())
    }

    #[test]
    fn each_comes_in_the_order_of_its_coming() {
        let (turns, order) = (Arc::<Turns>::default(), Mutex::new(Vec::new()));
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
    fn who_gives_up_holds_up_nobody() {
        let turns = Arc::<Turns>::default();
        let first = turns.await_turn();
        let refused = turns.wait(|| Err(Error::unwanted()));
        assert!(refused.is_err_and(|error| error.is_unwanted()));
        assert_eq!(turns.waiting(), 0);
        drop(first);
        assert!(turns.wait(|| Err(Error::unwanted())).is_ok());
    }

    #[test]
    fn one_that_is_too_heavy_is_let_in_alone() {
        let gate = Arc::default();
        let light = [1, MOST - 1].map(|weight| enter(&gate, 0, weight, 0).unwrap());
        assert!(refuses(&gate, 0, 10 * MOST));
        drop(light);
        let _heavy = enter(&gate, 0, 10 * MOST, 0).unwrap();
        assert!(refuses(&gate, 0, 1));
    }

    #[test]
    fn a_heavy_one_is_passed_by_no_lighter_one() {
        let gate = Arc::default();
        let light = enter(&gate, 0, 1, 0).unwrap();
        thread::scope(|scope| {
            let heavy = scope.spawn(|| enter(&gate, 0, MOST, u64::MAX).map(drop));
            gate.await_waiting(1);
            assert!(refuses(&gate, 0, 1), "there is room, and one came before");
            drop(light);
            heavy.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_class_has_its_room_however_many_of_another_wait() {
        let gate = Arc::default();
        let slow = enter(&gate, 0, 10 * MOST, 0).unwrap();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| enter(&gate, 0, MOST, u64::MAX).map(drop));
            }
            gate.await_waiting(8);
            let fast: Vec<_> = (0..MOST).map(|_| enter(&gate, 1, 1, 0)).collect();
            assert!(fast.iter().all(Result::is_ok) && refuses(&gate, 1, 1));
            assert_eq!(gate.waiting(), 8);
            drop(slow);
        });
        assert!(gate.look(|(), works| works.0.is_empty()));
    }

    #[test]
    fn a_panic_loses_nothing() {
        let turns = Arc::<Turns>::default();
        let panics = |work: &dyn Fn()| catch_unwind(AssertUnwindSafe(work)).is_err();
        assert!(panics(&|| {
            let _turn = turns.await_turn();
            panic!("inside, on purpose");
        }));
        assert!(panics(&|| {
            let _place = turns.enter((0, 0), |(), _| panic!("on purpose"), || Ok::<(), Error>(()));
        }));
        let turn = turns.wait(|| Err(Error::unwanted())).unwrap();
        assert!(panics(&|| {
            let _turn = turns.wait(|| -> Result<()> { panic!("while it waits, on purpose") });
        }));
        assert_eq!(turns.waiting(), 0);
        drop(turn);
        assert!(turns.wait(|| Err(Error::unwanted())).is_ok());
    }
}
