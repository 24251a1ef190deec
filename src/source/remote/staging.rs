//! One object in one state: where its bytes stand in the stage, and whether that state is over.

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

/// One object in the state in which it was opened.
#[derive(Debug)]
pub(super) struct Staging {
    /// Its number at the fetcher.
    pub(super) number: u32,
    /// Where its first byte stands in the stage: a page begins there.
    pub(super) region: u64,
    object: Arc<ObjectIdentity>,
    identity: Identity,
    /// Why it is no longer in that state.
    over: OnceLock<Error>,
    seen: Mutex<Seen>,
}

/// What is known of an object's state being over or not.
#[derive(Debug)]
struct Seen {
    /// When it was last seen in that state, or the last look ended.
    last: Instant,
    /// When the look began that is under way.
    look: Option<Instant>,
    /// How long the last look took that told something.
    took: Duration,
    /// Whether the last look told nothing.
    is_missed: bool,
}

/// How long an object is taken to be in its state of which no answer tells that.
const SAMPLED: Duration = Duration::from_millis(500);

/// A look at such an object brings bytes: after one, none is begun for so many times what it took.
const REST: u32 = 10;

impl Staging {
    pub(super) fn new(number: u32, region: u64, name: &[u8], state: ObjectState) -> Self {
        let name = name.to_vec();
        let object = Arc::new(ObjectIdentity { name, state });
        Staging {
            number,
            region,
            identity: Identity::Object(Arc::clone(&object)),
            object,
            over: OnceLock::new(),
            seen: Mutex::new(Seen {
                last: Instant::now(),
                look: None,
                took: Duration::ZERO,
                is_missed: false,
            }),
        }
    }

    /// All its pages.
    pub(super) fn pages(&self) -> Range<u64> {
        self.pages_of(0, self.state().length)
    }

    /// The pages that these bytes of the object stand in.
    pub(super) fn pages_of(&self, offset: u64, length: u64) -> Range<u64> {
        let whole = Extent::cut(self.region, self.state().length);
        let bytes = whole.after(offset).first(length);
        if bytes.is_empty() {
            return 0..0;
        }
        bytes.start() / PAGE..bytes.end().div_ceil(PAGE)
    }

    /// The bytes of the object that stand in these pages.
    pub(super) fn bytes_of(&self, pages: &Range<u64>) -> Range<u64> {
        let offset = |page: u64| page.times(PAGE).left_after(self.region);
        offset(pages.start)..offset(pages.end).min(self.state().length)
    }

    /// What the server said of it.
    pub(super) fn state(&self) -> &ObjectState {
        &self.object.state
    }

    /// Whether the source's URL names it, and no other does.
    pub(super) fn is_the_urls(&self) -> bool {
        self.object.name.is_empty()
    }

    /// The object is no longer in that state, for good, as `why` tells.
    pub(super) fn end(&self, why: Error) {
        let _known = self.over.set(why);
    }

    /// Why the object is no longer in that state, if it is not.
    pub(super) fn over(&self) -> Option<&Error> {
        self.over.get()
    }

    /// An answer has brought bytes of it, and so has shown it in that state, if answers tell.
    pub(super) fn confirm(&self) {
        if !self.state().is_sampled() {
            let mut seen = lock(&self.seen);
            seen.last = Instant::now();
            seen.is_missed = false;
        }
    }

    /// A look has ended: whether it has shown it in that state, or why it is not, if it has told
    /// that.
    pub(super) fn looked(&self, told: Option<Result<()>>) {
        let mut seen = lock(&self.seen);
        seen.last = Instant::now();
        let took = seen.look.take().map(|began| began.elapsed());
        seen.is_missed = told.is_none();
        match told {
            Some(Ok(())) => seen.took = took.unwrap_or_default(),
            Some(Err(why)) => self.end(why),
            None => {}
        }
    }

    /// Whether it was seen in that state for as short a time ago as what was seen is `valid`. Of one
    /// that no answer tells apart, that is never known.
    pub(super) fn is_fresh(&self, valid: Duration) -> bool {
        let seen = lock(&self.seen);
        let is_told = !self.state().is_sampled() && !seen.is_missed;
        is_told && !OpenedState::is_over(self) && seen.last.elapsed() < valid
    }

    /// Whether a look is under way.
    pub(super) fn is_looked_at(&self) -> bool {
        lock(&self.seen).look.is_some()
    }

    /// Whether a look is to be begun now: it was seen longer ago than what was seen is `valid`, and
    /// no look is under way.
    pub(super) fn is_due(&self, valid: Duration) -> bool {
        let mut seen = lock(&self.seen);
        let valid = if self.state().is_sampled() {
            seen.took.saturating_mul(REST).max(SAMPLED)
        } else {
            valid
        };
        let is_due =
            !OpenedState::is_over(self) && seen.look.is_none() && seen.last.elapsed() >= valid;
        if is_due {
            seen.look = Some(Instant::now());
        }
        is_due
    }
}

impl OpenedState for Staging {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    /// No writer changes an object: another takes its place.
    fn is_settled(&self) -> bool {
        true
    }

    fn is_over(&self) -> bool {
        self.over.get().is_some()
    }
}

/// How many there are from its start to its end.
pub(super) fn length(range: &Range<u64>) -> u64 {
    range.end.left_after(range.start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::remote::failure::changed;
    use std::thread::sleep;

    #[test]
    fn looks_that_bring_bytes_take_a_small_part_of_the_time() {
        let mut state = ObjectState::default();
        state.set_sample(b"hash");
        let object = Staging::new(0, 0, b"", state);
        let moment = Duration::from_millis(5);
        let await_look = || {
            while !object.is_due(Duration::ZERO) {
                sleep(moment);
            }
        };
        await_look();
        sleep(Duration::from_millis(100));
        assert!(!object.is_due(Duration::ZERO), "one is under way");
        object.looked(Some(Ok(())));
        let ended = Instant::now();
        await_look();
        assert!(ended.elapsed() >= Duration::from_millis(900));
        assert!(!OpenedState::is_over(&object));
        object.looked(Some(Err(changed())));
        assert!(OpenedState::is_over(&object));
    }
}
