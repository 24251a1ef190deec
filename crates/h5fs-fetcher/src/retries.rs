//! The time limit of a request, and the pauses between its attempts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::fetch_error::FetchError;
use crate::limits;

/// Interval at which a pausing request checks whether it was cancelled.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Length of the pause before the second attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Maximum length of a pause, except for a pause that the server requests.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// The time limit of one request, and the pauses between its attempts.
#[derive(Clone)]
pub(super) struct RetryBudget<'a> {
    deadline: Duration,
    end: Instant,
    attempts: u32,
    /// Number of bytes received since the time limit was last extended.
    received: usize,
    is_cancelled: &'a AtomicBool,
    /// Whether the request is a prefetch, for which no program waits yet.
    is_prefetch: bool,
}

/// The time limit of one attempt: one HTTP request and its response.
pub(super) struct AttemptLimit<'a> {
    end: Instant,
    is_cancelled: &'a AtomicBool,
    /// Whether the request is a prefetch, for which no program waits yet.
    pub(super) is_prefetch: bool,
}

/// The measured data rate of one response body, which must not be too low.
pub(super) struct BodyRate {
    step: Duration,
    since: Instant,
    received: usize,
}

impl BodyRate {
    /// Starts the measurement. At least `SLOWEST / 4` bytes must arrive in each period of the
    /// length `step`.
    pub(super) fn new(step: Duration) -> Self {
        BodyRate {
            step,
            since: Instant::now(),
            received: 0,
        }
    }

    /// Counts received bytes of the body.
    ///
    /// # Errors
    /// Fails if fewer than `SLOWEST / 4` bytes arrived within one step, which is at most a quarter
    /// of the request's time limit. The caller then retries on another connection.
    pub(super) fn count_received(&mut self, bytes: usize) -> Result<(), FetchError> {
        self.received = self.received.saturating_add(bytes);
        if self.since.elapsed() >= self.step {
            if self.received < limits::SLOWEST / 4 {
                return Err(FetchError::temporary("a response arrives too slowly"));
            }
            *self = Self::new(self.step);
        }
        Ok(())
    }
}

/// The reason why a request is abandoned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AbortReason {
    /// The time limit has elapsed.
    TimedOut,
    /// No program waits for the request any longer.
    Cancelled,
}

impl<'a> RetryBudget<'a> {
    pub(super) fn new(deadline: Duration, is_cancelled: &'a AtomicBool) -> Self {
        RetryBudget {
            deadline,
            end: Instant::now() + deadline,
            attempts: 0,
            received: 0,
            is_cancelled,
            is_prefetch: false,
        }
    }

    /// Sets whether the request is a prefetch, for which no program waits yet.
    pub(super) fn with_prefetch(self, is_expected: bool) -> Self {
        RetryBudget {
            is_prefetch: is_expected,
            ..self
        }
    }

    /// Returns the limit of an attempt that must end within the time `time`.
    pub(super) fn attempt_limit(&self, time: Duration) -> AttemptLimit<'a> {
        AttemptLimit {
            end: self.end.min(Instant::now() + time),
            is_cancelled: self.is_cancelled,
            is_prefetch: self.is_prefetch,
        }
    }

    /// Returns the time until the request's time limit.
    pub(super) fn remaining(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Fails if the request's time limit has elapsed, or if the request was cancelled.
    pub(super) fn check(&self) -> Result<(), AbortReason> {
        self.attempt_limit(self.deadline).check()
    }

    /// Counts received bytes. Extends the time limit each time that [`limits::SLOWEST`] bytes have
    /// arrived.
    pub(super) fn count_received(&mut self, bytes: usize) -> Result<(), AbortReason> {
        self.received = self.received.saturating_add(bytes);
        if self.received >= limits::SLOWEST {
            self.received = 0;
            self.attempts = 0;
            self.end = Instant::now() + self.deadline;
        }
        self.check()
    }

    /// Waits before the next attempt. The pause is the time `wish` that the server requests, or
    /// twice as long as the previous pause. The pauses are randomized, so that several requests are
    /// not retried at the same time.
    pub(super) fn pause(&mut self, wish: Option<Duration>) -> Result<(), AbortReason> {
        let longest = FIRST_PAUSE
            .saturating_mul(1 << self.attempts.min(10))
            .min(MAX_PAUSE);
        self.attempts = self.attempts.saturating_add(1);
        let pause = wish.unwrap_or_else(|| jittered(longest));
        let over = Instant::now() + pause;
        loop {
            self.check()?;
            let left = over.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(CANCEL_CHECK_INTERVAL));
        }
    }
}

impl AttemptLimit<'_> {
    /// Returns the time until the attempt's time limit.
    pub(super) fn remaining(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Fails if the attempt's time limit has elapsed, or if the request was cancelled.
    pub(super) fn check(&self) -> Result<(), AbortReason> {
        if self.is_cancelled.load(Ordering::Relaxed) {
            Err(AbortReason::Cancelled)
        } else if Instant::now() >= self.end {
            Err(AbortReason::TimedOut)
        } else {
            Ok(())
        }
    }
}

/// Returns a random time between half of `longest` and `longest`.
fn jittered(longest: Duration) -> Duration {
    let nanoseconds = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |now| now.subsec_nanos());
    let share = f64::from(nanoseconds % 1000) / 1000.0;
    longest.mul_f64(0.5 + share / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_the_deadline_ends_them() {
        let nobody = AtomicBool::new(false);
        let mut patience = RetryBudget::new(Duration::from_millis(300), &nobody);
        let began = Instant::now();
        let mut pauses = 0;
        let end = loop {
            match patience.pause(None) {
                Ok(()) => pauses += 1,
                Err(end) => break end,
            }
        };
        assert_eq!(end, AbortReason::TimedOut);
        assert!((1..=6).contains(&pauses), "{pauses}");
        let took = began.elapsed();
        assert!((Duration::from_millis(300)..Duration::from_secs(6)).contains(&took));
    }

    #[test]
    fn a_slow_body_is_abandoned() {
        let step = Duration::from_millis(50);
        let enough = limits::SLOWEST / 4;
        let mut pace = BodyRate::new(step);
        for _ in 0..3 {
            std::thread::sleep(step);
            assert_eq!(pace.count_received(enough), Ok(()));
        }
        std::thread::sleep(step);
        assert!(pace.count_received(enough - 1).is_err());
    }

    #[test]
    fn a_cancelled_request_does_not_wait() {
        let cancelled = AtomicBool::new(true);
        let mut patience = RetryBudget::new(Duration::from_secs(60), &cancelled);
        let wish = Some(Duration::from_secs(30));
        assert_eq!(patience.pause(wish), Err(AbortReason::Cancelled));
    }

    #[test]
    fn received_bytes_extend_the_time_limit() {
        let nobody = AtomicBool::new(false);
        let mut patience = RetryBudget::new(Duration::from_millis(100), &nobody);
        for _ in 0..4 {
            std::thread::sleep(Duration::from_millis(50));
            assert_eq!(patience.count_received(limits::SLOWEST), Ok(()));
        }
        std::thread::sleep(Duration::from_millis(110));
        assert_eq!(patience.count_received(1), Err(AbortReason::TimedOut));
    }
}
