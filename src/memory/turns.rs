//! Turns: threads are let in one after another, in the order in which they came.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use crate::error::Result;
use crate::memory::lock::{lock, wait_for};

/// How often a thread that waits looks whether it still has to.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// Lets in one thread at a time.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The number that the next thread draws.
    next: u64,
    /// The numbers of those that wait or are in, in turn: the first is in.
    drawn: VecDeque<u64>,
}

/// A turn, over when dropped, or given up before it has come.
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    number: u64,
}

impl Turns {
    /// Waits for the caller's turn, as long as it may `go_on`.
    ///
    /// # Errors
    /// Fails as `go_on` does.
    pub(crate) fn wait(&self, go_on: impl Fn() -> Result<()>) -> Result<Turn<'_>> {
        let turn = self.draw();
        let mut state = lock(&self.state);
        while state.drawn.front() != Some(&turn.number) {
            if let Err(error) = go_on() {
                drop(state);
                return Err(error);
            }
            state = wait_for(&self.changed, state, LOOK);
        }
        drop(state);
        Ok(turn)
    }

    fn draw(&self) -> Turn<'_> {
        let mut state = lock(&self.state);
        let number = state.next;
        state.next = state.next.wrapping_add(1);
        state.drawn.push_back(number);
        Turn {
            turns: self,
            number,
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.turns.state);
        state.drawn.retain(|number| *number != self.number);
        drop(state);
        self.turns.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn each_comes_in_the_order_of_its_coming() {
        let (turns, order) = (Turns::default(), Mutex::new(Vec::new()));
        let first = turns.wait(|| Ok(())).unwrap();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (turns, order) = (&turns, &order);
                scope.spawn(move || {
                    let _turn = turns.wait(|| Ok(())).unwrap();
                    order.lock().unwrap().push(number);
                });
                while lock(&turns.state).next != number + 2 {
                    std::thread::yield_now();
                }
            }
            drop(first);
        });
        assert_eq!(*order.lock().unwrap(), (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn who_gives_up_holds_up_nobody() {
        let turns = Turns::default();
        let first = turns.wait(|| Ok(())).unwrap();
        let refused = turns.wait(|| Err(Error::unwanted()));
        assert!(refused.is_err_and(|error| error.is_unwanted()));
        drop(first);
        assert!(turns.wait(|| Err(Error::unwanted())).is_ok());
    }
}
