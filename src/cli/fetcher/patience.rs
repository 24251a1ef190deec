//! How long a request is tried, and when it is tried again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::cli::fetcher::trouble::Trouble;
use crate::limits;

/// Between two looks whether anybody still waits.
const LOOK: Duration = Duration::from_millis(20);

/// The first pause.
const PAUSE: Duration = Duration::from_millis(50);

/// The longest pause that is not the server's own wish.
const LONGEST: Duration = Duration::from_secs(5);

/// The patience with one request.
#[derive(Clone)]
pub(super) struct Patience<'a> {
    deadline: Duration,
    end: Instant,
    attempts: u32,
    /// Bytes that came since the end was put off.
    brought: usize,
    is_cancelled: &'a AtomicBool,
    /// Nobody waits for the request yet.
    is_expected: bool,
}

/// The time that one exchange may take.
pub(super) struct Allowed<'a> {
    end: Instant,
    is_cancelled: &'a AtomicBool,
    /// Nobody waits for the request yet.
    pub(super) is_expected: bool,
}

/// How fast the body of one answer comes.
pub(super) struct Pace {
    step: Duration,
    since: Instant,
    brought: usize,
}

impl Pace {
    /// From now on, every `step` is to bring enough.
    pub(super) fn new(step: Duration) -> Self {
        Pace {
            step,
            since: Instant::now(),
            brought: 0,
        }
    }

    /// Takes note of bytes that came.
    ///
    /// # Errors
    /// Fails if a step has brought too few, of which four are the time of a whole request. Another
    /// connection may be faster.
    pub(super) fn received(&mut self, bytes: usize) -> Result<(), Trouble> {
        self.brought = self.brought.saturating_add(bytes);
        if self.since.elapsed() >= self.step {
            if self.brought < limits::SLOWEST / 4 {
                return Err(Trouble::passing("an answer comes too slowly"));
            }
            *self = Self::new(self.step);
        }
        Ok(())
    }
}

/// Why a request is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// There is no time left.
    TimedOut,
    /// Nobody waits for it any more.
    Cancelled,
}

impl<'a> Patience<'a> {
    pub(super) fn new(deadline: Duration, is_cancelled: &'a AtomicBool) -> Self {
        Patience {
            deadline,
            end: Instant::now() + deadline,
            attempts: 0,
            brought: 0,
            is_cancelled,
            is_expected: false,
        }
    }

    /// The same, for a request that may be only expected.
    pub(super) fn of_guess(self, is_expected: bool) -> Self {
        Patience {
            is_expected,
            ..self
        }
    }

    /// The time of an exchange that is to end `within` this time.
    pub(super) fn within(&self, time: Duration) -> Allowed<'a> {
        Allowed {
            end: self.end.min(Instant::now() + time),
            is_cancelled: self.is_cancelled,
            is_expected: self.is_expected,
        }
    }

    /// The time that is left.
    pub(super) fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Whether to go on.
    pub(super) fn goes_on(&self) -> Result<(), End> {
        self.within(self.deadline).goes_on()
    }

    /// Puts the end off where a server brings enough: at least [`limits::SLOWEST`] bytes in the
    /// time of a whole request.
    pub(super) fn received(&mut self, bytes: usize) -> Result<(), End> {
        self.brought = self.brought.saturating_add(bytes);
        if self.brought >= limits::SLOWEST {
            self.brought = 0;
            self.attempts = 0;
            self.end = Instant::now() + self.deadline;
        }
        self.goes_on()
    }

    /// Waits before the next attempt: twice as long as before the last one, or as long as the
    /// server wishes. Different requests wait differently long, so that they do not come back
    /// together.
    pub(super) fn pause(&mut self, wish: Option<Duration>) -> Result<(), End> {
        let longest = PAUSE
            .saturating_mul(1 << self.attempts.min(10))
            .min(LONGEST);
        self.attempts = self.attempts.saturating_add(1);
        let pause = wish.unwrap_or_else(|| scattered(longest));
        let over = Instant::now() + pause;
        loop {
            self.goes_on()?;
            let left = over.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK));
        }
    }
}

impl Allowed<'_> {
    /// The time that is left.
    pub(super) fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Whether to go on.
    pub(super) fn goes_on(&self) -> Result<(), End> {
        if self.is_cancelled.load(Ordering::Relaxed) {
            Err(End::Cancelled)
        } else if Instant::now() >= self.end {
            Err(End::TimedOut)
        } else {
            Ok(())
        }
    }
}

/// A time between half of `longest` and all of it.
fn scattered(longest: Duration) -> Duration {
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
        let mut patience = Patience::new(Duration::from_millis(300), &nobody);
        let began = Instant::now();
        let mut pauses = 0;
        let end = loop {
            match patience.pause(None) {
                Ok(()) => pauses += 1,
                Err(end) => break end,
            }
        };
        assert_eq!(end, End::TimedOut);
        assert!((1..=6).contains(&pauses), "{pauses}");
        let took = began.elapsed();
        assert!((Duration::from_millis(300)..Duration::from_secs(6)).contains(&took));
    }

    #[test]
    fn every_step_of_an_answer_brings_enough() {
        let step = Duration::from_millis(50);
        let enough = limits::SLOWEST / 4;
        let mut pace = Pace::new(step);
        for _ in 0..3 {
            std::thread::sleep(step);
            assert_eq!(pace.received(enough), Ok(()));
        }
        std::thread::sleep(step);
        assert!(pace.received(enough - 1).is_err());
    }

    #[test]
    fn a_cancelled_request_does_not_wait() {
        let cancelled = AtomicBool::new(true);
        let mut patience = Patience::new(Duration::from_secs(60), &cancelled);
        let wish = Some(Duration::from_secs(30));
        assert_eq!(patience.pause(wish), Err(End::Cancelled));
    }

    #[test]
    fn a_server_that_brings_enough_is_waited_for() {
        let nobody = AtomicBool::new(false);
        let mut patience = Patience::new(Duration::from_millis(100), &nobody);
        for _ in 0..4 {
            std::thread::sleep(Duration::from_millis(50));
            assert_eq!(patience.received(limits::SLOWEST), Ok(()));
        }
        std::thread::sleep(Duration::from_millis(110));
        assert_eq!(patience.received(1), Err(End::TimedOut));
    }
}
