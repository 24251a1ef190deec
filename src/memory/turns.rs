//! Turns: threads are let in one after another, in the order in which they came.

use std::sync::{Condvar, Mutex};

use crate::memory::lock::{lock, wait};

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
    /// The number whose turn it is.
    turn: u64,
}

/// A turn, over when dropped.
pub(crate) struct Turn<'a>(&'a Turns);

impl Turns {
    /// Waits for the caller's turn.
    pub(crate) fn wait(&self) -> Turn<'_> {
        let mut state = lock(&self.state);
        let number = state.next;
        state.next = state.next.wrapping_add(1);
        while state.turn != number {
            state = wait(&self.changed, state);
        }
        Turn(self)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.turn = state.turn.wrapping_add(1);
        drop(state);
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_comes_in_the_order_of_its_coming() {
        let (turns, order) = (Turns::default(), Mutex::new(Vec::new()));
        let first = turns.wait();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (turns, order) = (&turns, &order);
                scope.spawn(move || {
                    let _turn = turns.wait();
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
}
