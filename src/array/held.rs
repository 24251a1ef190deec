//! The memory that what is open takes together, for as long as it is open.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;

use crate::error::{Error, Result};
use crate::limits;

/// Bytes that are taken.
#[derive(Debug, Default)]
pub(super) struct Holdings(AtomicU64);

/// Bytes that are taken until this is dropped.
#[derive(Debug)]
pub struct Held {
    holdings: Arc<Holdings>,
    bytes: u64,
}

impl Holdings {
    /// Takes so many bytes.
    ///
    /// # Errors
    /// `Io` (`ENOMEM`) where others have too many already.
    pub(super) fn hold(self: &Arc<Self>, bytes: u64) -> Result<Held> {
        let with = |taken: u64| taken.checked_add(bytes);
        let granted = |taken| with(taken).filter(|sum| *sum <= limits::OPEN_BYTES);
        let order = Ordering::Relaxed;
        match self.0.fetch_update(order, order, granted) {
            Ok(_) => Ok(Held {
                holdings: Arc::clone(self),
                bytes,
            }),
            Err(_) => Err(Error::io(
                &Errno::ENOMEM.into(),
                "memory for what is open at a time",
            )),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.holdings.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let holdings = Arc::new(Holdings::default());
        let most = holdings.hold(limits::OPEN_BYTES - 1).unwrap();
        let one = holdings.hold(1).unwrap();
        for bytes in [1, u64::MAX] {
            assert!(holdings.hold(bytes).unwrap_err().is_passing());
        }
        drop(one);
        drop(holdings.hold(1).unwrap());
        drop(most);
        holdings.hold(limits::OPEN_BYTES).unwrap();
    }
}
