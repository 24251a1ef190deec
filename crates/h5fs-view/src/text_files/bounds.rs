//! The bounds of counting a text's length: cancellation, time limit, and maximum length.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Cause, Error, Result};

use crate::limits;

/// The bounds of counting a text's length in bytes. Several threads may share them.
pub struct TextLengthLimits {
    cancel: CancelToken,
    started: Instant,
    /// Maximum length of the text in bytes.
    most: u64,
    bytes: AtomicU64,
}

impl TextLengthLimits {
    /// Creates bounds for a count that begins now. `cancel` cancels the count. `most` is the
    /// maximum length of the text in bytes.
    pub fn new(cancel: CancelToken, most: u64) -> Self {
        Self::new_started_at(Instant::now(), cancel, most)
    }

    /// Creates the same bounds as [`new`](Self::new), for a count that began at the time `started`.
    pub(super) fn new_started_at(started: Instant, cancel: CancelToken, most: u64) -> Self {
        TextLengthLimits {
            cancel,
            started,
            most,
            bytes: AtomicU64::new(0),
        }
    }

    /// Returns the token that cancels the count.
    pub fn cancel(&self) -> &CancelToken {
        &self.cancel
    }

    /// Returns the maximum length of the text in bytes.
    pub fn max_bytes(&self) -> u64 {
        self.most
    }

    /// Adds `bytes` to the length counted so far. Returns whether the total is within the maximum.
    ///
    /// # Errors
    /// [`Error::cancelled`] if the request is cancelled; `Io` if the count has taken too long. A
    /// second attempt may be quicker, because more of the file is then cached.
    pub fn add_bytes(&self, bytes: u64) -> Result<bool> {
        self.cancel.check_cancelled()?;
        if self.started.elapsed() > limits::COUNTED_TIME {
            let most = limits::COUNTED_TIME.as_secs();
            let what = format!("length of the text: more than {most} seconds to count it");
            return Err(Error::from_cause(Cause::Unavailable, what));
        }
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(before.saturating_add(bytes) <= self.most)
    }
}
