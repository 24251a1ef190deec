//! Turns: how many requests a second a host is sent, by all connections together.
//!
//! No more than the user allows; and once a host has refused some, as many as it seems to take, see
//! [`Rate`]. A request that a reader waits for goes before one that is only expected; among equals
//! the first goes first.

mod rate;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use http::Uri;

use crate::cli::fetcher::hosts;
use crate::cli::fetcher::patience::{Allowed, End};
use crate::limits;
use crate::memory::lock::lock;
use rate::Rate;

/// How often a request that waits looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// The turns of all hosts.
#[derive(Debug)]
pub(super) struct Turns {
    /// Requests a second to each host, if the user has set a bound.
    most: Option<usize>,
    hosts: Mutex<HashMap<(String, u16), Arc<Host>>>,
}

/// The turns of one host.
#[derive(Debug)]
struct Host(Mutex<State>);

#[derive(Debug)]
struct State {
    rate: Rate,
    /// The threads that wait, in the order of their turns.
    waiting: BTreeMap<Place, Thread>,
    last: u64,
}

/// Whether a request is only expected, and its number.
type Place = (bool, u64);

/// A turn that was taken: the host is to say how it went.
#[derive(Debug)]
pub(super) struct Turn {
    host: Arc<Host>,
    since: Instant,
}

impl Turns {
    pub(super) fn new(most: Option<usize>) -> Self {
        Turns {
            most,
            hosts: Mutex::default(),
        }
    }

    /// Waits for the turn of a request to the host of `uri`.
    ///
    /// # Errors
    /// Fails if the time that is allowed ends before, or nobody waits for the request any more.
    pub(super) fn take(&self, uri: &Uri, allowed: &Allowed<'_>) -> Result<Turn, End> {
        let host = self.host(uri);
        let since = host.take(allowed)?;
        Ok(Turn { host, since })
    }

    fn host(&self, uri: &Uri) -> Arc<Host> {
        let name = uri.host().unwrap_or_default().to_ascii_lowercase();
        let mut all = lock(&self.hosts);
        // Hosts that servers name are as many as they like. Those in use stay.
        if all.len() >= limits::HOSTS {
            all.retain(|_, host| Arc::strong_count(host) > 1);
        }
        let host = all.entry((name, hosts::port(uri)));
        Arc::clone(host.or_insert_with(|| Arc::new(Host::new(self.most))))
    }
}

impl Host {
    fn new(most: Option<usize>) -> Self {
        Host(Mutex::new(State {
            rate: Rate::new(most, Instant::now()),
            waiting: BTreeMap::new(),
            last: 0,
        }))
    }

    /// Waits for a turn: when it has come.
    fn take(&self, allowed: &Allowed<'_>) -> Result<Instant, End> {
        let mut state = lock(&self.0);
        state.last += 1;
        let place = (allowed.is_expected, state.last);
        state.waiting.insert(place, thread::current());
        loop {
            let now = Instant::now();
            let is_first = state.is_first(place);
            let wait = state.rate.wait(now);
            if is_first && wait.is_zero() {
                state.rate.take(now);
                state.leave(place);
                return Ok(now);
            }
            if let Err(end) = allowed.goes_on() {
                state.leave(place);
                return Err(end);
            }
            drop(state);
            let step = if is_first { wait.min(LOOK) } else { LOOK };
            thread::park_timeout(step.min(allowed.left()));
            state = lock(&self.0);
        }
    }
}

impl State {
    fn is_first(&self, place: Place) -> bool {
        self.waiting
            .first_key_value()
            .is_some_and(|(first, _)| *first == place)
    }

    /// Whoever is the first now looks when its turn is.
    fn leave(&mut self, place: Place) {
        self.waiting.remove(&place);
        if let Some((_, next)) = self.waiting.first_key_value() {
            next.unpark();
        }
    }
}

impl Turn {
    /// The host has taken the request, whatever it has answered.
    pub(super) fn is_taken(&self) {
        lock(&self.host.0).rate.taken(self.since);
    }

    /// The host asks for fewer requests, and for none in this time if it `wishes` so.
    pub(super) fn is_refused(&self, wish: Option<Duration>) {
        let now = Instant::now();
        lock(&self.host.0).rate.refused(self.since, now, wish);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::cli::fetcher::patience::Patience;

    const LONG: Duration = Duration::from_secs(60);

    fn uri() -> Uri {
        "http://host/a".parse().unwrap()
    }

    /// The reader's request comes later, and goes first.
    #[test]
    fn a_request_that_a_reader_waits_for_goes_first() {
        let turns = Turns::new(Some(1));
        let nobody = AtomicBool::new(false);
        let order = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for (name, is_expected) in [(0, false), (1, true), (2, true), (3, false)] {
                let (turns, nobody, order) = (&turns, &nobody, &order);
                scope.spawn(move || {
                    let patience = Patience::new(LONG, nobody).of_guess(is_expected);
                    turns.take(&uri(), &patience.within(LONG)).unwrap();
                    lock(order).push(name);
                });
                // The next one is later.
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
    fn a_request_that_nobody_waits_for_waits_no_longer() {
        let turns = Turns::new(Some(1));
        let cancelled = AtomicBool::new(false);
        let patience = Patience::new(LONG, &cancelled);
        turns.take(&uri(), &patience.within(LONG)).unwrap();
        let short = Duration::from_millis(50);
        let ended = turns.take(&uri(), &patience.within(short));
        assert_eq!(ended.unwrap_err(), End::TimedOut);
        cancelled.store(true, Ordering::Relaxed);
        let ended = turns.take(&uri(), &patience.within(LONG));
        assert_eq!(ended.unwrap_err(), End::Cancelled);
        // Another host has turns of its own.
        let other = "http://host:81/a".parse().unwrap();
        assert!(turns.take(&other, &patience.within(LONG)).is_ok());
        assert!(lock(&turns.host(&uri()).0).waiting.is_empty());
    }

    #[test]
    fn hosts_are_known_within_the_limit() {
        let turns = Turns::new(None);
        let in_use = turns.host(&uri());
        for number in 0..2 * limits::HOSTS {
            turns.host(&format!("http://h{number}/").parse().unwrap());
            assert!(lock(&turns.hosts).len() <= limits::HOSTS);
        }
        assert!(Arc::ptr_eq(&in_use, &turns.host(&uri())));
    }
}
