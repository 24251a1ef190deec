//! How locks are taken.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks; a panic of another holder leaves nothing half-done that matters to its users.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
