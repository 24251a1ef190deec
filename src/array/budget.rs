//! The memory that decodes under way may take together.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Grants bytes and slots in the order in which they are asked for, so that a large request is not
/// passed over for ever.
#[derive(Debug)]
pub(super) struct Budget {
    bytes: u64,
    slots: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bytes_taken: u64,
    slots_taken: usize,
    /// The number that the next request draws.
    next_ticket: u64,
    /// The number whose turn it is.
    turn: u64,
}

/// Granted bytes and one slot, given back when dropped.
pub(super) struct Permit<'a> {
    budget: &'a Budget,
    bytes: u64,
}

impl Budget {
    /// `bytes` bytes for at most `slots` (one at least) at a time.
    pub(super) fn new(bytes: u64, slots: usize) -> Self {
        Budget {
            bytes,
            slots: slots.max(1),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Waits for a slot and `bytes` bytes; for more than there are, until nobody else has any.
    pub(super) fn acquire(&self, bytes: u64) -> Permit<'_> {
        let mut state = self.state();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        while state.turn != ticket || !self.has_room(&state, bytes) {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.turn += 1;
        state.slots_taken += 1;
        state.bytes_taken += bytes;
        drop(state);
        self.changed.notify_all();
        Permit {
            budget: self,
            bytes,
        }
    }

    /// Whether one request of `bytes` leaves room for another of its kind.
    pub(super) fn holds_twice(&self, bytes: u64) -> bool {
        bytes <= self.bytes / 2
    }

    fn has_room(&self, state: &State, bytes: u64) -> bool {
        state.slots_taken == 0
            || state.slots_taken < self.slots
                && state.bytes_taken.saturating_add(bytes) <= self.bytes
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        state.slots_taken -= 1;
        state.bytes_taken -= self.bytes;
        drop(state);
        self.budget.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn the_sum_stays_within_and_the_oversized_is_alone() {
        let budget = Budget::new(100, 8);
        let taken = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for i in 0..32 {
                let (budget, taken) = (&budget, &taken);
                scope.spawn(move || {
                    let bytes = if i % 8 == 0 { 1000 } else { 30 };
                    let _permit = budget.acquire(bytes);
                    let sum = taken.fetch_add(bytes, Ordering::SeqCst) + bytes;
                    assert!(sum <= 100 || sum == 1000);
                    std::thread::yield_now();
                    taken.fetch_sub(bytes, Ordering::SeqCst);
                });
            }
        });
    }
}
