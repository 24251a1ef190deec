//! An object as a source.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};
use crate::limits;
use crate::memory::cancel::IsWanted;
use crate::source::attributes::Attributes;
use crate::source::open::{OpenSource, OpenedState, SharedState};
use crate::source::remote::connection::Connection;
use crate::source::remote::failure::is_missing;
use crate::source::remote::staging::Staging;
use crate::source::remote::state::ObjectState;
use crate::source::{Source, Urgency};
use crate::wire::{Count, Extent, to_u64};

/// Bytes that are brought for a read that no hint has announced: it is of metadata, and more of
/// that stands around it.
const BLOCK: u64 = 256 << 10;

/// An object in the state in which it was opened: its bytes are of that state, or not to be had.
#[derive(Debug)]
pub struct RemoteObject {
    connection: Arc<Connection>,
    staging: Arc<Staging>,
    /// Where the first of the pages begins that structures stand together in, and their bytes.
    pages: OnceLock<(u64, u64)>,
    /// Whether all of it was asked for, as it is small.
    is_asked_for: AtomicBool,
}

impl RemoteObject {
    /// Opens the object called `name`, relative to the URL's prefix, `None` where there is none;
    /// the empty name is the URL's own.
    ///
    /// # Errors
    /// Fails with the server's error: `EACCES`, `EIO`; `Usage` where it serves no ranges.
    pub fn find(connection: &Arc<Connection>, name: &[u8]) -> Result<Option<Self>> {
        Self::opened(connection, name, None)
    }

    /// Like [`find`](Self::find), of an object that is said to have `length` bytes.
    ///
    /// # Errors
    /// Fails as [`find`](Self::find) does.
    pub(super) fn find_of(
        connection: &Arc<Connection>,
        name: &[u8],
        length: u64,
    ) -> Result<Option<Self>> {
        Self::opened(connection, name, Some(length))
    }

    fn opened(
        connection: &Arc<Connection>,
        name: &[u8],
        length: Option<u64>,
    ) -> Result<Option<Self>> {
        match connection.open(name, length) {
            Ok(staging) => Ok(Some(RemoteObject {
                connection: Arc::clone(connection),
                staging: Arc::new(staging),
                pages: OnceLock::new(),
                is_asked_for: AtomicBool::new(false),
            })),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What the server said of it when it was opened.
    pub(super) fn object_state(&self) -> &ObjectState {
        self.staging.state()
    }

    /// Whether it is in the state in which it was opened, as was seen lately, or else is now. False
    /// where no answer tells.
    pub(super) fn is_unchanged(&self) -> bool {
        self.connection.is_unchanged(&self.staging)
    }

    /// Has all of an object that is small asked for when bytes of it are first lacking: one request
    /// brings what many would. It does so once: what has given way comes back in parts.
    fn ask_for_all(&self, is_there: impl FnOnce() -> bool) {
        let small = if self.staging.is_the_urls() {
            limits::SMALL_OBJECT
        } else {
            limits::SMALL_MEMBER
        };
        // Of what is kept, it pushes out no more than a quarter.
        let most = small.min(self.connection.kept() / 4);
        if self.length() <= most
            && !self.is_asked_for.load(Ordering::Relaxed)
            && !is_there()
            && !self.is_asked_for.swap(true, Ordering::Relaxed)
        {
            let all = [(0, self.length())];
            self.connection
                .prefetch(&self.staging, &all, Urgency::Expected);
        }
    }

    /// The bytes that are brought with these: if they are few, all of the blocks that they are in.
    fn around(&self, wanted: Extent) -> Range<u64> {
        let at = wanted.start();
        let known = self.pages.get().filter(|(base, _)| *base <= at);
        let (base, block) = known.map_or((0, BLOCK), |(base, page)| {
            (*base, (*page).clamp(BLOCK, limits::PAGED_BLOCK))
        });
        if wanted.length() >= block {
            return wanted.range();
        }
        let past = at.left_after(base).checked_rem(block).unwrap_or(0);
        let blocks = wanted.end().left_after(base);
        let end = blocks.checked_next_multiple_of(block);
        let end = end.and_then(|blocks| blocks.checked_add(base));
        at.left_after(past)..end.unwrap_or(u64::MAX)
    }

    /// Of a paged file, what is expected comes with the blocks that it is in: others of its page
    /// follow. What is there already brings nothing.
    fn blocks_of(&self, ranges: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let ranges = ranges.iter().take(limits::HINTED_RANGES);
        let absent = ranges.filter(|(at, length)| !self.has(*at, *length));
        let blocks = absent.map(|(at, length)| {
            let around = Extent::from(self.around(Extent::cut(*at, *length)));
            (around.start(), around.length())
        });
        blocks.collect()
    }
}

impl OpenSource for RemoteObject {
    fn state(&self) -> SharedState {
        Arc::<Staging>::clone(&self.staging)
    }

    /// Answers of the server tell whether it is. Now and then, this has the object looked at.
    fn is_changed(&self) -> bool {
        if self.staging.is_due(self.connection.valid()) {
            self.connection.look(&self.staging);
        }
        self.staging.is_over()
    }

    /// Whoever may use the mount may read it: the server lets the user in that mounted it.
    fn attributes(&self) -> Result<Attributes> {
        let (uid, gid) = self.connection.owner();
        let state = self.staging.state();
        Ok(Attributes {
            size: state.length,
            uid,
            gid,
            mode: 0o100_444,
            modified: (state.modified, 0),
        })
    }
}

impl Source for RemoteObject {
    fn length(&self) -> u64 {
        self.staging.state().length
    }

    fn is_far(&self) -> bool {
        true
    }

    fn prefetch(&self, ranges: &[(u64, u64)], urgency: Urgency) {
        self.ask_for_all(|| ranges.iter().all(|(at, length)| self.has(*at, *length)));
        if urgency == Urgency::Expected && self.pages.get().is_some() {
            let blocks = self.blocks_of(ranges);
            return self.connection.prefetch(&self.staging, &blocks, urgency);
        }
        self.connection.prefetch(&self.staging, ranges, urgency);
    }

    fn has(&self, at: u64, length: u64) -> bool {
        self.connection.has(&self.staging, at, length)
    }

    /// Has the first page of an object that is mounted brought: all that a small file has of
    /// metadata stands there. One command, or one of many objects beneath a prefix, needs little of
    /// it.
    fn set_pages(&self, base: u64, length: u64) {
        // Those of one file do not change; a second file in the same object changes none.
        let is_mounted = self.connection.is_mounted() && self.staging.is_the_urls();
        if self.pages.set((base, length)).is_ok() && is_mounted {
            let first = (base, length.min(limits::FIRST_PAGE));
            self.connection
                .prefetch(&self.staging, &[first], Urgency::Expected);
        }
    }

    fn pages(&self) -> Option<(u64, u64)> {
        self.pages.get().copied()
    }

    fn read_wanted(&self, at: u64, buffer: &mut [u8], is_wanted: &IsWanted<'_>) -> Result<()> {
        let length = to_u64(buffer.len());
        let wanted = Extent::checked(at, length).filter(|wanted| wanted.is_within(self.length()));
        let past_end = || format!("{length} bytes reach past the end of the object");
        let wanted = wanted.ok_or_else(|| Error::corrupt(past_end(), at))?;
        self.ask_for_all(|| self.has(at, length));
        let around = self.around(wanted);
        self.connection
            .read(&self.staging, at, buffer, around, is_wanted)
    }
}

impl Drop for RemoteObject {
    fn drop(&mut self) {
        self.connection.close(&self.staging);
    }
}
