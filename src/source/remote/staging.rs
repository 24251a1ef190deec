//! One object in one state: where its bytes stand in the stage, and whether that state is over.

use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::memory::lock::lock;
use crate::source::identity::{Identity, ObjectIdentity};
use crate::source::open::OpenedState;
use crate::source::remote::message::ObjectState;
use crate::source::remote::segment::PAGE;

/// One object in the state in which it was opened.
#[derive(Debug)]
pub(super) struct Staging {
    /// Its number at the fetcher.
    pub(super) number: u32,
    /// Where its first byte stands in the stage: a page begins there.
    pub(super) region: u64,
    object: Arc<ObjectIdentity>,
    identity: Identity,
    over: AtomicBool,
    /// When it was last seen in that state, or a look was begun.
    seen: Mutex<Instant>,
}

impl Staging {
    pub(super) fn new(number: u32, region: u64, name: &[u8], state: ObjectState) -> Self {
        let name = name.to_vec();
        let object = Arc::new(ObjectIdentity { name, state });
        Staging {
            number,
            region,
            identity: Identity::Object(Arc::clone(&object)),
            object,
            over: AtomicBool::new(false),
            seen: Mutex::new(Instant::now()),
        }
    }

    /// All its pages.
    pub(super) fn pages(&self) -> Range<u64> {
        self.pages_of(0, self.state().length)
    }

    /// The pages that these bytes of the object stand in.
    pub(super) fn pages_of(&self, offset: u64, length: u64) -> Range<u64> {
        let length = length.min(self.state().length.saturating_sub(offset));
        let first = self.region.saturating_add(offset);
        let end = first.saturating_add(length);
        match length {
            0 => 0..0,
            _ => first / PAGE..end.div_ceil(PAGE),
        }
    }

    /// The bytes of the object that stand in these pages.
    pub(super) fn bytes_of(&self, pages: &Range<u64>) -> Range<u64> {
        let offset = |page: u64| page.saturating_mul(PAGE).saturating_sub(self.region);
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

    /// The object is no longer in that state, for good.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// An answer has shown it in that state.
    pub(super) fn confirm(&self) {
        *lock(&self.seen) = Instant::now();
    }

    /// Whether it was seen longer ago than what was seen is `valid`. The next time is counted from
    /// now on.
    pub(super) fn is_due(&self, valid: Duration) -> bool {
        let mut seen = lock(&self.seen);
        let is_due = !OpenedState::is_over(self) && seen.elapsed() >= valid;
        if is_due {
            *seen = Instant::now();
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
        self.over.load(Ordering::Relaxed)
    }
}

/// How many there are from its start to its end.
pub(super) fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}
