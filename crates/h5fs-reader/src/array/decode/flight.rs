//! Shared decodes: each chunk is decoded once, however many readers wait for it.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::array::cache::ChunkKey;
use crate::error::{Cause, Error, Result};
use crate::memory::cancel::CancelToken;
use crate::memory::lock::{lock, wait_for};

/// Interval at which a waiting reader checks for cancellation.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The decodes in progress, by chunk.
pub(in crate::array) struct RunningDecodes<T> {
    table: Mutex<HashMap<ChunkKey, Arc<RunningDecode<T>>>>,
}

/// One decode in progress.
pub(in crate::array) struct RunningDecode<T> {
    outcome: Mutex<Option<Result<T>>>,
    finished: Condvar,
    /// The tokens of all readers that joined the decode.
    tokens: Mutex<Vec<CancelToken>>,
}

/// The role of a reader that needs a chunk: it uses the finished decode, waits for a running
/// decode, or decodes the chunk itself.
pub(in crate::array) enum DecodeRole<'a, T: Clone> {
    /// The decode is done, because another reader has just finished it.
    Ready(T),
    /// Another reader is decoding the chunk: wait for its outcome.
    Wait(Arc<RunningDecode<T>>),
    /// This reader is the first: it must decode the chunk.
    Leader(DecodeLeader<'a, T>),
}

/// The obligation of the first reader to finish a shared decode. If a `DecodeLeader` is dropped
/// without an outcome, the decode ends with an error.
pub(in crate::array) struct DecodeLeader<'a, T: Clone> {
    flights: &'a RunningDecodes<T>,
    flight: Arc<RunningDecode<T>>,
    key: ChunkKey,
}

impl<T: Clone> RunningDecodes<T> {
    pub(in crate::array) fn new() -> Self {
        RunningDecodes {
            table: Mutex::new(HashMap::new()),
        }
    }

    /// Joins the running decode of the chunk `key`, or begins one. If `ready` returns the outcome
    /// of a decode that has just ended, returns that outcome. The outcome of a decode must be
    /// visible to `ready` before the decode ends.
    pub(in crate::array) fn join_or_begin(
        &self,
        key: ChunkKey,
        token: &CancelToken,
        ready: impl FnOnce() -> Option<T>,
    ) -> DecodeRole<'_, T> {
        let mut table = lock(&self.table);
        if let Some(flight) = table.get(&key) {
            lock(&flight.tokens).push(token.clone());
            return DecodeRole::Wait(Arc::clone(flight));
        }
        if let Some(outcome) = ready() {
            return DecodeRole::Ready(outcome);
        }
        let flight = Arc::new(RunningDecode {
            outcome: Mutex::new(None),
            finished: Condvar::new(),
            tokens: Mutex::new(vec![token.clone()]),
        });
        table.insert(key, Arc::clone(&flight));
        DecodeRole::Leader(DecodeLeader {
            flights: self,
            flight,
            key,
        })
    }

    /// Returns whether a decode of the chunk `key` is in progress.
    pub(in crate::array) fn contains(&self, key: ChunkKey) -> bool {
        lock(&self.table).contains_key(&key)
    }
}

impl<T: Clone> RunningDecode<T> {
    /// Waits for the outcome of the decode.
    ///
    /// # Errors
    /// Fails with the error of the outcome, or with [`Error::cancelled`] once this reader is
    /// cancelled.
    pub(in crate::array) fn wait(&self, cancel: &CancelToken) -> Result<T> {
        let mut outcome = lock(&self.outcome);
        loop {
            if let Some(outcome) = &*outcome {
                return outcome.clone();
            }
            cancel.check_cancelled()?;
            outcome = wait_for(&self.finished, outcome, CANCEL_CHECK_INTERVAL);
        }
    }

    /// Returns whether a reader still waits for the decode. Drops cancelled tokens.
    fn is_wanted(&self) -> bool {
        let mut tokens = lock(&self.tokens);
        tokens.retain(|token| !token.is_cancelled());
        !tokens.is_empty()
    }
}

impl<T: Clone> DecodeLeader<'_, T> {
    /// Returns whether a reader still waits for the decode.
    pub(in crate::array) fn is_wanted(&self) -> bool {
        self.flight.is_wanted()
    }

    /// Hands `outcome` to all waiting readers.
    pub(in crate::array) fn finish(self, outcome: Result<T>) {
        *lock(&self.flight.outcome) = Some(outcome);
    }
}

impl<T: Clone> Drop for DecodeLeader<'_, T> {
    fn drop(&mut self) {
        lock(&self.flights.table).remove(&self.key);
        lock(&self.flight.outcome).get_or_insert_with(|| {
            Err(Error::from_cause(
                Cause::Unavailable,
                "decoding a chunk stopped",
            ))
        });
        self.flight.finished.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::cancel::Canceller;

    #[test]
    fn later_readers_wait_for_the_first() {
        let flights = RunningDecodes::<u32>::new();
        let DecodeRole::Leader(lead) =
            flights.join_or_begin((0, 0), &CancelToken::default(), || None)
        else {
            panic!("nobody was there before");
        };
        std::thread::scope(|scope| {
            let waiters: Vec<_> = (0..4)
                .map(|_| {
                    let DecodeRole::Wait(flight) =
                        flights.join_or_begin((0, 0), &CancelToken::default(), || None)
                    else {
                        panic!("a flight is under way");
                    };
                    scope.spawn(move || flight.wait(&CancelToken::default()))
                })
                .collect();
            lead.finish(Ok(7));
            for waiter in waiters {
                assert_eq!(waiter.join().unwrap(), Ok(7));
            }
        });
        assert!(!flights.contains((0, 0)));
    }

    #[test]
    fn a_panic_of_the_first_wakes_the_others() {
        let flights = RunningDecodes::<u32>::new();
        let DecodeRole::Leader(lead) =
            flights.join_or_begin((0, 0), &CancelToken::default(), || None)
        else {
            panic!("nobody was there before");
        };
        let DecodeRole::Wait(flight) =
            flights.join_or_begin((0, 0), &CancelToken::default(), || None)
        else {
            panic!("a flight is under way");
        };
        let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let _lead = lead;
            panic!("as a codec might");
        }));
        assert!(broken.is_err());
        assert!(flight.wait(&CancelToken::default()).is_err());
        assert!(matches!(
            flights.join_or_begin((0, 0), &CancelToken::default(), || None),
            DecodeRole::Leader(_)
        ));
    }

    #[test]
    fn a_decode_is_wanted_until_all_readers_cancel() {
        let flights = RunningDecodes::<u32>::new();
        let (first, second) = (Canceller::default(), Canceller::default());
        let DecodeRole::Leader(lead) = flights.join_or_begin((0, 0), &first.token(), || None)
        else {
            panic!("nobody was there before");
        };
        let DecodeRole::Wait(_) = flights.join_or_begin((0, 0), &second.token(), || None) else {
            panic!("a flight is under way");
        };
        first.cancel();
        assert!(lead.is_wanted());
        drop(second);
        assert!(!lead.is_wanted());
        let DecodeRole::Wait(_) = flights.join_or_begin((0, 0), &CancelToken::default(), || None)
        else {
            panic!("it has not landed yet");
        };
        assert!(lead.is_wanted());
    }
}
