//! How locks are taken.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Locks; a panic of another holder leaves nothing half-done that matters to its users.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until `condition` is notified, at most so long.
pub(crate) fn wait_for<'a, T>(
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
pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition
        .wait(guard)
        .unwrap_or_else(PoisonError::into_inner)
}
