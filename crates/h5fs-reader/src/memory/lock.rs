//! Helpers for locks that ignore poisoning.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Locks the mutex. A panic of another holder leaves no half-done state that matters to the users
/// of these locks.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until `condition` is notified, for at most the duration `most`.
pub fn wait_for<'a, T>(
    condition: &Condvar,
    guard: MutexGuard<'a, T>,
    most: Duration,
) -> MutexGuard<'a, T> {
    condition
        .wait_timeout(guard, most)
        .unwrap_or_else(PoisonError::into_inner)
        .0
}

/// Waits until `condition` is notified.
pub fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition
        .wait(guard)
        .unwrap_or_else(PoisonError::into_inner)
}
