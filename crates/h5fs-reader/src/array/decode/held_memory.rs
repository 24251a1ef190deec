//! The memory that all open objects take together while they are open.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::error::{Cause, Error, Result};
use crate::limits;
use crate::memory::lock::lock;

/// The total memory that the open objects hold, in bytes.
#[derive(Debug, Default)]
pub(in crate::array) struct OpenObjectMemory(AtomicU64);

/// The memory that one open object holds, as a number of bytes. Dropping the value gives the bytes
/// back to the budget of all open objects.
#[derive(Debug)]
pub struct MemoryReservation {
    open_memory: Arc<OpenObjectMemory>,
    bytes: Mutex<u64>,
}

impl OpenObjectMemory {
    /// Reserves `bytes` bytes of memory for an open object.
    ///
    /// # Errors
    /// `Io` (`OutOfMemory`) if all open objects together would hold too many bytes.
    pub(in crate::array) fn reserve_for_object(
        self: &Arc<Self>,
        bytes: u64,
    ) -> Result<MemoryReservation> {
        self.reserve(bytes)?;
        Ok(MemoryReservation {
            open_memory: Arc::clone(self),
            bytes: Mutex::new(bytes),
        })
    }

    fn reserve(&self, bytes: u64) -> Result<()> {
        let with = |taken: u64| taken.checked_add(bytes);
        let granted = |taken| with(taken).filter(|sum| *sum <= limits::OPEN_BYTES);
        let order = Ordering::Relaxed;
        let refused = |_| Error::from_cause(Cause::OutOfMemory, "memory of open files and handles");
        let taken = self.0.fetch_update(order, order, granted);
        taken.map(|_| ()).map_err(refused)
    }

    fn release(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl MemoryReservation {
    /// Changes the memory that the open object holds to `bytes` bytes.
    ///
    /// # Errors
    /// `Io` (`OutOfMemory`) if all open objects together would hold too many bytes. The object then
    /// holds as many bytes as before.
    pub fn resize(&self, bytes: u64) -> Result<()> {
        let mut held = lock(&self.bytes);
        match bytes.checked_sub(*held) {
            Some(0) => return Ok(()),
            Some(more) => self.open_memory.reserve(more)?,
            None => self.open_memory.release(*held - bytes),
        }
        *held = bytes;
        Ok(())
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.open_memory.release(*lock(&self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_memory_can_be_reserved_again() {
        let holdings = Arc::new(OpenObjectMemory::default());
        let most = holdings.reserve_for_object(limits::OPEN_BYTES - 1).unwrap();
        let one = holdings.reserve_for_object(1).unwrap();
        for bytes in [1, u64::MAX] {
            assert!(
                holdings
                    .reserve_for_object(bytes)
                    .unwrap_err()
                    .is_transient()
            );
        }
        one.resize(2).unwrap_err();
        one.resize(0).unwrap();
        one.resize(1).unwrap();
        holdings.reserve_for_object(1).unwrap_err();
        drop(one);
        drop(holdings.reserve_for_object(1).unwrap());
        drop(most);
        holdings.reserve_for_object(limits::OPEN_BYTES).unwrap();
    }
}
