//! The bounds of a count: who waits for it, how long it may take, how many bytes it may find.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::array::CancelToken;
use crate::error::{Cause, Error, Result};
use crate::limits;

/// The bounds of one count, which several threads may share.
pub(crate) struct CountBounds {
    cancel: CancelToken,
    started: Instant,
    /// Bytes that are counted, at most.
    most: u64,
    bytes: AtomicU64,
}

impl CountBounds {
    /// Bounds of a count of at most `most` bytes, which begins now and ends with `cancel`.
    pub(crate) fn new(cancel: CancelToken, most: u64) -> Self {
        Self::since(Instant::now(), cancel, most)
    }

    /// The same, of a count that began at `started`.
    pub(super) fn since(started: Instant, cancel: CancelToken, most: u64) -> Self {
        CountBounds {
            cancel,
            started,
            most,
            bytes: AtomicU64::new(0),
        }
    }

    /// Ends the count if nobody waits for it.
    pub(crate) fn cancel(&self) -> &CancelToken {
        &self.cancel
    }

    /// Bytes that are counted, at most.
    pub(crate) fn most(&self) -> u64 {
        self.most
    }

    /// Counts `bytes` more. Returns whether all bytes so far are within the bound.
    ///
    /// # Errors
    /// [`Error::unwanted`] if the request is to end; `Io` if the count has taken too long: another
    /// one may be quicker, as much of the file is then in memory.
    pub(crate) fn pass(&self, bytes: u64) -> Result<bool> {
        self.cancel.go_on()?;
        if self.started.elapsed() > limits::COUNTED_TIME {
            let most = limits::COUNTED_TIME.as_secs();
            let what = format!("length of the text: more than {most} seconds to count it");
            return Err(Error::caused(Cause::Failed, what));
        }
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(before.saturating_add(bytes) <= self.most)
    }
}
