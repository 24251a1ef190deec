//! The gate: work that takes much waits here, until there is room for it.
//!
//! Work has a class and a weight. Within a class, it is let in in the order in which it came, so
//! that no heavy work is passed for ever. What may be inside together is the caller's rule, which
//! is asked under the gate's lock; one class waits for another only if that rule says so.

use std::convert::Infallible;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::memory::lock::lock;

/// How often work that waits asks whether it is to go on, and whether there is room by now.
const LOOK: Duration = Duration::from_millis(10);

/// Lets work in. `T` says what is inside.
#[derive(Debug, Default)]
pub(crate) struct Gate<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State<T> {
    inside: T,
    queue: Queue,
    /// The number of the next ticket.
    next: u64,
}

/// The work that waits, in the order of its coming: numbers of tickets, and what they are for.
#[derive(Debug, Default)]
pub(crate) struct Queue(Vec<(u64, Work)>);

/// Work that is to be let in.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Work {
    /// Any number.
    pub(crate) class: usize,
    /// Bytes that it takes.
    pub(crate) weight: u64,
}

/// A place in the queue, left when dropped.
struct Ticket<'a, T> {
    gate: &'a Gate<T>,
    number: u64,
}

/// Whether work of so much `weight` may be beside others that have `taken` so much of the `most`
/// that there is. Work that is heavier than that is let in alone.
pub(crate) fn fits(taken: u64, weight: u64, most: u64) -> bool {
    taken == 0 || taken.saturating_add(weight) <= most
}

impl<T> Gate<T> {
    /// Waits until the work is the first of its class and `admit` lets it in, as long as it may
    /// `go_on`. `admit` is asked whenever what is inside has changed, and now and then; it adds the
    /// work to what is inside, and gives what the caller gets.
    ///
    /// # Errors
    /// Fails as `go_on` does.
    pub(crate) fn enter<P, E>(
        &self,
        work: Work,
        mut admit: impl FnMut(&mut T, &Queue) -> Option<P>,
        go_on: impl Fn() -> Result<(), E>,
    ) -> Result<P, E> {
        let ticket = self.ticket(work);
        loop {
            let mut entered = None;
            let waits = |state: &mut State<T>| {
                let first = state.queue.first_ticket(work.class);
                if first.is_some_and(|(first, _)| *first == ticket.number) {
                    entered = admit(&mut state.inside, &state.queue);
                }
                entered.is_none()
            };
            drop(
                self.changed
                    .wait_timeout_while(lock(&self.state), LOOK, waits),
            );
            if let Some(entered) = entered {
                return Ok(entered);
            }
            go_on()?;
        }
    }

    /// Changes what is inside; the work that waits looks whether there is room now.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut state = lock(&self.state);
        let changed = change(&mut state.inside);
        self.wake(state);
        changed
    }

    /// Looks at what is inside. A change that makes room belongs to [`change`](Self::change).
    pub(crate) fn look<R>(&self, look: impl FnOnce(&mut T) -> R) -> R {
        look(&mut lock(&self.state).inside)
    }

    fn ticket(&self, work: Work) -> Ticket<'_, T> {
        let mut state = lock(&self.state);
        let number = state.next;
        state.next = number.wrapping_add(1);
        state.queue.0.push((number, work));
        Ticket { gate: self, number }
    }

    fn wake(&self, state: MutexGuard<'_, State<T>>) {
        let somebody_waits = !state.queue.0.is_empty();
        drop(state);
        if somebody_waits {
            self.changed.notify_all();
        }
    }
}

impl Queue {
    /// The weight of the first work of the class that waits.
    pub(crate) fn first(&self, class: usize) -> Option<u64> {
        self.first_ticket(class).map(|(_, work)| work.weight)
    }

    fn first_ticket(&self, class: usize) -> Option<&(u64, Work)> {
        self.0.iter().find(|(_, work)| work.class == class)
    }
}

impl<T> Drop for Ticket<'_, T> {
    fn drop(&mut self) {
        let mut state = lock(&self.gate.state);
        state.queue.0.retain(|(number, _)| *number != self.number);
        self.gate.wake(state);
    }
}

