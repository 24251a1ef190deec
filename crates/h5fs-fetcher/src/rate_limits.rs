//! Rate limits: the number of requests per second to one host, over all connections.
//!
//! The number never exceeds the limit that the user sets. Once a host has refused requests, the
//! rate also adapts to the host; see [`RequestRate`]. Requests that a program waits for are sent before
//! prefetches. Within both groups, the order is first in, first out.

mod rate;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use h5fs_reader::memory::lock::lock;
use http::Uri;

use crate::hosts;
use crate::limits;
use crate::retries::{AbortReason, AttemptLimit};
use rate::RequestRate;

/// Interval at which a waiting request checks whether it was cancelled.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The rate limits of all hosts.
#[derive(Debug)]
pub(super) struct RateLimits {
    /// Maximum number of requests per second to each host, if the user has set one.
    most: Option<usize>,
    hosts: Mutex<HashMap<(String, u16), Arc<HostLimit>>>,
}

/// The rate limit of one host.
#[derive(Debug)]
struct HostLimit(Mutex<HostState>);

#[derive(Debug)]
struct HostState {
    rate: RequestRate,
    /// The threads that wait to send a request, in the order in which they may send it.
    waiting: BTreeMap<QueuePosition, Thread>,
    last: u64,
}

/// The position of a request in the queue: whether it is a prefetch, and its number. The request
/// with the smallest position is sent first.
type QueuePosition = (bool, u64);

/// The permission to send one request to a host. The sender must report whether the host accepted
/// the request.
#[derive(Debug)]
pub(super) struct RequestPermit {
    host: Arc<HostLimit>,
    since: Instant,
}

impl RateLimits {
    pub(super) fn new(most: Option<usize>) -> Self {
        RateLimits {
            most,
            hosts: Mutex::default(),
        }
    }

    /// Waits until a request to the host of `uri` is permitted.
    ///
    /// # Errors
    /// Fails if the time limit elapses first, or if the request is cancelled.
    pub(super) fn wait_for_permit(
        &self,
        uri: &Uri,
        allowed: &AttemptLimit<'_>,
    ) -> Result<RequestPermit, AbortReason> {
        let host = self.host(uri);
        let since = host.wait_for_permit(allowed)?;
        Ok(RequestPermit { host, since })
    }

    fn host(&self, uri: &Uri) -> Arc<HostLimit> {
        let name = uri.host().unwrap_or_default().to_ascii_lowercase();
        let mut all = lock(&self.hosts);
        // Servers can name any number of hosts, so unused hosts are removed.
        if all.len() >= limits::HOSTS {
            all.retain(|_, host| Arc::strong_count(host) > 1);
        }
        let host = all.entry((name, hosts::port(uri)));
        Arc::clone(host.or_insert_with(|| Arc::new(HostLimit::new(self.most))))
    }
}

impl HostLimit {
    fn new(most: Option<usize>) -> Self {
        HostLimit(Mutex::new(HostState {
            rate: RequestRate::new(most, Instant::now()),
            waiting: BTreeMap::new(),
            last: 0,
        }))
    }

    /// Waits until a request to this host is permitted. Returns the time of the permission.
    fn wait_for_permit(&self, allowed: &AttemptLimit<'_>) -> Result<Instant, AbortReason> {
        let mut state = lock(&self.0);
        state.last += 1;
        let place = (allowed.is_prefetch, state.last);
        state.waiting.insert(place, thread::current());
        loop {
            let now = Instant::now();
            let is_first = state.is_first(place);
            let wait = state.rate.time_until_permitted(now);
            if is_first && wait.is_zero() {
                state.rate.count_sent(now);
                state.wake_first(place);
                return Ok(now);
            }
            if let Err(end) = allowed.check() {
                state.wake_first(place);
                return Err(end);
            }
            drop(state);
            let step = if is_first {
                wait.min(CANCEL_CHECK_INTERVAL)
            } else {
                CANCEL_CHECK_INTERVAL
            };
            thread::park_timeout(step.min(allowed.remaining()));
            state = lock(&self.0);
        }
    }
}

impl HostState {
    fn is_first(&self, place: QueuePosition) -> bool {
        self.waiting
            .first_key_value()
            .is_some_and(|(first, _)| *first == place)
    }

    /// Wakes the thread that is now the first in the queue. `place` is the position of the request
    /// that has left the queue.
    fn wake_first(&mut self, place: QueuePosition) {
        self.waiting.remove(&place);
        if let Some((_, next)) = self.waiting.first_key_value() {
            next.unpark();
        }
    }
}

impl RequestPermit {
    /// Reports that the host accepted the request, whatever the status of the response.
    pub(super) fn report_accepted(&self) {
        lock(&self.host.0).rate.count_accepted(self.since);
    }

    /// Reports that the host refused the request because of too many requests. If the host requests
    /// a pause, no request is sent for the time `wish`.
    pub(super) fn report_refused(&self, wish: Option<Duration>) {
        let now = Instant::now();
        lock(&self.host.0).rate.count_refused(self.since, now, wish);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::retries::RetryBudget;

    const LONG: Duration = Duration::from_secs(60);

    fn uri() -> Uri {
        "http://host/a".parse().unwrap()
    }

    /// A request that a program waits for arrives after a prefetch, but is permitted before it.
    #[test]
    fn needed_requests_precede_prefetches() {
        let turns = RateLimits::new(Some(1));
        let nobody = AtomicBool::new(false);
        let order = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for (name, is_expected) in [(0, false), (1, true), (2, true), (3, false)] {
                let (turns, nobody, order) = (&turns, &nobody, &order);
                scope.spawn(move || {
                    let patience = RetryBudget::new(LONG, nobody).with_prefetch(is_expected);
                    turns
                        .wait_for_permit(&uri(), &patience.attempt_limit(LONG))
                        .unwrap();
                    lock(order).push(name);
                });
                // Ensures that the next request arrives later.
                let host = turns.host(&uri());
                let end = Instant::now() + LONG;
                while lock(&host.0).last <= name && Instant::now() < end {
                    thread::yield_now();
                }
            }
        });
        assert_eq!(*lock(&order), [0, 3, 1, 2]);
    }

    #[test]
    fn a_cancelled_request_stops_waiting() {
        let turns = RateLimits::new(Some(1));
        let cancelled = AtomicBool::new(false);
        let patience = RetryBudget::new(LONG, &cancelled);
        turns
            .wait_for_permit(&uri(), &patience.attempt_limit(LONG))
            .unwrap();
        let short = Duration::from_millis(50);
        let ended = turns.wait_for_permit(&uri(), &patience.attempt_limit(short));
        assert_eq!(ended.unwrap_err(), AbortReason::TimedOut);
        cancelled.store(true, Ordering::Relaxed);
        let ended = turns.wait_for_permit(&uri(), &patience.attempt_limit(LONG));
        assert_eq!(ended.unwrap_err(), AbortReason::Cancelled);
        // Another host has its own rate limit.
        let other = "http://host:81/a".parse().unwrap();
        assert!(
            turns
                .wait_for_permit(&other, &patience.attempt_limit(LONG))
                .is_ok()
        );
        assert!(lock(&turns.host(&uri()).0).waiting.is_empty());
    }

    #[test]
    fn the_number_of_remembered_hosts_is_limited() {
        let turns = RateLimits::new(None);
        let in_use = turns.host(&uri());
        for number in 0..2 * limits::HOSTS {
            turns.host(&format!("http://h{number}/").parse().unwrap());
            assert!(lock(&turns.hosts).len() <= limits::HOSTS);
        }
        assert!(Arc::ptr_eq(&in_use, &turns.host(&uri())));
    }
}
