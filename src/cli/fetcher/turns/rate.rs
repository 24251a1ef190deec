//! The rate of the requests to one host.
//!
//! It is unbounded until the host refuses a request (429, 503). Then nothing is sent for a moment,
//! and from then on requests are as many a second as the host has taken, less a third; the rate
//! grows by a tenth of that each second, until the next refusal: additive increase, multiplicative
//! decrease, as TCP does it (RFC 5681, section 3.1). A while without a refusal, and it is unbounded
//! again.

use std::time::{Duration, Instant};

/// The share of a rate that is left after a refusal.
const LESS: f64 = 0.7;

/// The share of the rate that a host took by which the rate grows each second.
const MORE: f64 = 0.1;

/// Requests a second, at least.
const LEAST: f64 = 1.0;

/// Requests that were sent in a second for a refusal to be of their number: a host that refuses one
/// of few is in trouble of another kind, and is given a pause.
const MANY: u32 = 10;

/// The pause after a refusal; after each one that follows it, twice as long.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest pause that is not the host's own wish.
const LONGEST: Duration = Duration::from_secs(1);

/// After so long without a refusal, there is no rate any more.
const FORGOTTEN: Duration = Duration::from_secs(30);

/// By so much a turn that came too late lets the next ones come earlier.
const SLACK: Duration = Duration::from_millis(10);

const SECOND: Duration = Duration::from_secs(1);

/// The rate of one host.
#[derive(Debug)]
pub(super) struct Rate {
    /// Requests a second that the user allows.
    most: Option<f64>,
    /// Requests a second that the host seems to take.
    seems: Option<Seeming>,
    /// When the next turn is.
    next: Instant,
    /// Nothing is sent before.
    quiet: Instant,
    /// The last pause, if nothing was taken since.
    pause: Duration,
    /// When it was last refused what was sent after the refusal before.
    refused: Option<Instant>,
    /// Whether anything was taken since.
    has_taken: bool,
    this: Counts,
    last: Counts,
}

/// A rate that grows.
#[derive(Debug, Clone, Copy)]
struct Seeming {
    rate: f64,
    /// By so much each second.
    growth: f64,
    since: Instant,
}

/// What went on in a second.
#[derive(Debug, Clone, Copy)]
struct Counts {
    since: Instant,
    sent: u32,
    taken: u32,
}

impl Counts {
    fn from(since: Instant) -> Self {
        Counts {
            since,
            sent: 0,
            taken: 0,
        }
    }
}

impl Rate {
    pub(super) fn new(most: Option<usize>, now: Instant) -> Self {
        let most = most.and_then(|most| u32::try_from(most).ok());
        Rate {
            most: most.map(f64::from),
            seems: None,
            next: now,
            quiet: now,
            pause: Duration::ZERO,
            refused: None,
            has_taken: false,
            this: Counts::from(now),
            last: Counts::from(now),
        }
    }

