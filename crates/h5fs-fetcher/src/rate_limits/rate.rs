//! The rate of requests to one host.
//!
//! The rate is unbounded until the host refuses a request (429, 503). Then requests pause briefly.
//! Afterwards the rate is 70 % of the number of requests per second that the host accepted. The
//! rate grows by 10 % of that number each second, until the next refusal. The method is additive
//! increase, multiplicative decrease, as in TCP (RFC 5681, section 3.1). After some time without a
//! refusal, the rate is unbounded again.

use std::time::{Duration, Instant};

/// Share of the accepted requests per second that remains after a refusal.
const DECREASE_FACTOR: f64 = 0.7;

/// Growth of the rate in each second, as a fraction of the rate that the host accepted.
const INCREASE_FRACTION: f64 = 0.1;

/// Minimum rate in requests per second.
const MIN_RATE: f64 = 1.0;

/// Minimum number of requests in a second for a refusal to reduce the rate. A host that refuses one
/// of fewer requests has another problem, so requests only pause.
const MIN_REQUESTS_TO_REDUCE: u32 = 10;

/// Pause after the first refusal. Each successive refusal doubles the pause.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause, except for a pause that the host requests.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Time without a refusal after which the rate is unbounded again.
const ESTIMATE_LIFETIME: Duration = Duration::from_secs(30);

/// If a request is sent late, the next one may be sent earlier by the same time, but at most by
/// this duration. Short delays thus do not lower the rate.
const SLACK: Duration = Duration::from_millis(10);

const SECOND: Duration = Duration::from_secs(1);

/// The request rate of one host.
#[derive(Debug)]
pub(super) struct RequestRate {
    /// Maximum number of requests per second that the user permits.
    most: Option<f64>,
    /// Estimated number of requests per second that the host accepts.
    estimate: Option<EstimatedRate>,
    /// Time of the next permitted request.
    next_permitted: Instant,
    /// End of the current pause. No request is permitted before this time.
    pause_end: Instant,
    /// Length of the last pause. Zero if the host has accepted a request since that pause.
    pause: Duration,
    /// Time of the last refusal. Refusals of requests that were sent before the previous refusal do
    /// not count.
    last_refusal: Option<Instant>,
    /// Whether the host has accepted any request since the last refusal.
    has_accepted: bool,
    this_second: RequestCounts,
    last_second: RequestCounts,
}

/// An estimated rate that grows over time.
#[derive(Debug, Clone, Copy)]
struct EstimatedRate {
    rate: f64,
    /// Increase of the rate per second.
    growth: f64,
    since: Instant,
}

/// The number of requests that were sent and accepted during one second.
#[derive(Debug, Clone, Copy)]
struct RequestCounts {
    since: Instant,
    sent: u32,
    accepted: u32,
}

impl RequestCounts {
    fn new(since: Instant) -> Self {
        RequestCounts {
            since,
            sent: 0,
            accepted: 0,
        }
    }
}

impl RequestRate {
    pub(super) fn new(most: Option<usize>, now: Instant) -> Self {
        let most = most.and_then(|most| u32::try_from(most).ok());
        RequestRate {
            most: most.map(f64::from),
            estimate: None,
            next_permitted: now,
            pause_end: now,
            pause: Duration::ZERO,
            last_refusal: None,
            has_accepted: false,
            this_second: RequestCounts::new(now),
            last_second: RequestCounts::new(now),
        }
    }

    /// Returns the time until the next request is permitted. Zero if it is permitted now.
    pub(super) fn time_until_permitted(&self, now: Instant) -> Duration {
        self.next_permitted
            .max(self.pause_end)
            .saturating_duration_since(now)
    }

    /// Counts a request that is being sent.
    pub(super) fn count_sent(&mut self, now: Instant) {
        self.advance_second(now);
        self.this_second.sent += 1;
        if let Some(rate) = self.current_limit(now) {
            let due = self
                .next_permitted
                .max(now.checked_sub(SLACK).unwrap_or(now));
            self.next_permitted = due + Duration::from_secs_f64(rate.recip());
        }
    }

    /// Records that the host accepted the request that was sent at `sent`.
    pub(super) fn count_accepted(&mut self, sent: Instant) {
        self.this_second.accepted += 1;
        if self.last_refusal.is_none_or(|refused| sent > refused) {
            self.has_accepted = true;
            self.pause = Duration::ZERO;
        }
    }

    /// Records that the host refused the request that was sent at `sent`. If the host requests a
    /// pause, no request is permitted for the time `wish`.
    pub(super) fn count_refused(&mut self, sent: Instant, now: Instant, wish: Option<Duration>) {
        self.advance_second(now);
        if let Some(wish) = wish {
            self.pause_end = self.pause_end.max(now + wish);
        }
        // A request that was already in transit at the last refusal is not a new sign of overload.
        if self.last_refusal.is_some_and(|refused| sent <= refused) {
            return;
        }
        self.pause = (self.pause * 2).clamp(FIRST_PAUSE, MAX_PAUSE);
        self.pause_end = self.pause_end.max(now + self.pause);
        self.reduce_rate(now);
        self.last_refusal = Some(now);
        self.has_accepted = false;
    }