/// A gate that lets in one at a time: whether one is inside.
pub(crate) type Turns = Gate<bool>;

/// A turn, over when dropped.
#[derive(Debug)]
pub(crate) struct Turn(Arc<Turns>);

impl Turns {
    /// Waits for the caller's turn, as long as it may `go_on`.
    ///
    /// # Errors
    /// Fails as `go_on` does.
    pub(crate) fn wait<E>(self: &Arc<Self>, go_on: impl Fn() -> Result<(), E>) -> Result<Turn, E> {
        let admit = |is_taken: &mut bool, _: &Queue| (!*is_taken).then(|| *is_taken = true);
        self.enter(Work::default(), admit, go_on)?;
        Ok(Turn(Arc::clone(self)))
    }

    /// Waits for the caller's turn, however long that takes.
    pub(crate) fn await_turn(self: &Arc<Self>) -> Turn {
        let Ok(turn) = self.wait(|| Ok::<(), Infallible>(()));
        turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.change(|is_taken| *is_taken = false);
    }
}

#[cfg(test)]
impl<T> Gate<T> {
    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.state).queue.0.len()
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

    /// Weights inside, by class.
    type Weights = [u64; 2];

    const MOST: u64 = 10;

    fn enter(gate: &Gate<Weights>, class: usize, weight: u64, patience: u64) -> Result<()> {
        let looks = AtomicU64::new(0);
        gate.enter(
            Work { class, weight },
            |inside, _| fits(inside[class], weight, MOST).then(|| inside[class] += weight),
            || {
                let is_patient = looks.fetch_add(1, Ordering::Relaxed) < patience;
                is_patient.then_some(()).ok_or_else(Error::unwanted)
            },
        )
    }

    fn refuses(gate: &Gate<Weights>, class: usize, weight: u64) -> bool {
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
        let gate = Gate::<Weights>::default();
        enter(&gate, 0, 1, 0).unwrap();
        assert!(refuses(&gate, 0, MOST));
        enter(&gate, 0, MOST - 1, 0).unwrap();
        gate.change(|inside| inside[0] = 0);
        enter(&gate, 0, 10 * MOST, 0).unwrap();
        assert!(refuses(&gate, 0, 1));
    }

    #[test]
    fn a_heavy_one_is_passed_by_no_lighter_one() {
        let gate = Gate::<Weights>::default();
        enter(&gate, 0, 1, 0).unwrap();
        thread::scope(|scope| {
            let heavy = scope.spawn(|| enter(&gate, 0, MOST, u64::MAX));
            gate.await_waiting(1);
            assert!(refuses(&gate, 0, 1), "there is room, and one came before");
            gate.change(|inside| inside[0] = 0);
            heavy.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_class_has_its_room_however_many_of_another_wait() {
        let gate = Gate::<Weights>::default();
        enter(&gate, 0, 10 * MOST, 0).unwrap();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| enter(&gate, 0, MOST, u64::MAX).map(|()| gate.change(|_| ())));
            }
            gate.await_waiting(8);
            for _ in 0..MOST {
                enter(&gate, 1, 1, 0).unwrap();
            }
            assert_eq!(gate.look(|inside| *inside), [10 * MOST, MOST]);
            assert!(refuses(&gate, 1, 1));
            while gate.waiting() > 0 {
                gate.change(|inside| inside[0] = 0);
            }
        });
    }

    #[test]
    fn a_panic_loses_nothing() {
        let turns = Arc::<Turns>::default();
        let inside = catch_unwind(AssertUnwindSafe(|| {
            let _turn = turns.await_turn();
            panic!("on purpose");
        }));
        let admitted = catch_unwind(AssertUnwindSafe(|| {
            turns.enter(
                Work::default(),
                |_, _| -> Option<()> { panic!() },
                || Ok(()),
            )
        }));
        assert!(inside.is_err() && admitted.is_err());
        let turn = turns.wait(|| Err(Error::unwanted())).unwrap();
        let waiting = catch_unwind(AssertUnwindSafe(|| turns.wait(|| panic!("on purpose"))));
        assert!(waiting.is_err() && turns.waiting() == 0);
        drop(turn);
        assert!(turns.wait(|| Err(Error::unwanted())).is_ok());
    }
}
