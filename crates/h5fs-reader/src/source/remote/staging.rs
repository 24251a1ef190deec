//! A remote object in the state in which it was opened, with its region in the stage (the file in
//! memory that the fetcher writes).

use std::ops::Range;
use std::sync::Arc;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::memory::lock::lock;
use crate::source::identity::{Identity, ObjectIdentity};
use crate::source::open::OpenedState;
use crate::source::remote::segment::PAGE;
use crate::source::remote::state::ObjectState;
use crate::wire::{Count, Extent};

/// A remote object in the state in which it was opened, with its region in the stage.
#[derive(Debug)]
pub(super) struct StagedObject {
    /// Number by which the fetcher identifies the object.
    pub(super) number: u32,
    /// Offset in the stage of the object's first byte, a multiple of the page size.
    pub(super) region: u64,
    object: Arc<ObjectIdentity>,
    identity: Identity,
    /// The error for later reads, set once the object was found to be replaced or deleted.
    end_reason: OnceLock<Error>,
    checks: Mutex<StateChecks>,
}

/// Results of the checks of an object's state.
#[derive(Debug)]
struct StateChecks {
    /// Time when the state was last confirmed or the last check ended.
    last: Instant,
    /// Start time of the check in progress.
    check_start: Option<Instant>,
    /// Duration of the last conclusive check.
    last_check_duration: Duration,
    /// Whether the last check was inconclusive.
    is_inconclusive: bool,
}

/// Minimum interval between checks of an object whose responses do not identify its state, because
/// they have neither an entity tag nor a date.
const SAMPLED_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// A check of an object whose responses do not identify its state downloads bytes. After each
/// check, the pause is at least this many times the duration of the check.
const CHECK_PAUSE_FACTOR: u32 = 10;

impl StagedObject {
    pub(super) fn new(number: u32, region: u64, name: &[u8], state: ObjectState) -> Self {
        let name = name.to_vec();
        let object = Arc::new(ObjectIdentity { name, state });
        StagedObject {
            number,
            region,
            identity: Identity::Object(Arc::clone(&object)),
            object,
            end_reason: OnceLock::new(),
            checks: Mutex::new(StateChecks {
                last: Instant::now(),
                check_start: None,
                last_check_duration: Duration::ZERO,
                is_inconclusive: false,
            }),
        }
    }

    /// Returns the range of the numbers of all pages of the object.
    pub(super) fn pages(&self) -> Range<u64> {
        self.pages_of(0, self.state().length)
    }

    /// Returns the numbers of the pages that contain `length` bytes of the object from `offset`.
    pub(super) fn pages_of(&self, offset: u64, length: u64) -> Range<u64> {
        let whole = Extent::saturating(self.region, self.state().length);
        let bytes = whole.skip(offset).first(length);
        if bytes.is_empty() {
            return 0..0;
        }
        bytes.start() / PAGE..bytes.end().div_ceil(PAGE)
    }

    /// Returns the range of the object's bytes that these pages contain.
    pub(super) fn bytes_of(&self, pages: &Range<u64>) -> Range<u64> {
        let offset = |page: u64| page.times(PAGE).minus_or_zero(self.region);
        offset(pages.start)..offset(pages.end).min(self.state().length)
    }

    /// Returns the state of the object when it was opened, from the server's response.
    pub(super) fn state(&self) -> &ObjectState {
        &self.object.state
    }

    /// Returns whether this is the object of the source's own URL.
    pub(super) fn is_url_object(&self) -> bool {
        self.object.name.is_empty()
    }

    /// Records that the object has left this state for good, for the reason `why`.
    pub(super) fn end_state(&self, why: Error) {
        let _known = self.end_reason.set(why);
    }

    /// Returns the error for later reads if the object was found to be replaced or deleted.
    pub(super) fn end_reason(&self) -> Option<&Error> {
        self.end_reason.get()
    }

    /// Records that a response contained bytes of the object. If responses identify the state, this
    /// confirms the state.
    pub(super) fn confirm(&self) {
        if !self.state().is_sampled() {
            let mut seen = lock(&self.checks);
            seen.last = Instant::now();
            seen.is_inconclusive = false;
        }
    }

    /// Records the end of a check: the state is confirmed, the state has ended with an error, or
    /// the check was inconclusive (`None`).
    pub(super) fn record_check(&self, told: Option<Result<()>>) {
        let mut seen = lock(&self.checks);
        seen.last = Instant::now();
        let took = seen.check_start.take().map(|began| began.elapsed());
        seen.is_inconclusive = told.is_none();
        match told {
            Some(Ok(())) => seen.last_check_duration = took.unwrap_or_default(),
            Some(Err(why)) => self.end_state(why),
            None => {}
        }
    }

    /// Returns whether the state was confirmed within the time `valid`. Always false for an object
    /// whose responses do not identify its state.
    pub(super) fn is_fresh(&self, valid: Duration) -> bool {
        let seen = lock(&self.checks);
        let is_told = !self.state().is_sampled() && !seen.is_inconclusive;
        is_told && !OpenedState::has_ended(self) && seen.last.elapsed() < valid
    }

    /// Returns whether a check is in progress.
    pub(super) fn is_being_checked(&self) -> bool {
        lock(&self.checks).check_start.is_some()
    }

    /// Returns whether a check is due: the last confirmation is older than `valid`, and no check is
    /// in progress. If so, records the start of a check.
    pub(super) fn begin_check_if_due(&self, valid: Duration) -> bool {
        let mut seen = lock(&self.checks);
        let valid = if self.state().is_sampled() {
            seen.last_check_duration
                .saturating_mul(CHECK_PAUSE_FACTOR)
                .max(SAMPLED_CHECK_INTERVAL)
        } else {
            valid
        };
        let is_due = !OpenedState::has_ended(self)
            && seen.check_start.is_none()
            && seen.last.elapsed() >= valid;
        if is_due {
            seen.check_start = Some(Instant::now());
        }
        is_due
    }
}

impl OpenedState for StagedObject {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns true, because an object is never modified in place: a new object replaces it.
    fn has_no_pending_write(&self) -> bool {
        true
    }

    fn has_ended(&self) -> bool {
        self.end_reason.get().is_some()
    }
}

/// Returns the length of a range.
pub(super) fn length(range: &Range<u64>) -> u64 {
    range.end.minus_or_zero(range.start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::remote::failure::object_changed_error;
    use std::thread::sleep;

    #[test]
    fn checks_that_download_bytes_are_rare() {
        let mut state = ObjectState::default();
        state.set_sample(b"hash");
        let object = StagedObject::new(0, 0, b"", state);
        let moment = Duration::from_millis(5);
        let await_look = || {
            while !object.begin_check_if_due(Duration::ZERO) {
                sleep(moment);
            }
        };
        await_look();
        sleep(Duration::from_millis(100));
        assert!(
            !object.begin_check_if_due(Duration::ZERO),
            "one is under way"
        );
        object.record_check(Some(Ok(())));
        let ended = Instant::now();
        await_look();
        assert!(ended.elapsed() >= Duration::from_millis(900));
        assert!(!OpenedState::has_ended(&object));
        object.record_check(Some(Err(object_changed_error())));
        assert!(OpenedState::has_ended(&object));
    }
}