    fn reduce_rate(&mut self, now: Instant) {
        let sent = self.this_second.sent.max(self.last_second.sent);
        let taken = f64::from(self.this_second.accepted.max(self.last_second.accepted));
        let rate = match self.current_estimate(now) {
            Some(rate) if self.has_accepted => rate.min(taken.max(MIN_RATE)),
            // While the host accepts no request at all, the rate stays unchanged.
            Some(rate) => rate / DECREASE_FACTOR,
            None if sent >= MIN_REQUESTS_TO_REDUCE => taken.max(f64::from(MIN_REQUESTS_TO_REDUCE)),
            None => return,
        };
        self.estimate = Some(EstimatedRate {
            rate: (rate * DECREASE_FACTOR).max(MIN_RATE),
            growth: (rate * INCREASE_FRACTION).max(MIN_RATE),
            since: self.pause_end,
        });
    }

    /// Returns the number of requests per second that are permitted now. Returns `None` if the rate
    /// is unbounded.
    fn current_limit(&self, now: Instant) -> Option<f64> {
        match (self.most, self.current_estimate(now)) {
            (Some(most), Some(seeming)) => Some(most.min(seeming)),
            (most, seeming) => most.or(seeming),
        }
    }

    fn current_estimate(&self, now: Instant) -> Option<f64> {
        let seems = self.estimate?;
        let time = now.saturating_duration_since(seems.since);
        (time < ESTIMATE_LIFETIME).then_some(seems.rate + seems.growth * time.as_secs_f64())
    }

    /// Starts counting the requests of a new second if the counted second has elapsed.
    fn advance_second(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.this_second.since);
        if age < SECOND {
            return;
        }
        self.last_second = if age < 2 * SECOND {
            self.this_second
        } else {
            RequestCounts::new(now)
        };
        self.this_second = RequestCounts::new(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a host that accepts `limit` requests in each second and refuses others. Each of a
    /// number of connections sends one request at a time, which takes `latency`. Returns the
    /// numbers of accepted and refused requests.
    fn simulate(limit: u32, connections: usize, latency: Duration, seconds: u64) -> (u32, u32) {
        let begun = Instant::now();
        let mut rate = RequestRate::new(None, begun);
        let mut now = begun;
        let (mut taken, mut refused) = (0, 0);
        // Time of the response, time of the request, and whether the request is accepted.
        let mut under_way: Vec<(Instant, Instant, bool)> = Vec::new();
        let (mut second, mut in_second) = (0, 0);
        let step = Duration::from_micros(500);
        while now < begun + Duration::from_secs(seconds) {
            under_way.retain(|(comes, sent, is_taken)| {
                if *comes > now {
                    return true;
                }
                match is_taken {
                    true => rate.count_accepted(*sent),
                    false => rate.count_refused(*sent, now, None),
                }
                false
            });
            while under_way.len() < connections && rate.time_until_permitted(now).is_zero() {
                rate.count_sent(now);
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
    fn the_rate_adapts_to_the_limit_of_the_host() {
        for (limit, latency) in [(100, 1), (100, 30), (50, 10), (1000, 10)] {
            let (taken, refused) = simulate(limit, 64, Duration::from_millis(latency), 60);
            let told = format!("{limit}/s, {latency} ms: {taken} taken, {refused} refused");
            assert!(refused * 20 <= taken + refused, "{told}");
            assert!(taken >= limit * 60 / 3 * 2, "{told}");
        }
    }

    #[test]
    fn the_rate_of_the_user_is_not_exceeded() {
        let begun = Instant::now();
        let mut rate = RequestRate::new(Some(50), begun);
        let mut sent = Vec::new();
        let mut now = begun;
        while sent.len() < 500 {
            now += rate.time_until_permitted(now) + Duration::from_micros(300);
            if rate.time_until_permitted(now).is_zero() {
                rate.count_sent(now);
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
    fn no_request_is_sent_during_a_requested_pause() {
        let begun = Instant::now();
        let mut rate = RequestRate::new(None, begun);
        rate.count_sent(begun);
        let wish = Duration::from_secs(7);
        rate.count_refused(begun, begun, Some(wish));
        assert_eq!(rate.time_until_permitted(begun), wish);
        // Few requests were sent, so the rate is not limited afterwards.
        let after = begun + wish;
        assert_eq!(rate.time_until_permitted(after), Duration::ZERO);
        for _ in 0..100 {
            rate.count_sent(after);
        }
        assert_eq!(rate.time_until_permitted(after), Duration::ZERO);
    }

    /// No request is accepted for a minute. The pauses grow up to their limit, and the rate stays.
    #[test]
    fn an_outage_does_not_reduce_the_rate() {
        let begun = Instant::now();
        let mut rate = RequestRate::new(None, begun);
        for _ in 0..200 {
            rate.count_sent(begun);
        }
        for _ in 0..100 {
            rate.count_accepted(begun);
        }
        let mut now = begun + FIRST_PAUSE;
        rate.count_refused(begun, now, None);
        for _ in 0..60 {
            assert!(rate.time_until_permitted(now) <= MAX_PAUSE);
            now += rate.time_until_permitted(now);
            rate.count_sent(now);
            now += Duration::from_millis(10);
            rate.count_refused(now - Duration::from_millis(10), now, None);
        }
        let current = rate.current_limit(now).unwrap();
        assert!((60.0..110.0).contains(&current), "{current}");
        let later = now + ESTIMATE_LIFETIME + MAX_PAUSE;
        assert_eq!(rate.current_limit(later), None);
    }
}
