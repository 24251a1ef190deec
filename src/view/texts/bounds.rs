//! The bounds of a count of text: cancellation, time limit, and maximum bytes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Cause, Error, Result};

use crate::limits;

/// The bounds of one count, which several threads may share.
pub(crate) struct CountBounds {
    cancel: CancelToken,
    started: Instant,
    /// Maximum bytes to count.
    most: u64,
    bytes: AtomicU64,
}

impl CountBounds {
    /// Creates the bounds of a count that begins now, covers at most `most` bytes, and ends when
    /// `cancel` is set.
    pub(crate) fn new(cancel: CancelToken, most: u64) -> Self {
        Self::since(Instant::now(), cancel, most)
    }

    /// Like [`new`](Self::new), for a count that began at `started`.
    pub(super) fn since(started: Instant, cancel: CancelToken, most: u64) -> Self {
        CountBounds {
            cancel,
            started,
            most,
            bytes: AtomicU64::new(0),
        }
    }

    /// Returns the token that cancels the count.
    pub(crate) fn cancel(&self) -> &CancelToken {
        &self.cancel
    }

    /// Returns the maximum bytes to count.
    pub(crate) fn max_bytes(&self) -> u64 {
        self.most
    }

    /// Adds `bytes` to the count. Returns whether all bytes so far are within the bound.
    ///
    /// # Errors
    /// [`Error::unwanted`] if the request is cancelled; `Io` if the count has taken too long. A
    /// second attempt may be quicker, because more of the file is then cached.
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