    /// How long it is until the next turn.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.next.max(self.quiet).saturating_duration_since(now)
    }

    /// A turn is taken.
    pub(super) fn take(&mut self, now: Instant) {
        self.count(now);
        self.this.sent += 1;
        if let Some(rate) = self.current(now) {
            let due = self.next.max(now.checked_sub(SLACK).unwrap_or(now));
            self.next = due + Duration::from_secs_f64(rate.recip());
        }
    }

    /// What was sent at `sent` has been taken.
    pub(super) fn taken(&mut self, sent: Instant) {
        self.this.taken += 1;
        if self.refused.is_none_or(|refused| sent > refused) {
            self.has_taken = true;
            self.pause = Duration::ZERO;
        }
    }

    /// What was sent at `sent` has been refused, and nothing is to be sent for the time that the
    /// host may `wish`.
    pub(super) fn refused(&mut self, sent: Instant, now: Instant, wish: Option<Duration>) {
        self.count(now);
        if let Some(wish) = wish {
            self.quiet = self.quiet.max(now + wish);
        }
        // What was on its way by then tells nothing new.
        if self.refused.is_some_and(|refused| sent <= refused) {
            return;
        }
        self.pause = (self.pause * 2).clamp(PAUSE, LONGEST);
        self.quiet = self.quiet.max(now + self.pause);
        self.lessen(now);
        self.refused = Some(now);
        self.has_taken = false;
    }

    fn lessen(&mut self, now: Instant) {
        let sent = self.this.sent.max(self.last.sent);
        let taken = f64::from(self.this.taken.max(self.last.taken));
        let rate = match self.current_seeming(now) {
            Some(rate) if self.has_taken => rate.min(taken.max(LEAST)),
            // While it takes nothing at all, a smaller rate is of no use.
            Some(rate) => rate / LESS,
            None if sent >= MANY => taken.max(f64::from(MANY)),
            None => return,
        };
        self.seems = Some(Seeming {
            rate: (rate * LESS).max(LEAST),
            growth: (rate * MORE).max(LEAST),
            since: self.quiet,
        });
    }

    /// Requests a second, where there is a bound.
    fn current(&self, now: Instant) -> Option<f64> {
        match (self.most, self.current_seeming(now)) {
            (Some(most), Some(seeming)) => Some(most.min(seeming)),
            (most, seeming) => most.or(seeming),
        }
    }

    fn current_seeming(&self, now: Instant) -> Option<f64> {
        let seems = self.seems?;
        let time = now.saturating_duration_since(seems.since);
        (time < FORGOTTEN).then_some(seems.rate + seems.growth * time.as_secs_f64())
    }

    /// Begins another second where one is over.
    fn count(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.this.since);
        if age < SECOND {
            return;
        }
        self.last = if age < 2 * SECOND {
            self.this
        } else {
            Counts::from(now)
        };
        self.this = Counts::from(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host that takes so many requests in each second, and refuses others, seen by a number of
    /// connections, each with one request at a time that takes `latency`.
    fn simulated(limit: u32, connections: usize, latency: Duration, seconds: u64) -> (u32, u32) {
        let begun = Instant::now();
        let mut rate = Rate::new(None, begun);
        let mut now = begun;
        let (mut taken, mut refused) = (0, 0);
        // When each answer comes, when its request was sent, and whether it was taken.
        let mut under_way: Vec<(Instant, Instant, bool)> = Vec::new();
        let (mut second, mut in_second) = (0, 0);
        let step = Duration::from_micros(500);
        while now < begun + Duration::from_secs(seconds) {
            under_way.retain(|(comes, sent, is_taken)| {
                if *comes > now {
                    return true;
                }
                match is_taken {
                    true => rate.taken(*sent),
                    false => rate.refused(*sent, now, None),
                }
                false
            });
            while under_way.len() < connections && rate.wait(now).is_zero() {
                rate.take(now);
                let this = (now - begun).as_secs();
                if this > second {
                    (second, in_second) = (this, 0);
                }
                in_second += 1;
                let is_taken = in_second <= limit;
                if is_taken {
                    taken += 1;
                } else {
                    refused += 1;
                }
                under_way.push((now + latency, now, is_taken));
            }
            now += step;
        }
        (taken, refused)
    }

    #[test]
    fn a_host_is_asked_for_about_what_it_takes() {
        for (limit, latency) in [(100, 1), (100, 30), (50, 10), (1000, 10)] {
            let (taken, refused) = simulated(limit, 64, Duration::from_millis(latency), 60);
            let told = format!("{limit}/s, {latency} ms: {taken} taken, {refused} refused");
            assert!(refused * 20 <= taken + refused, "{told}");
            assert!(taken >= limit * 60 / 3 * 2, "{told}");
        }
    }

    #[test]
    fn a_rate_that_the_user_sets_is_kept() {
        let begun = Instant::now();
        let mut rate = Rate::new(Some(50), begun);
        let mut sent = Vec::new();
        let mut now = begun;
        while sent.len() < 500 {
            now += rate.wait(now) + Duration::from_micros(300);
            if rate.wait(now).is_zero() {
                rate.take(now);
                sent.push(now);
            }
        }
        for first in &sent {
            let second = sent
                .iter()
                .filter(|at| (*first..*first + SECOND).contains(*at));
            assert!(second.count() <= 51);
        }
        assert!(
            now - begun <= Duration::from_millis(10_200),
            "{:?}",
            now - begun
        );
    }

    #[test]
    fn nothing_is_sent_while_the_host_wishes_so() {
        let begun = Instant::now();
        let mut rate = Rate::new(None, begun);
        rate.take(begun);
        let wish = Duration::from_secs(7);
        rate.refused(begun, begun, Some(wish));
        assert_eq!(rate.wait(begun), wish);
        // Few were sent: it has no rate afterwards.
        let after = begun + wish;
        assert_eq!(rate.wait(after), Duration::ZERO);
        for _ in 0..100 {
            rate.take(after);
        }
        assert_eq!(rate.wait(after), Duration::ZERO);
    }

    /// Nothing is taken for a minute: the pauses grow up to their bound, and the rate stays.
    #[test]
    fn an_outage_leaves_the_rate() {
        let begun = Instant::now();
        let mut rate = Rate::new(None, begun);
        for _ in 0..200 {
            rate.take(begun);
        }
        for _ in 0..100 {
            rate.taken(begun);
        }
        let mut now = begun + PAUSE;
        rate.refused(begun, now, None);
        for _ in 0..60 {
            assert!(rate.wait(now) <= LONGEST);
            now += rate.wait(now);
            rate.take(now);
            now += Duration::from_millis(10);
            rate.refused(now - Duration::from_millis(10), now, None);
        }
        let current = rate.current(now).unwrap();
        assert!((60.0..110.0).contains(&current), "{current}");
        let later = now + FORGOTTEN + LONGEST;
        assert_eq!(rate.current(later), None);
    }
}
